//! Reports that a run requests, their outcomes, and the decisions of people that some of them ask for.

use domain::{
    CommitId, DecisionVerdict, GateDecision, MetadataPattern, OutboundAction, OutboundId, OutboundOutcome,
    OutboundReceipt, RepositoryName, StopReason, Timestamp, report,
};

use super::{ApplyResult, require_legal};

/// Reports of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryState {
    reports: Vec<ReportState>,
    /// Reports that the reporter's log may lack; sending one twice is harmless.
    unsent: Vec<OutboundId>,
}

/// Report of the run.
#[derive(Clone, Debug)]
pub(crate) struct ReportState {
    pub(crate) id: OutboundId,
    pub(crate) request: OutboundAction,
    pub(crate) at: Timestamp,
    pub(crate) outcome: Option<OutboundOutcome>,
    /// True for a failed report that a retry requests again.
    pub(crate) is_void: bool,
}

impl DeliveryState {
    /// Restarts the work. The reports stay, because the ticket shows them. A decision about the obsolete
    /// change must not count.
    pub(super) fn reset(&mut self) {
        let mut reports = std::mem::take(&mut self.reports);
        for report in &mut reports {
            report.is_void |= report.request.asks_about().is_some();
        }
        *self = Self {
            reports,
            unsent: std::mem::take(&mut self.unsent),
        };
    }

    /// Returns all reports, in order.
    pub(crate) fn reports(&self) -> &[ReportState] {
        &self.reports
    }

    /// Returns the report with this id.
    pub(crate) fn report(&self, id: &OutboundId) -> Option<&ReportState> {
        self.reports.iter().find(|report| report.id == *id)
    }

    /// Returns the last valid report of a kind.
    pub(crate) fn last_report(&self, is_it: impl Fn(&OutboundAction) -> bool) -> Option<&ReportState> {
        let mut latest = self.reports.iter().rev();
        // A void report is requested again, so it must not be found.
        latest.find(|report| !report.is_void && is_it(&report.request))
    }

    /// Returns the patterns that the repository requires, as the reporter read them before the work.
    pub(crate) fn required_patterns(&self) -> &[MetadataPattern] {
        let is_start = |request: &OutboundAction| matches!(request, OutboundAction::WorkStarted(_));
        let outcome = self
            .last_report(is_start)
            .and_then(|started| started.outcome.as_ref());
        match outcome {
            Some(OutboundOutcome::Done(OutboundReceipt::Started { patterns })) => patterns,
            Some(
                OutboundOutcome::Done(
                    OutboundReceipt::Told
                    | OutboundReceipt::Pushed { .. }
                    | OutboundReceipt::PullRequestOpened(_)
                    | OutboundReceipt::DecisionAsked { .. }
                    | OutboundReceipt::Rehearsed { .. },
                )
                | OutboundOutcome::Refused(_)
                | OutboundOutcome::Failed { .. },
            )
            | None => &[],
        }
    }

    /// Returns the first report that the reporter's log may lack.
    pub(crate) fn first_unsent(&self) -> Option<&ReportState> {
        self.report(self.unsent.first()?)
    }

    /// Returns the reason that the run ends, once its report is requested.
    pub(crate) fn closing(&self) -> Option<&StopReason> {
        self.reports.iter().find_map(|report| match &report.request {
            OutboundAction::RunStopped(report::RunStopped { reason, .. }) => Some(reason),
            _ => None,
        })
    }

    /// Returns true if a push has no outcome yet.
    pub(crate) fn has_open_push(&self) -> bool {
        self.reports
            .iter()
            .any(|report| report.outcome.is_none() && matches!(report.request, OutboundAction::PushBranch(_)))
    }

    /// Returns true if the result of the work is reported to its requester.
    pub(crate) fn has_result(&self) -> bool {
        self.last_report(is_work_result).is_some()
    }

    /// Notes that a report is in the reporter's log.
    pub(super) fn sent(&mut self, id: &OutboundId) {
        self.unsent.retain(|unsent| unsent != id);
    }

    /// Notes that every report is in the reporter's log: a run parks only after that.
    pub(super) fn all_sent(&mut self) {
        self.unsent.clear();
    }

    pub(super) fn requested(
        &mut self,
        id: &OutboundId,
        request: &OutboundAction,
        at: Timestamp,
    ) -> ApplyResult {
        require_legal(self.report(id).is_none(), "this report was requested already")?;
        self.unsent.push(id.clone());
        self.reports.push(ReportState {
            id: id.clone(),
            request: request.clone(),
            at,
            outcome: None,
            is_void: false,
        });
        Ok(())
    }

    /// Records the outcome of a report, and returns the repository and the commit of its push.
    pub(super) fn settled(
        &mut self,
        id: &OutboundId,
        outcome: &OutboundOutcome,
    ) -> Result<Option<(RepositoryName, CommitId)>, &'static str> {
        self.sent(id);
        let mut reports = self.reports.iter_mut();
        let report = reports
            .find(|report| report.id == *id)
            .ok_or("this report is not of the run")?;
        require_legal(report.outcome.is_none(), "it was settled already")?;
        report.outcome = Some(outcome.clone());
        let push = match &report.request {
            OutboundAction::PushBranch(push) => Some(push),
            OutboundAction::WorkDelivered(delivered) => Some(&delivered.push),
            _ => None,
        };
        Ok(push.map(|push| (push.repository.clone(), push.head.clone())))
    }

    /// Voids refused reports about the change: the next handover brings a new description, so they are
    /// requested again.
    pub(super) fn returned(&mut self) {
        for report in &mut self.reports {
            let is_refused = matches!(report.outcome, Some(OutboundOutcome::Refused(_)));
            report.is_void |= is_refused
                && matches!(
                    report.request,
                    OutboundAction::OpenPullRequest(_) | OutboundAction::WorkDelivered(_)
                );
        }
    }

    /// Voids failed reports, so that they are requested again under new ids, and returns all void ones.
    /// `by_person`: the ticket reports that a user resumed the work.
    pub(super) fn retried(&mut self, by_person: bool) -> Vec<OutboundId> {
        for report in &mut self.reports {
            let has_failed = matches!(report.outcome, Some(OutboundOutcome::Failed { .. }));
            let is_repeated = by_person && matches!(report.request, OutboundAction::WorkStarted(_));
            report.is_void |= has_failed || is_repeated;
        }
        let void = self.reports.iter().filter(|report| report.is_void);
        void.map(|report| report.id.clone()).collect()
    }

    /// Forgets the report of a notice, so that the retry requests it under a new id.
    pub(super) fn forget_reports(&mut self) {
        *self = Self::default();
    }
}

/// Returns true for the report of repaired checks, of a resolved conflict or of an addressed review.
pub(crate) const fn is_work_result(request: &OutboundAction) -> bool {
    matches!(
        request,
        OutboundAction::ChecksRepaired(_)
            | OutboundAction::ConflictResolved(_)
            | OutboundAction::ReviewAddressed(_)
    )
}

/// Decisions of people about the change.
#[derive(Clone, Debug, Default)]
pub(crate) struct GateState {
    /// Commit that a person approved last. Where approval is required, no other commit may be pushed.
    approved: Option<CommitId>,
    /// Last decision, until the run asks again or returns to the work.
    decision: Option<GateVerdict>,
}

/// Decision with its author.
#[derive(Clone, Debug)]
pub(crate) struct GateVerdict {
    pub(crate) decision: GateDecision,
    pub(crate) by: String,
}

impl GateState {
    /// Restarts the work: a decision is about one commit.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns true if a person approved this commit or plan.
    pub(crate) fn is_approved(&self, id: &CommitId) -> bool {
        self.approved.as_ref() == Some(id)
    }

    /// Returns a person's decision about a commit or plan.
    pub(crate) fn decision_about(&self, id: &CommitId) -> Option<&GateVerdict> {
        self.decision.as_ref().filter(|known| known.decision.head == *id)
    }

    /// Returns the commit or plan that waits for a person's decision.
    pub(crate) fn asks_about<'a>(&self, delivery: &'a DeliveryState) -> Option<&'a CommitId> {
        let asked = delivery.last_report(|request| request.asks_about().is_some())?;
        let id = asked.request.asks_about()?;
        (self.decision.is_none() && !self.is_approved(id)).then_some(id)
    }

    pub(super) fn report_requested(&mut self, request: &OutboundAction) {
        if request.asks_about().is_some() {
            // A decision belongs to the previous request.
            self.decision = None;
        }
    }

    pub(super) fn decided(
        &mut self,
        decision: &GateDecision,
        by: &str,
        delivery: &DeliveryState,
    ) -> ApplyResult {
        require_legal(
            self.asks_about(delivery) == Some(&decision.head),
            "no decision about this commit is asked for",
        )?;
        self.approved = (decision.verdict == DecisionVerdict::Approve).then(|| decision.head.clone());
        self.decision = Some(GateVerdict {
            decision: decision.clone(),
            by: by.to_owned(),
        });
        Ok(())
    }

    /// Forgets the decision: it is about the old work.
    pub(super) fn returned(&mut self) {
        self.decision = None;
    }
}
