//! Content of the next model call as data; `prompts` has the wording.
//!
//! A summary replaces the first turns with their digest. The digest is derived from those turns alone, so it
//! stays the same while the run continues.

use domain::check::CompletedCheck;
use domain::{
    AttachmentContent, ChangePlan, ChangeProof, CodeSeed, ExecutorWorkspace, Job, JobRequest, McpServerTools,
    MetadataPattern, ModelHint, ModelReply, ReplyBlock, ReplyStop, ReturnReason, TicketAttachment,
    TicketIntake, TicketKey, TicketNews, ToolResult,
};

use super::state::{PendingSummary, TurnSummary};
use super::{
    ArgumentProblem, CallResult, DialogSpec, DialogTurn, PhaseDialog, PlannerRunState, ReceivedNews, TurnCall,
};

// Newest commands that the digest lists.
const COMMANDS: usize = 10;
// Files that the digest lists.
const FILES: usize = 50;

/// Content of one model call.
pub(crate) struct ConversationView<'a> {
    pub(crate) dialog: &'static DialogSpec,
    pub(crate) ticket: &'a TicketKey,
    pub(crate) request: &'a JobRequest,
    /// Workspace of a conversation with the executor's tools.
    pub(crate) workspace: Option<&'a ExecutorWorkspace>,
    /// MCP servers of the conversation.
    pub(crate) mcp_servers: &'a [McpServerTools],
    /// Code that may match the ticket, and the note of the search.
    pub(crate) code: Option<(&'a [CodeSeed], &'a str)>,
    /// Triage of the ticket.
    pub(crate) intake: Option<&'a TicketIntake>,
    pub(crate) plan: Option<&'a ChangePlan>,
    /// Results of checks on the base from before the work on a ticket.
    pub(crate) base_results: &'a [CompletedCheck],
    /// Change and results of its checks, for its review.
    pub(crate) change: Option<(&'a str, &'a ChangeProof)>,
    /// Patterns that the server requires of commits and branch names.
    pub(crate) patterns: &'a [MetadataPattern],
    /// Acceptance criteria of the change.
    pub(crate) criteria: Vec<String>,
    /// True if the model can read texts with a tool that are attached to the ticket.
    pub(crate) has_text_attachment: bool,
    /// Secret code of the run.
    pub(crate) nonce: &'a str,
    /// Items after the task.
    pub(crate) items: Vec<ConversationItem<'a>>,
}

/// Item after the task.
#[derive(Debug, PartialEq)]
pub(crate) enum ConversationItem<'a> {
    /// Reply of the model, verbatim.
    Reply(&'a [ReplyBlock]),
    /// Results of the reply's tool calls, in order; a call without a result did not run.
    Results {
        calls: Vec<(&'a str, Option<&'a CallResult>)>,
        /// Reason that the calls' changes could not be stored.
        unkept: Option<&'a str>,
        /// True for old results, which are shortened to one line.
        is_cleared: bool,
    },
    /// Reminder from the planner.
    Nudge(ReplyNudge),
    /// Return of the work with its reason.
    Returned(&'a ReturnReason),
    /// Hint that follows the results.
    Hint(&'a ModelHint),
    /// Comments that arrived meanwhile.
    News {
        said: Vec<&'a TicketNews>,
        /// True if they include the last comment without rights that the run accepts.
        is_full_of_strangers: bool,
    },
    /// Digest of earlier turns.
    Summary(Box<TurnDigest<'a>>),
    /// Repetition of the repository's instructions after a summary.
    Instructions,
    /// Request to summarize the turns so far.
    SumUp,
}

/// Reason for a reminder from the planner.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReplyNudge {
    /// The reply reached its token limit.
    SmallerSteps,
    /// The reply ended the conversation before its purpose was reached.
    Unfinished,
    /// The same, and the text of the reply contains a tool call.
    CallAsText,
    /// The reply does not have the requested form.
    Unusable(ArgumentProblem),
}

/// Returns the content of the next model call; `None` if the conversation needs a workspace and has none.
pub(crate) fn view_conversation<'a>(
    state: &'a PlannerRunState,
    dialog: &'static DialogSpec,
) -> Option<ConversationView<'a>> {
    let items = dialog
        .conversation(state)
        .map(|known| conversation_items(state, dialog, known, known.turns.len()));
    view_with_items(state, dialog, items.unwrap_or_default())
}

/// Returns the content of the call that summarizes a conversation's first turns. It shows them as the
/// conversation does, so that the provider's cache applies.
pub(crate) fn view_for_summary<'a>(
    state: &'a PlannerRunState,
    dialog: &'static DialogSpec,
    pending: &PendingSummary,
) -> Option<ConversationView<'a>> {
    let mut items = conversation_items(state, dialog, dialog.conversation(state)?, pending.turns);
    items.push(ConversationItem::SumUp);
    view_with_items(state, dialog, items)
}

fn view_with_items<'a>(
    state: &'a PlannerRunState,
    dialog: &'static DialogSpec,
    items: Vec<ConversationItem<'a>>,
) -> Option<ConversationView<'a>> {
    let request = state.request()?;
    let workspace = if dialog.has_workspace {
        Some(state.source().open_workspace()?)
    } else {
        None
    };
    Some(ConversationView {
        dialog,
        ticket: state.run.ticket(),
        request,
        workspace,
        mcp_servers: dialog.mcp_servers(state),
        code: state.source().code(),
        intake: state.outputs().intake().present(),
        plan: state.outputs().plan().present(),
        // For every other job, the base is the head of a pull request.
        base_results: if request.job == Job::Implement {
            state.verification().early_base_results()
        } else {
            &[]
        },
        change: state.own_calls().diff().zip(state.outputs().proof()),
        patterns: state.delivery().required_patterns(),
        criteria: state.outputs().criteria(state.request()),
        has_text_attachment: has_text_attachment(state),
        nonce: state.conversation().nonce(),
        items,
    })
}

/// Iterates over the attachments of the ticket, then over those of the comments since.
pub(crate) fn list_attachments(
    state: &PlannerRunState,
) -> impl DoubleEndedIterator<Item = &TicketAttachment> {
    let of_ticket = state.request().map(|request| request.text.attachments.as_slice());
    let received = state.conversation().news().received().iter();
    let of_news = received.flat_map(|item| {
        let TicketNews::Comment { attachments, .. } = &item.news;
        attachments
    });
    of_ticket.unwrap_or_default().iter().chain(of_news)
}

/// Returns true if the run has a text that a tool can read.
fn has_text_attachment(state: &PlannerRunState) -> bool {
    list_attachments(state).any(|one| matches!(one.content, AttachmentContent::Text { .. }))
}

/// Returns the items of the first `most` turns, or the digest in their place. A turn without a tool call is
/// followed by new comments, else by a reminder.
fn conversation_items<'a>(
    state: &'a PlannerRunState,
    dialog: &DialogSpec,
    known: &'a PhaseDialog,
    most: usize,
) -> Vec<ConversationItem<'a>> {
    let (turns, context) = (&known.turns, &known.context);
    let mut items = Vec::new();
    match &context.summary {
        Some(made) => items.push(ConversationItem::Summary(Box::new(build_digest(
            state, dialog, turns, made,
        )))),
        None => items.extend(news_item(state, 0, turns.first())),
    }
    let shown = turns.iter().enumerate().take(most).skip(context.first_shown());
    for (place, turn) in shown {
        // A pending call repeats the same content, so its id keeps one meaning.
        let Some(reply) = &turn.reply else { return items };
        items.push(ConversationItem::Reply(&reply.blocks));
        if !turn.calls.is_empty() {
            items.push(results_item(turn, place < context.cleared));
        }
        let (from, next) = (turn.after + 1, turns.get(place + 1));
        let said = news_item(state, from, next);
        if let Some(problem) = reply_problem(state, dialog, reply) {
            items.push(ConversationItem::Nudge(ReplyNudge::Unusable(problem)));
        } else if turn.stopped_with(ReplyStop::MaxTokens) {
            items.push(ConversationItem::Nudge(ReplyNudge::SmallerSteps));
        // A comment that instructs already continues the conversation, so it needs no reminder.
        } else if turn.calls.is_empty() && !said.as_ref().is_some_and(is_instruction) {
            items.push(ConversationItem::Nudge(choose_nudge(state, dialog, reply)));
        }
        if context
            .summary
            .as_ref()
            .is_some_and(|made| made.made_after == place + 1)
        {
            items.push(ConversationItem::Instructions);
        }
        items.extend(return_items(state, dialog, from, next));
        items.extend(turn.hints.iter().map(ConversationItem::Hint));
        items.extend(said);
    }
    items
}

// Marks of calls that models write as text if their server fails to extract them.
const CALL_MARKS: [&str; 9] = [
    "<tool_call",
    "<function_call",
    "<function=",
    "<invoke",
    "to=functions.",
    "<|channel|>",
    "<|tool_call",
    "[TOOL_CALL",
    "```tool_code",
];

/// Returns the reminder after a reply without a call.
fn choose_nudge(state: &PlannerRunState, dialog: &DialogSpec, reply: &ModelReply) -> ReplyNudge {
    let text = reply.text();
    let has_mark = CALL_MARKS.iter().any(|mark| text.contains(mark));
    // Matches {"name": "read_file", "arguments": {…}}.
    let is_json_call = text.contains('{')
        && ["\"arguments\"", "\"parameters\"", "\"input\""]
            .iter()
            .any(|key| text.contains(key))
        && dialog
            .tool_names(state)
            .any(|name| text.contains(&format!("\"{name}\"")));
    if has_mark || is_json_call {
        ReplyNudge::CallAsText
    } else {
        ReplyNudge::Unfinished
    }
}

/// Returns the problem with a reply that must have a form.
fn reply_problem(
    state: &PlannerRunState,
    dialog: &DialogSpec,
    reply: &ModelReply,
) -> Option<ArgumentProblem> {
    let output = dialog.output.as_ref()?;
    (output.problem)(state, reply)
}

/// Returns true if an item after this many turns of the run belongs before the next turn of the
/// conversation.
fn is_between(after: usize, from: usize, next: Option<&DialogTurn>) -> bool {
    after >= from && next.is_none_or(|next| after <= next.after)
}

fn return_items<'a>(
    state: &'a PlannerRunState,
    dialog: &DialogSpec,
    from: usize,
    next: Option<&DialogTurn>,
) -> impl Iterator<Item = ConversationItem<'a>> {
    let (phase, all) = (dialog.phase, state.outputs().returns().iter());
    let here =
        all.filter(move |known| known.why.phase() == phase && is_between(known.after_turns, from, next));
    here.map(|known| ConversationItem::Returned(&known.why))
}

fn news_item<'a>(
    state: &'a PlannerRunState,
    from: usize,
    next: Option<&DialogTurn>,
) -> Option<ConversationItem<'a>> {
    let here = |item: &&ReceivedNews| is_between(item.after_turns, from, next);
    let news = state.conversation().news();
    let said: Vec<&TicketNews> = news.shown().filter(here).map(|item| &item.news).collect();
    // The note about omitted comments follows the last shown one, once.
    let last_stranger = news.shown().filter(|item| !item.may_instruct()).last();
    let is_full_of_strangers = news.is_full_of_strangers() && last_stranger.as_ref().is_some_and(here);
    (!said.is_empty()).then_some(ConversationItem::News {
        said,
        is_full_of_strangers,
    })
}

/// Returns true for comments of an author who may instruct.
fn is_instruction(item: &ConversationItem<'_>) -> bool {
    match item {
        ConversationItem::News { said, .. } => said
            .iter()
            .any(|TicketNews::Comment { comment, .. }| comment.may_instruct),
        ConversationItem::Reply(_)
        | ConversationItem::Results { .. }
        | ConversationItem::Nudge(_)
        | ConversationItem::Returned(_)
        | ConversationItem::Hint(_)
        | ConversationItem::Summary(_)
        | ConversationItem::Instructions
        | ConversationItem::SumUp => false,
    }
}

fn results_item(turn: &DialogTurn, is_cleared: bool) -> ConversationItem<'_> {
    let calls = turn
        .calls
        .iter()
        .map(|call| (call.call.id.as_str(), call.outcome()));
    ConversationItem::Results {
        calls: calls.collect(),
        unkept: turn.unkept.as_deref(),
        is_cleared,
    }
}

/// Digest of the first turns of a conversation.
#[derive(Debug, PartialEq)]
pub(crate) struct TurnDigest<'a> {
    /// Number of the turns.
    pub(crate) turns: usize,
    /// Summary that a model wrote.
    pub(crate) summary: &'a str,
    /// Comments that arrived meanwhile.
    pub(crate) news: Vec<&'a TicketNews>,
    /// Reasons for which the work was returned.
    pub(crate) returned: Vec<&'a ReturnReason>,
    /// Files that tools changed.
    pub(crate) files: Vec<&'a str>,
    /// Commands with their last exit codes, each once, newest last.
    pub(crate) commands: Vec<(&'a str, i32)>,
    /// Last command that failed without a later success, with its result.
    pub(crate) failure: Option<(&'a str, &'a ToolResult)>,
}

/// Builds the digest of the first turns of a conversation.
fn build_digest<'a>(
    state: &'a PlannerRunState,
    spec: &DialogSpec,
    turns: &'a [DialogTurn],
    made: &'a TurnSummary,
) -> TurnDigest<'a> {
    let old = turns.get(..made.turns).unwrap_or_default();
    // Items before the first shown turn are not shown with it, so they belong to the digest.
    let until = turns.get(made.turns).map_or(0, |turn| turn.after);
    let news = state.conversation().news().shown();
    let news = news.filter(|item| item.after_turns <= until);
    let returns = state.outputs().returns().iter();
    let returns = returns.filter(|known| known.why.phase() == spec.phase && known.after_turns <= until);
    let calls: Vec<_> = old
        .iter()
        .flat_map(|turn| &turn.calls)
        .filter_map(|call| Some((call, call.tool_result()?)))
        .collect();
    let commands = last_commands(&calls);
    let failed = commands
        .iter()
        .rev()
        .find(|(_, result)| result.exit_code != Some(0));
    TurnDigest {
        turns: made.turns,
        summary: &made.text,
        news: news.map(|item| &item.news).collect(),
        returned: returns.map(|known| &known.why).collect(),
        files: list_changed_files(&calls),
        failure: failed.copied(),
        commands: commands
            .iter()
            .filter_map(|(command, result)| Some((*command, result.exit_code?)))
            .collect(),
    }
}

fn list_changed_files<'a>(calls: &[(&'a TurnCall, &'a ToolResult)]) -> Vec<&'a str> {
    let mut files = Vec::new();
    for (call, _) in calls.iter().filter(|(_, result)| result.changed) {
        for path in call.paths() {
            if files.len() < FILES && !files.contains(&path) {
                files.push(path);
            }
        }
    }
    files
}

/// Returns each command with its last result.
fn last_commands<'a>(calls: &[(&'a TurnCall, &'a ToolResult)]) -> Vec<(&'a str, &'a ToolResult)> {
    let mut commands: Vec<(&str, &ToolResult)> = Vec::new();
    for (call, result) in calls.iter().rev() {
        let command = call.call.input.get("command").and_then(serde_json::Value::as_str);
        if let Some(command) = command
            && commands.len() < COMMANDS
            && result.exit_code.is_some()
            && commands.iter().all(|(known, _)| *known != command)
        {
            commands.push((command, result));
        }
    }
    commands.reverse();
    commands
}
