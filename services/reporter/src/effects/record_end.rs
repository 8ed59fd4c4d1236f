//! Write into the index of our pull requests that one is over.

use domain::{PullRequestRecord, PullRequestRef, PullRequestStatus};

use super::{Asked, Outside};
use crate::{made::Made, trouble::Trouble};

/// Repeating it changes nothing.
pub(super) async fn create(
    outside: &Outside,
    asked: &Asked<'_>,
    pull_request: &PullRequestRef,
    status: PullRequestStatus,
) -> Result<Made, Trouble> {
    let over = PullRequestRecord {
        pull_request: pull_request.clone(),
        ticket: asked.report.ticket.clone(),
        head: None,
        status,
    };
    outside.pull_requests.keep(&over).await?;
    Ok(Made::default())
}
