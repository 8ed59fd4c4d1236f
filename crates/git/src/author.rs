//! Signatures of commits.

use domain::CommitAuthor;
use git2::{Signature, Time};

/// Creates the signature of an author at a Unix time in seconds, in UTC.
///
/// # Errors
/// git2's error for an invalid name or address.
pub fn commit_signature(author: &CommitAuthor, time_s: i64) -> Result<Signature<'static>, git2::Error> {
    Signature::new(author.name(), author.address(), &Time::new(time_s, 0))
}
