//! The client of Jira against the stand-in and against foreign answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test panics on an unexpected result"
)]

mod against_jira;
mod foreign_answers;
