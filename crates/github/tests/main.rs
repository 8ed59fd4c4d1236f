//! The client of GitHub against the stand-in and against foreign answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test panics on an unexpected result"
)]

mod against_github;
mod connections;
mod foreign_answers;
