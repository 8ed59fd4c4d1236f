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

// One of the modules has the name of the crate.
use ::lease::Settings;
use servers::RedisServer;

fn build_settings(server: &RedisServer) -> Settings {
    Settings {
        url: server.url(),
        ..Settings::default()
    }
}
