//! Reports that a run requests, and their outcomes.

use domain::{JournalEntry, OutboundAction, OutboundId, OutboundOutcome, OutboundReceipt};

use super::state::ReportState;
use super::transitions::{ApplyResult, require_legal};
use super::{CallResult, PlannerRunState, TurnCall};

impl PlannerRunState {
    pub(super) fn report_requested(
        &mut self,
        id: &OutboundId,
        request: &OutboundAction,
        answers: Option<&str>,
        entry: &JournalEntry,
    ) -> ApplyResult {
        require_legal(self.report(id).is_none(), "this report was requested already")?;
        if let Some(answers) = answers {
            let call = self
                .open_call_mut()
                .filter(|call| call.call.id == answers)
                .ok_or("it answers no open call")?;
            require_legal(request.answers_call(), "such a report answers no tool call")?;
            call.report = Some(id.clone());
        }
        if let (OutboundAction::RetryScheduled(_), Some(retry)) = (request, &mut self.retry) {
            retry.told = true;
        }
        if request.asks_about().is_some() {
            // A decision belongs to the previous request.
            self.decision = None;
        }
        self.unsent.push(id.clone());
        self.reports.push(ReportState {
            id: id.clone(),
            request: request.clone(),
            at: entry.at,
            outcome: None,
            is_void: false,
        });
        Ok(())
    }

    pub(super) fn report_settled(
        &mut self,
        id: &OutboundId,
        outcome: &OutboundOutcome,
        position: u64,
    ) -> ApplyResult {
        let report = self
            .reports
            .iter_mut()
            .find(|report| report.id == *id)
            .ok_or("this report is not of the run")?;
        require_legal(report.outcome.is_none(), "it was settled already")?;
        report.outcome = Some(outcome.clone());
        let repository = match &report.request {
            OutboundAction::PushBranch(push) => Some(push.repository.clone()),
            OutboundAction::WorkDelivered(delivered) => Some(delivered.push.repository.clone()),
            _ => None,
        };
        self.sent(id);
        match outcome {
            OutboundOutcome::Done(OutboundReceipt::Pushed { branch, head }) => {
                self.work_in(repository.as_ref())?.pushed = Some((branch.clone(), head.clone()));
            }
            OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(opened)) => {
                self.work_in(Some(&opened.repository))?.pull_request = Some(opened.clone());
            }
            OutboundOutcome::Done(
                OutboundReceipt::Told
                | OutboundReceipt::DecisionAsked { .. }
                | OutboundReceipt::Rehearsed { .. },
            )
            | OutboundOutcome::Refused(_)
            | OutboundOutcome::Failed { .. } => {}
        }
        // A failed report is retried later; only its final outcome is useful for the model.
        let is_final = !matches!(outcome, OutboundOutcome::Failed { .. });
        let answers = |call: &TurnCall| is_final && call.report.as_ref() == Some(id);
        if self.open_call().is_some_and(answers) {
            self.finish_call(CallResult::Settled(outcome.clone()), position)?;
        }
        Ok(())
    }
}
