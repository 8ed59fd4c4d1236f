//! Outputs of phases, as later phases read them.

use domain::{
    ChangePlan, ChangeProof, ChangeReview, CitedAnswer, JobRequest, PhaseOutput, PlannedIssue, ReturnReason,
    ReviewOfChange, RunPhase, StopReason, TicketIntake, WorkClass, WorkExit, WorkHandover,
    acceptance_criteria,
};

use super::{ApplyResult, require_legal};

/// Valid outputs of phases, and the returns that made earlier ones void.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputState {
    /// Valid outputs, in order.
    outputs: Vec<PhaseOutput>,
    /// Position of the last output.
    settled: u64,
    returns: Vec<ReturnRecord>,
    /// Size class that the ticket turned out to have.
    raised: Option<WorkClass>,
}

/// Return to the work.
#[derive(Clone, Debug)]
pub(crate) struct ReturnRecord {
    /// Number of turns before it.
    pub(crate) after_turns: usize,
    pub(crate) why: ReturnReason,
}

/// Result of a phase that may end without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PhaseResult<T> {
    /// The phase is not finished.
    #[default]
    Pending,
    /// The phase finished without a result.
    Missing,
    /// The phase finished with this result.
    Present(T),
}

impl<T> PhaseResult<T> {
    /// Returns the result of a finished phase.
    pub(super) fn finished(result: Option<T>) -> Self {
        result.map_or(Self::Missing, Self::Present)
    }

    /// Returns the result of the phase, if it has one.
    pub(crate) fn present(self) -> Option<T> {
        match self {
            Self::Present(result) => Some(result),
            Self::Pending | Self::Missing => None,
        }
    }

    pub(crate) const fn is_pending(&self) -> bool {
        matches!(self, Self::Pending)
    }
}

impl OutputState {
    /// Restarts the work. The size class is of the ticket, so it stays.
    pub(super) fn reset(&mut self) {
        *self = Self {
            raised: self.raised.take(),
            ..Self::default()
        };
    }

    /// Returns the position of the last output.
    pub(crate) const fn settled(&self) -> u64 {
        self.settled
    }

    /// Returns the returns to the work, in order.
    pub(crate) fn returns(&self) -> &[ReturnRecord] {
        &self.returns
    }

    /// Returns true if the run returned to a conversation after its last turn, so the outcome of that turn
    /// no longer applies. `turns`: the turns of the run so far.
    pub(crate) fn came_back_to(&self, phase: RunPhase, turns: usize) -> bool {
        let last = self.returns.last();
        last.is_some_and(|returned| returned.why.phase() == phase && returned.after_turns >= turns)
    }

    /// Returns the newest output of a kind.
    fn output<'a, T>(&'a self, of: impl Fn(&'a PhaseOutput) -> Option<T>) -> Option<T> {
        self.outputs.iter().rev().find_map(of)
    }

    /// Returns the result of the newest output of a kind.
    fn result<'a, T>(&'a self, of: impl Fn(&'a PhaseOutput) -> Option<PhaseResult<T>>) -> PhaseResult<T> {
        self.output(of).unwrap_or(PhaseResult::Pending)
    }

    /// Triage of the ticket.
    pub(crate) fn intake(&self) -> PhaseResult<&TicketIntake> {
        self.result(|output| match output {
            PhaseOutput::Intake { intake } => Some(PhaseResult::finished(intake.as_deref())),
            _ => None,
        })
    }

    /// Answer of the model to a question.
    pub(crate) fn answer(&self) -> PhaseResult<&CitedAnswer> {
        self.result(|output| match output {
            PhaseOutput::Answer { answer } => Some(PhaseResult::finished(answer.as_deref())),
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

    /// Review of a foreign pull request.
    pub(crate) fn review_of_change(&self) -> PhaseResult<&ReviewOfChange> {
        self.result(|output| match output {
            PhaseOutput::PullRequest { review } => Some(PhaseResult::finished(review.as_deref())),
            _ => None,
        })
    }

    /// Plan of the change.
    pub(crate) fn plan(&self) -> PhaseResult<&ChangePlan> {
        self.result(|output| match output {
            PhaseOutput::Plan { plan } => Some(PhaseResult::finished(plan.as_deref())),
            _ => None,
        })
    }

    /// Size class of the ticket.
    pub(crate) fn class(&self) -> WorkClass {
        let seen = self.intake().present().map(|intake| intake.class);
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

    /// Returns the acceptance criteria: those of the triage, else those that the ticket lists.
    pub(crate) fn criteria(&self, request: Option<&JobRequest>) -> Vec<String> {
        match (self.intake().present(), request) {
            (Some(intake), _) => intake.criteria.iter().map(|one| one.quote.clone()).collect(),
            // The ticket of a foreign pull request is part of its background.
            (None, Some(request)) if request.about.change().is_some() => request.background.criteria(),
            (None, Some(request)) if !request.about.is_ticket() => Vec::new(),
            (None, Some(request)) => acceptance_criteria(&request.text.description),
            (None, None) => Vec::new(),
        }
    }

    pub(super) fn phase_finished(&mut self, output: &PhaseOutput, position: u64) {
        self.settled = position;
        self.outputs.push(output.clone());
    }

    pub(super) fn class_raised(&mut self, class: WorkClass) -> ApplyResult {
        require_legal(class > self.class(), "the class is not larger")?;
        self.raised = Some(class);
        Ok(())
    }

    /// Returns to the work: its later outputs are void.
    pub(super) fn returned(&mut self, why: &ReturnReason, after_turns: usize) {
        self.outputs.retain(|output| output.outlasts(why));
        self.returns.push(ReturnRecord {
            after_turns,
            why: why.clone(),
        });
    }

    /// Returns the outputs of the phases from the work on.
    pub(super) fn of_change(&self) -> Vec<PhaseOutput> {
        let all = self.outputs.iter();
        all.filter(|output| is_change_output(output)).cloned().collect()
    }

    /// Replaces the outputs of the phases from the work on by those of an earlier state.
    pub(super) fn went_back(&mut self, earlier: Vec<PhaseOutput>, position: u64) {
        // The reason that the work ended early still holds, although its change is replaced.
        let ended_early = self.cut_short().cloned();
        self.outputs.retain(|output| !is_change_output(output));
        self.outputs
            .extend(earlier.into_iter().map(|output| match (output, &ended_early) {
                (
                    PhaseOutput::Work {
                        exit: WorkExit::Finished(handover) | WorkExit::CutShort { handover, .. },
                    },
                    Some(reason),
                ) => PhaseOutput::Work {
                    exit: WorkExit::CutShort {
                        reason: Box::new(reason.clone()),
                        handover,
                    },
                },
                (output, _) => output,
            }));
        self.settled = position;
    }
}

fn is_change_output(output: &PhaseOutput) -> bool {
    !output.outlasts(&ReturnReason::NothingChanged)
}
