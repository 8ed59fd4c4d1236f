//! How jobs and phases describe themselves.

use domain::{Job, JobRequest, ModelRole, Phase, StopReason};

use super::{Action, Call, RunState};

/// A kind of work: its phases, in order.
pub(crate) struct JobSpec {
    /// The kind; absent for what several kinds share.
    pub(crate) job: Option<Job>,
    pub(crate) phases: &'static [PhaseSpec],
    /// Whether anybody waits for the run, and so hears of its retries and its end.
    pub(crate) is_awaited: bool,
}

/// One part of a run.
pub(crate) struct PhaseSpec {
    /// What a dialog's turns are recorded under; absent for a phase without the model.
    pub(crate) dialog: Option<DialogSpec>,
    pub(crate) next: fn(&RunState) -> Step,
}

/// A conversation with the model.
pub(crate) struct DialogSpec {
    pub(crate) phase: Phase,
    pub(crate) role: ModelRole,
    /// Whether the tools of the executor are offered.
    pub(crate) has_workspace: bool,
    /// The planner's own tools.
    pub(crate) tools: &'static [Tool],
}

impl DialogSpec {
    /// The executor's tools that the model may call.
    pub(crate) fn theirs<'a>(&self, state: &'a RunState) -> impl Iterator<Item = &'a str> {
        let open = state.open_workspace().filter(|_| self.has_workspace);
        let tools = open.into_iter().flat_map(|info| &info.tools);
        tools.map(|tool| tool.name.as_str())
    }

    /// Whether the model may call a tool of this name.
    pub(crate) fn offers(&self, state: &RunState, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name) || self.theirs(state).any(|tool| tool == name)
    }
}

/// A tool that the planner itself answers. What the model reads of it is in the prompts, under its name.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// The step that answers a call.
    pub(crate) act: fn(&RunState, &JobRequest, &Call) -> Step,
}

/// What a phase wants.
#[derive(Debug)]
pub(crate) enum Step {
    /// This is done next.
    Act(Box<Action>),
    /// The run fails in a way that may pass.
    Retry(StopReason),
    /// The run ends, and whoever waits hears why.
    Close(StopReason),
    /// The run ends; whoever waits knows already.
    Finish(StopReason),
    /// The next phase.
    Over,
}

impl From<Action> for Step {
    fn from(action: Action) -> Self {
        Self::Act(Box::new(action))
    }
}
