//! How jobs and phases describe themselves.

use domain::{Job, JobRequest, ModelRole, Phase, Reply, StopReason};

use super::{Action, Argument, Call, RunState};

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
    /// Whether only those of them may be called that change nothing. All are offered, so that caches are shared.
    pub(crate) is_read_only: bool,
    /// Whether the work's return begins the conversation anew, so that nothing of the last one colours it.
    pub(crate) is_fresh_after_return: bool,
    /// The planner's own tools.
    pub(crate) tools: &'static [Tool],
    /// The form that a reply must have; absent for free text.
    pub(crate) output: Option<Output>,
}

/// The form of a conversation's only reply.
pub(crate) struct Output {
    /// The name of its schema in the prompts.
    pub(crate) name: &'static str,
    /// What is wrong with a reply.
    pub(crate) problem: fn(&RunState, &Reply) -> Option<Argument>,
}

impl DialogSpec {
    /// A conversation with its own tools alone; the others differ in single fields.
    pub(crate) const fn new(phase: Phase, role: ModelRole, tools: &'static [Tool]) -> Self {
        Self {
            phase,
            role,
            has_workspace: false,
            is_read_only: false,
            is_fresh_after_return: false,
            tools,
            output: None,
        }
    }

    /// Which conversation of the phase it is, from 0.
    pub(crate) fn round(&self, state: &RunState) -> u32 {
        match self.is_fresh_after_return {
            true => u32::try_from(state.returns.len()).unwrap_or(u32::MAX),
            false => 0,
        }
    }
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
    /// Whether the model ends its work with it: such a tool is accepted as long as the work goes on.
    pub(crate) ends_work: bool,
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
