//! Works on a discussion: the model reads the code and answers there, or plans issues.

use domain::report::{DiscussionResult, OpenIssues};
use domain::{
    CitedAnswer, DiscussionTask, JobRequest, ModelRole, OutboundAction, PhaseOutput, PlannedIssue, RunPhase,
    StopReason,
};

use super::conversation_loop::await_submission;
use crate::run::machine::{
    DialogSpec, PhaseResult, PhaseSpec, PlannerRunState, RunStep, finish_refused, report_once,
};
use crate::run::tools::{accepted_input, plans, read_attachment, submit_answer};

const MOST_TURNS: usize = 15;

const DIALOG: DialogSpec = DialogSpec::reading(
    RunPhase::Discuss,
    ModelRole::Default,
    &[submit_answer::TOOL, plans::SUBMIT_ISSUES, read_attachment::TOOL],
);

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::with_dialog(DIALOG, decide_step);

/// Submission of the model. A plan without issues is an answer with the reason.
enum HandedIn {
    Answer(CitedAnswer),
    Issues(Vec<PlannedIssue>),
}

fn decide_step(state: &PlannerRunState) -> RunStep {
    let Some((request, task)) = discussion_request(state) else {
        return RunStep::Over;
    };
    match (state.outputs().issues(), state.outputs().answer()) {
        (Some(issues), _) => report_step(state, request_issues(request, issues)),
        (None, PhaseResult::Present(answer)) => report_step(state, discussion_answer(request, task, answer)),
        (None, PhaseResult::Missing) => RunStep::Close(StopReason::NoChange {
            summary: String::new(),
        }),
        (None, PhaseResult::Pending) => {
            let handed_in = await_submission(state, &DIALOG, MOST_TURNS, |calls| {
                let answer = accepted_input(calls, &submit_answer::TOOL, submit_answer::parse_answer);
                let most = request.rules.issues.most_planned;
                let parse = |input: &_| plans::parse_issues(input, most);
                let planned = || match task {
                    DiscussionTask::Plan => accepted_input(calls, &plans::SUBMIT_ISSUES, parse),
                    DiscussionTask::Research | DiscussionTask::Summarize | DiscussionTask::Complete => None,
                };
                answer
                    .map(HandedIn::Answer)
                    .or_else(|| planned().map(HandedIn::Issues))
            });
            handed_in.map_or_else(|step| step, finish_phase)
        }
    }
}

fn discussion_request(state: &PlannerRunState) -> Option<(&JobRequest, DiscussionTask)> {
    let request = state.request()?;
    Some((request, request.about.discussion()?.task))
}

fn finish_phase(handed_in: Option<HandedIn>) -> RunStep {
    let output = match handed_in {
        Some(HandedIn::Issues(issues)) => PhaseOutput::Issues { issues },
        Some(HandedIn::Answer(answer)) => PhaseOutput::Answer {
            answer: Some(Box::new(answer)),
        },
        None => PhaseOutput::Answer { answer: None },
    };
    output.into()
}

fn request_issues(request: &JobRequest, issues: &[PlannedIssue]) -> OutboundAction {
    OutboundAction::OpenIssues(OpenIssues {
        repository: request.repository.clone(),
        parent: None,
        issues: issues.to_vec(),
    })
}

fn discussion_answer(request: &JobRequest, task: DiscussionTask, answer: &CitedAnswer) -> OutboundAction {
    OutboundAction::Discussed(DiscussionResult {
        repository: request.repository.clone(),
        task,
        answer: answer.clone(),
    })
}

fn report_step(state: &PlannerRunState, result: OutboundAction) -> RunStep {
    let is_it = |request: &OutboundAction| {
        matches!(
            request,
            OutboundAction::Discussed(_) | OutboundAction::OpenIssues(_)
        )
    };
    report_once(state, is_it, || result, finish_refused)
}
