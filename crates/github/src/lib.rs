//! GitHub over REST and GraphQL. [`Reader`] and [`Writer`] are separate types, so that a service with read
//! access cannot hold a writer. No code calls a merge endpoint.

mod blame;
mod call;
mod check_runs;
mod client;
mod clients;
mod comments;
mod discussions;
mod error;
mod issue_types;
mod issues;
mod kept;
mod limits;
mod model;
mod model_discussions;
mod model_issues;
mod model_runs;
mod new_issues;
pub mod permissions;
mod places;
mod projects;
mod reader;
pub mod registration;
mod required;
mod reruns;
mod reviewing;
mod rounds;
mod settings;
mod transport;
mod wire;
mod writer;

pub use blame::Lines;
pub use check_runs::CheckRunText;
pub use client::Identity;
pub use error::Error;
pub use issues::IssueState;
pub use limits::{Gated, WRITES};
pub use model::{
    Check, CheckConclusion, CheckKind, CheckStatus, Comment, CommentId, ETag, GitRemote, HookDelivery,
    LineComment, Permission, Polled, PullRequest, PullRequestState, Remark, Repository, Review, ReviewState,
    conclusion, mentions,
};
pub use model_discussions::{Discussion, DiscussionComment, DiscussionStub};
pub use model_issues::{
    Assigned, Edit, Issue, IssueComment, IssueEvent, IssueStub, IssueWish, ListedIssue, PolledIssues,
    ReviewRequest, User,
};
pub use model_runs::{CommitRun, RunProgress, WorkflowRun, actions_run, is_our_check_run};
pub use new_issues::{NewIssue, OpenedIssue};
pub use projects::{Project, ProjectField, ProjectItem, ProjectValue};
pub use reader::Reader;
pub use reviewing::{NewComment, NewReview};
pub use settings::{Settings, readers, writers};
pub use writer::Writer;

#[cfg(test)]
mod tests;
