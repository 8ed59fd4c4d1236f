//! Performs a report's effects, each one once.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bootstrap::rules::{RulesBook, RulesStore};
use domain::{
    OutboundOutcome, OutboundRefusal, OutboundRequest, ReporterFence, RepositoryRules, TicketKey,
    cause::format_error_chain,
};
use futures::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    cleared_text::ClearedText,
    effect_cycle::{AttemptSearch, EffectSteps, pause_until_shutdown, perform_effect},
    effect_error::EffectError,
    effect_row::StoredEffectRow,
    effects::{CommentThread, EffectClearance, EffectContext, OutboundClients, PlannedEffect, TicketRecords},
    ledger::EffectLedger,
    message,
    receipt::{EffectOrigin, EffectReceipts, SettledEffect, WrittenComment},
    refused_notice::{RefusalLog, RefusedNotice},
    reports::{self, name_effects, plan_effects},
    telemetry,
};

/// Time limits of GitHub and Jira.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EffectWindows {
    /// Time after the start of an attempt in which it may still arrive. The reporter searches for it until then.
    pub(crate) unknown: Duration,
    /// Time after which lists show a write.
    pub(crate) list_lag: Duration,
}

/// Decides if a temporary failure leaves the report unsettled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptKind {
    /// It does, because another try follows.
    More,
    /// It settles the report, because this is the last try.
    Last,
}

/// Outcome of a report, and the failure of a notification if the report succeeded without it.
#[derive(Debug)]
pub(crate) struct PerformedReport {
    pub(crate) outcome: OutboundOutcome,
    /// Reason why people were not notified, for the dead letters.
    pub(crate) undelivered: Option<String>,
}

impl PerformedReport {
    /// Builds a report without a separate failure of a notification.
    const fn of_outcome(outcome: OutboundOutcome) -> Self {
        Self {
            outcome,
            undelivered: None,
        }
    }
}

/// Performer of reports, with its clients and stores.
pub(crate) struct ReportPerformer {
    pub(crate) outside: OutboundClients,
    pub(crate) ledger: EffectLedger,
    pub(crate) rules: RulesStore,
    pub(crate) refusals: RefusalLog,
    pub(crate) windows: EffectWindows,
    pub(crate) shutdown: CancellationToken,
}

impl ReportPerformer {
    /// Performs all effects of a report. A repetition repeats no finished effect.
    ///
    /// # Errors
    /// The report is not settled: the ledger failed, another reporter has the ticket, the failure may pass, or the
    /// process shuts down.
    pub(crate) async fn perform(
        &self,
        report: &OutboundRequest,
        fence: ReporterFence,
        patience: AttemptKind,
    ) -> Result<PerformedReport, EffectError> {
        // One book for the whole report: a reload in between must not give two effects different rules.
        let book: Arc<RulesBook> = self.rules.book();
        let present = self.outside.present_key(&report.ticket).await?;
        let rules = rules_of(&book, report, &present);
        let effects = plan_effects(report, rules.unwrap_or(&RepositoryRules::default()));
        let records = TicketRecords::new(&self.outside, report, rules, &present);
        // All targets are checked before the first effect: a report with a foreign target has no effect at all.
        let clearances = match self.clear_effects(&report.ticket, &effects, &records).await {
            Ok(clearances) => clearances,
            Err(trouble) => {
                let outcome = settle_failure(report, trouble, patience)?;
                return Ok(PerformedReport::of_outcome(outcome));
            }
        };
        let is_notice_only = effects.iter().all(|effect| effect.only_informs());
        let mut receipts = EffectReceipts::default();
        let mut failed: Option<OutboundOutcome> = None;
        let nothing = ClearedText::default();
        let writes_board = reports::writes_board(&report.request);
        let is_noted_next = |index: usize| {
            let next = effects
                .get(index + 1)
                .filter(|next| next.notice_thread().is_some());
            writes_board && next.is_some() && clearances.get(index + 1).is_some_and(Option::is_some)
        };
        for (index, ((name, effect), cleared)) in name_effects(&effects).zip(&clearances).enumerate() {
            let Some(cleared) = cleared else { continue };
            let before = index.checked_sub(1).filter(|before| is_noted_next(*before));
            let before = before.and_then(|before| effects.get(before)?.shows_round());
            let id = format!("{}/{name}", report.id);
            let asked = EffectContext {
                report,
                present: &present,
                rules,
                cleared,
                receipts: &receipts,
                id: &id,
                text: &nothing,
                rounds: None,
                is_noted_next: is_noted_next(index),
                previous_round: before.map(|(event, _)| event),
            };
            match Box::pin(self.measured(&asked, effect, fence)).await {
                Ok(later) => {
                    if let Some(refused) = later.last::<RefusedNotice>() {
                        self.refusals.note(&report.ticket, effect.name(), refused);
                    }
                    receipts.extend(later);
                }
                Err(EffectError::Unwritable(refused)) if effect.only_informs() => {
                    self.refusals.note(&report.ticket, effect.name(), &refused);
                    receipts.extend(refused.into());
                }
                Err(trouble) => {
                    let outcome = settle_failure(report, trouble, patience)?;
                    tracing::warn!(effect = effect.name(), ?outcome, "effect not done");
                    // A failed notification does not stop the effects after it.
                    if !effect.only_informs() {
                        return Ok(PerformedReport::of_outcome(outcome));
                    }
                    failed.get_or_insert(outcome);
                }
            }
        }
        // Reached only if all effects that matter are done; notifications may have failed.
        let done = OutboundOutcome::Done(reports::build_receipt(
            report,
            rules.unwrap_or(&RepositoryRules::default()),
            &receipts,
        ));
        Ok(match failed {
            // A report that only notifies has achieved nothing without its notification.
            Some(outcome) if is_notice_only => PerformedReport::of_outcome(outcome),
            // The branch or pull request exists. A failed notification must not undo that.
            Some(outcome) => PerformedReport {
                outcome: done,
                undelivered: Some(describe_failure(&outcome)),
            },
            None => PerformedReport::of_outcome(done),
        })
    }

    /// Clears the effects; `None` for an effect that is left out.
    async fn clear_effects(
        &self,
        ticket: &TicketKey,
        effects: &[Box<dyn PlannedEffect>],
        records: &TicketRecords<'_>,
    ) -> Result<Vec<Option<EffectClearance>>, EffectError> {
        let mut clearances = Vec::with_capacity(effects.len());
        for effect in effects {
            match Box::pin(records.clear(&**effect)).await {
                Ok(cleared) => clearances.push(cleared),
                // The conversation has no reader for it, and the other effects do not depend on it.
                Err(EffectError::Unwritable(refused)) if effect.only_informs() => {
                    self.refusals.note(ticket, effect.name(), &refused);
                    clearances.push(None);
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(clearances)
    }

    async fn measured(
        &self,
        asked: &EffectContext<'_>,
        effect: &dyn PlannedEffect,
        fence: ReporterFence,
    ) -> Result<EffectReceipts, EffectError> {
        let started = Instant::now();
        // Boxed, because the compiler limits the depth of nested future types.
        let settling: BoxFuture<'_, _> = match (effect.notice_thread(), effect.shows_round()) {
            (Some(_), _) if reports::is_silent(asked) => Box::pin(async { Ok(SettledEffect::unneeded()) }),
            (Some(thread), _) => Box::pin(self.notify(asked, thread, effect, fence)),
            (None, Some(round)) => Box::pin(self.show_rounds(asked, round, effect, fence)),
            (None, None) => Box::pin(self.once(asked, effect, fence)),
        };
        let settled = settling.await;
        telemetry::count_effect(effect.name(), started.elapsed(), &settled);
        if let Ok(SettledEffect {
            receipts,
            how: EffectOrigin::Created,
        }) = &settled
            && effect.notice_thread().is_some()
            && receipts.last::<RefusedNotice>().is_none()
        {
            self.refusals.forget(&asked.report.ticket);
        }
        settled.map(|settled| settled.receipts)
    }

    /// Performs one effect.
    pub(crate) async fn once(
        &self,
        asked: &EffectContext<'_>,
        effect: &dyn PlannedEffect,
        fence: ReporterFence,
    ) -> Result<SettledEffect, EffectError> {
        // The last line of defense: no effect runs without its own clearance.
        if !asked.cleared.covers(effect) {
            return Err(EffectError::Failed(message::unchecked_effect()));
        }
        let reported = ReportedEffect {
            performer: self,
            asked,
            effect,
        };
        let row = StoredEffectRow {
            ledger: &self.ledger,
            ticket: &asked.report.ticket,
            id: asked.id,
            fence,
        };
        let search = AttemptSearch::Window {
            length: self.windows.unknown,
            shutdown: &self.shutdown,
        };
        perform_effect(&reported, &row, &search).await
    }

    /// Waits, or returns an error when the process shuts down.
    pub(crate) async fn pause(&self, wait: Duration) -> Result<(), EffectError> {
        pause_until_shutdown(&self.shutdown, wait).await
    }
}

/// Effect of a report, with its context and the clients.
struct ReportedEffect<'a> {
    performer: &'a ReportPerformer,
    asked: &'a EffectContext<'a>,
    effect: &'a dyn PlannedEffect,
}

#[async_trait]
impl EffectSteps for ReportedEffect<'_> {
    type Receipt = EffectReceipts;

    fn name(&self) -> &'static str {
        self.effect.name()
    }

    fn absorbs_repetition(&self) -> bool {
        self.effect.absorbs_repetition()
    }

    fn only_reads(&self) -> bool {
        self.effect.only_reads()
    }

    async fn find_result(&self) -> Result<Option<EffectReceipts>, EffectError> {
        let found = self.effect.find_result(&self.performer.outside, self.asked).await;
        match found {
            Err(EffectError::Unwritable(refused)) if self.effect.only_informs() => Ok(Some(refused.into())),
            found => found,
        }
    }

    /// A notification that its conversation does not accept is done: no retry can deliver it.
    async fn create(&self) -> Result<EffectReceipts, EffectError> {
        let created = self.effect.create(&self.performer.outside, self.asked).await;
        match created {
            Err(EffectError::Unwritable(refused)) if self.effect.only_informs() => Ok(refused.into()),
            created => created,
        }
    }

    /// Deletes our comment if another reporter took over and commented first.
    async fn take_back(&self, receipts: &EffectReceipts) {
        let Some(WrittenComment(ours)) = receipts.last() else {
            return;
        };
        let ReportPerformer { ledger, outside, .. } = self.performer;
        let ticket = &self.asked.report.ticket;
        let receipt = ledger.receipt(ticket, self.asked.id).await;
        let kept = receipt.ok().flatten().unwrap_or_default();
        let theirs = kept.last::<WrittenComment>();
        // Without a receipt of the other reporter, our comment may be the only one.
        if theirs.is_none_or(|theirs| theirs.0 == *ours) {
            return;
        }
        let thread = self.effect.notice_thread().cloned();
        let thread = thread.unwrap_or_else(|| CommentThread::of(ticket));
        match outside.delete_comment(&thread, ours).await {
            Ok(()) => tracing::warn!(comment = %ours, "comment came second; deleted"),
            Err(error) => {
                tracing::warn!(
                    comment = %ours,
                    error = %format_error_chain(&error),
                    "comment came second; it stays for now"
                )
            }
        }
    }
}

fn rules_of<'a>(
    book: &'a RulesBook,
    report: &OutboundRequest,
    present: &TicketKey,
) -> Option<&'a RepositoryRules> {
    match report.request.repository() {
        Some(repository) => book.for_repository(repository),
        None => book
            .for_ticket(present)
            .or_else(|| book.for_ticket(&report.ticket)),
    }
}

/// Converts a failure to the report's outcome.
///
/// # Errors
/// The failure, if it leaves the report unsettled.
fn settle_failure(
    report: &OutboundRequest,
    trouble: EffectError,
    patience: AttemptKind,
) -> Result<OutboundOutcome, EffectError> {
    match trouble {
        EffectError::Later { .. }
        | EffectError::HeldBack { .. }
        | EffectError::Queued(_)
        | EffectError::DiskFull(_)
        | EffectError::Unknown(_)
            if patience == AttemptKind::More =>
        {
            Err(trouble)
        }
        EffectError::Refused(refusal) => Ok(OutboundOutcome::Refused(refusal)),
        EffectError::Unwritable(RefusedNotice { detail, .. }) => {
            Ok(OutboundOutcome::Refused(OutboundRefusal::Outside { detail }))
        }
        EffectError::DiskFull(_) => Ok(OutboundOutcome::Failed {
            detail: trouble.to_string(),
        }),
        EffectError::Failed(detail)
        | EffectError::Missing(detail)
        | EffectError::Unknown(detail)
        | EffectError::Queued(detail)
        | EffectError::Later { detail, .. }
        | EffectError::HeldBack { detail, .. } => Ok(OutboundOutcome::Failed { detail }),
        EffectError::Denied { account, detail } => {
            let section = account.section(report);
            tracing::error!(section, %detail, "permission missing");
            let detail = message::describe_denied_permission(&section, &detail);
            Ok(OutboundOutcome::Failed { detail })
        }
        EffectError::Credentials { account, detail } => {
            let section = account.section(report);
            tracing::error!(section, %detail, "credentials refused");
            let detail = message::credentials_refused();
            Ok(OutboundOutcome::Failed { detail })
        }
        // These failures are about this reporter, not about the report. So even the last try leaves the
        // report unsettled.
        EffectError::Ledger(_) | EffectError::HandBack(_) | EffectError::Shutdown => Err(trouble),
    }
}

/// Renders an outcome that is not successful.
pub(crate) fn describe_failure(outcome: &OutboundOutcome) -> String {
    match outcome {
        OutboundOutcome::Done(_) => String::new(),
        OutboundOutcome::Refused(refusal) => refusal.words(),
        OutboundOutcome::Failed { detail } => detail.clone(),
    }
}

#[cfg(test)]
mod tests {
    use domain::{Job, OutboundAction, RunId, TicketKey, report};

    use super::*;
    use crate::effect_error::WritingAccount;

    fn build_started_report(ticket: &str, repository: &str) -> OutboundRequest {
        let ticket: TicketKey = ticket.parse().unwrap();
        let run = RunId::new(ticket.clone(), 1);
        OutboundRequest {
            id: run.call(2).into(),
            ticket,
            run: Some(run),
            fence: domain::RunFence::default(),
            at: domain::Timestamp::default(),
            progress: None,
            request: OutboundAction::WorkStarted(report::WorkStarted {
                job: Job::Implement,
                repository: repository.parse().unwrap(),
                begun: report::WorkOrigin::default(),
            }),
        }
    }

    #[test]
    fn refused_credentials_name_settings_section_of_instance() {
        let there = build_started_report("jira+dc:ENG-1", "ghe:acme/shop");
        let here = build_started_report("jira:ENG-1", "acme/shop");
        let crossed = build_started_report("jira+dc:ENG-1", "acme/shop");
        for (account, report, section) in [
            (WritingAccount::GitHub, &there, "github.ghe"),
            (WritingAccount::Jira, &there, "jira.dc"),
            (WritingAccount::GitHub, &here, "github_writer"),
            (WritingAccount::Jira, &here, "jira_writer"),
            (WritingAccount::GitHub, &crossed, "github_writer"),
        ] {
            assert_eq!(account.section(report), section);
        }
    }

    #[test]
    fn moved_target_refuses_report_by_name() {
        let moved = github::Error::Transferred(Box::new(github::TransferredThread {
            repository: "acme/shop".parse().unwrap(),
            number: 2,
            to: "acme/other#220".to_owned(),
        }));
        let report = build_started_report("jira:ENG-1", "acme/shop");
        let outcome = settle_failure(&report, moved.into(), AttemptKind::More).unwrap();
        let OutboundOutcome::Refused(refusal) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(refusal.words(), "acme/shop#2 moved to acme/other#220");
    }

    #[test]
    fn denied_permission_fails_with_cause_for_operator() {
        let detail = "Resource not accessible by integration".to_owned();
        let denied = EffectError::from(github::Error::Forbidden { detail, needs: None });
        let outcome = settle_failure(
            &build_started_report("jira:ENG-1", "acme/shop"),
            denied,
            AttemptKind::More,
        )
        .unwrap();
        let OutboundOutcome::Failed { detail } = outcome else {
            panic!("{outcome:?}")
        };
        assert!(
            detail.contains("not accessible") && detail.contains("[github_writer]"),
            "{detail}"
        );
        assert!(detail.contains("permission"), "{detail}");
    }
}
