//! Why work on a ticket ends early.

use crate::run::IllegalFact;

/// Why work on a ticket ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The ticket belongs to somebody else now.
    #[error("the ticket was taken over")]
    Lost,
    /// NATS is in trouble.
    #[error(transparent)]
    Queue(queue::Error),
    /// Repeated planner crashes on this ticket.
    #[error("{0} planners in a row took the ticket over and made no progress")]
    Stuck(u32),
    /// A journal tells something impossible.
    #[error(transparent)]
    Illegal(#[from] IllegalFact),
}

impl Trouble {
    /// True when a newer release wrote what the ticket needs: a planner of that release goes on.
    pub(crate) const fn is_newer(&self) -> bool {
        matches!(self, Self::Queue(queue::Error::Newer { .. }))
    }

    /// True when NATS does not answer: what was tried may work in a moment.
    pub(crate) const fn is_outage(&self) -> bool {
        matches!(self, Self::Queue(error) if error.is_passing())
    }
}

impl From<queue::Error> for Trouble {
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
