//! Decisions of people about a commit or a plan.

use domain::{CommitId, DecisionVerdict, GateDecision, OutboundAction};

use super::delivery::DeliveryState;
use super::{ApplyResult, require_legal};

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
