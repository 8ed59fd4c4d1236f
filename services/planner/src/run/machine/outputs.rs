//! What phases have brought.

use domain::{
    About, Answered, Class, Exit, Handover, Intake, PhaseOutput, Plan, Proof, Review, ReviewOfChange,
    StopReason, acceptance_criteria,
};

use domain::PlannedIssue;

use super::RunState;

/// The executor's tool that shows the change.
pub(crate) const DIFF: &str = "diff";

impl RunState {
    /// What the last output of a phase brought.
    fn output<'a, T>(&'a self, of: impl Fn(&'a PhaseOutput) -> Option<T>) -> Option<T> {
        self.outputs.iter().rev().find_map(of)
    }

    /// The first look at the ticket, once it is over; within: when it was of use.
    pub(crate) fn intake(&self) -> Option<Option<&Intake>> {
        self.output(|output| match output {
            PhaseOutput::Intake { intake } => Some(intake.as_deref()),
            _ => None,
        })
    }

    /// The answer to a question, once there is one; within: when the model gave one.
    pub(crate) fn answer(&self) -> Option<Option<&Answered>> {
        self.output(|output| match output {
            PhaseOutput::Answer { answer } => Some(answer.as_deref()),
            _ => None,
        })
    }

    /// The issues that follow from a discussion, once they are planned; none: the model came to no plan.
    pub(crate) fn issues(&self) -> Option<&[PlannedIssue]> {
        self.output(|output| match output {
            PhaseOutput::Issues { issues } => Some(issues.as_slice()),
            _ => None,
        })
    }

    /// The review of somebody's pull request, once there is one; within: when the model came to one.
    pub(crate) fn review_of_change(&self) -> Option<Option<&ReviewOfChange>> {
        self.output(|output| match output {
            PhaseOutput::PullRequest { review } => Some(review.as_deref()),
            _ => None,
        })
    }

    /// The plan, once planning is over; within: when there is one.
    pub(crate) fn plan(&self) -> Option<Option<&Plan>> {
        self.output(|output| match output {
            PhaseOutput::Plan { plan } => Some(plan.as_deref()),
            _ => None,
        })
    }

    /// How much work the ticket is.
    pub(crate) fn class(&self) -> Class {
        let seen = self.intake().flatten().map(|intake| intake.class);
        self.raised.or(seen).unwrap_or_default()
    }

    /// How the model ended its work.
    pub(crate) fn exit(&self) -> Option<&Exit> {
        self.output(|output| match output {
            PhaseOutput::Work { exit } => Some(exit),
            _ => None,
        })
    }

    /// What the model says of its change.
    pub(crate) fn handover(&self) -> Option<&Handover> {
        match self.exit()? {
            Exit::Finished(handover) | Exit::CutShort { handover, .. } => Some(handover),
            Exit::GaveUp { .. } => None,
        }
    }

    /// Why the work ended early, when it did.
    pub(crate) fn cut_short(&self) -> Option<&StopReason> {
        match self.exit()? {
            Exit::CutShort { reason, .. } => Some(reason),
            Exit::Finished(_) | Exit::GaveUp { .. } => None,
        }
    }

    /// What was shown of the change.
    pub(crate) fn proof(&self) -> Option<&Proof> {
        self.output(|output| match output {
            PhaseOutput::Prove { proof } => Some(&**proof),
            _ => None,
        })
    }

    /// What the reviewer says of the change.
    pub(crate) fn review(&self) -> Option<&Review> {
        self.output(|output| match output {
            PhaseOutput::Review { review } => Some(review),
            _ => None,
        })
    }

    /// The change as text, once it was fetched for its review.
    pub(crate) fn diff(&self) -> Option<&str> {
        self.own_result(DIFF).map(|diff| diff.content.as_str())
    }

    /// Whether the work was to answer a review, and changed nothing.
    pub(crate) fn is_words_alone(&self) -> bool {
        let is_review = self
            .request()
            .is_some_and(|request| matches!(request.about, About::Review(_)));
        let kept = self.work().snapshot.as_ref();
        is_review && kept.is_none_or(|kept| kept.files_changed == 0)
    }

    /// What the change must do: what the first look found, else what the ticket lists.
    pub(crate) fn criteria(&self) -> Vec<String> {
        match (self.intake().flatten(), self.request()) {
            (Some(intake), _) => intake.criteria.iter().map(|one| one.quote.clone()).collect(),
            // What the ticket asks was shown before.
            (None, Some(request)) if request.about.change().is_some() => request.background.criteria(),
            (None, Some(request)) if !request.about.is_ticket() => Vec::new(),
            (None, Some(request)) => acceptance_criteria(&request.text.description),
            (None, None) => Vec::new(),
        }
    }
}
