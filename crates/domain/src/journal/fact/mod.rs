//! Facts: the entries of a run's journal.

mod properties;

use serde::{Deserialize, Serialize};

use crate::{
    budget::{history::EffortEstimate, run_limits::RunLimits, shared_budget::TicketLimits},
    evidence::check::{ChangeReport, CheckCandidate, CheckSpec, CompletedCheck},
    identity::{
        commit::CommitId,
        ids::{CallId, OutboundId},
        repository::RepositoryName,
        time::Timestamp,
    },
    journal::{
        fence::RunFence, kind::RecordKind, record_format::StoredRecord, stop::StopReason,
        wait_condition::WaitCondition,
    },
    outbound::report::{OutboundAction, OutboundOutcome},
    trigger::reason::{GateDecision, TicketNews, Trigger},
    work::{
        handover::{PhaseOutput, ReturnReason},
        intake::WorkClass,
        mcp::McpServerTools,
        model::{ModelFault, ModelReply, ModelRole, RunPhase, ToolCall},
        tool::{ModelHint, ToolResult},
        workspace::{CodeSeed, ExecutorWorkspace, WorkspaceSnapshot},
    },
};

/// One record of a run's journal.
// A planner whose append was not acknowledged reads the entry back and compares the nonce.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Position in the journal, from 0 without gaps.
    pub position: u64,
    /// Random value of the writer for this append. After a lost acknowledgement, the writer recognizes its
    /// entry by it.
    pub nonce: String,
    /// The fence of the writer.
    pub fence: RunFence,
    /// Time of the append.
    pub at: Timestamp,
    /// The event that the entry records.
    pub fact: Fact,
}

impl StoredRecord for JournalEntry {
    const KIND: RecordKind = RecordKind::Entry;
}

/// Event in a run. Each outbound operation is two facts: the request, then the outcome. Its id is the run
/// with the journal position of the request.
// Two facts per operation make a crash recoverable: the successor finds a request without an outcome and
// repeats it under the same id, by which executor and reporter recognize it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "type", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Fact {
    /// The run was opened.
    RunStarted {
        /// The trigger that opened it.
        trigger: Box<Trigger>,
    },
    /// A planner took over the run with another delivery of the ticket's token.
    TakenOver {
        /// The fence of that delivery.
        fence: RunFence,
    },
    /// The planner requests a workspace from an executor.
    WorkspaceRequested {
        /// Id of the workspace call.
        id: CallId,
        /// The repository; absent: the run's repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// An executor opened the workspace.
    WorkspaceOpened {
        /// Id of the workspace call.
        id: CallId,
        /// Address and contents of the workspace.
        workspace: ExecutorWorkspace,
        /// The repository; absent: the run's repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// The executor failed to open a workspace.
    WorkspaceFailed {
        /// Id of the workspace call.
        id: CallId,
        /// Description of the failure for people.
        detail: String,
        /// True when the repository's setup commands failed; the detail is the end of their log.
        setup: bool,
        /// True when every retry fails in the same way, e.g. because the history contains a rejected object.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        permanent: bool,
        /// The repository; absent: the run's repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// The workspace was lost and rebuilt from the last snapshot.
    ///
    /// Tool results after the snapshot are void, and the calls run again under new ids.
    WorkspaceRestored {
        /// Address and contents of the new workspace.
        workspace: ExecutorWorkspace,
        /// The restored snapshot; absent: only the base was restored.
        snapshot: Option<WorkspaceSnapshot>,
        /// The repository; absent: the run's repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// The work ended in a worse state than an earlier one, so the workspace was reset to the best proven
    /// state.
    WentBack {
        /// Address and contents of the workspace.
        workspace: ExecutorWorkspace,
        /// Snapshot of the best proven state.
        snapshot: WorkspaceSnapshot,
    },
    // Pinned, so that a change of the settings does not change the limits of an active run.
    /// Limits of the run, pinned from rules and settings before the first model call.
    LimitsSet {
        /// Limits of the run.
        limits: RunLimits,
        /// Limits of the ticket; absent: unlimited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<TicketLimits>,
    },
    /// The planner requests a turn of the model.
    ModelRequested {
        /// Id of the model call.
        id: CallId,
        /// The turn of its conversation, from 1.
        turn: u32,
        /// The phase that the conversation belongs to.
        #[serde(default)]
        phase: RunPhase,
        /// Index of the conversation in its phase, from 0.
        #[serde(default)]
        round: u32,
        /// The role that selects the model.
        #[serde(default)]
        role: ModelRole,
    },
    /// The model replied.
    ModelReplied {
        /// Id of the model call.
        id: CallId,
        /// The reply of the model.
        reply: ModelReply,
        /// SHA-256 of the prompt before the model's turns: instructions, tools and task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
    },
    /// The model call failed permanently.
    ModelFailed {
        /// Id of the model call.
        id: CallId,
        /// Status and error class for people, never a response body.
        detail: String,
        /// True when the same call may succeed later.
        #[serde(default)]
        transient: bool,
        /// Kind of the failure; absent in records of earlier releases. The planner shortens a conversation
        /// that is too long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<ModelFault>,
        /// Tokens that the provider accepts in one request, if it refused a longer one. The planner shortens
        /// the conversation once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
    },
    /// The remaining budget is too small for the call, so the planner did not make it.
    BudgetRefused {
        /// Id of the refused call.
        id: CallId,
        /// The exhausted budget.
        reason: StopReason,
    },
    /// The planner starts a tool.
    ToolRequested {
        /// Id of the tool call.
        id: CallId,
        /// The call, requested by the model or by the planner.
        call: ToolCall,
        /// True when the planner requested the call.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        own: bool,
        /// The repository; absent: the run's repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
        /// MCP server that runs the call; absent: an executor or the planner runs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
    },
    /// The tool returned a result.
    ToolFinished {
        /// Id of the tool call.
        id: CallId,
        /// The result that the model reads.
        result: ToolResult,
    },
    // Pinned, so that the model sees the same tools in every turn, and after another planner took over.
    /// The planner listed the tools of the MCP servers that the rules allow.
    McpToolsListed {
        /// The servers, in the order of the rules.
        servers: Vec<McpServerTools>,
    },
    /// The planner searched for code that the ticket may be about.
    CodeFound {
        /// Matches, the best first; empty: no good match.
        seeds: Vec<CodeSeed>,
        /// A remark about the search, such as the reason why the index was unavailable; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// The planner estimated the effort from earlier runs.
    EffortForecast {
        /// The estimate; absent: there are too few earlier runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forecast: Option<EffortEstimate>,
    },
    /// The planner found commands that may serve as checks.
    ChecksFound {
        /// Commands, the best first; empty: none found.
        candidates: Vec<CheckCandidate>,
    },
    /// The planner starts a check.
    CheckRequested {
        /// Id of the check call.
        id: CallId,
        /// Command, folder and tree of the check.
        check: CheckSpec,
    },
    /// The check ended.
    CheckRan {
        /// Id of the check call.
        id: CallId,
        /// Result of the check.
        run: Box<CompletedCheck>,
    },
    /// The planner inspected the change.
    ChangeInspected {
        /// Size and findings of the change; absent: the inspection failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Box<ChangeReport>>,
    },
    /// A phase finished.
    PhaseFinished {
        /// Output of the phase.
        output: PhaseOutput,
    },
    /// A long conversation was shortened: the model receives old tool results as one line each from now on.
    ContextCleared {
        /// Phase of the conversation, which is the last one of that phase.
        phase: RunPhase,
        /// Number of turns from its start that are shortened.
        turns: u32,
        /// Estimate of the tokens that every later call saves.
        tokens: u64,
    },
    /// The planner requests a summary of the first turns, because shortened tool results were not enough.
    SummaryRequested {
        /// Id of the summary call.
        id: CallId,
        /// Phase of the conversation, which is the last one of that phase.
        phase: RunPhase,
        /// Number of turns from its start that the summary replaces.
        turns: u32,
        /// Estimate of the tokens that every later call saves, not counting the tokens of the summary.
        tokens: u64,
    },
    // Nothing of the replaced turns is deleted: the fold of any prefix of the journal gives the same prompt.
    /// The summary arrived. It replaces those turns from now on, unless it is unusable.
    Summarized {
        /// Id of the summary call.
        id: CallId,
        /// The reply that contains the summary.
        reply: ModelReply,
    },
    /// The summary failed; the conversation continues without it.
    SummaryFailed {
        /// Id of the summary call.
        id: CallId,
        /// Status and error class for people, never a response body.
        detail: String,
    },
    /// The work turned out to be larger than its class.
    ClassRaised {
        /// The larger class of work.
        class: WorkClass,
    },
    /// The run returns to an earlier phase, and the outputs of later phases are void.
    Returned {
        /// Reason of the return.
        why: ReturnReason,
    },
    // The same run continues on the new head: only its journal shows which push came first, and its cost
    // stays counted.
    /// Another author pushed to the branch of the pull request: the work restarts on the new head.
    HeadMoved {
        /// The new head of the branch.
        head: CommitId,
        /// The author of the push; absent: the planner learned of it only from its rejected push.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Stream sequence of the trigger that reported the push; absent: no trigger did, or the record is
        /// older than the field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger: Option<u64>,
    },
    // Only the latest snapshot is needed. The planner deletes the previous one after this entry is appended.
    /// A snapshot of the workspace's changes is stored outside of it.
    SnapshotTaken {
        /// The stored snapshot.
        snapshot: WorkspaceSnapshot,
        /// The repository; absent: the run's repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// The workspace is open, but a snapshot of its changes is not possible. The model receives the reason.
    SnapshotFailed {
        /// Reason for the model and the ticket.
        reason: String,
        /// The repository; absent: the run's repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// The planner sends a request to the reporter.
    ReportRequested {
        /// Id of the report.
        id: OutboundId,
        /// The requested effects.
        request: OutboundAction,
        /// The model's id of the tool call that the report answers, if any.
        answers: Option<String>,
    },
    /// The reporter completed the report.
    ReportSettled {
        /// Id of the report.
        id: OutboundId,
        /// Result of the report.
        outcome: OutboundOutcome,
    },
    /// The run waits after it released the ticket, so any planner may continue it.
    Parked {
        /// The event that ends the wait.
        waits_for: WaitCondition,
    },
    /// A step failed for a possibly transient reason. The run waits for a timer without holding resources,
    /// then retries.
    RetryScheduled {
        /// Number of this retry, from 1, counted from the last success or reset.
        attempt: u32,
        /// Maximum number of retries.
        #[serde(default)]
        most: u32,
        /// Time of the retry.
        due: Timestamp,
        /// The failure that caused the retry.
        reason: StopReason,
    },
    /// The wait ended, and the failed step runs again under new ids.
    Retried {
        /// The user who requested the retry, which resets the count; absent: the timer.
        by: Option<String>,
        /// Stream sequence of the trigger that requested the retry; absent: the timer did, or the record is
        /// older than the field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger: Option<u64>,
    },
    /// A person decided at the approval gate.
    Decided {
        /// The decision at the gate.
        decision: GateDecision,
        /// Name of the person who decided.
        by: String,
    },
    /// A user requested a stop of the run.
    StopRequested {
        /// Name of the user.
        by: String,
    },
    // News neither wake a parked run nor interrupt a step. Their position in the journal determines the turn
    // that reads them, so a repeated model call has the same input.
    /// A new event on the ticket reached the run. The model reads it in its next turn.
    NewsArrived {
        /// Stream sequence of the trigger that carried it.
        sequence: u64,
        /// Time of the event.
        at: Timestamp,
        /// Contents of the event.
        news: TicketNews,
    },
    /// The planner adds a hint for the model to the results of its last calls.
    Hinted {
        /// Phase of the conversation that receives it.
        phase: RunPhase,
        /// The hint for the model.
        hint: ModelHint,
    },
    /// The run is finished. No fact follows.
    RunFinished {
        /// Reason for the end of the run.
        reason: StopReason,
    },
}
