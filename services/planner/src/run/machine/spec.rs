//! Specifications of jobs, phases and conversations.

use domain::{
    Fact, JobRequest, McpServerTools, McpTool, ModelReply, ModelRole, PhaseOutput, RunPhase, StopReason,
};

use super::{ArgumentProblem, DialogTurn, PhaseDialog, PlannerRunState, RunAction, TurnCall};

/// Job: its phases, in order.
pub(crate) struct JobSpec {
    pub(crate) phases: &'static [PhaseSpec],
    /// True if the run notifies its requester of its retries and its end.
    pub(crate) is_awaited: bool,
}

/// Phase of a run.
pub(crate) struct PhaseSpec {
    /// Conversation of the phase; absent for a phase without the model.
    pub(crate) dialog: Option<DialogSpec>,
    pub(crate) next: fn(&PlannerRunState) -> RunStep,
}

impl PhaseSpec {
    /// Creates a phase without the model.
    pub(crate) const fn without_dialog(next: fn(&PlannerRunState) -> RunStep) -> Self {
        Self { dialog: None, next }
    }

    /// Creates a phase with a conversation.
    pub(crate) const fn with_dialog(dialog: DialogSpec, next: fn(&PlannerRunState) -> RunStep) -> Self {
        let dialog = Some(dialog);
        Self { dialog, next }
    }
}

/// Conversation with the model.
pub(crate) struct DialogSpec {
    pub(crate) phase: RunPhase,
    pub(crate) role: ModelRole,
    /// True if it offers the executor's tools.
    pub(crate) has_workspace: bool,
    /// True if only tools that change nothing may be called. All are offered, so that conversations share
    /// the provider's cache.
    pub(crate) is_read_only: bool,
    /// True if a return of the work starts a new conversation, so that the last one does not bias it.
    pub(crate) is_fresh_after_return: bool,
    /// Tools that the planner answers.
    pub(crate) tools: &'static [PlannerTool],
    /// Required form of a reply; absent for free text.
    pub(crate) output: Option<ReplyForm>,
}

/// Required form of a conversation's only reply.
pub(crate) struct ReplyForm {
    /// Name of its schema in the prompts.
    pub(crate) name: &'static str,
    /// Returns the problem with a reply.
    pub(crate) problem: fn(&PlannerRunState, &ModelReply) -> Option<ArgumentProblem>,
}

impl DialogSpec {
    /// Creates a conversation with the planner's tools alone; others differ in single fields.
    pub(crate) const fn new(phase: RunPhase, role: ModelRole, tools: &'static [PlannerTool]) -> Self {
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

    /// Creates a conversation that reads the workspace and changes nothing.
    pub(crate) const fn reading(phase: RunPhase, role: ModelRole, tools: &'static [PlannerTool]) -> Self {
        Self {
            has_workspace: true,
            is_read_only: true,
            ..Self::new(phase, role, tools)
        }
    }

    /// Returns the number of the phase's conversation, from 0.
    pub(crate) fn round(&self, state: &PlannerRunState) -> u32 {
        if self.is_fresh_after_return {
            u32::try_from(state.outputs().returns().len()).unwrap_or(u32::MAX)
        } else {
            0
        }
    }

    /// Returns the conversation, once it has begun.
    pub(crate) fn conversation<'a>(&self, state: &'a PlannerRunState) -> Option<&'a PhaseDialog> {
        state.conversation().find_dialog(self.phase, self.round(state))
    }

    /// Returns the turns of the conversation.
    pub(crate) fn turns<'a>(&self, state: &'a PlannerRunState) -> &'a [DialogTurn] {
        self.conversation(state).map_or(&[], |known| &known.turns)
    }

    /// Returns the executor's tools that the model may call.
    fn theirs<'a>(&self, state: &'a PlannerRunState) -> impl Iterator<Item = &'a str> {
        // The executor names its tools when it opens the workspace, so an executor of another release may
        // have others.
        let open = state.source().open_workspace().filter(|_| self.has_workspace);
        let tools = open.into_iter().flat_map(|info| &info.tools);
        tools.map(|tool| tool.name.as_str())
    }

    /// Returns the MCP servers of the conversation. One without the executor's tools has none: its only task
    /// is a decision about text that it shows.
    pub(crate) fn mcp_servers<'a>(&self, state: &'a PlannerRunState) -> &'a [McpServerTools] {
        if self.has_workspace {
            state.mcp().servers()
        } else {
            &[]
        }
    }

    /// Returns the tool of an MCP server with this name, and its server.
    pub(crate) fn find_mcp_tool<'a>(
        &self,
        state: &'a PlannerRunState,
        name: &str,
    ) -> Option<(&'a McpServerTools, &'a McpTool)> {
        let servers = self.mcp_servers(state).iter();
        let mut tools = servers.flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
        tools.find(|(_, tool)| tool.spec.name == name)
    }

    /// Returns the names of the tools that the model may call.
    pub(crate) fn tool_names<'a>(&self, state: &'a PlannerRunState) -> impl Iterator<Item = &'a str> {
        let servers = self.mcp_servers(state).iter().flat_map(|server| &server.tools);
        self.theirs(state)
            .chain(servers.map(|tool| tool.spec.name.as_str()))
            .chain(self.tools.iter().map(|tool| tool.name))
    }

    /// Returns true if the model may call a tool of this name.
    pub(crate) fn offers(&self, state: &PlannerRunState, name: &str) -> bool {
        self.tool_names(state).any(|tool| tool == name)
    }
}

/// Tool that the planner itself answers. The prompts have its description, by name.
pub(crate) struct PlannerTool {
    pub(crate) name: &'static str,
    /// True if the model ends its work with it; such a tool stays available until the work ends.
    pub(crate) ends_work: bool,
    /// Returns the step that answers a call.
    pub(crate) act: fn(&PlannerRunState, &JobRequest, &TurnCall) -> RunStep,
}

/// Request of a phase.
#[derive(Debug)]
pub(crate) enum RunStep {
    /// Performs this action next.
    Act(Box<RunAction>),
    /// Retries the run after a failure that may pass.
    Retry(StopReason),
    /// Ends the run and notifies the requester of the reason.
    Close(StopReason),
    /// Ends the run; the requester already knows the reason.
    Finish(StopReason),
    /// Continues with the next phase.
    Over,
}

impl From<RunAction> for RunStep {
    fn from(action: RunAction) -> Self {
        Self::Act(Box::new(action))
    }
}

impl From<Fact> for RunStep {
    fn from(fact: Fact) -> Self {
        RunAction::Record(fact).into()
    }
}

/// Finishes the phase with its output.
impl From<PhaseOutput> for RunStep {
    fn from(output: PhaseOutput) -> Self {
        Fact::PhaseFinished { output }.into()
    }
}
