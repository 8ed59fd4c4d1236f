//! Reasons that work on a ticket ends early.

use crate::run::IllegalFact;

/// Reason that work on a ticket ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TicketError {
    /// Another planner owns the ticket now.
    #[error("the ticket was taken over")]
    Lost,
    /// NATS failed, or a record is unusable.
    #[error(transparent)]
    Queue(queue::Error),
    /// Planners crashed repeatedly on this ticket.
    #[error("{0} planners in a row took the ticket over and made no progress")]
    Stuck(u32),
    /// A journal contains an illegal entry.
    #[error(transparent)]
    Illegal(#[from] IllegalFact),
}

impl TicketError {
    /// Returns true if a newer release wrote a record of the ticket: a planner of that release continues.
    pub(crate) const fn is_newer(&self) -> bool {
        matches!(self, Self::Queue(queue::Error::Newer { .. }))
    }

    /// Returns true if NATS does not respond: a retry may succeed shortly.
    pub(crate) const fn is_outage(&self) -> bool {
        matches!(self, Self::Queue(error) if error.is_passing())
    }
}

impl From<queue::Error> for TicketError {
    fn from(error: queue::Error) -> Self {
        match error {
            queue::Error::Conflict => Self::Lost,
            queue::Error::Unavailable { .. }
            | queue::Error::Full { .. }
            | queue::Error::Newer { .. }
            | queue::Error::Corrupt { .. }
            | queue::Error::Topology { .. } => Self::Queue(error),
        }
    }
}
