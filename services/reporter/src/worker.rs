//! Takes wake-up tokens and settles the reports of their tickets, in order.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use domain::{
    Reason, Report, ReportFence, ReportOutcome, ReportSettled, Source, TicketKey, Trigger, TriggerKey,
};
use queue::{DeadLetter, Queue, Token};
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    ledger::{self, Cursor, Ledger},
    perform::{Performed, Performer, words},
    trouble::Trouble,
};

/// How long a ticket rests when the queue failed in the middle.
const REST: Duration = Duration::from_secs(5);
/// How long reports in hand may take to reach a safe place at shutdown.
const DRAIN: Duration = Duration::from_secs(15);

/// Settles reports.
#[derive(Clone)]
pub(crate) struct Worker {
    queue: Queue,
    ledger: Ledger,
    performer: Arc<Performer>,
    shutdown: CancellationToken,
}

impl Worker {
    /// A worker over the queue.
    pub(crate) fn new(
        queue: Queue,
        ledger: Ledger,
        performer: Performer,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            queue,
            ledger,
            performer: Arc::new(performer),
            shutdown,
        }
    }

    /// Handles tokens, at most `slots` at once, until shutdown; then those in hand are given back.
    pub(crate) async fn run(&self, slots: usize) -> Result<(), queue::Error> {
        let mut tokens = self.queue.reports().tokens(self.shutdown.clone()).await?;
        let places = Arc::new(Semaphore::new(slots));
        let mut in_hand = JoinSet::new();
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            let Some(token) = tokens.next().await else { break };
            let worker = self.clone();
            let span = tracing::info_span!("reports", ticket = %token.ticket(), fence = %token.fence());
            let handled = async move {
                worker.handle(token).await;
                drop(place);
            };
            in_hand.spawn(handled.instrument(span));
            while in_hand.try_join_next().is_some() {}
        }
        let drained =
            tokio::time::timeout(DRAIN, async { while in_hand.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            tracing::warn!(
                tickets = in_hand.len(),
                "reports cut at shutdown; they are resumed from the ledger"
            );
        }
        Ok(())
    }

    async fn handle(&self, token: Token<Report>) {
        let ticket = token.ticket().clone();
        match Box::pin(self.settle_all(&ticket, token.fence())).await {
            Ok(settled_to) => match token.finish().await {
                Ok(()) => self.wake_if_more(&ticket, settled_to).await,
                Err(error) => tracing::warn!(%error, "token not finished; the ticket comes again"),
            },
            Err(Trouble::Ledger(ledger::Error::Superseded)) => {
                tracing::info!("somebody else works on the ticket's reports");
                token.abandon();
            }
            Err(Trouble::Shutdown) => token.release().await,
            Err(trouble) => {
                tracing::error!(error = %trouble, "reports not settled; trying again");
                token.release_after(REST).await;
            }
        }
    }

    /// A report that was appended between our last look and the token's end has no token of its own.
    async fn wake_if_more(&self, ticket: &TicketKey, settled_to: u64) {
        let reports = self.queue.reports();
        let woken = async {
            if reports
                .last_sequence(ticket)
                .await?
                .is_some_and(|last| last > settled_to)
            {
                reports.wake(ticket).await?;
            }
            Ok::<_, queue::Error>(())
        };
        if let Err(error) = woken.await {
            tracing::warn!(%error, "ticket not woken again; the waker will");
        }
    }

    /// Settles every report after the ticket's cursor and says how far it came.
    async fn settle_all(&self, ticket: &TicketKey, fence: ReportFence) -> Result<u64, Trouble> {
        let (mut cursor, mut revision) = self.ledger.take_cursor(ticket, fence).await?;
        loop {
            let reports = self.queue.reports().read_after(ticket, cursor.sequence).await?;
            if reports.is_empty() {
                return Ok(cursor.sequence);
            }
            for (sequence, report) in reports {
                if self.shutdown.is_cancelled() {
                    return Err(Trouble::Shutdown);
                }
                let span = tracing::info_span!("report", report = %report.id);
                Box::pin(self.settle(&report, fence)).instrument(span).await?;
                cursor = Cursor { sequence, fence };
                revision = self.ledger.move_cursor(ticket, &cursor, revision).await?;
            }
        }
    }

    /// Settles one report: the outcome is kept before it is told, so that a repeated delivery tells the same.
    async fn settle(&self, report: &Report, fence: ReportFence) -> Result<(), Trouble> {
        let started = tokio::time::Instant::now();
        let outcome = match self.ledger.outcome(&report.id).await? {
            Some(outcome) => outcome,
            None => {
                let Performed { outcome, untold } = Box::pin(self.performer.perform(report, fence)).await?;
                if let Some(reason) = untold.or_else(|| undelivered_notice(report, &outcome)) {
                    self.bury(report, reason).await?;
                }
                self.ledger.keep_outcome(&report.id, &outcome).await?;
                outcome
            }
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(outcome = name(&outcome), duration_ms, "report settled");
        if let Some(trigger) = settled_trigger(report, outcome) {
            self.queue.triggers().append(&trigger).await?;
        }
        Ok(())
    }

    async fn bury(&self, report: &Report, reason: String) -> Result<(), Trouble> {
        let letter = DeadLetter {
            what: "report".to_owned(),
            id: report.id.to_string(),
            ticket: Some(report.ticket.clone()),
            reason,
            at: bootstrap::now(),
        };
        let payload = serde_json::to_vec(report).map_err(|error| Trouble::Failed(error.to_string()))?;
        self.queue
            .dead_letters()
            .publish(&letter, Bytes::from(payload))
            .await?;
        Ok(())
    }
}

/// A notice has no run that could hear of its failure.
fn undelivered_notice(report: &Report, outcome: &ReportOutcome) -> Option<String> {
    match outcome {
        ReportOutcome::Refused { .. } | ReportOutcome::Failed { .. } if report.run.is_none() => {
            Some(words(outcome))
        }
        ReportOutcome::Done(_) | ReportOutcome::Refused { .. } | ReportOutcome::Failed { .. } => None,
    }
}

fn settled_trigger(report: &Report, outcome: ReportOutcome) -> Option<Trigger> {
    let run = report.run.clone()?;
    Some(Trigger {
        version: Trigger::VERSION,
        ticket: report.ticket.clone(),
        key: TriggerKey::new(format!("settled:{}", report.id)),
        at: bootstrap::now(),
        source: Source::Reporter,
        actor: None,
        reason: Reason::ReportSettled(ReportSettled {
            report: report.id.clone(),
            run,
            outcome,
        }),
    })
}

fn name(outcome: &ReportOutcome) -> &'static str {
    match outcome {
        ReportOutcome::Done(_) => "done",
        ReportOutcome::Refused { .. } => "refused",
        ReportOutcome::Failed { .. } => "failed",
    }
}
