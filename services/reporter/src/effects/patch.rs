//! Patch and description in a local folder, instead of a pull request.

use domain::{BranchRecord, OutboundRefusal, PullRequestRef, SecretPlace as Place, TicketKey};

use super::{EffectContext, OutboundClients};
use crate::{
    cleared_text::ClearedText,
    draft::PullRequestDraft,
    effect_error::EffectError,
    folders::{FolderPlace as Folder, PatchDelivery},
    message,
    mirror::run_blocking,
};

/// Writes both files. A repetition replaces them, because only this ticket uses its results folder.
pub(super) async fn write_patch(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    draft: &PullRequestDraft,
    place: Folder,
) -> Result<PullRequestRef, EffectError> {
    let ticket = &asked.report.ticket;
    let TicketKey::Folder { number, .. } = ticket else {
        return Err(EffectError::Refused(OutboundRefusal::ForeignProject {
            ticket: ticket.clone(),
            repository: draft.repository.clone(),
        }));
    };
    let own = outside.own_branch(ticket, &draft.repository, &draft.branch);
    let (record, last) = own.await?.ok_or_else(|| {
        EffectError::Refused(OutboundRefusal::NotPushed {
            branch: draft.branch.clone(),
        })
    })?;
    let body = message::patch_text(draft, ticket, asked.report.run.as_ref(), &outside.pages);
    let body = ClearedText::by_the_model(body, Place::Body)?;
    let change = PatchDelivery {
        ticket: ticket.clone(),
        base_branch: draft.base_branch.clone(),
        head: record.head.clone(),
    };
    let mirror = outside.mirrors.hold(&draft.repository);
    let patch = run_blocking(move || place.deliver(&mirror, &change, &body)).await?;
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
    Ok(pull_request)
}
