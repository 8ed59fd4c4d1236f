//! Outputs of phases, as later phases read them.

use domain::{
    ChangePlan, ChangeProof, ChangeReview, CitedAnswer, JobSubject, PhaseOutput, ReviewOfChange, StopReason,
    TicketIntake, WorkClass, WorkExit, WorkHandover, acceptance_criteria,
};

use domain::PlannedIssue;

use super::PlannerRunState;

/// Tool of the executor that returns the change.
pub(crate) const DIFF: &str = "diff";

impl PlannerRunState {
    /// Returns the newest output of a kind.
    fn output<'a, T>(&'a self, of: impl Fn(&'a PhaseOutput) -> Option<T>) -> Option<T> {
        self.outputs.iter().rev().find_map(of)
    }

    /// Triage of the ticket, once it is finished. The inner value is `None` if it failed.
    pub(crate) fn intake(&self) -> Option<Option<&TicketIntake>> {
        self.output(|output| match output {
            PhaseOutput::Intake { intake } => Some(intake.as_deref()),
            _ => None,
        })
    }

    /// Answer to a question, once it is finished. The inner value is `None` if the model gave none.
    pub(crate) fn answer(&self) -> Option<Option<&CitedAnswer>> {
        self.output(|output| match output {
            PhaseOutput::Answer { answer } => Some(answer.as_deref()),
            _ => None,
        })
    }

    /// Issues planned from a discussion, once they are planned; empty: the model made no plan.
    pub(crate) fn issues(&self) -> Option<&[PlannedIssue]> {
        self.output(|output| match output {
            PhaseOutput::Issues { issues } => Some(issues.as_slice()),
            _ => None,
        })
    }

    /// Review of a foreign pull request, once it is finished. The inner value is `None` if the model made
    /// none.
    pub(crate) fn review_of_change(&self) -> Option<Option<&ReviewOfChange>> {
        self.output(|output| match output {
            PhaseOutput::PullRequest { review } => Some(review.as_deref()),
            _ => None,
        })
    }

    /// Plan, once planning is finished. The inner value is `None` without a plan.
    pub(crate) fn plan(&self) -> Option<Option<&ChangePlan>> {
        self.output(|output| match output {
            PhaseOutput::Plan { plan } => Some(plan.as_deref()),
            _ => None,
        })
    }

    /// Size class of the ticket.
    pub(crate) fn class(&self) -> WorkClass {
        let seen = self.intake().flatten().map(|intake| intake.class);
        // A raised class wins: the work has shown more than the triage could know.
        self.raised.or(seen).unwrap_or_default()
    }

    /// Result of the model's work.
    pub(crate) fn exit(&self) -> Option<&WorkExit> {
        self.output(|output| match output {
            PhaseOutput::Work { exit } => Some(exit),
            _ => None,
        })
    }

    /// Handover of the change by the model.
    pub(crate) fn handover(&self) -> Option<&WorkHandover> {
        match self.exit()? {
            WorkExit::Finished(handover) | WorkExit::CutShort { handover, .. } => Some(handover),
            WorkExit::GaveUp { .. } => None,
        }
    }

    /// Reason that the work ended early.
    pub(crate) fn cut_short(&self) -> Option<&StopReason> {
        match self.exit()? {
            WorkExit::CutShort { reason, .. } => Some(reason),
            WorkExit::Finished(_) | WorkExit::GaveUp { .. } => None,
        }
    }

    /// Results of the checks of the change.
    pub(crate) fn proof(&self) -> Option<&ChangeProof> {
        self.output(|output| match output {
            PhaseOutput::Prove { proof } => Some(&**proof),
            _ => None,
        })
    }

    /// Review of the change by the reviewer.
    pub(crate) fn review(&self) -> Option<&ChangeReview> {
        self.output(|output| match output {
            PhaseOutput::Review { review } => Some(review),
            _ => None,
        })
    }

    /// Change as text, once it is fetched for its review.
    pub(crate) fn diff(&self) -> Option<&str> {
        self.own_result(DIFF).map(|diff| diff.content.as_str())
    }

    /// Returns true if the work was to address a review and changed nothing.
    pub(crate) fn is_words_alone(&self) -> bool {
        let is_review = self
            .request()
            .is_some_and(|request| matches!(request.about, JobSubject::Review(_)));
        let kept = self.work().snapshot.as_ref();
        is_review && kept.is_none_or(|kept| kept.files_changed == 0)
    }

    /// Returns the acceptance criteria: those of the triage, else those that the ticket lists.
    pub(crate) fn criteria(&self) -> Vec<String> {
        match (self.intake().flatten(), self.request()) {
            (Some(intake), _) => intake.criteria.iter().map(|one| one.quote.clone()).collect(),
            // The ticket of a foreign pull request is part of its background.
            (None, Some(request)) if request.about.change().is_some() => request.background.criteria(),
            (None, Some(request)) if !request.about.is_ticket() => Vec::new(),
            (None, Some(request)) => acceptance_criteria(&request.text.description),
            (None, None) => Vec::new(),
        }
    }
}
