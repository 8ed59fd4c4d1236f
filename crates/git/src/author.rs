//! Signatures of commits.

use domain::CommitAuthor;
use git2::{Signature, Time};

/// The signature of an author at a time, in UTC.
///
/// # Errors
/// When git does not take the name.
pub fn commit_signature(author: &CommitAuthor, time_s: i64) -> Result<Signature<'static>, git2::Error> {
    Signature::new(author.name(), author.address(), &Time::new(time_s, 0))
}
