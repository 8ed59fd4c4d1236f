//! Facts: the entries of a run's journal.

mod reading;

use serde::{Deserialize, Serialize};

use crate::check::{ChangeReport, CheckCandidate, CheckRun, CheckSpec};
use crate::{
    CallId, Class, CodeSeed, CommitId, Decision, Forecast, Hint, ModelFault, ModelRole, News, Phase,
    PhaseOutput, RecordKind, Reply, ReportId, ReportOutcome, ReportRequest, RepositoryName, Return, RunFence,
    RunLimits, Snapshot, StopReason, Stored, TicketLimits, Timestamp, ToolCall, ToolResult, Trigger,
    WaitsFor, WorkspaceInfo,
};

/// One record of a run's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Place in the journal, from 0 without gaps.
    pub position: u64,
    /// Made by the writer for this append, so that after a lost acknowledgement it knows its own.
    pub nonce: String,
    /// The writer's fence.
    pub fence: RunFence,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub fact: Fact,
}

impl Stored for Entry {
    const KIND: RecordKind = RecordKind::Entry;
}

/// What happened in a run. Whatever reaches outside is two facts: requested, then the outcome. The id is run and
/// journal position of the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Fact {
    /// The run exists.
    RunStarted {
        /// What opened it.
        trigger: Box<Trigger>,
    },
    /// Another delivery of the ticket's token took over.
    TakenOver {
        /// Its fence.
        fence: RunFence,
    },
    /// An executor is asked for a workspace.
    WorkspaceRequested {
        /// The call.
        id: CallId,
        /// The repository; absent: the run's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// A workspace is open.
    WorkspaceOpened {
        /// The call.
        id: CallId,
        /// Where and what.
        workspace: WorkspaceInfo,
        /// The repository; absent: the run's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// No workspace could be had.
    WorkspaceFailed {
        /// The call.
        id: CallId,
        /// For people.
        detail: String,
        /// True when the repository's setup commands failed; the detail is the end of their log.
        setup: bool,
        /// True when the same comes at every try, e.g. because the history holds an object that is refused.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        permanent: bool,
        /// The repository; absent: the run's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// The workspace was lost and opened again from the last snapshot; tool results after it are void and the calls
    /// run again under new ids.
    WorkspaceRestored {
        /// Where and what.
        workspace: WorkspaceInfo,
        /// The snapshot; absent: from the bare base.
        snapshot: Option<Snapshot>,
        /// The repository; absent: the run's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// The work ended worse than it was before: the workspace has the state that was proven best again.
    WentBack {
        /// Where.
        workspace: WorkspaceInfo,
        /// That state.
        snapshot: Snapshot,
    },
    /// What the run may spend, as rules and settings have it when the model is asked first.
    LimitsSet {
        /// The limits.
        limits: RunLimits,
        /// Those of the ticket; absent: it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<TicketLimits>,
    },
    /// The model is asked.
    ModelRequested {
        /// The call.
        id: CallId,
        /// The turn of its conversation, from 1.
        turn: u32,
        /// What the conversation is for.
        #[serde(default)]
        phase: Phase,
        /// Counts the conversations of the phase, from 0.
        #[serde(default)]
        round: u32,
        /// Which model is asked.
        #[serde(default)]
        role: ModelRole,
    },
    /// The model replied.
    ModelReplied {
        /// The call.
        id: CallId,
        /// The reply.
        reply: Reply,
        /// SHA-256 of what the model was shown before its turns: instructions, tools and task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
    },
    /// The model call failed for good.
    ModelFailed {
        /// The call.
        id: CallId,
        /// For people: status and class, never a body.
        detail: String,
        /// True when the same call may work later.
        #[serde(default)]
        transient: bool,
        /// What kind of failure it was; absent in records of former releases. A conversation that is too long is made shorter.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<ModelFault>,
        /// The tokens that the provider accepts in one request, where it refused more; the conversation is made shorter once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
    },
    /// A budget has no room for the call, so the model was not asked.
    BudgetRefused {
        /// The call.
        id: CallId,
        /// Which budget it is.
        reason: StopReason,
    },
    /// A tool runs.
    ToolRequested {
        /// The call.
        id: CallId,
        /// The model's wish, or the planner's own.
        call: ToolCall,
        /// True when the planner itself wants it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        own: bool,
        /// The repository; absent: the run's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// A tool ended.
    ToolFinished {
        /// The call.
        id: CallId,
        /// What the model reads.
        result: ToolResult,
    },
    /// Code that the ticket may be about was looked up.
    CodeFound {
        /// The best first; empty: nothing fits well.
        seeds: Vec<CodeSeed>,
        /// What else there is to say, such as why the index was not used; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// It was looked up what such work took before.
    EffortForecast {
        /// What to expect; absent: too little is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forecast: Option<Forecast>,
    },
    /// Commands that may serve as checks.
    ChecksFound {
        /// Best first; empty: there are none.
        candidates: Vec<CheckCandidate>,
    },
    /// A check runs.
    CheckRequested {
        /// The call.
        id: CallId,
        /// What runs where.
        check: CheckSpec,
    },
    /// A check ended.
    CheckRan {
        /// The call.
        id: CallId,
        /// What it showed.
        run: Box<CheckRun>,
    },
    /// The change was looked at.
    ChangeInspected {
        /// What it amounts to; absent: that could not be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Box<ChangeReport>>,
    },
    /// A phase ended.
    PhaseFinished {
        /// What it brought.
        output: PhaseOutput,
    },
    /// A conversation became long: the model is shown the old results of its tools in one line each from now on.
    ContextCleared {
        /// The conversation: the last one of its phase.
        phase: Phase,
        /// How many turns from its start.
        turns: u32,
        /// About how many tokens every later call has less.
        tokens: u64,
    },
    /// A conversation became so long that leaving results out is not enough: a model is asked to sum its first turns up.
    SummaryRequested {
        /// The call.
        id: CallId,
        /// The conversation: the last one of its phase.
        phase: Phase,
        /// How many turns from its start the summary will stand for.
        turns: u32,
        /// About how many tokens every later call has less, without those of the summary.
        tokens: u64,
    },
    /// The summary is there. It stands for those turns from now on, unless it is of no use.
    Summarized {
        /// The call.
        id: CallId,
        /// The reply.
        reply: Reply,
    },
    /// There is no summary; the conversation goes on without.
    SummaryFailed {
        /// The call.
        id: CallId,
        /// For people: status and class, never a body.
        detail: String,
    },
    /// The work turned out to be more than it looked like.
    ClassRaised {
        /// The larger class.
        class: Class,
    },
    /// The run goes back to its work: what later phases brought is void.
    Returned {
        /// Why.
        why: Return,
    },
    /// Somebody pushed to the branch of the pull request that the work goes on with: it begins again on their commit.
    HeadMoved {
        /// The branch's head now.
        head: CommitId,
        /// Who pushed; absent: nobody told, the push of the work was refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The workspace's changes are kept outside it.
    SnapshotTaken {
        /// The snapshot.
        snapshot: Snapshot,
        /// The repository; absent: the run's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// The workspace is open, but its changes cannot be kept as they are; the model is told.
    SnapshotFailed {
        /// Why, for the model and the ticket.
        reason: String,
        /// The repository; absent: the run's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<RepositoryName>,
    },
    /// The reporter is asked.
    ReportRequested {
        /// The report.
        id: ReportId,
        /// What for.
        request: ReportRequest,
        /// The model's id of the tool call that it answers, when it answers one.
        answers: Option<String>,
    },
    /// The reporter settled it.
    ReportSettled {
        /// The report.
        id: ReportId,
        /// What became of it.
        outcome: ReportOutcome,
    },
    /// The run waits and holds nothing.
    Parked {
        /// What for.
        waits_for: WaitsFor,
    },
    /// The job failed for a reason that may pass. The run waits for a timer, holds nothing, and tries again.
    RetryScheduled {
        /// Which retry this is, from 1; they are counted from the last success or reset.
        attempt: u32,
        /// How many there are at most.
        #[serde(default)]
        most: u32,
        /// When to try again.
        due: Timestamp,
        /// What failed.
        reason: StopReason,
    },
    /// The wait is over: what failed is tried again under new ids.
    Retried {
        /// Who asked for it, which resets the count; absent: the timer.
        by: Option<String>,
    },
    /// A person decided at the gate.
    Decided {
        /// The decision.
        decision: Decision,
        /// Who decided.
        by: String,
    },
    /// Somebody asked to stop.
    StopRequested {
        /// Who.
        by: String,
    },
    /// Something was said about the ticket. The model reads it at its next turn.
    NewsArrived {
        /// Stream sequence of the trigger that told of it.
        sequence: u64,
        /// When it was said.
        at: Timestamp,
        /// What.
        news: News,
    },
    /// The model is told something with the results of its last calls.
    Hinted {
        /// In which conversation.
        phase: Phase,
        /// What.
        hint: Hint,
    },
    /// The run is over. Nothing follows.
    RunFinished {
        /// Why.
        reason: StopReason,
    },
}
