//! Jobs as the API takes them.

use domain::{Job, RepairResult};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A job to start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobBody {
    /// The ticket or pull request: `ENG-12`, `jira:ENG-12`, `github:acme/shop#7`, `github:acme/shop/discussions/7` or
    /// `folder:shop#1`.
    pub ticket: String,
    /// The kind of work: `implement`, `triage`, `answer`, `discuss`, `review`, `fix_ci` or `address_review`.
    #[schema(value_type = String)]
    pub job: Job,
    /// For the job `implement` the repository, `acme/shop`; the one of the ticket's project unless given.
    pub repository: Option<String>,
    /// What a ticket of a folder says; the other tickets are read where they are.
    pub text: Option<TextBody>,
    /// What the caller knows of the job, at most 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ContextBody>)]
    pub context: Option<serde_json::Map<String, serde_json::Value>>,
    /// Only tell which job would be started.
    #[serde(default)]
    pub dry_run: bool,
    /// Start a rehearsal of the job: without model, workspace, push and outside writes, it tells what would be written.
    #[serde(default)]
    pub mock: bool,
}

/// What a caller knows of a job. Words are what a person says; the rest says which issue or pull request is meant, and what can
/// be read there is read there.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextBody {
    /// For `implement`, `fix_ci` and `review`: what to mind; at most 8,000 characters, like all words.
    pub instructions: Option<String>,
    /// For `answer`, which needs it: what is asked.
    pub question: Option<String>,
    /// For `address_review`: what to change; without it the last review that asks for something is addressed.
    pub feedback: Option<String>,
    /// Which pull request, of several of a ticket; a number or its digits, empty for none.
    #[schema(value_type = Option<Object>)]
    pub pr_number: Option<serde_json::Value>,
    /// The issue, which must be the ticket; a number or its digits, empty for none.
    #[schema(value_type = Option<Object>)]
    pub issue_number: Option<serde_json::Value>,
    /// The issue, pull request or discussion, which must be the ticket; a number or its digits, empty for none.
    #[schema(value_type = Option<Object>)]
    pub resource_number: Option<serde_json::Value>,
    /// For `answer` and `discuss`: the comment on GitHub that asks. It gets the reaction, and in a discussion the answer. The
    /// number of a comment on an issue or pull request, or its digits; the GraphQL id of one in a discussion; empty for none.
    #[schema(value_type = Option<Object>)]
    pub comment_id: Option<serde_json::Value>,
    /// For `discuss`, which needs it: `research`, `summarize`, `plan` or `complete`.
    pub task: Option<String>,
    /// The discussion, which must be the ticket; a number or its digits, empty for none.
    #[schema(value_type = Option<Object>)]
    pub discussion_number: Option<serde_json::Value>,
    /// Read at the discussion, never from here.
    #[schema(value_type = Option<Object>)]
    pub discussion_title: Option<serde_json::Value>,
    /// Read at the discussion.
    #[schema(value_type = Option<Object>)]
    pub discussion_body: Option<serde_json::Value>,
    /// Read at the issue, never from here, like the following ones.
    #[schema(value_type = Option<Object>)]
    pub issue_title: Option<serde_json::Value>,
    /// Read at the issue.
    #[schema(value_type = Option<Object>)]
    pub issue_body: Option<serde_json::Value>,
    /// Read at the pull request.
    #[schema(value_type = Option<Object>)]
    pub issue_section: Option<serde_json::Value>,
    /// Read at the pull request.
    #[schema(value_type = Option<Object>)]
    pub branch_name: Option<serde_json::Value>,
    /// Read at the pull request.
    #[schema(value_type = Option<Object>)]
    pub existing_branch: Option<serde_json::Value>,
    /// Read from the checks of the head.
    #[schema(value_type = Option<Object>)]
    pub ci_result: Option<serde_json::Value>,
    /// It is always the caller's request.
    #[schema(value_type = Option<Object>)]
    pub trigger_type: Option<serde_json::Value>,
}

impl ContextBody {
    /// The largest context in bytes.
    pub const BYTES: usize = 256 * 1024;
    /// The longest words in characters.
    pub const WORDS_CHARS: usize = 8_000;
}

/// A job that would be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobPlanned {
    /// In whose log it would go: our pull request stands for its ticket.
    pub ticket: String,
    /// The kind of work.
    #[schema(value_type = String)]
    pub job: Job,
    /// Where a change would go.
    pub repository: String,
    /// One line of what the ticket or pull request says.
    pub summary: String,
    /// What it would be about beside that: `ticket` (nothing), `checks`, `review`, `question`, `change` or `discussion`.
    pub about: String,
    /// The address of the pull request that it would be about.
    pub pull_request: Option<String>,
}

/// The text of a ticket that no tracker has.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TextBody {
    /// One line.
    pub summary: String,
    /// Markdown.
    #[serde(default)]
    pub description: String,
}

/// What came of a request for a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum JobStarted {
    /// It was taken.
    Accepted(JobAccepted),
    /// It was a repair, and there is nothing to repair.
    Needless(RepairResult),
}

/// A job that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobAccepted {
    /// The ticket.
    pub ticket: String,
    /// The identity of the request.
    pub key: String,
    /// Its place in the log of triggers.
    pub sequence: u64,
    /// The run that it opens.
    pub run: String,
}
