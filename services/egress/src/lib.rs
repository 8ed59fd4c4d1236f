//! The egress proxy: the only connection of a sandbox's setup commands to the internet.
//!
//! It opens the hosts that a grant names. It holds the credentials of registries, so that no sandbox contains one.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod app;
mod config;
mod connection;
mod exchange;
mod forward;
mod mirror;
mod problem;
mod proxy;
mod request_decision;
mod resolve;
mod rewrite;
mod runs;
mod session;
mod session_endpoint;
mod tunnel;
mod upstream;

pub use app::EgressApp;
pub use config::{Config, Settings};
pub use mirror::MirrorSettings;
pub use proxy::TimeLimits;
pub use resolve::{HostResolver, LookUp, SystemResolver};
