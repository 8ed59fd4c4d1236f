//! Open decisions of runs.

use domain::{
    CommitId, Fact, GateStep, JournalEntry, ObjectRef, OutboundId, OutboundOutcome, OutboundReceipt,
    OutboundSettled, RunId, RunStatus, Trigger, TriggerChannel, TriggerReason,
};

/// Point at which a run waits for a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecisionGate {
    /// Position of the journal entry that parked the run.
    pub(crate) position: u64,
    /// Commit or plan to decide about.
    pub(crate) head: CommitId,
    /// Report that asks for the decision.
    pub(crate) report: OutboundId,
    /// True for a plan, which has no diff.
    pub(crate) is_plan: bool,
}

impl DecisionGate {
    /// Trigger key of the decision. All channels share it, so a gate accepts one decision.
    pub(crate) fn key(&self, run: &RunId) -> String {
        format!("decision:{run}:{}", self.position)
    }

    /// True when the reporter's own triggers confirm this question. A compromised planner could write another commit into the
    /// journal than the one that users see.
    pub(crate) fn is_shown<'a>(&self, run: &RunId, triggers: impl Iterator<Item = &'a Trigger>) -> bool {
        list_settled_reports(run, triggers).any(|settled| {
            settled.report == self.report
                && match &settled.outcome {
                    OutboundOutcome::Done(OutboundReceipt::DecisionAsked { head, .. }) => {
                        !self.is_plan && *head == self.head
                    }
                    OutboundOutcome::Done(OutboundReceipt::Told) => self.is_plan,
                    OutboundOutcome::Done(
                        OutboundReceipt::Pushed { .. }
                        | OutboundReceipt::PullRequestOpened(_)
                        | OutboundReceipt::Started { .. }
                        | OutboundReceipt::Rehearsed { .. },
                    )
                    | OutboundOutcome::Refused(_)
                    | OutboundOutcome::Failed { .. } => false,
                }
        })
    }
}

/// Change of a run that the reporter showed last, and its diff, according to the reporter's triggers. `None` after a push
/// of another commit.
pub(crate) fn find_last_shown<'a>(
    run: &RunId,
    triggers: impl Iterator<Item = &'a Trigger>,
) -> Option<(CommitId, ObjectRef)> {
    let receipts = list_settled_reports(run, triggers).filter_map(|settled| settled.outcome.receipt());
    receipts.fold(None, update_last_shown)
}

/// Returns the change that was shown last after one more receipt. A push of another commit replaces it: after `/feedback`
/// the run may push a change without another question.
pub(crate) fn update_last_shown(
    last: Option<(CommitId, ObjectRef)>,
    receipt: &OutboundReceipt,
) -> Option<(CommitId, ObjectRef)> {
    match receipt.pushed_change() {
        Some((pushed, _)) => last.filter(|(shown, _)| *shown == pushed),
        None => receipt.shown_change().or(last),
    }
}

/// Reports that the reporter settled for a run.
fn list_settled_reports<'a>(
    run: &RunId,
    triggers: impl Iterator<Item = &'a Trigger>,
) -> impl Iterator<Item = &'a OutboundSettled> {
    triggers.filter_map(move |trigger| {
        let TriggerReason::ReportSettled(settled) = &trigger.reason else {
            return None;
        };
        // The source is checked: only the reporter may confirm what users saw.
        (trigger.source == TriggerChannel::Reporter && settled.run == *run).then_some(settled)
    })
}

/// True when the ticket's row allows an open decision. A run that asks is queued again when its report settles, and on a busy
/// planner users decide before the run continues.
pub(crate) const fn can_ask(status: &RunStatus) -> bool {
    match status {
        RunStatus::Queued | RunStatus::Active | RunStatus::Parked { .. } => true,
        RunStatus::Finished { .. } => false,
    }
}

/// True for a journal entry that [`find_open_gate`] or [`is_asking`] reads.
pub(crate) fn is_about_gate(entry: &JournalEntry) -> bool {
    matches!(entry.fact, Fact::ReportSettled { .. }) || entry.fact.gate_step() != GateStep::Unchanged
}

/// The open gate of a run.
pub(crate) fn find_open_gate<'a>(entries: impl Iterator<Item = &'a JournalEntry>) -> Option<DecisionGate> {
    let (mut asked, mut gate) = (None, None);
    for entry in entries {
        match entry.fact.gate_step() {
            GateStep::Asked {
                head,
                report,
                is_plan,
            } => asked = Some((head, report, is_plan)),
            GateStep::Opened => {
                let position = entry.position;
                gate = asked.map(|(head, report, is_plan)| DecisionGate {
                    position,
                    head: head.clone(),
                    report: report.clone(),
                    is_plan,
                });
            }
            GateStep::Closed => gate = None,
            GateStep::Unchanged => {}
        }
    }
    gate
}

/// True while the run is about to wait for a decision. Users may read and answer the question before the run has parked.
pub(crate) fn is_asking<'a>(entries: impl Iterator<Item = &'a JournalEntry>) -> bool {
    let mut asked = None;
    for entry in entries {
        match entry.fact.gate_step() {
            GateStep::Asked { report, .. } => asked = Some(report),
            GateStep::Opened | GateStep::Closed => asked = None,
            GateStep::Unchanged => {}
        }
        // People did not see a question that the reporter failed to show.
        if let Fact::ReportSettled { id, outcome } = &entry.fact
            && !matches!(outcome, OutboundOutcome::Done(_))
        {
            asked = asked.filter(|report| *report != id);
        }
    }
    asked.is_some()
}

#[cfg(test)]
mod tests {
    use domain::{OutboundAction, OutboundReceipt, RunFence, RunOverview, Timestamp, WaitCondition, report};
    use proptest::prelude::*;

    use super::*;

    fn build_journal_entries(facts: &[Fact]) -> Vec<JournalEntry> {
        let entry = |(position, fact): (u64, &Fact)| JournalEntry {
            position,
            nonce: String::new(),
            fence: RunFence::default(),
            at: Timestamp::default(),
            fact: fact.clone(),
        };
        (1..).zip(facts).map(entry).collect()
    }

    fn build_plan_request() -> Fact {
        let run: RunId = "jira:ENG-1@1".parse().unwrap();
        Fact::ReportRequested {
            id: run.call(2).into(),
            request: OutboundAction::PlanProposed(report::PlanProposed {
                repository: "acme/shop".parse().unwrap(),
                id: "a".repeat(40).parse().unwrap(),
                plan: Box::default(),
            }),
            answers: None,
        }
    }

    fn build_settled_fact(outcome: OutboundOutcome) -> Fact {
        let run: RunId = "jira:ENG-1@1".parse().unwrap();
        Fact::ReportSettled {
            id: run.call(2).into(),
            outcome,
        }
    }

    #[test]
    fn requeued_run_still_accepts_decision() {
        let waits_for = WaitCondition::Decision;
        assert!(can_ask(&RunStatus::Queued) && can_ask(&RunStatus::Active));
        assert!(can_ask(&RunStatus::Parked { waits_for }));
        let reason = domain::StopReason::Completed;
        assert!(!can_ask(&RunStatus::Finished { reason }));
    }

    #[test]
    fn run_asks_until_its_gate_opens() {
        let waits = |waits_for| Fact::Parked { waits_for };
        let done = || build_settled_fact(OutboundOutcome::Done(OutboundReceipt::Told));
        let detail = "no".to_owned();
        let refused = build_settled_fact(OutboundOutcome::Refused(domain::OutboundRefusal::Outside {
            detail,
        }));
        let moved = || Fact::HeadMoved {
            head: "b".repeat(40).parse().unwrap(),
            by: None,
            trigger: None,
        };
        let (report, decision) = (WaitCondition::Report, WaitCondition::Decision);
        for (facts, is_asked, is_open) in [
            (vec![], false, false),
            (vec![build_plan_request()], true, false),
            (vec![build_plan_request(), waits(report), done()], true, false),
            (vec![build_plan_request(), waits(report), refused], false, false),
            (
                vec![build_plan_request(), waits(report), done(), waits(decision)],
                false,
                true,
            ),
            (vec![build_plan_request(), moved()], false, false),
            (
                vec![build_plan_request(), done(), waits(decision), moved()],
                false,
                false,
            ),
        ] {
            let entries = build_journal_entries(&facts);
            assert_eq!(is_asking(entries.iter()), is_asked, "{facts:?}");
            assert_eq!(find_open_gate(entries.iter()).is_some(), is_open, "{facts:?}");
        }
    }

    /// A trigger that opens a run, as a journal holds it.
    fn build_start_fact() -> Fact {
        let trigger = serde_json::json!({"ticket": "jira:ENG-1", "key": "k", "at": 1, "source": "webhook", "actor": "ada",
            "reason": {"type": "job_requested", "job": "implement", "repository": "acme/shop",
                "rules": domain::RepositoryRules::default(), "text": domain::TicketText::default()}});
        let trigger = serde_json::from_value(trigger).unwrap();
        Fact::RunStarted { trigger }
    }

    fn any_fact() -> impl Strategy<Value = Fact> {
        let head: CommitId = "b".repeat(40).parse().unwrap();
        let by = "ada".to_owned();
        let decision = domain::GateDecision {
            run: "jira:ENG-1@1".parse().unwrap(),
            head: "a".repeat(40).parse().unwrap(),
            verdict: domain::DecisionVerdict::Revise,
            feedback: String::new(),
        };
        let reason = domain::StopReason::Completed;
        prop_oneof![
            3 => Just(build_plan_request()),
            2 => Just(build_settled_fact(OutboundOutcome::Done(OutboundReceipt::Told))),
            3 => Just(Fact::Parked { waits_for: WaitCondition::Decision }),
            1 => Just(Fact::Parked { waits_for: WaitCondition::Report }),
            1 => Just(Fact::HeadMoved { head, by: None, trigger: None }),
            1 => Just(Fact::StopRequested { by: by.clone() }),
            1 => Just(Fact::RunFinished { reason }),
            1 => Just(Fact::Decided { decision, by: by.clone() }),
        ]
    }

    proptest! {
        #[test]
        fn page_of_run_offers_the_gate_that_ingest_accepts(facts in prop::collection::vec(any_fact(), 0..12)) {
            let run: RunId = "jira:ENG-1@1".parse().unwrap();
            let facts: Vec<Fact> = std::iter::once(build_start_fact()).chain(facts).collect();
            let mut entries = build_journal_entries(&facts);
            for (position, entry) in (0..).zip(&mut entries) {
                entry.position = position;
            }
            let shown = RunOverview::of(&run, &entries).unwrap().gate;
            let accepted = find_open_gate(entries.iter());
            prop_assert_eq!(
                shown.map(|gate| (gate.position, gate.head)),
                accepted.map(|gate| (gate.position, gate.head))
            );
        }
    }
}
