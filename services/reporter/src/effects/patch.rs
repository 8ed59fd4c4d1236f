//! Patch and description in a local folder, instead of a pull request.

use domain::{BranchRecord, PullRequestRef, Refusal, SecretPlace as Place, TicketKey};

use super::{Asked, Outside};
use crate::{
    draft::Draft,
    folders::{Delivery, Place as Folder},
    made::Made,
    message,
    mirror::blocking,
    outgoing::Outgoing,
    trouble::Trouble,
};

/// Writes both files. A repetition replaces them, because only this ticket uses its results folder.
pub(super) async fn create(
    outside: &Outside,
    asked: &Asked<'_>,
    draft: &Draft,
    place: Folder,
) -> Result<Made, Trouble> {
    let ticket = &asked.report.ticket;
    let TicketKey::Folder { number, .. } = ticket else {
        return Err(Trouble::Refused(Refusal::ForeignProject {
            ticket: ticket.clone(),
            repository: draft.repository.clone(),
        }));
    };
    let own = outside.own_branch(ticket, &draft.repository, &draft.branch);
    let (record, last) = own.await?.ok_or_else(|| {
        Trouble::Refused(Refusal::NotPushed {
            branch: draft.branch.clone(),
        })
    })?;
    let body = message::patch_text(draft, ticket, asked.report.run.as_ref(), &outside.pages);
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
