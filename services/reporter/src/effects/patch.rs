//! In a local folder a patch and its text stand in the place of the pull request.

use domain::{BranchRecord, PullRequestRef, TicketKey};

use super::{Asked, Outside};
use crate::{
    draft::Draft,
    folders::{Delivery, Place as Folder},
    made::Made,
    message,
    mirror::blocking,
    outgoing::Outgoing,
    policy::Place,
    trouble::Trouble,
};

/// Writes both. Nobody else reads the folder's results, so writing them again replaces them.
pub(super) async fn create(
    outside: &Outside,
    asked: &Asked<'_>,
    draft: &Draft,
    place: Folder,
) -> Result<Made, Trouble> {
    let ticket = &asked.report.ticket;
    let TicketKey::Folder { number, .. } = ticket else {
        let refusal = message::foreign_project(ticket, &draft.repository);
        return Err(Trouble::Refused(refusal));
    };
    let own = outside.own_branch(ticket, &draft.repository, &draft.branch);
    let (record, last) = own
        .await?
        .ok_or_else(|| Trouble::Refused(message::not_pushed(&draft.branch)))?;
    let body = message::patch_text(draft, ticket, asked.report.run.as_ref());
    let body = Outgoing::by_the_model(body, Place::Body)?;
    let change = Delivery {
        ticket: ticket.clone(),
        base_branch: draft.base_branch.clone(),
        head: record.head.clone(),
    };
    let mirror = outside.mirrors.hold(&draft.repository);
    let patch = blocking(move || place.deliver(&mirror, &change, &body)).await?;
    let pull_request = PullRequestRef {
        repository: draft.repository.clone(),
        number: *number,
        url: patch.display().to_string(),
        branch: draft.branch.clone(),
    };
    let record = BranchRecord {
        pull_request: Some(pull_request.clone()),
        ..record
    };
    outside.branches.put(&record, Some(last)).await?;
    tracing::info!(repository = %draft.repository, %ticket, "patch written");
    Ok(Outside::made_pull_request(pull_request))
}
