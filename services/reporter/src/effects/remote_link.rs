//! Link the pull request on the Jira issue.

use domain::TicketKey;

use super::{Asked, Outside};
use crate::{made::Made, message, outgoing::Outgoing, trouble::Trouble};

/// Links it; a repetition replaces the link.
pub(super) async fn create(outside: &Outside, asked: &Asked<'_>, issue: &TicketKey) -> Result<Made, Trouble> {
    let Some(pull_request) = &asked.made.pull_request else {
        return Err(Trouble::Failed(message::nothing_to_link()));
    };
    let title = Outgoing::without_credentials(&message::remote_link_title(pull_request));
    outside.link_pull_request(issue, pull_request, &title).await?;
    Ok(Made::default())
}
