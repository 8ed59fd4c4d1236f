//! Repetition of the work, with limits: returns to the model, the best verified state, and restarts after
//! foreign pushes.

use domain::{Fact, JobSubject, OutboundRefusal, ReturnReason, RunPhase, StopReason};

use crate::run::machine::{PhaseSpec, PlannerRunState, RunAction, RunStep, has_exits_only};

// Maximum of revisions that users may request.
const MOST_REVISIONS: usize = 3;
// Maximum of attempts by the model for each other reason.
const MOST_TRIES: usize = 3;
// Maximum of attempts by the model after a push that a hook or a rule of the server refused.
const MOST_PUSHES: usize = 2;
// Maximum of restarts after foreign pushes.
const MOST_RESTARTS: u32 = 3;

/// Returns to the work, or ends the run after too many attempts, or when the work ended early and cannot
/// continue.
pub(super) fn go_back_to_work(state: &PlannerRunState, why: ReturnReason) -> RunStep {
    let tried = count_returns(state, &why);
    if let (
        Some(reason),
        ReturnReason::Feedback { .. } | ReturnReason::Unkept { .. } | ReturnReason::NothingChanged,
    ) = (state.outputs().cut_short(), &why)
    {
        return RunStep::Close(reason.clone());
    }
    match &why {
        ReturnReason::Feedback { .. } | ReturnReason::Replan { .. } if tried >= MOST_REVISIONS => {
            RunStep::Close(StopReason::RevisionLimit {
                revisions: u32::try_from(tried).unwrap_or(u32::MAX),
            })
        }
        ReturnReason::Refused(refusal) if tried >= MOST_TRIES || state.outputs().cut_short().is_some() => {
            RunStep::Close(StopReason::ReportRefused(refusal.clone()))
        }
        // Two sets of words from the server are enough: a third push would repeat one of the first two.
        ReturnReason::Refused(refusal @ OutboundRefusal::PushRejected { .. })
            if count_rejected_pushes(state) >= MOST_PUSHES =>
        {
            RunStep::Close(StopReason::ReportRefused(refusal.clone()))
        }
        ReturnReason::Unkept { reason } if tried >= MOST_TRIES => RunStep::Close(StopReason::Unfinished {
            summary: String::new(),
            unsaved: vec![reason.clone()],
        }),
        ReturnReason::NothingChanged if tried >= MOST_TRIES => RunStep::Close(StopReason::NoChange {
            summary: state
                .outputs()
                .handover()
                .map(|said| said.summary.clone())
                .unwrap_or_default(),
        }),
        ReturnReason::Refused(_)
        | ReturnReason::Feedback { .. }
        | ReturnReason::Unkept { .. }
        | ReturnReason::NothingChanged
        | ReturnReason::Red { .. }
        | ReturnReason::HunksLost { .. }
        | ReturnReason::OutOfScope { .. }
        | ReturnReason::Weakened { .. }
        | ReturnReason::Questioned { .. }
        | ReturnReason::Replan { .. }
        | ReturnReason::Reviewed { .. } => Fact::Returned { why }.into(),
    }
}

/// Returns true if the model can still act on a return.
pub(super) fn can_work(state: &PlannerRunState) -> bool {
    state.outputs().cut_short().is_none() && !has_exits_only(state, RunPhase::Work)
}

/// Returns the number of returns after a push that the server refused.
fn count_rejected_pushes(state: &PlannerRunState) -> usize {
    let returns = state.outputs().returns().iter();
    returns
        .filter(|known| {
            matches!(
                &known.why,
                ReturnReason::Refused(OutboundRefusal::PushRejected { .. })
            )
        })
        .count()
}

/// Returns the number of returns for this kind of reason.
pub(super) fn count_returns(state: &PlannerRunState, why: &ReturnReason) -> usize {
    // Each kind of reason has a limit independent of the others.
    let is_same = |known: &ReturnReason| std::mem::discriminant(known) == std::mem::discriminant(why);
    let returns = state.outputs().returns().iter();
    returns.filter(|known| is_same(&known.why)).count()
}

/// Restores the best verified snapshot if later work made the change worse.
pub(in crate::run) const RESTORE_BEST: PhaseSpec = PhaseSpec::without_dialog(restore_best);

fn restore_best(state: &PlannerRunState) -> RunStep {
    let work = state.source().work();
    match state.verification().better(state.outputs(), work) {
        Some(best) if state.outputs().handover().is_some() => RunAction::GoBack {
            snapshot: best.clone(),
        }
        .into(),
        _ => RunStep::Over,
    }
}

/// Returns the step that ends the run instead of a restart.
///
/// Failed checks and conflicts belong to a commit that is no longer the head: those of the new head decide. A branch
/// that keeps changing is left to its authors.
pub(in crate::run) fn end_after_moves(state: &PlannerRunState) -> Option<RunStep> {
    let request = state.request().filter(|_| state.lifecycle().moves() > 0)?;
    let (ours, head) = request.about.pull_request()?;
    if matches!(request.about, JobSubject::Checks(_) | JobSubject::Conflict(_)) {
        return Some(RunStep::Finish(StopReason::Superseded));
    }
    let refusal = || OutboundRefusal::BranchMoved {
        branch: ours.branch.clone(),
        head: Some(head.clone()),
    };
    (state.lifecycle().moves() > MOST_RESTARTS).then(|| RunStep::Close(StopReason::ReportRefused(refusal())))
}
