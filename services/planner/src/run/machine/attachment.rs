//! Attachments that the conversations of a run show, and the parts of texts that a model requests.

use domain::{AttachmentContent, ObjectRef, TicketAttachment, TicketNews};

use super::PlannerRunState;

/// Request for a part of a text attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttachmentRead {
    pub(crate) name: String,
    pub(crate) object: ObjectRef,
    pub(crate) part: AttachmentPart,
}

/// Part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttachmentPart {
    /// Lines from `first` on, counted from 1.
    Lines { first: u64, count: u64 },
    /// Lines from `first` on that contain these words, regardless of case.
    Matches { words: String, first: u64 },
}

/// Iterates over the attachments of the ticket, then over those of the comments since.
pub(crate) fn list_attachments(
    state: &PlannerRunState,
) -> impl DoubleEndedIterator<Item = &TicketAttachment> {
    let of_ticket = state.request().map(|request| request.text.attachments.as_slice());
    let received = state.conversation().news().received().iter();
    let of_news = received.flat_map(|item| {
        let TicketNews::Comment { attachments, .. } = &item.news;
        attachments
    });
    of_ticket.unwrap_or_default().iter().chain(of_news)
}

/// Returns true if the run has a text that a tool can read.
pub(crate) fn has_text_attachment(state: &PlannerRunState) -> bool {
    list_attachments(state).any(|one| matches!(one.content, AttachmentContent::Text { .. }))
}
