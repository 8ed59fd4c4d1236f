//! Strict, stateful stand-ins for the outside, and real servers, for tests and the demo only.

mod eventually;
pub mod fixture;
pub mod github;
mod http;
pub mod jira;
pub mod model;
mod webhook;

pub use eventually::eventually;
pub use github::{FakeGitHub, GitHubOptions};
pub use http::{Fault, FaultPoint, RecordedRequest};
pub use jira::{FakeJira, JiraOptions};
pub use model::{ScriptedModel, Step};
pub use servers::{FileSync, NatsOptions, NatsServer, RedisOptions, RedisServer};
