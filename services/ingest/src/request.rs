//! What is asked for: work on a ticket.

use domain::{Source, TicketKey, Timestamp, TriggerKey};

use crate::detect::Approval;

/// A ticket that somebody asks to be worked on.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) ticket: TicketKey,
    pub(crate) key: TriggerKey,
    pub(crate) source: Source,
    pub(crate) asked: Asked,
}

/// How work was asked for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// The ticket came into the status, as a webhook or a search tells; who did it has to be looked at.
    Entered(Approval),
    /// Somebody asked who may.
    Ordered { at: Timestamp, by: String },
}
