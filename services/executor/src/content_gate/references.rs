//! Comparison of a mirror with the references of the git gate, by one request instead of a fetch.

use domain::{CommitId, cause::format_error_chain};

use super::connection::{GateAddress, GateConnection, GateFailure};

/// Returns the digest of the references that a fetch of this branch would receive now. A gate whose branch lacks the
/// reported commit fetches first.
///
/// `None` if the gate does not give one, as before this release or for a grant that it refuses. A fetch shows the
/// reason.
///
/// # Errors
/// [`git::Error::NotReady`] while the first clone of the gate is in progress, and [`git::Error::Unavailable`] if the
/// gate cannot reach the remote. A fetch would have the same failure.
pub(crate) async fn digest_references(
    address: Result<GateAddress, String>,
    (branch, reported): (&str, Option<&CommitId>),
) -> Result<Option<String>, git::Error> {
    let digested = match address.map(GateConnection::new) {
        Ok(mut connection) => connection.digest_references(branch, reported).await,
        Err(problem) => Err(GateFailure::Refused(problem)),
    };
    match digested {
        Ok(digest) => Ok(Some(digest)),
        Err(GateFailure::NotReady { percent }) => Err(git::Error::NotReady { percent }),
        Err(GateFailure::Unavailable(words)) => Err(git::Error::Unavailable(words)),
        Err(failure @ (GateFailure::Refused(_) | GateFailure::Unreachable(_) | GateFailure::Defect(_))) => {
            tracing::debug!(reason = format_error_chain(&failure), "no digest of the git gate");
            Ok(None)
        }
    }
}
