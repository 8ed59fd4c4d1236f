//! Strict, stateful stand-ins of external services, for tests and the demo alone.

mod chaos;
mod embeddings;
mod eventually;
mod exchanges;
mod fault;
pub mod fixture;
mod fuzz;
pub mod github;
mod http;
pub mod jira;
pub mod model;
mod named;
pub mod oidc;
mod plant;
pub mod tls;
mod webhook;

pub use chaos::{DeliveryFaults, EarlyChecks, WriteFaults};
pub use embeddings::FakeEmbeddings;
pub use eventually::eventually;
pub use fault::{Fault, FaultPoint};
pub use fuzz::{Edit, fuzz_cases, mutated};
pub use github::{FakeGitHub, GitHubOptions};
pub use http::RecordedRequest;
pub use jira::{FakeJira, JiraKind, JiraOptions, JiraTransition};
pub use model::{ScriptedModel, Step};
pub use named::NamedFront;
pub use plant::plant;
pub use servers::{FileSync, NatsCluster, NatsOptions, NatsServer, RedisOptions, RedisServer, TlsFiles};
