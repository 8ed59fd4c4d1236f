//! The API under `/v1`: what it takes and gives, and a client of it.
//!
//! Whoever only talks to a Journeyman needs nothing else of it: the command line and the console do.

mod client;
mod error;
pub mod types;

pub use client::{Act, Asked, Client, Followed, OfRun, implement};
pub use error::Error;
