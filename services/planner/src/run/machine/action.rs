//! Actions of a run, and the planner's answers to tool calls.

use domain::check::CheckSpec;
use domain::{
    CallId, Fact, McpTool, MetadataPattern, ObjectRef, OutOfScopeFile, OutboundAction, OutboundId,
    StopReason, Timestamp, ToolCall, WorkspaceSnapshot,
};

/// Next action of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RunAction {
    /// Writes a fact; nothing outside changes.
    Record(Fact),
    /// Opens the workspace at an executor.
    OpenWorkspace { id: CallId },
    /// Reads the limits of the run and records them.
    SetLimits,
    /// Requests a reply from the model.
    AskModel { id: CallId },
    /// Requests a summary of a conversation's first turns from a model.
    SumUp { id: CallId },
    /// Runs a tool at the executor.
    CallTool {
        id: CallId,
        call: ToolCall,
        at: Timestamp,
    },
    /// Reads a part of an attachment for a tool call.
    ReadAttachment { id: CallId, read: AttachmentRead },
    /// Lists the tools of the MCP servers that the rules allow.
    ListMcpTools,
    /// Runs a tool of an MCP server.
    CallMcpTool {
        id: CallId,
        server: String,
        tool: McpTool,
        call: ToolCall,
    },
    /// Searches for code that matches the ticket.
    FindCode,
    /// Reads the effort of similar work.
    Forecast,
    /// Searches for commands that may serve as checks. `inspects_change`: inspects the change at the same time, which
    /// is finished.
    FindChecks { inspects_change: bool },
    /// Runs checks at the same time, each in a separate tree.
    RunChecks { checks: Vec<(CallId, CheckSpec)> },
    /// Inspects the change at the executor.
    InspectChange,
    /// Stores the workspace's changes.
    TakeSnapshot,
    /// Restores an earlier state of the change in the workspace.
    GoBack { snapshot: WorkspaceSnapshot },
    /// Sends a recorded report to the reporter.
    SendReport {
        id: OutboundId,
        request: OutboundAction,
        at: Timestamp,
    },
    /// Answers a tool call in the planner.
    Answer { id: CallId, answer: CallAnswer },
    /// Schedules a retry or gives up, and records that.
    ScheduleRetry { reason: StopReason },
    /// Waits for a report, a decision or a retry, without holding a resource.
    Wait,
    /// Does nothing: the run is finished.
    Rest,
}

impl RunAction {
    /// Returns true if the action waits for nothing outside.
    pub(crate) const fn is_immediate(&self) -> bool {
        match self {
            Self::Record(_) | Self::Answer { .. } | Self::ScheduleRetry { .. } | Self::Wait | Self::Rest => {
                true
            }
            Self::OpenWorkspace { .. }
            | Self::SetLimits
            | Self::AskModel { .. }
            | Self::SumUp { .. }
            | Self::CallTool { .. }
            | Self::ReadAttachment { .. }
            | Self::ListMcpTools
            | Self::CallMcpTool { .. }
            | Self::FindCode
            | Self::Forecast
            | Self::FindChecks { .. }
            | Self::RunChecks { .. }
            | Self::InspectChange
            | Self::TakeSnapshot
            | Self::GoBack { .. }
            | Self::SendReport { .. } => false,
        }
    }
}

/// Request for a part of a text attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttachmentRead {
    pub(crate) name: String,
    pub(crate) object: ObjectRef,
    pub(crate) part: AttachmentPart,
}

/// Part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttachmentPart {
    /// Lines from `first` on, counted from 1.
    Lines { first: u64, count: u64 },
    /// Lines from `first` on that contain these words, regardless of case.
    Matches { words: String, first: u64 },
}

/// Planner's answer to a tool call; `prompts` has the wording.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallAnswer {
    /// The reply reached its token limit, so its calls may be truncated.
    TruncatedReply,
    /// The arguments are not a JSON object.
    NoObject,
    /// The tool does not exist; names the existing ones.
    UnknownTool { tools: Vec<String> },
    /// The workspace was lost twice while the call ran.
    LostTwice,
    /// An argument is invalid.
    Argument(ArgumentProblem),
    /// A name violates the rules; names the right form.
    Misnamed { right: String },
    /// The server requires a pattern that a name or message does not meet.
    Unmet(MetadataPattern),
    /// The work belongs on this branch of its pull request.
    OtherBranch { branch: String },
    /// The end of the work is accepted.
    Noted,
    /// The rest of the budget allows only these tools.
    ExitsOnly { tools: Vec<String> },
    /// The run has already asked its questions.
    AskedAlready,
    /// The file is in a module that this kind of ticket must not change.
    OutOfScope(OutOfScopeFile),
    /// The conversation must not change files.
    ReadOnly,
    /// The conversation allows only tools of MCP servers that declare to change nothing.
    ReadOnlyServers,
    /// Another planner took the run over while an MCP server ran the call, which may have had its effect.
    UnknownOutcome { server: String },
}

/// Invalid argument of a planner tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ArgumentProblem {
    /// The arguments violate the tool's schema; with the problem.
    Malformed(String),
    Title,
    /// The rules require a scope in each commit message, and the call has none.
    Scope,
    Summary,
    Evidence,
    Questions,
    /// The module does not exist; names the existing ones.
    UnknownModule {
        known: Vec<String>,
    },
    Reason,
    /// No attachment has this name; names the texts.
    UnknownAttachment {
        known: Vec<String>,
    },
    /// The attachment is not a text.
    NoTextAttachment,
    /// Criteria of the ticket without a row.
    Criteria(Vec<String>),
    /// Criteria of a pull request's ticket without a verdict.
    Verdicts(Vec<String>),
    /// The commented lines are not a range, or too many.
    Range,
    /// Comments of the review without exactly one reply.
    Replies(Vec<u64>),
    /// The ticket does not contain this quotation.
    Quote(String),
    /// The reason for a decline is missing or invalid.
    Decline,
    /// The repeated ticket is none of these.
    Citation(Vec<String>),
    OneLiner,
    /// A found question lacks its text or answer.
    Found,
    /// No tool result contains this quotation.
    Unseen(String),
    /// The command does not run the changed code.
    Demonstration,
    Plan,
    /// The plan of a discussion has no issues, too many, or empty ones.
    Issues {
        /// Maximum that the rules allow.
        most: usize,
    },
    /// The change does not add the commented line: file and line.
    NotAdded(String, u32),
    /// The suggestion does not replace its lines.
    Suggestion,
    /// The objection lacks a file of the change, a trigger or a reason.
    Objection,
    NoLabels,
    /// No shown ticket has this key; names the shown ones.
    UnknownTicket(Vec<String>),
    /// The rules do not allow this choice.
    UnknownChoice {
        field: String,
        value: String,
        allowed: Vec<String>,
    },
    /// The ticket is split into too few, too many or empty parts, or it repeats another one.
    Parts {
        /// Maximum that the rules allow.
        most: usize,
    },
}
