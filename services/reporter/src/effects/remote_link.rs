//! Link the pull request on the Jira issue.

use domain::TicketKey;

use super::{Asked, Outside};
use crate::{message, plan::Made, trouble::Trouble};

/// Links it under an id of its own, so that a repetition replaces the link.
pub(super) async fn create(outside: &Outside, asked: &Asked<'_>, issue: &TicketKey) -> Result<Made, Trouble> {
    let Some(pull_request) = &asked.made.pull_request else {
        return Err(Trouble::Failed("there is no pull request to link".to_owned()));
    };
    let global_id = format!("journeyman:{}#{}", pull_request.repository, pull_request.number);
    let title = message::remote_link_title(pull_request);
    outside
        .jira()?
        .remote_link(issue, &global_id, &pull_request.url, &title)
        .await?;
    Ok(Made::default())
}
