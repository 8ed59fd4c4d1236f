//! GitHub over REST and GraphQL. [`GitHubReader`] and [`GitHubWriter`] are separate types, so that a service with read
//! access cannot hold a writer. No code calls a merge endpoint.

// The integration tests name the library as its users do.
#[cfg(test)]
extern crate self as github;

mod app_key;
mod attachments;
mod blame;
mod branch_rules;
mod checks;
mod client;
mod comments;
mod commits;
mod connection;
mod deliveries;
mod discussions;
mod error;
mod etag_cache;
mod head_state;
mod health;
mod installation_router;
#[cfg(test)]
#[path = "../tests/main.rs"]
mod integration_tests;
mod issues;
mod limits;
mod model;
mod model_issues;
mod new_issues;
mod owner_repositories;
pub mod permissions;
mod progress_note;
mod projects;
mod pull_requests;
mod reader;
pub mod registration;
mod reviews;
mod settings;
mod transport;
mod wire;
mod writer;

pub use attachments::{AttachmentReader, AttachmentThread, find_rendered_address};
pub use blame::BlameLines;
pub use branch_rules::BranchRules;
pub use checks::{CheckReader, CheckRunText, CheckWriter};
pub use client::AccountIdentity;
pub use comments::{CommentReader, CommentWriter, RepositoryComments};
pub use commits::{CommitWriter, TreeChange, TreeContent};
pub use deliveries::{DeliveryCursor, DeliveryLogPart, DeliveryReader};
pub use discussions::{DiscussionReader, DiscussionWriter};
pub use domain::WorkflowRunProgress;
pub use error::{Error, TransferredThread};
pub use head_state::HeadState;
pub use health::{HealthReader, SnapshotScope};
pub use issues::{IssueListState, IssueReader, IssueWriter};
pub use limits::{GatePolicy, WRITES};
pub use model::{
    BranchPattern, CheckConclusion, CheckKind, CheckStatus, CommitCheck, CommitOrigin, CommitRun,
    CommitVerification, ConversationLock, CreatedCommit, ETag, GitHubComment, GitHubCommentId,
    GitHubRepository, GitRemote, HookDelivery, PullRequest, PullRequestMerge, PullRequestPoll,
    PullRequestRemark, PullRequestReview, PullRequestState, RepositoryPermission, ReviewLineComment,
    ReviewVerdict, WorkflowRun, conclude_checks, is_action_job, is_action_workflow, is_ci_check_run,
    is_key_mentioned, parse_run_id,
};
pub use model_issues::{
    DiscussionComment, DiscussionStub, GitHubDiscussion, GitHubIssue, GitHubUser, IssueAttributes,
    IssueComment, IssueEdit, IssuePoll, IssueTimelineEvent, IssueWish, ListedIssue, PolledIssue,
    ReviewRequest,
};
pub use new_issues::{NewIssue, OpenedIssue};
pub use owner_repositories::OwnerRepository;
pub use projects::{GitHubProject, ProjectField, ProjectItem, ProjectValue, ProjectWriter};
pub use pull_requests::{BranchUpdate, PullRequestReader, PullRequestWriter};
pub use reader::GitHubReader;
pub use reviews::{NewComment, NewReview, ReviewReader, ReviewWriter};
pub use settings::{Settings, deserialize_readers, deserialize_writers};
pub use writer::GitHubWriter;

#[cfg(test)]
mod tests;
