//! Unreadable triggers become dead letters, so that they do not hold up their ticket.

use domain::{OutboundAction, OutboundId, OutboundRequest, RecordKind, Trigger, report};
use queue::{DeadLetter, UnreadableRecord};

use super::session::TicketSession;
use crate::driver::TicketError;

impl TicketSession<'_> {
    /// Returns the readable triggers. The others become dead letters with a notice on the ticket.
    ///
    /// # Errors
    /// [`TicketError::Queue`] also when a newer release wrote a trigger: a planner of that release handles them
    /// all.
    pub(super) async fn readable(
        &self,
        triggers: Vec<(u64, Result<Trigger, UnreadableRecord>)>,
    ) -> Result<Vec<(u64, Trigger)>, TicketError> {
        let mut readable = Vec::with_capacity(triggers.len());
        for (sequence, trigger) in triggers {
            match trigger {
                Ok(trigger) => readable.push((sequence, trigger)),
                Err(unreadable) => self.set_aside(&unreadable.unless_newer()?).await?,
            }
        }
        Ok(readable)
    }

    async fn set_aside(&self, unreadable: &UnreadableRecord) -> Result<(), TicketError> {
        // The lease may be lost since the read: only the ticket's owner moves records to the dead letters.
        self.check()?;
        let (ticket, sequence, queue) = (&self.ticket, unreadable.sequence(), &self.driver.queue);
        tracing::error!(%ticket, problem = unreadable.problem(), "trigger set aside");
        let advice = "a planner that can read it takes it up after `journeyman dead retry`";
        let (id, now) = (format!("{ticket} at {sequence}"), bootstrap::read_wall_clock());
        let letter = DeadLetter::about(
            unreadable,
            RecordKind::Trigger,
            id,
            Some(ticket.clone()),
            advice,
            now,
        );
        let letters = queue.dead_letters();
        self.outlast("a dead letter", || letters.bury(&letter, unreadable))
            .await?;
        let id = OutboundId::unreadable(RecordKind::Trigger, ticket, sequence);
        let what = RecordKind::Trigger;
        let request = OutboundAction::Unreadable(report::UnreadableRecordNotice {
            what,
            is_poison: false,
        });
        let notice = OutboundRequest::notice(id, ticket.clone(), self.fence, now, request);
        let reports = queue.reports();
        self.outlast("a notice", || reports.append(&notice)).await?;
        Ok(())
    }
}
