//! Strict, stateful stand-ins of external services, for tests and the demo alone.

// The integration tests name the library as its users do.
#[cfg(test)]
extern crate self as testkit;

mod chaos;
mod embeddings;
mod exchanges;
mod fault;
pub mod fixture;
mod forward_proxy;
mod fuzz;
pub mod github;
mod http;
#[cfg(test)]
#[path = "../tests/standins/main.rs"]
mod integration_tests;
pub mod jira;
pub mod mcp;
pub mod model;
mod named_front;
pub mod oidc;
mod own_process;
mod polling;
mod raw_publish;
mod stand_in;
pub mod tls;
mod webhook;

pub use chaos::{DeliveryFaults, EarlyChecks, WriteFaults};
pub use embeddings::FakeEmbeddings;
pub use fault::{FaultPoint, ServiceFault};
pub use forward_proxy::{ForwardProxy, ProxiedRequest};
pub use fuzz::{InputEdit, apply_edits, fuzz_cases};
pub use github::{FakeGitHub, GitHubOptions};
pub use http::RecordedRequest;
pub use jira::{FakeJira, JiraKind, JiraOptions, JiraTransition};
pub use mcp::{FakeMcpServer, FakeMcpTool, McpReply};
pub use model::{ScriptStep, ScriptedModel};
pub use named_front::NamedFront;
pub use own_process::enter_own_process;
pub use polling::{bound_running_time, poll_until};
pub use raw_publish::publish_raw;
pub use servers::{FileSync, NatsCluster, NatsOptions, NatsServer, RedisOptions, RedisServer, TlsFiles};
pub use stand_in::StandInServer;
