//! What can be wrong with a change, as codes with data. `message::refusal` says it in words.

use serde::{Deserialize, Serialize};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Violation {
    /// The branch's name is not legal in git.
    BranchName { branch: String },
    /// The branch is one that people own.
    BranchOfPeople { branch: String },
    /// The branch does not name its ticket.
    BranchWithoutTicket { branch: String, ticket: String },
    /// The base is not in the history of the remote's branches.
    ForeignBase { base: String },
    /// The head does not descend from the base.
    Unrelated { head: String, base: String },
    /// The commits with all they hold are over the limit.
    PackTooLarge { size_bytes: u64, limit_bytes: u64 },
    /// More commits than a person can review.
    TooManyCommits { limit: usize },
    /// Nothing differs from the base.
    NoChange,
    /// A path that only people may change.
    Protected { path: String },
    /// A path inside a git directory.
    GitDirectory { path: String },
    /// A link that leaves the repository, or may.
    EscapingLink { path: String, target: String },
    /// A submodule was added, moved or removed.
    Submodule { path: String },
    /// Content that belongs into Git LFS.
    LfsContent { path: String },
    /// A file over the limit.
    TooLarge {
        path: String,
        size_bytes: u64,
        limit_bytes: u64,
    },
    /// More paths differ than are looked at.
    TooManyFiles { count: usize },
    /// More content than can be looked at, this path among it.
    TooMuch { path: String },
    /// A commit with two parents or none.
    Merge { commit: String },
    /// A commit by somebody else than us.
    ForeignAuthor { commit: String, who: String },
    /// Header lines that no commit of ours has.
    CommitHeader { commit: String, header: String },
    /// Hidden or control characters in a commit's message.
    HiddenCharacters { commit: String },
    /// Words in a commit's message that act on a ticket.
    Command { words: String, commit: String },
    /// Something that looks like a credential.
    Secret { kind: String, place: Place },
}

/// Where a credential stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub(crate) enum Place {
    /// In what a file's content adds.
    File { path: String },
    /// In a path; it is not repeated.
    Path,
    /// In a commit's message.
    Message { commit: String },
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
