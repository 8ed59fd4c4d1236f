//! The API under `/v1`: what it takes and gives, and a client of it.
//!
//! Whoever only talks to a Journeyman needs nothing else of it: the command line and the console do.

mod client;
mod error;
pub mod types;
pub mod view;

pub use client::{Act, Asked, Client, Followed, OfRun, Person, implement};
pub use error::Error;

/// The name of the person that a token speaks for, percent-encoded.
pub const PERSON_HEADER: &str = "journeyman-person";
/// Under which name their provider alone knows that person (issuer and subject), percent-encoded; optional.
pub const SUBJECT_HEADER: &str = "journeyman-subject";
/// What that person may do: a role as the API spells it.
pub const ROLE_HEADER: &str = "journeyman-role";
