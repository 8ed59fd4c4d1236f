//! Performs the actions that a run decides on, and returns their outcomes as facts.

mod attachment;
mod check;
mod command_servers;
mod history;
mod limits;
mod progress;
mod read_ahead;
mod recovery;

use std::{sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable as _};
use domain::{
    CallId, ExecutorWorkspace, Fact, JobRequest, ModelFault, OutboundAction, OutboundId, OutboundRequest,
    RunFence, Timestamp, ToolCall, ToolResult, WorkspaceSnapshot, cause::format_error_chain,
};
use queue::Queue;
use tokio::{task::JoinHandle, time::Instant};
use tracing::Instrument as _;

use crate::budgets::SharedBudgets;
use crate::embeddings::EmbeddingClient;
use crate::executors::{
    CallError, ExecutorFleet, MirrorWait, OpenError, OpeningCommit, RunCaller, WorkspaceCalls,
    parse_commit_id,
};
use crate::live_output;
use crate::mcp_calls::McpCaller;
use crate::model::{self, ModelClients};
use crate::prompts;
use crate::run::{
    BudgetAllowance, CallAnswer, IllegalFact, PlannerRunState, RetryPolicy, RunAction, next_conversation,
    summary_conversation,
};
use crate::slots::SlotAllocator;
use crate::snapshots::SnapshotStore;
use crate::telemetry;
pub(crate) use attachment::ImageCache;
pub(crate) use read_ahead::ReadAhead;
use recovery::{FailedCall, outcome_of_open_error, record_failed_snapshot, workspace_failure};

// The executor keeps a workspace for five minutes after the last keepalive.
const KEEPALIVE: Duration = Duration::from_secs(60);
// Pause between two requests for a workspace while the repository's first clone runs.
const CLONE_PAUSE: Duration = Duration::from_secs(3);
// A first clone without progress for this long counts as failed.
const CLONE_LIMIT: Duration = Duration::from_secs(20 * 60);
// Percent of clone progress between two updates of the status comment.
const CLONE_STEP: u8 = 10;
// Few tries with short pauses: after them the run opens its workspace again, at another executor if
// necessary.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(500))
    .with_max_times(2);

/// Outcome of an action.
#[derive(Debug)]
pub(crate) enum StepOutcome {
    /// A fact for the journal.
    Fact(Box<Fact>),
    /// Facts for the journal, in this order.
    Facts(Vec<Fact>),
    /// Fact about a model call for the journal, and the settlement of the call's budget. The run's next step
    /// waits for both.
    Charged {
        fact: Box<Fact>,
        settled: JoinHandle<()>,
    },
    /// The report is in the log of the reporter.
    Sent(OutboundId),
    /// The run waits for an event from outside.
    Parked,
    /// The run waits for a slot of an executor. The journal gets no entry; the same step repeats.
    AwaitsSlot,
    /// The run is finished.
    Over,
}

impl From<Fact> for StepOutcome {
    fn from(fact: Fact) -> Self {
        Self::Fact(Box::new(fact))
    }
}

/// Reason that work on a ticket ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TicketError {
    /// Another planner owns the ticket now.
    #[error("the ticket was taken over")]
    Lost,
    /// NATS failed, or a record is unusable.
    #[error(transparent)]
    Queue(queue::Error),
    /// Planners crashed repeatedly on this ticket.
    #[error("{0} planners in a row took the ticket over and made no progress")]
    Stuck(u32),
    /// A journal contains an illegal entry.
    #[error(transparent)]
    Illegal(#[from] IllegalFact),
}

impl TicketError {
    /// Returns true if a newer release wrote a record of the ticket: a planner of that release continues.
    pub(crate) const fn is_newer(&self) -> bool {
        matches!(self, Self::Queue(queue::Error::Newer { .. }))
    }

    /// Returns true if NATS does not respond: a retry may succeed shortly.
    pub(crate) const fn is_outage(&self) -> bool {
        matches!(self, Self::Queue(error) if error.is_passing())
    }
}

impl From<queue::Error> for TicketError {
    fn from(error: queue::Error) -> Self {
        match error {
            queue::Error::Conflict => Self::Lost,
            queue::Error::Unavailable { .. }
            | queue::Error::Full { .. }
            | queue::Error::Newer { .. }
            | queue::Error::Corrupt { .. }
            | queue::Error::Topology { .. } => Self::Queue(error),
        }
    }
}

/// Run whose action is performed.
pub(crate) struct StepContext {
    pub(crate) state: Arc<PlannerRunState>,
    pub(crate) fence: RunFence,
    /// Bytes of the snapshots that other runs of the ticket keep.
    pub(crate) kept_elsewhere: u64,
    /// Reads of the run that run before their turn.
    pub(crate) ahead: Arc<ReadAhead>,
}

/// Executes the actions of all runs.
pub(crate) struct RunDriver {
    pub(crate) queue: Queue,
    pub(crate) models: ModelClients,
    pub(crate) executors: Arc<ExecutorFleet>,
    pub(crate) slots: SlotAllocator,
    pub(crate) retries: RetryPolicy,
    pub(crate) allowance: BudgetAllowance,
    pub(crate) budgets: Arc<SharedBudgets>,
    pub(crate) embeddings: Option<EmbeddingClient>,
    pub(crate) snapshots: SnapshotStore,
    pub(crate) images: ImageCache,
    pub(crate) mcp: McpCaller,
}

impl RunDriver {
    /// Performs one action, and keeps the run's workspaces alive meanwhile. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`TicketError`]; every other failure is a fact.
    pub(crate) async fn perform(
        &self,
        action: RunAction,
        step: &StepContext,
    ) -> Result<StepOutcome, TicketError> {
        // Reads are valid until something else happens than the calls of their reply.
        if !matches!(
            action,
            RunAction::Record(_) | RunAction::Answer { .. } | RunAction::CallTool { .. }
        ) {
            step.ahead.clear();
        }
        // Before the action, because a model call takes minutes.
        self.show_progress(&action, &step.state, step.fence).await?;
        tokio::select! {
            outcome = Box::pin(self.act(action, step)) => outcome,
            // Unreachable, because the loop has no end. `select!` needs an outcome for it.
            () = self.keep_workspaces(&step.state, step.fence) => Err(TicketError::Lost),
        }
    }

    async fn act(&self, action: RunAction, step: &StepContext) -> Result<StepOutcome, TicketError> {
        let state = &*step.state;
        let missing = || self.impossible(state, "a run without a workspace asked for one");
        let request = || state.request().ok_or_else(missing);
        let known_caller = state.request().map(|request| RunCaller {
            run: state.run.clone(),
            repository: request.repository.clone(),
            fence: step.fence,
        });
        let caller = || known_caller.as_ref().ok_or_else(missing);
        let info = || {
            let open = state.source().open_workspace();
            open.ok_or_else(|| self.impossible(state, "an action needs the open workspace"))
        };
        let workspace = || -> Result<_, TicketError> { Ok(self.executors.workspace(caller()?, info()?)) };
        match action {
            RunAction::Record(fact) => {
                telemetry::count_context_step(&fact);
                self.remember(&fact, state).await;
                Ok(fact.into())
            }
            RunAction::Answer { id, answer } => self.answer(state, id, &answer),
            RunAction::Wait => Ok(StepOutcome::Parked),
            RunAction::Rest => Ok(StepOutcome::Over),
            RunAction::ScheduleRetry { reason } => {
                let fact = self.retries.after(state, reason, bootstrap::read_wall_clock());
                tracing::warn!(run = %state.run, fact = fact.name(), retries = state.lifecycle().retries(), "run failed");
                Ok(fact.into())
            }
            RunAction::SetLimits => self.set_limits(state).await,
            RunAction::Forecast => Ok(self.forecast(state).await.into()),
            RunAction::SendReport { id, request, at } => self.send(step, id, request, at).await,
            RunAction::OpenWorkspace { id } => self.open(caller()?, state, request()?, id).await,
            RunAction::AskModel { id } => Ok(self.ask(state, id).await),
            RunAction::SumUp { id } => {
                let fact = self.sum_up(state, id).await;
                telemetry::count_context_step(&fact);
                Ok(fact.into())
            }
            RunAction::CallTool { id, call, at } => {
                let workspace = workspace()?;
                if let Some(result) = step.ahead.take(state, info()?).await {
                    return Ok(Fact::ToolFinished { id, result }.into());
                }
                self.start_following_reads(step, caller()?, info()?, (&id, at));
                self.call_tool(workspace, state, id, call, at).await
            }
            RunAction::ReadAttachment { id, read } => self.read_attachment(state, id, &read).await,
            RunAction::ListMcpTools => Box::pin(self.list_mcp_tools(workspace()?, state, request()?)).await,
            RunAction::CallMcpTool {
                id,
                server,
                tool,
                call,
            } => {
                let result = Box::pin(self.mcp.call(state, &id, (server.as_str(), &tool), &call)).await;
                Ok(Fact::ToolFinished { id, result }.into())
            }
            RunAction::FindCode => self.find_code(workspace()?, state, request()?).await,
            RunAction::FindChecks { inspects_change } => {
                self.find_checks(workspace()?, state, request()?, inspects_change)
                    .await
            }
            RunAction::RunChecks { checks } => {
                self.run_checks(workspace()?, state, info()?.sandbox, checks)
                    .await
            }
            RunAction::InspectChange => self.inspect_change(workspace()?, state, request()?).await,
            RunAction::TakeSnapshot => self.snapshot(workspace()?, state, step.kept_elsewhere).await,
            RunAction::GoBack { snapshot } => {
                self.go_back(workspace()?, state, &info()?.base, snapshot).await
            }
        }
    }

    /// Keeps the open workspaces of a run alive until the future is dropped.
    async fn keep_workspaces(&self, state: &PlannerRunState, fence: RunFence) {
        loop {
            tokio::time::sleep(KEEPALIVE).await;
            for (caller, info) in callers_of_workspaces(state, fence) {
                self.executors.workspace(&caller, info).keep_alive().await;
            }
        }
    }

    async fn send(
        &self,
        step: &StepContext,
        id: OutboundId,
        request: OutboundAction,
        at: Timestamp,
    ) -> Result<StepOutcome, TicketError> {
        let run = step.state.run.clone();
        let ticket = run.ticket().clone();
        let report = OutboundRequest {
            id: id.clone(),
            ticket,
            run: Some(run),
            fence: step.fence,
            at,
            progress: progress::progress_of_run(&step.state),
            request,
        };
        self.queue.reports().append(&report).await?;
        Ok(StepOutcome::Sent(id))
    }

    fn impossible(&self, state: &PlannerRunState, problem: &'static str) -> TicketError {
        let (run, position) = (state.run.clone(), state.journal.position);
        TicketError::Illegal(IllegalFact {
            run,
            position,
            fact: "action",
            problem,
        })
    }

    /// Opens the workspace. While the repository's first clone makes progress, it repeats the request and
    /// reports the progress to the ticket. A base commit that GitHub reported is requested for 30 s without progress.
    async fn open(
        &self,
        caller: &RunCaller,
        state: &PlannerRunState,
        request: &JobRequest,
        id: CallId,
    ) -> Result<StepOutcome, TicketError> {
        let (mut shown, mut wait, mut arrival) = (None, MirrorWait::start(), None);
        loop {
            let base = OpeningCommit::of_request(request, wait.idle());
            let opened = self.slots.open(caller, request, base, None, &mut arrival);
            let percent = match opened.await {
                Ok(workspace) => {
                    return Ok(StepOutcome::from(Fact::WorkspaceOpened {
                        id,
                        workspace,
                        repository: None,
                    }));
                }
                Err(OpenError::NotReady { percent }) => percent,
                Err(error) => return outcome_of_open_error(id, error),
            };
            wait.note(percent);
            // Only progress restarts the limit: a large clone may take long, a stuck one must not.
            if wait.since_progress() > CLONE_LIMIT {
                let problem = "the first clone of the repository makes no progress".to_owned();
                return outcome_of_open_error(id, OpenError::Unavailable(problem));
            }
            let step = percent.unwrap_or(0) / CLONE_STEP * CLONE_STEP;
            // Without progress, the mirrors may only lack a base that moved a moment ago.
            let is_clone = percent.is_some() || !base.has_report();
            if is_clone && shown != Some(step) {
                self.show_clone(state, caller.fence, &id, step).await?;
                tracing::info!(run = %caller.run, percent, "waiting for the first clone");
                shown = Some(step);
            }
            tokio::time::sleep(CLONE_PAUSE).await;
        }
    }

    async fn ask(&self, state: &PlannerRunState, id: CallId) -> StepOutcome {
        // A prompt that cannot be rendered fails for good: a retry would render the same.
        let failed = |id, detail, kind: Option<ModelFault>| Fact::ModelFailed {
            id,
            detail,
            transient: kind.is_some_and(model::is_transient),
            kind,
            limit: None,
        };
        let Some(shown) = next_conversation(state) else {
            return failed(id, "there was nothing to show the model".to_owned(), None).into();
        };
        let (mut transcript, prompt) = match prompts::render_conversation(&shown) {
            Ok(rendered) => rendered,
            Err(error) => {
                return failed(id, format!("the prompt could not be written: {error}"), None).into();
            }
        };
        let run = state.run.to_string();
        let choice = limits::choose_model(state, shown.dialog.phase, shown.dialog.role);
        let wish = match self.build_reservation(state, &id, shown.dialog, &transcript) {
            Ok(wish) => wish,
            Err(reason) => return Fact::BudgetRefused { id, reason }.into(),
        };
        let asking = async {
            self.load_images(&mut transcript).await;
            let asked = self.models.chat(&choice, &run, &transcript);
            failpoint::around("planner.model.call", asked).await
        };
        // A limited budget is reserved before the call, so that planners that ask at the same time do not spend
        // the same rest of it.
        let (reserving, is_limited) = (self.budgets.reserve(state, wish), self.budgets.has_limit());
        let made = limits::reserve_and_call(is_limited, Box::pin(reserving), Box::pin(asking)).await;
        let (reservation, answered) = match made {
            Ok(made) => made,
            Err(reason) => return Fact::BudgetRefused { id, reason }.into(),
        };
        let fact = match answered {
            Ok(reply) => Fact::ModelReplied {
                id,
                reply,
                prompt: Some(prompt),
            },
            Err(error) => Fact::ModelFailed {
                id,
                detail: error.words,
                transient: model::is_transient(error.kind),
                kind: Some(error.kind),
                limit: error.limit,
            },
        };
        // Failures as well: an unsettled reservation blocks other calls until it expires.
        let settled = self.budgets.settle(reservation, &fact);
        StepOutcome::Charged {
            fact: Box::new(fact),
            settled,
        }
    }

    /// Summarizes a conversation with the model of the work role, because the work depends on a good
    /// summary.
    async fn sum_up(&self, state: &PlannerRunState, id: CallId) -> Fact {
        let Some(shown) = summary_conversation(state, &id) else {
            let detail = "there was nothing to sum up".to_owned();
            return Fact::SummaryFailed { id, detail };
        };
        let mut transcript = match prompts::render_conversation(&shown) {
            Ok((transcript, _)) => transcript,
            Err(error) => {
                let detail = format!("the prompt could not be written: {error}");
                return Fact::SummaryFailed { id, detail };
            }
        };
        // Not fatal: the next turn finds the same budget without room and reports that.
        let reserved = self.reserve_summary(state, &id, shown.dialog.phase, &transcript);
        let reservation = match reserved.await {
            Ok(reservation) => reservation,
            Err(reason) => {
                let detail = format!("not asked: {}", reason.as_str());
                return Fact::SummaryFailed { id, detail };
            }
        };
        let run = state.run.to_string();
        let choice = limits::choose_summary_model(state);
        self.load_images(&mut transcript).await;
        let asked = self.models.chat(&choice, &run, &transcript);
        let fact = match failpoint::around("planner.model.sum_up", asked).await {
            Ok(reply) => Fact::Summarized { id, reply },
            Err(error) => Fact::SummaryFailed {
                id,
                detail: error.to_string(),
            },
        };
        drop(self.budgets.settle(reservation, &fact).await);
        fact
    }

    /// Renders the planner's answer to a tool call.
    fn answer(
        &self,
        state: &PlannerRunState,
        id: CallId,
        answer: &CallAnswer,
    ) -> Result<StepOutcome, TicketError> {
        let Some(open) = state.open_call() else {
            return Err(self.impossible(state, "no call is open"));
        };
        let result = prompts::render_answer(&open.call, answer);
        Ok(Fact::ToolFinished { id, result }.into())
    }

    async fn call_tool(
        &self,
        workspace: WorkspaceCalls<'_>,
        state: &PlannerRunState,
        id: CallId,
        call: ToolCall,
        at: Timestamp,
    ) -> Result<StepOutcome, TicketError> {
        let caller = workspace.caller;
        let (start, span) = (
            Instant::now(),
            telemetry::tool_span(&caller.run.to_string(), &call.name, id.as_str()),
        );
        let output = live_output::start_output(self.queue.live(), caller.run.clone(), id.clone());
        let author = state.request().map(|request| request.rules.commits.author());
        let signed = (at, &author.unwrap_or_default());
        let server = state.mcp().find_command_tool(&call.name);
        let called = async {
            match server {
                Some(place) => {
                    command_servers::call_command_tool(workspace, state, (&id, &call), place, &output).await
                }
                None => retry_call(|| workspace.call_tool(&id, &call, signed, &output)).await,
            }
        };
        let called = called.instrument(span).await;
        let result = match called {
            Ok(result) => result,
            // Not repeated: the call may have had its effects already.
            Err(CallError::TimedOut) => ToolResult::interrupted(prompts::TOO_LONG),
            Err(CallError::Invalid(words) | CallError::Unkeepable(words)) => ToolResult::error(words),
            Err(error) => return self.recover(caller, state, error, FailedCall::Tool(id)).await,
        };
        // Servers choose the names of their tools, so a name is not used as a label of a metric.
        let label = server.map_or(call.name.as_str(), |_| "mcp");
        telemetry::count_tool_call(label, start, &result);
        Ok(Fact::ToolFinished { id, result }.into())
    }

    async fn snapshot(
        &self,
        workspace: WorkspaceCalls<'_>,
        state: &PlannerRunState,
        kept_elsewhere: u64,
    ) -> Result<StepOutcome, TicketError> {
        let caller = workspace.caller;
        let quota = self.snapshots.quota(state, kept_elsewhere);
        let taken = match retry_call(|| workspace.snapshot(state.journal.last_at, &quota)).await {
            Ok(taken) => taken,
            // Waiting for space here would hold the run's slot until an operator adds some.
            Err(CallError::Store(error @ queue::Error::Full { .. })) => {
                tracing::error!(run = %caller.run, error = %format_error_chain(&error), "the object store is full");
                let detail = format!("the workspace could not be stored: {error}");
                return Ok(workspace_failure(state, &detail).into());
            }
            Err(CallError::Store(error)) => return Err(error.into()),
            Err(CallError::Unkeepable(reason)) => return Ok(record_failed_snapshot(caller, reason).into()),
            Err(error) => return self.recover(caller, state, error, FailedCall::Snapshot).await,
        };
        let (Some(base), Some(kept)) = (
            parse_commit_id(&taken.info.base_commit),
            parse_commit_id(&taken.info.snapshot_commit),
        ) else {
            return Ok(workspace_failure(state, "the executor's snapshot names no commit").into());
        };
        let snapshot = WorkspaceSnapshot {
            base,
            branch: Some(taken.info.branch).filter(|branch| !branch.is_empty()),
            head: parse_commit_id(&taken.info.head_commit),
            commit: kept,
            pack: taken.pack.object.clone(),
            files_changed: taken.info.files_changed,
            omitted: taken.info.omitted,
            ignored: taken.info.ignored,
        };
        self.snapshots.note(&caller.run, taken.pack);
        Ok(StepOutcome::from(Fact::SnapshotTaken {
            snapshot,
            repository: None,
        }))
    }

    /// Closes the workspaces of a run and removes its entry from the slot queue. The slot maintenance
    /// closes what fails here.
    pub(crate) async fn close(&self, state: &PlannerRunState, fence: RunFence) {
        if let (Some(request), true) = (state.request(), state.lifecycle().finished().is_some())
            && let Err(error) = self.slots.leave(&request.rules.executor.pool, &state.run).await
        {
            tracing::debug!(
                run = %state.run,
                error = %format_error_chain(&error),
                "the run stays in the queue for a slot until its turn"
            );
        }
        self.mcp.close(&state.run);
        for (caller, info) in callers_of_workspaces(state, fence) {
            self.executors.workspace(&caller, info).close().await;
        }
    }
}

/// Each open workspace of a run, with the caller for its executor.
fn callers_of_workspaces(
    state: &PlannerRunState,
    fence: RunFence,
) -> impl Iterator<Item = (RunCaller, &ExecutorWorkspace)> {
    state.source().open_workspaces().map(move |(repository, info)| {
        let caller = RunCaller {
            run: state.run.clone(),
            repository: repository.clone(),
            fence,
        };
        (caller, info)
    })
}

/// Retries a call while the executor is in trouble. A tool call keeps its id, so the executor never runs it
/// twice.
async fn retry_call<T, F, Fut>(call: F) -> Result<T, CallError>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, CallError>>,
{
    call.retry(PAUSES)
        .when(|error| matches!(error, CallError::Trouble { .. }))
        .notify(|error, _| {
            tracing::debug!(error = %format_error_chain(error), "executor call failed, trying again");
        })
        .await
}
