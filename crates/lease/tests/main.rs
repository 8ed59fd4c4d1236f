//! Leases, budgets and limits over a real Redis.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test panics on an unexpected result"
)]

mod budgets;
mod lease;
mod limits;
mod tls;

use servers::RedisServer;

use crate::Settings;

fn build_settings(server: &RedisServer) -> Settings {
    Settings {
        url: server.url(),
        ..Settings::default()
    }
}
