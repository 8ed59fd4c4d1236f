//! Why something may not leave or is not done, as codes with data, and the words for people. What the model can do about it is
//! the planner's to say.

mod words;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::IntoDeserializer as _};
use serde_json::{Map, Value};

use crate::{CommitId, Outside, RepositoryName, TicketKey};

/// Why policy or the outside refuses something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
pub enum Refusal {
    /// The change, or a text, breaks the policy.
    Policy {
        /// Each thing once.
        violations: Vec<Violation>,
    },
    /// The inspection of the change ended without a verdict.
    NotInspected,
    /// The commits did not arrive whole.
    BadPack {
        /// In words, without secrets.
        detail: String,
    },
    /// The rules ask for a person's approval, and nobody approved this commit.
    NotApproved {
        /// The commit.
        head: CommitId,
    },
    /// Nobody approved files of modules that this kind of ticket does not change.
    OutOfScope {
        /// The files.
        files: Vec<Outside>,
    },
    /// There are no rules to write by.
    NoRules {
        /// Of this repository.
        repository: RepositoryName,
    },
    /// The repository's rules are not for the ticket.
    ForeignProject {
        /// The ticket.
        ticket: TicketKey,
        /// The repository.
        repository: RepositoryName,
    },
    /// The branch is on the remote and was not pushed for the ticket.
    ForeignBranch {
        /// The branch.
        branch: String,
    },
    /// Another ticket pushed the branch.
    BranchOfAnotherTicket {
        /// The branch.
        branch: String,
        /// Its ticket.
        ticket: TicketKey,
    },
    /// The branch on the remote is not where the push expects it: somebody else pushed.
    BranchMoved {
        /// The branch.
        branch: String,
        /// Where it is now; absent: it is gone, or that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<CommitId>,
    },
    /// The branch cannot be made beside another one: one of the names is a folder of the other.
    BranchInTheWay {
        /// The branch.
        branch: String,
        /// The one that is there.
        by: String,
    },
    /// There is nothing on the remote that a pull request could be opened from.
    NotPushed {
        /// The branch.
        branch: String,
    },
    /// Somebody else has a pull request open from the branch.
    ForeignPullRequest {
        /// Its number.
        number: u64,
        /// Its author's login; empty: that is not known.
        #[serde(default)]
        author: String,
    },
    /// The pull request was not opened for the ticket.
    UnknownPullRequest {
        /// Its number.
        number: u64,
    },
    /// The pull request was merged or closed.
    PullRequestOver {
        /// Its number.
        number: u64,
    },
    /// The pull request is at another commit than the one whose checks are known.
    UncheckedHead {
        /// Whose checks are known.
        known: CommitId,
        /// Its head.
        now: CommitId,
    },
    /// The rules allow fewer issues than the plan has.
    TooManyIssues {
        /// How many it has.
        planned: u64,
        /// How many they allow.
        allowed: u64,
    },
    /// The rules allow fewer parts of a ticket.
    TooManyParts {
        /// How many were chosen.
        planned: u64,
        /// How many they allow.
        allowed: u64,
    },
    /// The issue has parts already.
    PartedAlready,
    /// A tool of the workspace could not do what the planner itself asked for.
    Workspace {
        /// What the tool says.
        detail: String,
    },
    /// GitHub, Jira or git says no. Releases that knew no codes stored every refusal in such words.
    Outside {
        /// In words, without secrets.
        detail: String,
    },
}

impl From<Violation> for Refusal {
    fn from(violation: Violation) -> Self {
        Self::Policy {
            violations: vec![violation],
        }
    }
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Refusal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        if !fields.contains_key("code") {
            fields.insert("code".to_owned(), Value::from("outside"));
        }
        Self::deserialize(Value::Object(fields).into_deserializer()).map_err(serde::de::Error::custom)
    }
}

/// One thing that is wrong with a change or a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Violation {
    /// The branch's name is not legal in git.
    BranchName {
        /// The name.
        branch: String,
    },
    /// The branch is one that people own.
    BranchOfPeople {
        /// The branch.
        branch: String,
    },
    /// The branch does not name its ticket.
    BranchWithoutTicket {
        /// The branch.
        branch: String,
        /// What its name has to contain.
        ticket: String,
    },
    /// The base is not in the history of the remote's branches.
    ForeignBase {
        /// The base.
        base: String,
    },
    /// The head does not descend from the base.
    Unrelated {
        /// The head.
        head: String,
        /// The base.
        base: String,
    },
    /// The commits with all they hold are over the limit.
    PackTooLarge {
        /// What they have.
        size_bytes: u64,
        /// What they may have.
        limit_bytes: u64,
    },
    /// More commits than a person can review.
    TooManyCommits {
        /// How many there may be.
        limit: usize,
    },
    /// Nothing differs from the base.
    NoChange,
    /// A path that only people may change.
    Protected {
        /// The path.
        path: String,
    },
    /// A path inside a git directory.
    GitDirectory {
        /// The path.
        path: String,
    },
    /// A link that leaves the repository, or may.
    EscapingLink {
        /// The link.
        path: String,
        /// Where it points.
        target: String,
    },
    /// A submodule was added, moved or removed.
    Submodule {
        /// Its path.
        path: String,
    },
    /// Content that belongs into Git LFS.
    LfsContent {
        /// The file.
        path: String,
    },
    /// A file over the limit.
    TooLarge {
        /// The file.
        path: String,
        /// What it has.
        size_bytes: u64,
        /// What it may have.
        limit_bytes: u64,
    },
    /// More paths differ than are looked at.
    TooManyFiles {
        /// How many differ.
        count: usize,
    },
    /// More content than can be looked at, this path among it.
    TooMuch {
        /// The path.
        path: String,
    },
    /// A commit with two parents or none.
    Merge {
        /// The commit.
        commit: String,
    },
    /// A commit by somebody else than us.
    ForeignAuthor {
        /// The commit.
        commit: String,
        /// Whom it names.
        who: String,
    },
    /// Header lines that no commit of ours has.
    CommitHeader {
        /// The commit.
        commit: String,
        /// The line.
        header: String,
    },
    /// Hidden or control characters in a commit's message.
    HiddenCharacters {
        /// The commit.
        commit: String,
    },
    /// Words in a commit's message that act on tickets, people, releases or checks.
    Command {
        /// The words.
        words: String,
        /// The commit.
        commit: String,
    },
    /// Something that looks like a credential.
    Secret {
        /// What it looks like.
        kind: String,
        /// Where it stands.
        place: SecretPlace,
    },
}

/// Where a credential stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum SecretPlace {
    /// In what a file's content adds.
    File {
        /// The file.
        path: String,
    },
    /// In a path; it is not repeated.
    Path,
    /// In a commit's message.
    Message {
        /// The commit.
        commit: String,
    },
    /// In the branch's name.
    Branch,
    /// In the title of a pull request.
    Title,
    /// In the body of a pull request.
    Body,
    /// In the title of an issue.
    IssueTitle,
    /// In the text of an issue.
    IssueText,
    /// In a label.
    Label,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Return, StopReason};

    #[test]
    fn a_refusal_in_the_words_of_an_earlier_release_is_read_and_written_as_it_was() {
        let words = Refusal::Outside {
            detail: "a secret".to_owned(),
        };
        let stored = serde_json::json!({ "type": "report_refused", "detail": "a secret" });
        let read: StopReason = serde_json::from_value(stored).unwrap();
        assert_eq!(read, StopReason::ReportRefused(words));
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written["detail"], "a secret");
    }

    #[test]
    fn a_refusal_keeps_its_data_where_it_is_stored() {
        let refusal = Refusal::Policy {
            violations: vec![
                Violation::NoChange,
                Violation::Secret {
                    kind: "GitHub token".to_owned(),
                    place: SecretPlace::Path,
                },
                Violation::TooLarge {
                    path: "a".to_owned(),
                    size_bytes: u64::MAX,
                    limit_bytes: 1,
                },
            ],
        };
        let back = Return::Refused(refusal);
        let stored = serde_json::to_value(&back).unwrap();
        assert_eq!(stored["type"], "refused");
        assert_eq!(stored["code"], "policy");
        assert_eq!(serde_json::from_value::<Return>(stored).unwrap(), back);
        let unknown = serde_json::json!({ "type": "refused", "code": "of_a_later_release" });
        assert!(serde_json::from_value::<Return>(unknown).is_err());
    }
}
