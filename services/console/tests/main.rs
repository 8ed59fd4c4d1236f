//! The console over real HTTP.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test panics on an unexpected result"
)]

mod doors;
mod provider;
