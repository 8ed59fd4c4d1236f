//! Open decisions of runs.

use domain::{
    CommitId, Entry, Fact, GateStep, ObjectRef, Reason, Receipt, ReportId, ReportOutcome, ReportSettled,
    RunId, RunStatus, Source, Trigger, WaitsFor,
};

/// Point at which a run waits for a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gate {
    /// Position of the journal entry that parked the run.
    pub(crate) position: u64,
    /// Commit or plan to decide about.
    pub(crate) head: CommitId,
    /// Report that asks for the decision.
    pub(crate) report: ReportId,
    /// True for a plan, which has no diff.
    pub(crate) is_plan: bool,
}

impl Gate {
    /// Trigger key of the decision. All channels share it, so a gate accepts one decision.
    pub(crate) fn key(&self, run: &RunId) -> String {
        format!("decision:{run}:{}", self.position)
    }

    /// True when the reporter's own triggers confirm this question. A compromised planner could write another commit into the
    /// journal than the one that users see.
    pub(crate) fn is_shown<'a>(&self, run: &RunId, triggers: impl Iterator<Item = &'a Trigger>) -> bool {
        settled(run, triggers).any(|settled| {
            settled.report == self.report
                && match &settled.outcome {
                    ReportOutcome::Done(Receipt::DecisionAsked { head, .. }) => {
                        !self.is_plan && *head == self.head
                    }
                    ReportOutcome::Done(Receipt::Told) => self.is_plan,
                    ReportOutcome::Done(
                        Receipt::Pushed { .. } | Receipt::PullRequestOpened(_) | Receipt::Rehearsed { .. },
                    )
                    | ReportOutcome::Refused(_)
                    | ReportOutcome::Failed { .. } => false,
                }
        })
    }
}

/// Change of a run that the reporter showed last, and its diff, according to the reporter's triggers.
pub(crate) fn last_shown<'a>(
    run: &RunId,
    triggers: impl Iterator<Item = &'a Trigger>,
) -> Option<(CommitId, ObjectRef)> {
    let shown = settled(run, triggers).filter_map(|settled| match &settled.outcome {
        ReportOutcome::Done(Receipt::DecisionAsked { head, diff }) => Some((head.clone(), diff.clone())),
        _ => None,
    });
    shown.last()
}

/// Reports that the reporter settled for a run.
fn settled<'a>(
    run: &RunId,
    triggers: impl Iterator<Item = &'a Trigger>,
) -> impl Iterator<Item = &'a ReportSettled> {
    triggers.filter_map(move |trigger| match &trigger.reason {
        // The source is checked: only the reporter may confirm what users saw.
        Reason::ReportSettled(settled) if trigger.source == Source::Reporter && settled.run == *run => {
            Some(settled)
        }
        _ => None,
    })
}

/// True when the ticket's row allows an open decision. A run that asks is queued again when its report settles, and on a busy
/// planner users decide before the run continues.
pub(crate) const fn may_ask(status: &RunStatus) -> bool {
    match status {
        RunStatus::Queued | RunStatus::Active | RunStatus::Parked { .. } => true,
        RunStatus::Finished { .. } => false,
    }
}

/// True for a journal entry that opens or closes a decision.
pub(crate) const fn is_about_gate(entry: &Entry) -> bool {
    matches!(
        entry.fact,
        Fact::ReportRequested { .. }
            | Fact::ReportSettled { .. }
            | Fact::Parked { .. }
            | Fact::Decided { .. }
            | Fact::HeadMoved { .. }
            | Fact::StopRequested { .. }
            | Fact::RunFinished { .. }
    )
}

/// The open gate of a run.
pub(crate) fn open_gate<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<Gate> {
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
                gate = asked.map(|(head, report, is_plan)| Gate {
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
pub(crate) fn is_asking<'a>(entries: impl Iterator<Item = &'a Entry>) -> bool {
    let mut asked = None;
    for entry in entries {
        match &entry.fact {
            Fact::ReportRequested { id, request, .. } if request.asks_about().is_some() => asked = Some(id),
            Fact::ReportSettled { id, outcome } if asked == Some(id) => {
                asked = asked.filter(|_| matches!(outcome, ReportOutcome::Done(_)));
            }
            Fact::Parked {
                waits_for: WaitsFor::Decision,
            }
            | Fact::StopRequested { .. }
            | Fact::RunFinished { .. } => asked = None,
            _ => {}
        }
    }
    asked.is_some()
}

#[cfg(test)]
mod tests {
    use domain::{Overview, Receipt, ReportRequest, RunFence, Timestamp, report};
    use proptest::prelude::*;

    use super::*;

    fn entries(facts: &[Fact]) -> Vec<Entry> {
        let entry = |(position, fact): (u64, &Fact)| Entry {
            position,
            nonce: String::new(),
            fence: RunFence::default(),
            at: Timestamp::default(),
            fact: fact.clone(),
        };
        (1..).zip(facts).map(entry).collect()
    }

    fn asked() -> Fact {
        let run: RunId = "jira:ENG-1@1".parse().unwrap();
        Fact::ReportRequested {
            id: run.call(2).into(),
            request: ReportRequest::PlanProposed(report::PlanProposed {
                repository: "acme/shop".parse().unwrap(),
                id: "a".repeat(40).parse().unwrap(),
                plan: Box::default(),
            }),
            answers: None,
        }
    }

    fn settled(outcome: ReportOutcome) -> Fact {
        let run: RunId = "jira:ENG-1@1".parse().unwrap();
        Fact::ReportSettled {
            id: run.call(2).into(),
            outcome,
        }
    }

    #[test]
    fn requeued_run_still_accepts_decision() {
        let waits_for = WaitsFor::Decision;
        assert!(may_ask(&RunStatus::Queued) && may_ask(&RunStatus::Active));
        assert!(may_ask(&RunStatus::Parked { waits_for }));
        let reason = domain::StopReason::Completed;
        assert!(!may_ask(&RunStatus::Finished { reason }));
    }

    #[test]
    fn run_asks_until_its_gate_opens() {
        let waits = |waits_for| Fact::Parked { waits_for };
        let done = || settled(ReportOutcome::Done(Receipt::Told));
        let detail = "no".to_owned();
        let refused = settled(ReportOutcome::Refused(domain::Refusal::Outside { detail }));
        let (report, decision) = (WaitsFor::Report, WaitsFor::Decision);
        for (facts, is_asked, is_open) in [
            (vec![], false, false),
            (vec![asked()], true, false),
            (vec![asked(), waits(report), done()], true, false),
            (vec![asked(), waits(report), refused], false, false),
            (vec![asked(), waits(report), done(), waits(decision)], false, true),
        ] {
            let entries = entries(&facts);
            assert_eq!(is_asking(entries.iter()), is_asked, "{facts:?}");
            assert_eq!(open_gate(entries.iter()).is_some(), is_open, "{facts:?}");
        }
    }

    /// A trigger that opens a run, as a journal holds it.
    fn started() -> Fact {
        let trigger = serde_json::json!({"ticket": "jira:ENG-1", "key": "k", "at": 1, "source": "webhook", "actor": "ada",
            "reason": {"type": "job_requested", "job": "implement", "repository": "acme/shop",
                "rules": domain::Rules::default(), "text": domain::TicketText::default()}});
        let trigger = serde_json::from_value(trigger).unwrap();
        Fact::RunStarted { trigger }
    }

    fn fact() -> impl Strategy<Value = Fact> {
        let head: CommitId = "b".repeat(40).parse().unwrap();
        let by = "ada".to_owned();
        let decision = domain::Decision {
            run: "jira:ENG-1@1".parse().unwrap(),
            head: "a".repeat(40).parse().unwrap(),
            verdict: domain::Verdict::Revise,
            feedback: String::new(),
        };
        let reason = domain::StopReason::Completed;
        prop_oneof![
            3 => Just(asked()),
            2 => Just(settled(ReportOutcome::Done(Receipt::Told))),
            3 => Just(Fact::Parked { waits_for: WaitsFor::Decision }),
            1 => Just(Fact::Parked { waits_for: WaitsFor::Report }),
            1 => Just(Fact::HeadMoved { head, by: None }),
            1 => Just(Fact::StopRequested { by: by.clone() }),
            1 => Just(Fact::RunFinished { reason }),
            1 => Just(Fact::Decided { decision, by: by.clone() }),
        ]
    }

    proptest! {
        #[test]
        fn page_of_run_offers_the_gate_that_ingest_accepts(facts in prop::collection::vec(fact(), 0..12)) {
            let run: RunId = "jira:ENG-1@1".parse().unwrap();
            let facts: Vec<Fact> = std::iter::once(started()).chain(facts).collect();
            let mut entries = entries(&facts);
            for (position, entry) in (0..).zip(&mut entries) {
                entry.position = position;
            }
            let shown = Overview::of(&run, &entries).unwrap().gate;
            let accepted = open_gate(entries.iter());
            prop_assert_eq!(
                shown.map(|gate| (gate.position, gate.head)),
                accepted.map(|gate| (gate.position, gate.head))
            );
        }
    }
}
