//! Identities, rules and stored formats of the domain.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test panics on an unexpected result"
)]

mod nouns;
mod stored;
