//! Works on a discussion: the model reads the code and answers there, or plans issues.

use domain::report::{Discussed, OpenIssues};
use domain::{
    Answered, DiscussionTask, Fact, JobRequest, ModelRole, Phase, PhaseOutput, PlannedIssue, ReportOutcome,
    ReportRequest, StopReason, WaitsFor,
};

use super::converse::handed_in;
use crate::run::machine::{Action, DialogSpec, PhaseSpec, RunState, Step, ask, await_report};
use crate::run::tools::{accepted, submit_answer, submit_issues};

const MOST_TURNS: usize = 15;

const DIALOG: DialogSpec = DialogSpec {
    has_workspace: true,
    is_read_only: true,
    ..DialogSpec::new(
        Phase::Discuss,
        ModelRole::Default,
        &[submit_answer::TOOL, submit_issues::TOOL],
    )
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: Some(DIALOG),
    next,
};

/// Submission of the model. A plan without issues is an answer with the reason.
enum HandedIn {
    Answer(Answered),
    Issues(Vec<PlannedIssue>),
}

fn next(state: &RunState) -> Step {
    let Some((request, task)) = asked_for(state) else {
        return Step::Over;
    };
    match (state.issues(), state.answer()) {
        (Some(issues), _) => tell(state, open(request, issues)),
        (None, Some(Some(answer))) => tell(state, say(request, task, answer)),
        (None, Some(None)) => Step::Close(StopReason::NoChange {
            summary: String::new(),
        }),
        (None, None) => {
            let handed_in = handed_in(state, &DIALOG, MOST_TURNS, |calls| {
                let answer = accepted(calls, &submit_answer::TOOL, submit_answer::parse);
                let most = request.rules.issues.most_planned;
                let parse = |input: &_| submit_issues::parse(input, most);
                let planned = || match task {
                    DiscussionTask::Plan => accepted(calls, &submit_issues::TOOL, parse),
                    DiscussionTask::Research | DiscussionTask::Summarize | DiscussionTask::Complete => None,
                };
                answer
                    .map(HandedIn::Answer)
                    .or_else(|| planned().map(HandedIn::Issues))
            });
            handed_in.map_or_else(|step| step, over)
        }
    }
}

fn asked_for(state: &RunState) -> Option<(&JobRequest, DiscussionTask)> {
    let request = state.request()?;
    Some((request, request.about.discussion()?.task))
}

fn over(handed_in: Option<HandedIn>) -> Step {
    let output = match handed_in {
        Some(HandedIn::Issues(issues)) => PhaseOutput::Issues { issues },
        Some(HandedIn::Answer(answer)) => PhaseOutput::Answer {
            answer: Some(Box::new(answer)),
        },
        None => PhaseOutput::Answer { answer: None },
    };
    Action::Record(Fact::PhaseFinished { output }).into()
}

fn open(request: &JobRequest, issues: &[PlannedIssue]) -> ReportRequest {
    ReportRequest::OpenIssues(OpenIssues {
        repository: request.repository.clone(),
        parent: None,
        issues: issues.to_vec(),
    })
}

fn say(request: &JobRequest, task: DiscussionTask, answer: &Answered) -> ReportRequest {
    ReportRequest::Discussed(Discussed {
        repository: request.repository.clone(),
        task,
        answer: answer.clone(),
    })
}

fn tell(state: &RunState, told: ReportRequest) -> Step {
    let is_it = |request: &ReportRequest| {
        matches!(
            request,
            ReportRequest::Discussed(_) | ReportRequest::OpenIssues(_)
        )
    };
    match state.last_report(is_it) {
        None => ask(state, told, None).into(),
        Some(asked) => match &asked.outcome {
            Some(ReportOutcome::Done(_)) => Step::Over,
            Some(ReportOutcome::Refused(refusal)) => Step::Finish(StopReason::ReportRefused(refusal.clone())),
            Some(ReportOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitsFor::Report),
        },
    }
}
