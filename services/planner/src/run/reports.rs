//! What a run asks of the reporter, and what comes of it.

use domain::{Entry, Receipt, ReportId, ReportOutcome, ReportRequest, ToolResult};

use super::apply::{Applied, legal};
use super::state::{Call, ReportState, RunState};

impl RunState {
    pub(super) fn report_requested(
        &mut self,
        id: &ReportId,
        request: &ReportRequest,
        answers: Option<&str>,
        entry: &Entry,
    ) -> Applied {
        legal(self.report(id).is_none(), "this report was requested already")?;
        if let Some(answers) = answers {
            let call = self
                .open_call_mut()
                .filter(|call| call.call.id == answers)
                .ok_or("it answers no open call")?;
            match request {
                ReportRequest::DecisionNeeded(_) => call.gate = Some(id.clone()),
                ReportRequest::PushBranch(_)
                | ReportRequest::OpenPullRequest { .. }
                | ReportRequest::AddLabels { .. } => call.report = Some(id.clone()),
                ReportRequest::WorkStarted { .. }
                | ReportRequest::ChecksPassed { .. }
                | ReportRequest::ChecksAbsent { .. }
                | ReportRequest::ChecksFailed { .. }
                | ReportRequest::Merged { .. }
                | ReportRequest::Closed { .. }
                | ReportRequest::RunStopped { .. }
                | ReportRequest::RetryScheduled { .. }
                | ReportRequest::Quarantined { .. }
                | ReportRequest::Unreadable { .. }
                | ReportRequest::Skipped(_) => return Err("such a report answers no tool call"),
            }
        }
        if let (ReportRequest::RetryScheduled { .. }, Some(retry)) = (request, &mut self.retry) {
            retry.told = true;
        }
        self.unsent.push(id.clone());
        self.reports.push(ReportState {
            id: id.clone(),
            request: request.clone(),
            at: entry.at,
            outcome: None,
        });
        Ok(())
    }

    pub(super) fn report_settled(
        &mut self,
        id: &ReportId,
        outcome: &ReportOutcome,
        position: u64,
    ) -> Applied {
        let report = self
            .reports
            .iter_mut()
            .find(|report| report.id == *id)
            .ok_or("this report is not of the run")?;
        legal(report.outcome.is_none(), "it was settled already")?;
        report.outcome = Some(outcome.clone());
        let repository = match &report.request {
            ReportRequest::PushBranch(push) => Some(push.repository.clone()),
            _ => None,
        };
        self.sent(id);
        match outcome {
            ReportOutcome::Done(Receipt::Pushed { branch, head }) => {
                self.work_in(repository.as_ref())?.pushed = Some((branch.clone(), head.clone()));
            }
            ReportOutcome::Done(Receipt::PullRequestOpened(opened)) => {
                self.work_in(Some(&opened.repository))?.pull_request = Some(opened.clone());
            }
            ReportOutcome::Done(Receipt::Told | Receipt::DecisionAsked { .. })
            | ReportOutcome::Refused { .. }
            | ReportOutcome::Failed { .. } => {}
        }
        // What failed in the end is tried again later; only then the model would be of use.
        let is_final = !matches!(outcome, ReportOutcome::Failed { .. });
        let is_refused = matches!(outcome, ReportOutcome::Refused { .. });
        let answers = |call: &Call| {
            // Nobody is asked about a change that may not be pushed: the model hears why.
            (is_final && call.report.as_ref() == Some(id)) || (is_refused && call.gate.as_ref() == Some(id))
        };
        if self.open_call().is_some_and(answers) {
            self.finish_call(answer(outcome), position)?;
        }
        Ok(())
    }
}

/// What the model reads of a settled report.
fn answer(outcome: &ReportOutcome) -> ToolResult {
    match outcome {
        ReportOutcome::Done(Receipt::Pushed { branch, head }) => {
            ToolResult::ok(format!("Pushed branch {branch} at {}.", head.short()))
        }
        ReportOutcome::Done(Receipt::PullRequestOpened(opened)) => ToolResult::ok(format!(
            "Draft pull request #{} is open: {}",
            opened.number, opened.url
        )),
        ReportOutcome::Done(Receipt::DecisionAsked { .. } | Receipt::Told) => ToolResult::ok("Done."),
        ReportOutcome::Refused { detail } => ToolResult::error(format!("Refused: {detail}")),
        ReportOutcome::Failed { detail } => ToolResult::error(format!("Failed after every retry: {detail}")),
    }
}
