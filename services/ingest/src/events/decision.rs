//! Decision of a user about a change or a plan, in a comment or through the API.

use domain::{GateDecision, RunId, SkipReason, TicketKey, Timestamp, TriggerKey, TriggerReason};

use super::{EventKind, EventVerdict, NewTrigger};
use crate::{
    facts::{DecisionFacts, Need, gates::DecisionGate},
    text::command::SHORTEST,
};

/// Decision of an authorized user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecisionEvent {
    pub(crate) ticket: TicketKey,
    /// Run to decide about, when the caller names it.
    pub(crate) run: Option<RunId>,
    /// Key of the comment.
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) by: String,
    pub(crate) verdict: domain::DecisionVerdict,
    /// Commit or plan; may be abbreviated, empty when the user names none.
    pub(crate) head: String,
    pub(crate) feedback: String,
}

impl DecisionEvent {
    fn follows(&self, key: TriggerKey, reason: TriggerReason) -> EventVerdict {
        EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key,
            at: self.at,
            actor: Some(self.by.clone()),
            reason,
        })
    }

    /// Gate that the decision is for. An approval must name the commit, so that no user approves an unseen change. Any
    /// other decision without a commit is for the only gate.
    fn meant<'a>(&self, gates: &'a [(RunId, DecisionGate)]) -> Option<&'a (RunId, DecisionGate)> {
        // An empty head would be a prefix of every commit.
        let is_named =
            |gate: &DecisionGate| self.head.len() >= SHORTEST && gate.head.as_str().starts_with(&self.head);
        match gates {
            [only] if self.head.is_empty() && self.verdict != domain::DecisionVerdict::Approve => Some(only),
            several => several.iter().find(|(_, gate)| is_named(gate)),
        }
    }
}

impl DecisionEvent {
    /// Verdict for a run that the caller names. The caller gets the result at once, so an unclear decision needs no
    /// comment.
    fn of_run(&self, run: &RunId, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let Some(gate) = facts.gate(run)? else {
            return Ok(EventVerdict::nothing(format!(
                "run {run} does not wait for a decision"
            )));
        };
        if self.meant(&[(run.clone(), gate.clone())]).is_none() {
            return Ok(EventVerdict::nothing(format!(
                "run {run} waits for a decision about commit {}, not about {}; read it first (`journeyman diff {run}`)",
                gate.head.short(),
                self.head
            )));
        }
        let key = TriggerKey::new(gate.key(run));
        if let Some(sequence) = facts.known(&self.ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        Ok(self.follows(key, self.about(run, gate)))
    }

    fn about(&self, run: &RunId, gate: &DecisionGate) -> TriggerReason {
        TriggerReason::Decided(GateDecision {
            run: run.clone(),
            head: gate.head.clone(),
            verdict: self.verdict,
            feedback: self.feedback.clone(),
        })
    }
}

impl EventKind for DecisionEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        if let Some(run) = &self.run {
            return self.of_run(run, facts);
        }
        let gates = facts.gates(&self.ticket)?;
        if gates.is_empty() {
            return Ok(EventVerdict::nothing("no run waits for a decision"));
        }
        let Some((run, gate)) = self.meant(gates) else {
            let heads = gates
                .iter()
                .map(|(_, gate)| gate.head.short().to_owned())
                .collect();
            let reason = SkipReason::UnclearDecision { heads };
            return Ok(self.follows(self.key.clone(), TriggerReason::Skipped(reason)));
        };
        // The gate's key replaces that of the comment, so that two comments cannot decide twice.
        let key = TriggerKey::new(gate.key(run));
        Ok(self.follows(key, self.about(run, gate)))
    }
}
