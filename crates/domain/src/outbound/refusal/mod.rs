//! Refusals by policy or by external services: codes with data, and their description for people. The planner
//! describes for the model how to resolve them.

mod words;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::IntoDeserializer as _};
use serde_json::{Map, Value};

use crate::{
    identity::{commit::CommitId, repository::RepositoryName, ticket::TicketKey},
    outbound::metadata_pattern::MetadataPattern,
    rules::scope::OutOfScopeFile,
};

/// Reason for which policy or an external service refuses a request.
// `remote = "Self"` generates inherent functions, which the manual implementations below wrap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
pub enum OutboundRefusal {
    /// The change, or a text, violates the policy.
    Policy {
        /// The violations, each once.
        violations: Vec<PolicyViolation>,
    },
    /// The inspection of the change ended without a verdict.
    NotInspected,
    /// The pack of the commits is incomplete or corrupt.
    BadPack {
        /// Description without secrets.
        detail: String,
    },
    /// The rules require a person's approval, and this commit has none.
    NotApproved {
        /// The commit without approval.
        head: CommitId,
    },
    /// The change contains files outside of the ticket's scope, and they have no approval.
    OutOfScope {
        /// The files outside of the scope.
        files: Vec<OutOfScopeFile>,
    },
    /// The repository has no usable rules.
    NoRules {
        /// The repository without rules.
        repository: RepositoryName,
    },
    /// The repository's rules exclude the project of the ticket.
    ForeignProject {
        /// The excluded ticket.
        ticket: TicketKey,
        /// The repository of the rules.
        repository: RepositoryName,
    },
    /// The branch exists on the remote and was not pushed for the ticket.
    ForeignBranch {
        /// Name of the branch.
        branch: String,
    },
    /// Another ticket owns the branch.
    BranchOfAnotherTicket {
        /// Name of the branch.
        branch: String,
        /// The ticket that owns it.
        ticket: TicketKey,
    },
    /// The branch on the remote has an unexpected head: another author pushed.
    BranchMoved {
        /// Name of the branch.
        branch: String,
        /// Its current head; absent: the branch was deleted, or the head is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<CommitId>,
    },
    /// The branch conflicts with an existing one, because one of the names is a folder of the other.
    BranchInTheWay {
        /// Name of the branch.
        branch: String,
        /// Name of the existing branch.
        by: String,
    },
    /// The remote has no branch to open a pull request from.
    NotPushed {
        /// Name of the missing branch.
        branch: String,
    },
    /// Another author has an open pull request from the branch.
    ForeignPullRequest {
        /// Number of the pull request.
        number: u64,
        /// Login of its author; empty: unknown.
        #[serde(default)]
        author: String,
    },
    /// The pull request was not opened for the ticket.
    UnknownPullRequest {
        /// Number of the pull request.
        number: u64,
    },
    /// The pull request was merged or closed.
    PullRequestOver {
        /// Number of the pull request.
        number: u64,
    },
    /// The head of the pull request differs from the commit with known check results.
    UncheckedHead {
        /// The commit with known check results.
        known: CommitId,
        /// The current head of the pull request.
        now: CommitId,
    },
    /// The plan has more issues than the rules allow.
    TooManyIssues {
        /// Number of planned issues.
        planned: u64,
        /// Maximum number that the rules allow.
        allowed: u64,
    },
    /// The ticket would be split into more sub-issues than the rules allow.
    TooManyParts {
        /// Number of chosen sub-issues.
        planned: u64,
        /// Maximum number that the rules allow.
        allowed: u64,
    },
    /// The issue is already split into sub-issues.
    PartedAlready,
    /// The branch accepts signed commits alone, and the reporter has no way to sign them.
    NoSigningKey {
        /// The repository that requires signatures.
        repository: RepositoryName,
        /// The branch whose rules require them.
        branch: String,
    },
    /// The server does not accept the signature of our commit.
    UnverifiedSignature {
        /// The signed commit.
        commit: CommitId,
        /// GitHub's code for the problem, such as `unknown_key`.
        reason: String,
    },
    /// The writing account lacks permissions that the delivery of a change needs.
    MissingRights {
        /// The repository that receives the change.
        repository: RepositoryName,
        /// The missing permissions, such as `pull_requests:write`.
        rights: Vec<String>,
        /// Section of the settings with the account.
        section: String,
    },
    /// A pattern of the repository does not permit what the settings or the rules prescribe, so that no change could be
    /// pushed.
    UnmetPattern {
        /// The repository that receives the change.
        repository: RepositoryName,
        /// The pattern.
        pattern: MetadataPattern,
        /// The name, the address or the line of a message that does not match.
        found: String,
    },
    /// The branch of a pull request accepts no merge commit, so its base cannot be merged into it.
    LinearHistory {
        /// The repository of the pull request.
        repository: RepositoryName,
        /// The branch whose rules refuse merge commits.
        branch: String,
    },
    /// A hook or a rule of the server refused the push.
    PushRejected {
        /// Name of the branch.
        branch: String,
        /// The words of the server, bounded and without secrets.
        detail: String,
    },
    /// A tool of the workspace failed to do what the planner requested.
    Workspace {
        /// The message of the tool.
        detail: String,
    },
    /// GitHub, Jira or git refused. Releases before the codes stored every refusal in this form.
    Outside {
        /// Description without secrets.
        detail: String,
    },
}

impl OutboundRefusal {
    /// Returns true if only an operator or an administrator can remove the cause, so that no further work helps.
    pub const fn needs_operator(&self) -> bool {
        match self {
            Self::NoSigningKey { .. }
            | Self::UnverifiedSignature { .. }
            | Self::MissingRights { .. }
            | Self::UnmetPattern { .. }
            | Self::LinearHistory { .. } => true,
            Self::Policy { .. }
            | Self::NotInspected
            | Self::BadPack { .. }
            | Self::NotApproved { .. }
            | Self::OutOfScope { .. }
            | Self::NoRules { .. }
            | Self::ForeignProject { .. }
            | Self::ForeignBranch { .. }
            | Self::BranchOfAnotherTicket { .. }
            | Self::BranchMoved { .. }
            | Self::BranchInTheWay { .. }
            | Self::NotPushed { .. }
            | Self::ForeignPullRequest { .. }
            | Self::UnknownPullRequest { .. }
            | Self::PullRequestOver { .. }
            | Self::UncheckedHead { .. }
            | Self::TooManyIssues { .. }
            | Self::TooManyParts { .. }
            | Self::PartedAlready
            | Self::PushRejected { .. }
            | Self::Workspace { .. }
            | Self::Outside { .. } => false,
        }
    }
}

impl From<PolicyViolation> for OutboundRefusal {
    fn from(violation: PolicyViolation) -> Self {
        Self::Policy {
            violations: vec![violation],
        }
    }
}

impl Serialize for OutboundRefusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for OutboundRefusal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        // Records of releases before the codes contain only a detail.
        if !fields.contains_key("code") {
            fields.insert("code".to_owned(), Value::from("outside"));
        }
        Self::deserialize(Value::Object(fields).into_deserializer()).map_err(serde::de::Error::custom)
    }
}

/// A violation of the policy in a change or a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PolicyViolation {
    /// The branch name is invalid in git.
    BranchName {
        /// The invalid name.
        branch: String,
    },
    /// The branch is reserved for people.
    BranchOfPeople {
        /// Name of the branch.
        branch: String,
    },
    /// The branch name does not contain its ticket.
    BranchWithoutTicket {
        /// Name of the branch.
        branch: String,
        /// Text that the name has to contain.
        ticket: String,
    },
    /// The base is missing in the history of the remote's branches.
    ForeignBase {
        /// Id of the base commit.
        base: String,
    },
    /// The head is not a descendant of the base.
    Unrelated {
        /// Id of the head commit.
        head: String,
        /// Id of the base commit.
        base: String,
    },
    /// The pack of the commits exceeds the limit.
    PackTooLarge {
        /// Size of the pack in bytes.
        size_bytes: u64,
        /// Maximum size in bytes.
        limit_bytes: u64,
    },
    /// The branch has more commits than a person can review.
    TooManyCommits {
        /// Maximum number of commits.
        limit: usize,
    },
    /// The change does not differ from the base.
    NoChange,
    /// The change modifies a path that is reserved for people.
    Protected {
        /// The protected path, relative to the root.
        path: String,
    },
    /// The change contains a path inside of a git directory.
    GitDirectory {
        /// The path, relative to the root.
        path: String,
    },
    /// The change contains a symbolic link whose target is, or may be, outside of the repository.
    EscapingLink {
        /// Path of the link, relative to the root.
        path: String,
        /// Target of the link.
        target: String,
    },
    /// The change adds, moves or removes a submodule.
    Submodule {
        /// Path of the submodule, relative to the root.
        path: String,
    },
    /// The change contains content that belongs into Git LFS.
    LfsContent {
        /// Path of the file, relative to the root.
        path: String,
    },
    /// A file exceeds the size limit.
    TooLarge {
        /// Path of the file, relative to the root.
        path: String,
        /// Size of the file in bytes.
        size_bytes: u64,
        /// Maximum size in bytes.
        limit_bytes: u64,
    },
    /// The change has more paths than the inspection accepts.
    TooManyFiles {
        /// Number of changed paths.
        count: usize,
    },
    /// The change has more content than the inspection accepts.
    TooMuch {
        /// A path with too much content, relative to the root.
        path: String,
    },
    /// The merge lacks a hunk of one side, and no reason names it.
    LostHunk {
        /// Path of the file on that side, relative to the root.
        path: String,
        /// A line of the hunk; empty: the change of the file as a whole.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        line: String,
    },
    /// A file has leftover markers of a merge.
    ConflictMarker {
        /// Path of the file, relative to the root.
        path: String,
    },
    /// A commit has no parent, or two that are not the sides of the requested merge.
    Merge {
        /// Id of the commit.
        commit: String,
    },
    /// A commit has a foreign author or committer.
    ForeignAuthor {
        /// Id of the commit.
        commit: String,
        /// The author or committer in the commit.
        who: String,
    },
    /// A commit has header lines that Journeyman never writes.
    CommitHeader {
        /// Id of the commit.
        commit: String,
        /// The foreign header line.
        header: String,
    },
    /// The message of a commit contains hidden or control characters.
    HiddenCharacters {
        /// Id of the commit.
        commit: String,
    },
    /// The message of a commit contains text that acts on tickets, people, releases or checks.
    Command {
        /// The acting text.
        words: String,
        /// Id of the commit.
        commit: String,
    },
    /// A commit or the branch does not match a pattern that the repository requires.
    Pattern {
        /// The pattern.
        requires: MetadataPattern,
        /// Id of the commit; empty: the commit is not made yet, or the pattern is about the branch.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        commit: String,
    },
    /// The change contains text with the format of a credential.
    Secret {
        /// Kind of the credential, such as `GitHub token`.
        kind: String,
        /// Location of the text.
        place: SecretPlace,
    },
}

/// Location of a suspected credential.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum SecretPlace {
    /// In the added content of a file.
    File {
        /// Path of the file, relative to the root.
        path: String,
    },
    /// In a path. The path is not repeated, because it contains the credential.
    Path,
    /// In the message of a commit.
    Message {
        /// Id of the commit.
        commit: String,
    },
    /// In the name of the branch.
    Branch,
    /// In the title of a pull request.
    Title,
    /// In the body of a pull request.
    Body,
    /// In the title of an issue.
    IssueTitle,
    /// In the text of an issue.
    IssueText,
    /// In the name of a label.
    Label,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{journal::stop::StopReason, work::handover::ReturnReason};

    #[test]
    fn refusal_without_code_round_trips() {
        let words = OutboundRefusal::Outside {
            detail: "a secret".to_owned(),
        };
        let stored = serde_json::json!({ "type": "report_refused", "detail": "a secret" });
        let read: StopReason = serde_json::from_value(stored).unwrap();
        assert_eq!(read, StopReason::ReportRefused(words));
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written["detail"], "a secret");
    }

    #[test]
    fn stored_refusal_keeps_its_violations() {
        let refusal = OutboundRefusal::Policy {
            violations: vec![
                PolicyViolation::NoChange,
                PolicyViolation::Secret {
                    kind: "GitHub token".to_owned(),
                    place: SecretPlace::Path,
                },
                PolicyViolation::TooLarge {
                    path: "a".to_owned(),
                    size_bytes: u64::MAX,
                    limit_bytes: 1,
                },
            ],
        };
        let back = ReturnReason::Refused(refusal);
        let stored = serde_json::to_value(&back).unwrap();
        assert_eq!(stored["type"], "refused");
        assert_eq!(stored["code"], "policy");
        assert_eq!(serde_json::from_value::<ReturnReason>(stored).unwrap(), back);
        let unknown = serde_json::json!({ "type": "refused", "code": "of_a_later_release" });
        assert!(serde_json::from_value::<ReturnReason>(unknown).is_err());
    }
}
