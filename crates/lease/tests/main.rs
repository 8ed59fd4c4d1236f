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

use std::time::Duration;

use servers::RedisServer;

use crate::Settings;

/// Limit of every wait, which only a failing test reaches.
const LIMIT: Duration = Duration::from_secs(60);

/// Moves the clock of this process, not that of the server.
async fn pass_time(time: Duration) {
    // A task that has not run yet counts its time from its start.
    tokio::task::yield_now().await;
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn build_settings(server: &RedisServer) -> Settings {
    Settings {
        url: server.url(),
        ..Settings::default()
    }
}
