//! Types of the API under `/v1`, and a client for it.
//!
//! Programs that only call the API, such as the command line and the console, need no other crate.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod client;
mod error;
pub mod types;
pub mod view;

pub use client::{
    ActingPerson, ApiAction, Client, DeadLetterClient, InstallationClient, JobClient, PullRequestClient,
    PullRequestSubmission, RunClient, RunEvent, RunJournalEntry, TicketClient, build_implement_job,
};
pub use error::Error;

/// Header with the display name of the person on whose behalf a call is made, percent-encoded.
pub const PERSON_HEADER: &str = "journeyman-person";
/// Header with the name of that person at the identity provider (issuer and subject), percent-encoded;
/// optional.
pub const SUBJECT_HEADER: &str = "journeyman-subject";
/// Header with the role of that person, in the spelling of the API.
pub const ROLE_HEADER: &str = "journeyman-role";
/// Header of the answer with a difference: its origin, in the spelling of the API.
pub const DIFF_SOURCE_HEADER: &str = "journeyman-diff";
