//! Reports of a run: its start, progress and end, the decisions that it waits for, and its rehearsal.

use domain::{
    Job, MetadataPattern, OutboundReceipt, OutboundRequest, PushProposal, RehearsedEffects, StopClass,
    StopReason,
    report::{
        EffortForecast, PlanProposed, ProgressUpdate, QuestionAsked, RehearsalRequest, RetryScheduled,
        RunStopped, TicketQuarantined, UnreadableRecordNotice, WorkStarted,
    },
    text::truncate_text,
};

use super::{
    EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind, name_effects, plan_effects,
    render_report, show_failed_try, show_round_event,
};
use crate::{
    board::{FinishedWork, WorkEnd},
    effects::{CallFor, CallPeople, CheckRequirements, CommentThread, ShowChange},
    message,
    receipt::{EffectReceipts, ShownChange},
    rounds::RoundEvent,
    scan,
};

/// Report of started work.
impl ReportKind for WorkStarted {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let mut effects = EffectList::new();
        // First, because work that cannot be delivered is not announced.
        if self.job.is_change() {
            let repository = self.repository.clone();
            let job = self.job;
            effects.push(Box::new(CheckRequirements { repository, job }));
        }
        // Work on an existing pull request leaves the status of its ticket unchanged.
        if self.job == Job::Implement {
            let moved = asked.moved(&[&asked.rules.agent.in_progress_status]);
            effects.extend(asked.assigned().into_iter().chain(moved));
        }
        if self.job.is_change() {
            effects.push(show_round_event(
                &self.repository,
                RoundEvent::Begun(self.begun.clone()),
            ));
        }
        effects
    }

    fn notice_place(&self) -> NoticePlace {
        NoticePlace::AtStart
    }

    fn receipt(&self, receipts: &EffectReceipts, _: &PlanContext<'_>) -> OutboundReceipt {
        let patterns: Vec<MetadataPattern> = receipts.all::<MetadataPattern>().cloned().collect();
        if patterns.is_empty() {
            OutboundReceipt::Told
        } else {
            OutboundReceipt::Started { patterns }
        }
    }

    fn finished_work(&self, _: &NoticeContext<'_>) -> FinishedWork {
        if self.job == Job::Implement && !self.begun.is_again {
            FinishedWork::nothing()
        } else {
            FinishedWork::default()
        }
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        let start = message::render_start(self.job, &self.repository, &self.begun);
        let omitted = message::render_omitted_attachments(&self.begun.omitted);
        std::iter::once(start).chain(omitted).collect()
    }
}

/// Report of the expected effort.
impl ReportKind for EffortForecast {
    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        vec![message::render_forecast(&self.forecast)]
    }
}

/// Report of a new phase of the model's work.
impl ReportKind for ProgressUpdate {
    fn notice_place(&self) -> NoticePlace {
        NoticePlace::AsProgress
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        Vec::new()
    }
}

/// Report of a push that a person has to decide about.
impl ReportKind for PushProposal {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(ShowChange(self.push.clone()))]
    }

    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String> {
        let what = (self.description.as_deref(), context.receipts.last());
        message::decision_needed(&self.push, what, context.run)
    }

    fn receipt(&self, receipts: &EffectReceipts, _: &PlanContext<'_>) -> OutboundReceipt {
        match receipts.last() {
            Some(ShownChange { head, diff, .. }) => OutboundReceipt::DecisionAsked {
                head: head.clone(),
                diff: diff.clone(),
            },
            None => OutboundReceipt::Told,
        }
    }
}

/// Report of a plan that a person has to decide about.
impl ReportKind for PlanProposed {
    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String> {
        message::render_plan(&self.repository, &self.id, &self.plan, context.run)
    }
}

/// Report of a question that a person has to answer.
impl ReportKind for QuestionAsked {
    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_questions(&self.questions)
    }
}

/// Report of a run that ended without its goal.
impl ReportKind for RunStopped {
    /// Unassigns the ticket, so that a new assignment requests work.
    ///
    /// After repeated failures a person loses the assignment, too. After other work on a change without a result,
    /// only our account does.
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let mut effects = vec![show_failed_try(self.pull_request.as_ref(), &self.reason)];
        if let (StopReason::ConflictLeft { why, files }, Some(pull_request)) =
            (&self.reason, &self.pull_request)
        {
            effects.push(Box::new(CallPeople {
                thread: CommentThread::on(pull_request),
                why: CallFor::LeftConflict(*why, files.clone()),
            }));
        }
        if self.reason.breaks_circuit() {
            effects.extend(asked.given_back(true));
        } else if self.job.is_change() && self.reason.gives_back() {
            effects.extend(asked.given_back(false));
        }
        effects
    }

    fn work_end(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        // A refusal is a result: the author gave the reason, and nothing broke.
        let is_refusal = matches!(self.reason, StopReason::GivenUp { .. } | StopReason::ModelRefused);
        Some(match self.reason.class() {
            StopClass::Completed => WorkEnd::Done,
            StopClass::Settled => WorkEnd::Stopped,
            StopClass::GivenBack | StopClass::ServiceFailure | StopClass::Failure if is_refusal => {
                WorkEnd::Stopped
            }
            StopClass::GivenBack | StopClass::ServiceFailure | StopClass::Failure => WorkEnd::Failed,
        })
    }

    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String> {
        let (draft, branch) = (self.pull_request.as_ref(), self.branch.as_ref());
        message::render_stop(self.job, &self.reason, draft, branch, &context.try_again())
    }
}

/// Report of a run that failed temporarily and will be retried.
impl ReportKind for RetryScheduled {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![show_failed_try(None, &self.reason)]
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::retry_scheduled(self.job, &self.reason, (self.attempt, self.most), self.due)
    }
}

/// Report of a ticket that waits for an operator.
impl ReportKind for TicketQuarantined {
    fn work_end(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Failed)
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_quarantine(&self.reason)
    }
}

/// Report of an unreadable record about the ticket.
impl ReportKind for UnreadableRecordNotice {
    fn work_end(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Failed)
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_unreadable(&self.what.to_string(), self.is_poison)
    }
}

// Length of the text of one request in the receipt, in characters.
const WORDS_CHARS: usize = 4_000;

/// Report of a rehearsal: returns the effects and texts of other requests, and does nothing.
impl ReportKind for RehearsalRequest {
    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Nowhere
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        Vec::new()
    }

    fn receipt(&self, _: &EffectReceipts, asked: &PlanContext<'_>) -> OutboundReceipt {
        let would = self.requests.iter().map(|request| {
            let report = OutboundRequest {
                request: request.clone(),
                ..asked.report.clone()
            };
            rehearse_report(&report, asked)
        });
        OutboundReceipt::Rehearsed {
            would: would.collect(),
        }
    }
}

fn rehearse_report(report: &OutboundRequest, asked: &PlanContext<'_>) -> RehearsedEffects {
    let effects = plan_effects(report, asked.rules);
    let context = NoticeContext {
        receipts: &EffectReceipts::default(),
        unmoved: None,
        ticket: &report.ticket,
        run: report.run.as_ref(),
        again: &asked.rules.agent.status,
    };
    // Without a notification, the text of the request is not used, so it is not returned.
    let has_notice = name_effects(&effects).any(|(_, effect)| effect.notice_thread().is_some());
    let said = if has_notice {
        render_report(&report.request, &context)
    } else {
        String::new()
    };
    RehearsedEffects {
        request: report.request.summary(),
        effects: name_effects(&effects).map(|(name, _)| name).collect(),
        words: truncate_text(&scan::redact_credentials(&said), WORDS_CHARS),
    }
}

#[cfg(test)]
mod tests {
    use domain::{GiveUp, TicketKey};

    use super::*;

    #[test]
    fn refusal_is_not_marked_as_failure() {
        let ticket = TicketKey::jira("ENG-12").unwrap();
        let context = NoticeContext {
            receipts: &EffectReceipts::default(),
            unmoved: None,
            ticket: &ticket,
            run: None,
            again: "To Do",
        };
        let find_end = |reason| {
            let stopped = RunStopped {
                job: Job::Implement,
                reason,
                pull_request: None,
                branch: None,
            };
            stopped.work_end(&context)
        };
        let summary = || "The ticket contradicts the tests.".to_owned();
        for refusal in [
            StopReason::NoChange { summary: summary() },
            StopReason::GivenUp {
                kind: GiveUp::SpecContradictsTests,
                evidence: summary(),
            },
            StopReason::ModelRefused,
        ] {
            assert_eq!(find_end(refusal), Some(WorkEnd::Stopped));
        }
        assert_eq!(find_end(StopReason::NoPlan), Some(WorkEnd::Failed));
        assert_eq!(find_end(StopReason::Completed), Some(WorkEnd::Done));
    }
}
