//! The egress proxy: the only connection of a sandbox's setup commands to the internet.
//!
//! It opens the hosts that a grant names. It holds the credentials of registries, so that no sandbox contains one.

mod address;
mod answer;
mod config;
mod connection;
mod decide;
mod door;
mod exchange;
mod forward;
mod hello;
mod mirror;
mod problem;
mod proxy;
mod resolve;
mod rewrite;
mod runs;
mod serve;
mod session;
mod telemetry;
mod tunnel;

pub use config::{Config, Settings};
pub use mirror::MirrorSettings;
pub use proxy::Limits;
pub use resolve::{LookUp, Resolver, SystemResolver};
pub use serve::{serve, serve_with};
