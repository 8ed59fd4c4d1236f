//! Worker that receives wake-up tokens and settles the reports of their tickets, in order.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use domain::{
    OutboundAction, OutboundCursor as Cursor, OutboundId, OutboundOutcome, OutboundRefusal, OutboundRequest,
    OutboundSettled, RecordKind, ReporterFence, RunFence, RunId, TicketKey, Trigger, TriggerChannel,
    TriggerKey, TriggerReason, cause::format_error_chain, report,
};
use queue::{DeadLetter, Queue, TableRevision, UnreadableRecord, WakeupToken};
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    effect_error::{DISK_WAIT, EffectError},
    ledger::{self, EffectLedger, KnownOutcome, OutcomePlace},
    message,
    performer::{AttemptKind, PerformedReport, ReportPerformer, describe_failure},
    retry::{self, FailedTry, RetryAction},
    telemetry,
};

// Pause of a ticket after a failure of the queue.
const REST: Duration = Duration::from_secs(5);
// Time until comments are listed again after a failed listing.
const RECHECK_INTERVAL: Duration = Duration::from_secs(30);
// Pause of a ticket after a write of a reporter that had lost it.
const AFTER_CLASH: Duration = Duration::from_secs(1);
// Number of crashes of reporters after which a report is given up.
const MOST_CRASHES: u32 = 5;
// Time for reports in progress to reach a safe point at shutdown.
const DRAIN: Duration = Duration::from_secs(15);

/// Settles reports, with a number of tickets at the same time.
#[derive(Clone)]
pub(crate) struct ReportWorker {
    queue: Queue,
    ledger: EffectLedger,
    performer: Arc<ReportPerformer>,
    shutdown: CancellationToken,
}

impl ReportWorker {
    /// Builds a worker over the queue.
    pub(crate) fn new(
        queue: Queue,
        ledger: EffectLedger,
        performer: ReportPerformer,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            queue,
            ledger,
            performer: Arc::new(performer),
            shutdown,
        }
    }

    /// Handles tokens, at most `slots` at the same time, until shutdown. Then it hands back the tokens in progress.
    pub(crate) async fn run(&self, slots: usize) -> Result<(), queue::Error> {
        let mut tokens = self.queue.reports().tokens(self.shutdown.clone()).await?;
        let places = Arc::new(Semaphore::new(slots));
        let mut in_hand = JoinSet::new();
        // The slot comes before the token: a token that waits for a slot here would be missing at other reporters.
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            let Some(token) = tokens.next().await else { break };
            let worker = self.clone();
            let span = tracing::info_span!("reports", otel.kind = "consumer", ticket = %token.ticket(), fence = %token.fence());
            token.follow(&span).await;
            let handled = async move {
                worker.handle(token).await;
                drop(place);
            };
            in_hand.spawn(handled.instrument(span));
            // A finished task stays in the set until it is joined. Without this loop the set grows, and
            // a crash is not logged.
            while let Some(ended) = in_hand.try_join_next() {
                if let Err(error) = ended {
                    tracing::error!(error = %format_error_chain(&error), "a reporter's task crashed; its reports come again");
                }
            }
        }
        // Reports are safe at any point, because the ledger records each step. The wait only avoids repeated
        // requests.
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

    async fn handle(&self, token: WakeupToken<OutboundRequest>) {
        let ticket = token.ticket().clone();
        match Box::pin(self.work_off(&ticket, token.fence())).await {
            Ok((settled_to, look_again)) => match token.finish().await {
                Ok(()) => {
                    self.wake_if_more(&ticket, settled_to).await;
                    self.wake_later(ticket, look_again);
                }
                Err(error) => {
                    tracing::warn!(error = %format_error_chain(&error), "token not finished; the ticket comes again")
                }
            },
            // The fence is still the newest, so the conflicting write came from a reporter that was overtaken.
            Err(EffectError::Ledger(ledger::Error::Superseded)) if self.is_newest(&token).await => {
                tracing::info!("an overtaken reporter's last write came in between; trying again");
                token.release_after(AFTER_CLASH).await;
            }
            // No ack and no nak: JetStream would accept them from any holder, and the token belongs to another
            // reporter.
            Err(EffectError::Ledger(ledger::Error::Superseded)) => {
                tracing::info!("somebody else works on the ticket's reports");
                token.abandon();
            }
            // Another reporter receives the token at once, instead of after `nats.ack_wait_ms`.
            Err(EffectError::Shutdown) => token.release().await,
            Err(EffectError::HandBack(wait)) => token.release_after(wait).await,
            // Only a reporter of the newer release can read the record, so this one waits instead of
            // trying at once.
            Err(EffectError::Ledger(ledger::Error::Queue(newer @ queue::Error::Newer { .. }))) => {
                let pause = self.queue.leave_to_newer(&newer, Some(&ticket)).await;
                token.release_after(pause.unwrap_or(REST)).await;
            }
            Err(trouble) => {
                tracing::error!(error = %format_error_chain(&trouble), "reports not settled; trying again");
                token.release_after(REST).await;
            }
        }
    }

    async fn is_newest(&self, token: &WakeupToken<OutboundRequest>) -> bool {
        let newest = self.ledger.newest_fence(token.ticket()).await;
        newest.is_ok_and(|newest| newest == Some(token.fence()))
    }

    /// Settles all reports of a ticket and deletes duplicate comments. Returns the last settled sequence, and the
    /// time of the next check.
    async fn work_off(
        &self,
        ticket: &TicketKey,
        fence: ReporterFence,
    ) -> Result<(u64, Option<Duration>), EffectError> {
        let (settled_to, is_tidy_poison) = Box::pin(self.settle_all(ticket, fence)).await?;
        // The cursor counts crashes, and no report is left. So only the tidying can have ended those
        // reporters.
        if is_tidy_poison {
            tracing::error!("reporters crash without a report to settle; comments are not tidied up");
            return Ok((settled_to, None));
        }
        match self.performer.tidy(ticket, fence).await {
            Ok(look_again) => Ok((settled_to, look_again)),
            Err(trouble @ (EffectError::Ledger(_) | EffectError::Shutdown)) => Err(trouble),
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "comments not listed again; tried later");
                Ok((settled_to, Some(RECHECK_INTERVAL)))
            }
        }
    }

    /// Wakes the ticket later. The wake-up is not durable: if the process ends before, the ticket's next report does
    /// the check.
    fn wake_later(&self, ticket: TicketKey, after: Option<Duration>) {
        let Some(after) = after else { return };
        let (reports, shutdown) = (self.queue.reports(), self.shutdown.clone());
        tokio::spawn(async move {
            let waited = shutdown.run_until_cancelled(tokio::time::sleep(after)).await;
            if waited.is_some()
                && let Err(error) = reports.wake(&ticket).await
            {
                tracing::warn!(
                    %ticket,
                    error = %format_error_chain(&error),
                    "ticket not woken; its next report repeats the check"
                );
            }
        });
    }

    /// Wakes the ticket if a report was appended after the last read. Such a report has no token, because the old one
    /// was still outstanding.
    async fn wake_if_more(&self, ticket: &TicketKey, settled_to: u64) {
        let reports = self.queue.reports();
        let woken = async {
            match reports.last_sequence(ticket).await? {
                // The finished token may still be outstanding for a moment, so a refusal alone does not prove a new one.
                Some(last) if last > settled_to => reports.wake_beyond(ticket, last).await,
                Some(_) | None => Ok(()),
            }
        };
        if let Err(error) = woken.await {
            tracing::warn!(error = %format_error_chain(&error), "ticket not woken again; the waker will");
        }
    }

    /// Settles all reports after the ticket's cursor. Returns the last settled sequence, and true if reporters crash
    /// without a report to settle.
    pub(crate) async fn settle_all(
        &self,
        ticket: &TicketKey,
        fence: ReporterFence,
    ) -> Result<(u64, bool), EffectError> {
        let (mut cursor, mut revision) = self.ledger.take_cursor(ticket, fence).await?;
        let settled = self
            .settle_after(ticket, fence, (&mut cursor, &mut revision))
            .await;
        // Only a crash leaves the ticket taken. A reporter that lost it to a newer one has nothing to return.
        if let Err(trouble) = &settled
            && !matches!(trouble, EffectError::Ledger(ledger::Error::Superseded))
            && let Err(error) = self.ledger.give_cursor_back(ticket, &cursor, revision).await
        {
            tracing::warn!(error = %format_error_chain(&error), "the ticket is not noted as given back");
        }
        settled
    }

    async fn settle_after(
        &self,
        ticket: &TicketKey,
        fence: ReporterFence,
        (cursor, revision): (&mut Cursor, &mut TableRevision),
    ) -> Result<(u64, bool), EffectError> {
        let log = self.queue.reports();
        // The token was woken for a report nearly always.
        let mut reports = log.read_expected_after(ticket, cursor.sequence).await?;
        loop {
            if reports.is_empty() {
                return Ok((cursor.sequence, is_poison(cursor)));
            }
            let mut is_moved = false;
            for (sequence, report) in reports {
                // Checked between reports, never inside of one: a settled report must move the cursor.
                if self.shutdown.is_cancelled() {
                    return Err(EffectError::Shutdown);
                }
                let is_known = match report {
                    Ok(report) => {
                        let span = tracing::info_span!("report", report = %report.id);
                        let settling = Box::pin(self.settle(&report, fence, cursor));
                        settling.instrument(span).await?
                    }
                    Err(unreadable) => {
                        self.dead_letter_unreadable(ticket, unreadable).await?;
                        false
                    }
                };
                let after_crash = cursor.crashes != Some(0);
                *cursor = Cursor {
                    sequence,
                    fence,
                    // The count is about one report: the first one without an outcome. The next one starts without
                    // the crashes of this one.
                    crashes: if is_known { cursor.crashes } else { Some(0) },
                    ..Cursor::default()
                };
                // The outcomes cover a crash before the end of the batch, so one move is sufficient for all of it.
                // After a crash, each report moves the cursor, because the count has to be about the next one.
                if after_crash {
                    *revision = self.ledger.move_cursor(ticket, cursor, *revision).await?;
                }
                is_moved = after_crash;
            }
            if !is_moved {
                *revision = self.ledger.move_cursor(ticket, cursor, *revision).await?;
            }
            // A report that arrives during the work has no token, because ours is still outstanding. So
            // the loop reads until nothing is left.
            reports = log.read_each_after(ticket, cursor.sequence).await?;
        }
    }

    /// Settles one report. The outcome is stored before the trigger is sent, so that a repeated delivery has the same
    /// outcome. Returns true for a report that had its outcome before.
    async fn settle(
        &self,
        report: &OutboundRequest,
        fence: ReporterFence,
        cursor: &mut Cursor,
    ) -> Result<bool, EffectError> {
        let started = tokio::time::Instant::now();
        let known = self.ledger.outcome(&report.ticket, &report.id).await?;
        let is_known = matches!(known, KnownOutcome::Settled(_));
        let outcome = match known {
            KnownOutcome::Settled(outcome) => outcome,
            // Crashes are counted in the cursor before the report starts, since a crashed process records nothing.
            KnownOutcome::Open(place) if is_poison(cursor) => self.give_up(report, place).await?,
            KnownOutcome::Open(place) => {
                let PerformedReport { outcome, undelivered } =
                    self.until_performed(report, fence, cursor).await?;
                // The dead letter comes before the outcome: with a stored outcome, a repeated delivery
                // writes no dead letter.
                if let Some(reason) = undelivered.or_else(|| undelivered_notice(report, &outcome)) {
                    self.dead_letter(report, reason).await?;
                }
                self.ledger.keep_outcome(place, &outcome).await?;
                outcome
            }
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(outcome = outcome_name(&outcome), duration_ms, "report settled");
        telemetry::report_settled(outcome_name(&outcome));
        // The trigger's key is the report's id, so a repeated delivery appends nothing.
        if let Some(trigger) = settled_trigger(report, outcome) {
            self.queue.triggers().append(&trigger).await?;
        }
        Ok(is_known)
    }

    /// Gives up a report at which reporters crash. Further tries would end reporters, and with them the reports of
    /// other tickets.
    async fn give_up(
        &self,
        report: &OutboundRequest,
        place: OutcomePlace,
    ) -> Result<OutboundOutcome, EffectError> {
        let detail = message::poison_request();
        tracing::error!(
            crashes = MOST_CRASHES,
            "report given up: each attempt at it ended the reporter"
        );
        // Dead letter and notice come before the outcome, because a repeated delivery with an outcome
        // skips both.
        self.dead_letter(report, detail.clone()).await?;
        // A notice about a notice that crashes would never end.
        if !matches!(report.request, OutboundAction::Unreadable(_)) {
            let id = report.id.poison();
            let request = OutboundAction::Unreadable(report::UnreadableRecordNotice {
                what: RecordKind::Report,
                is_poison: true,
            });
            let ticket = report.ticket.clone();
            let notice = OutboundRequest::notice(
                id,
                ticket,
                RunFence::default(),
                bootstrap::read_wall_clock(),
                request,
            );
            self.queue.reports().append(&notice).await?;
        }
        // The planner would request a failed report again, and it would crash again.
        let outcome = OutboundOutcome::Refused(OutboundRefusal::Outside { detail });
        self.ledger.keep_outcome(place, &outcome).await?;
        Ok(outcome)
    }

    /// Dead-letters an unreadable report. It must block neither later reports nor a run that waits for it.
    async fn dead_letter_unreadable(
        &self,
        ticket: &TicketKey,
        unreadable: UnreadableRecord,
    ) -> Result<(), EffectError> {
        // A record of a newer release is left to a reporter that can read it.
        let unreadable = unreadable.unless_newer()?;
        let (sequence, now) = (unreadable.sequence(), bootstrap::read_wall_clock());
        tracing::error!(
            sequence,
            problem = unreadable.problem(),
            "report not readable; dead-lettered"
        );
        let advice = "a reporter that can read it takes it up after `journeyman dead retry`";
        let id = format!("{ticket} at {sequence}");
        let letter = DeadLetter::about(
            &unreadable,
            RecordKind::Report,
            id,
            Some(ticket.clone()),
            advice,
            now,
        );
        self.queue
            .dead_letters()
            .publish_unreadable(&letter, &unreadable)
            .await?;
        // The id follows from the sequence, so the log refuses the notice of a repeated delivery.
        let id = OutboundId::unreadable(RecordKind::Report, ticket, sequence);
        let what = RecordKind::Report;
        let request = OutboundAction::Unreadable(report::UnreadableRecordNotice {
            what,
            is_poison: false,
        });
        let notice = OutboundRequest::notice(id, ticket.clone(), RunFence::default(), now, request);
        self.queue.reports().append(&notice).await?;
        // The run waits for the outcome of this report, so it gets one if its id is readable.
        if let Some((run, report)) = asked_by(unreadable.bytes()).filter(|(run, _)| run.ticket() == ticket) {
            let detail = message::unreadable_request();
            let failed = settled_by(ticket, run, report, OutboundOutcome::Failed { detail });
            self.queue.triggers().append(&failed).await?;
        }
        Ok(())
    }

    /// Tries until the report is settled. For a long wait, the ticket is handed back.
    async fn until_performed(
        &self,
        report: &OutboundRequest,
        fence: ReporterFence,
        cursor: &mut Cursor,
    ) -> Result<PerformedReport, EffectError> {
        let mut patience = AttemptKind::More;
        loop {
            let (trouble, failed) = match Box::pin(self.performer.perform(report, fence, patience)).await {
                Err(EffectError::Later { detail, after }) => (detail, FailedTry::Try { asked: after }),
                Err(EffectError::Unknown(detail)) => (detail, FailedTry::Try { asked: None }),
                Err(EffectError::HeldBack { detail, wait }) => (detail, FailedTry::Untried { wait }),
                Err(EffectError::Queued(detail)) => (detail, FailedTry::Queued),
                Err(full @ EffectError::DiskFull(_)) => {
                    (full.to_string(), FailedTry::Untried { wait: DISK_WAIT })
                }
                performed => return performed,
            };
            let now = bootstrap::read_wall_clock();
            // Kept in the cursor, so that the limits also count tries before a handover to another reporter.
            let since = *cursor.since.get_or_insert(now);
            if let FailedTry::Try { .. } = failed {
                cursor.tries = cursor.tries.saturating_add(1);
            }
            let next = retry::decide_retry(cursor.tries, since, now, failed);
            tracing::warn!(problem = trouble, tries = cursor.tries, ?next, "report delayed");
            match next {
                RetryAction::Wait(wait) => self.performer.pause(wait).await?,
                RetryAction::HandBack(wait) => return Err(EffectError::HandBack(wait)),
                // The last try has to produce an outcome: the run waits for one.
                RetryAction::GiveUp => patience = AttemptKind::Last,
            }
        }
    }

    async fn dead_letter(&self, report: &OutboundRequest, reason: String) -> Result<(), EffectError> {
        let letter = DeadLetter {
            what: RecordKind::Report,
            id: report.id.to_string(),
            ticket: Some(report.ticket.clone()),
            reason,
            at: bootstrap::read_wall_clock(),
        };
        // The dead letter contains the whole report, so that `journeyman dead retry` can append it again.
        let payload = serde_json::to_vec(report).map_err(|error| EffectError::Failed(error.to_string()))?;
        self.queue
            .dead_letters()
            .publish(&letter, Bytes::from(payload))
            .await?;
        Ok(())
    }
}

/// Returns true if the crashes at the next report have reached the limit.
fn is_poison(cursor: &Cursor) -> bool {
    cursor.crashes.is_some_and(|crashes| crashes >= MOST_CRASHES)
}

/// Returns the failure of a notice for the dead letters. A notice has no run that would receive its outcome.
fn undelivered_notice(report: &OutboundRequest, outcome: &OutboundOutcome) -> Option<String> {
    match outcome {
        OutboundOutcome::Refused(_) | OutboundOutcome::Failed { .. } if report.run.is_none() => {
            Some(describe_failure(outcome))
        }
        OutboundOutcome::Done(_) | OutboundOutcome::Refused(_) | OutboundOutcome::Failed { .. } => None,
    }
}

/// Reads the run and the id of a report that is only partly readable.
fn asked_by(report: &[u8]) -> Option<(RunId, OutboundId)> {
    #[derive(serde::Deserialize)]
    struct RequestOrigin {
        run: RunId,
        id: OutboundId,
    }
    let RequestOrigin { run, id } = serde_json::from_slice(report).ok()?;
    Some((run, id))
}

fn settled_trigger(report: &OutboundRequest, outcome: OutboundOutcome) -> Option<Trigger> {
    let run = report.run.clone()?;
    Some(settled_by(&report.ticket, run, report.id.clone(), outcome))
}

fn settled_by(ticket: &TicketKey, run: RunId, report: OutboundId, outcome: OutboundOutcome) -> Trigger {
    Trigger {
        ticket: ticket.clone(),
        key: TriggerKey::new(format!("settled:{report}")),
        at: bootstrap::read_wall_clock(),
        source: TriggerChannel::Reporter,
        actor: None,
        seen: None,
        reason: TriggerReason::ReportSettled(OutboundSettled { report, run, outcome }),
    }
}

fn outcome_name(outcome: &OutboundOutcome) -> &'static str {
    match outcome {
        OutboundOutcome::Done(_) => "done",
        OutboundOutcome::Refused(_) => "refused",
        OutboundOutcome::Failed { .. } => "failed",
    }
}
