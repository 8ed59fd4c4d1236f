//! Requests for jobs, and their answers.

use domain::{Job, RepairResult};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A job to start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobBody {
    /// The ticket or pull request: `ENG-12`, `jira:ENG-12`, `github:acme/shop#7`,
    /// `github:acme/shop/discussions/7` or `folder:shop#1`.
    pub ticket: String,
    /// The kind of work: `implement`, `triage`, `answer`, `discuss`, `review`, `fix_ci` or `address_review`.
    #[schema(value_type = String)]
    pub job: Job,
    /// For the job `implement` the repository, e.g. `acme/shop`; by default that of the ticket's project.
    pub repository: Option<String>,
    /// Text of a folder ticket. Other tickets are read from their trackers.
    pub text: Option<TextBody>,
    /// Context of the job from the caller; at most 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ContextBody>)]
    pub context: Option<serde_json::Map<String, serde_json::Value>>,
    /// Return the job that would start, and start nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Start a rehearsal, which describes the writes of the job without a model, a workspace, a push or
    /// outbound writes.
    #[serde(default)]
    pub mock: bool,
}

/// Context of a job from the caller. Its texts count as words of a person. The other fields select the issue
/// or pull request, whose contents are read from GitHub.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextBody {
    /// For `implement`, `fix_ci` and `review`: additional instructions. Every text has at most 8,000
    /// characters.
    pub instructions: Option<String>,
    /// For `answer`, where it is required: the question.
    pub question: Option<String>,
    /// For `address_review`: the requested changes; by default the last review with requests is addressed.
    pub feedback: Option<String>,
    /// The pull request, if a ticket has several; a number or its digits, empty for none.
    #[schema(value_type = Option<Object>)]
    pub pr_number: Option<serde_json::Value>,
    /// The issue, which must be the ticket; a number or its digits, empty for none.
    #[schema(value_type = Option<Object>)]
    pub issue_number: Option<serde_json::Value>,
    /// The issue, pull request or discussion, which must be the ticket; a number or its digits, empty for
    /// none.
    #[schema(value_type = Option<Object>)]
    pub resource_number: Option<serde_json::Value>,
    /// For `answer` and `discuss`: the GitHub comment with the request. It gets the reaction, and in a
    /// discussion the answer.
    ///
    /// The number (or its digits) of a comment on an issue or pull request, or the GraphQL id of a comment in
    /// a discussion; empty for none.
    #[schema(value_type = Option<Object>)]
    pub comment_id: Option<serde_json::Value>,
    /// For `discuss`, where it is required: `research`, `summarize`, `plan` or `complete`.
    pub task: Option<String>,
    /// The discussion, which must be the ticket; a number or its digits, empty for none.
    #[schema(value_type = Option<Object>)]
    pub discussion_number: Option<serde_json::Value>,
    // Callers may send the contents of an event. They are accepted but never used, because a caller could
    // claim any text.
    /// Ignored: the title is read from the discussion.
    #[schema(value_type = Option<Object>)]
    pub discussion_title: Option<serde_json::Value>,
    /// Ignored: the text is read from the discussion.
    #[schema(value_type = Option<Object>)]
    pub discussion_body: Option<serde_json::Value>,
    /// Ignored: the title is read from the issue.
    #[schema(value_type = Option<Object>)]
    pub issue_title: Option<serde_json::Value>,
    /// Ignored: the text is read from the issue.
    #[schema(value_type = Option<Object>)]
    pub issue_body: Option<serde_json::Value>,
    /// Ignored: the value is read from the pull request.
    #[schema(value_type = Option<Object>)]
    pub issue_section: Option<serde_json::Value>,
    /// Ignored: the branch is read from the pull request.
    #[schema(value_type = Option<Object>)]
    pub branch_name: Option<serde_json::Value>,
    /// Ignored: the branch is read from the pull request.
    #[schema(value_type = Option<Object>)]
    pub existing_branch: Option<serde_json::Value>,
    /// Ignored: the result is read from the checks of the head.
    #[schema(value_type = Option<Object>)]
    pub ci_result: Option<serde_json::Value>,
    /// Ignored: the trigger is always the caller's request.
    #[schema(value_type = Option<Object>)]
    pub trigger_type: Option<serde_json::Value>,
}

impl ContextBody {
    /// Maximum size of a context in bytes.
    pub const BYTES: usize = 256 * 1024;
    /// Maximum characters of each text.
    pub const WORDS_CHARS: usize = 8_000;
}

/// A job that would start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobPlanned {
    /// Key of the ticket whose log would contain the job; our pull request counts as its ticket.
    pub ticket: String,
    /// The kind of work.
    #[schema(value_type = String)]
    pub job: Job,
    /// The repository that would receive a change.
    pub repository: String,
    /// Title of the ticket or pull request on one line.
    pub summary: String,
    /// Subject in addition to the ticket: `ticket` (none), `checks`, `review`, `question`, `change` or
    /// `discussion`.
    pub about: String,
    /// URL of the pull request that the job would be about.
    pub pull_request: Option<String>,
}

/// Text of a ticket without a tracker.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TextBody {
    /// The title on one line.
    pub summary: String,
    /// The description as Markdown.
    #[serde(default)]
    pub description: String,
}

/// Answer to a request for a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum JobStarted {
    /// The job was accepted.
    Accepted(JobAccepted),
    /// The job is a repair, and there is nothing to repair.
    Needless(RepairResult),
}

/// An accepted job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobAccepted {
    /// Key of the ticket.
    pub ticket: String,
    /// Key that identifies the request.
    pub key: String,
    /// Stream sequence in the log of triggers.
    pub sequence: u64,
    /// Id of the run that it opens.
    pub run: String,
}
