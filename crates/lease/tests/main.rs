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
