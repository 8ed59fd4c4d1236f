//! GitHub over REST and GraphQL: [`Reader`] and [`Writer`] are separate types, so that who may only read cannot hold
//! a writer. No merge endpoint is called anywhere.

mod client;
mod clients;
mod error;
mod issues;
mod model;
mod model_issues;
pub mod permissions;
mod places;
mod reader;
mod reviewing;
mod rounds;
mod settings;
mod transport;
mod wire;
mod writer;

pub use error::Error;
pub use model::{
    Check, CheckConclusion, CheckKind, CheckStatus, Comment, CommentId, ETag, GitRemote, HookDelivery,
    Identity, LineComment, Permission, Polled, PullRequest, PullRequestState, Remark, Repository, Review,
    ReviewState, conclusion, mentions,
};
pub use model_issues::{
    Assigned, Edit, Issue, IssueComment, IssueEvent, IssueStub, IssueWish, PolledIssues, ReviewRequest, User,
};
pub use reader::Reader;
pub use reviewing::{NewComment, NewReview};
pub use settings::{Settings, readers, writers};
pub use writer::Writer;

#[cfg(test)]
mod tests;
