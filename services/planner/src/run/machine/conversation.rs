//! Content of the next model call as data; `prompts` has the wording.

use domain::{
    Block, CodeSeed, Hint, Intake, JobRequest, News, Plan, Proof, Reply, ReplyStop, Return, TicketKey,
    WorkspaceInfo,
};

use super::card::{Card, card};
use super::shorter::Pending;
use super::{Argument, CallResult, CallState, Dialog, DialogSpec, Heard, RunState, Turn};

/// Content of one model call.
pub(crate) struct Conversation<'a> {
    pub(crate) dialog: &'static DialogSpec,
    pub(crate) ticket: &'a TicketKey,
    pub(crate) request: &'a JobRequest,
    /// Workspace of a conversation with the executor's tools.
    pub(crate) workspace: Option<&'a WorkspaceInfo>,
    /// Code that may match the ticket, and the note of the search.
    pub(crate) code: Option<(&'a [CodeSeed], &'a str)>,
    /// Triage of the ticket.
    pub(crate) intake: Option<&'a Intake>,
    pub(crate) plan: Option<&'a Plan>,
    /// Change and results of its checks, for its review.
    pub(crate) change: Option<(&'a str, &'a Proof)>,
    /// Acceptance criteria of the change.
    pub(crate) criteria: Vec<String>,
    /// Secret code of the run.
    pub(crate) nonce: &'a str,
    /// Items after the task.
    pub(crate) items: Vec<Item<'a>>,
}

/// Item after the task.
#[derive(Debug, PartialEq)]
pub(crate) enum Item<'a> {
    /// Reply of the model, verbatim.
    Reply(&'a [Block]),
    /// Results of the reply's tool calls, in order; a call without a result did not run.
    Results {
        calls: Vec<(&'a str, Option<&'a CallResult>)>,
        /// Reason that the calls' changes could not be stored.
        unkept: Option<&'a str>,
        /// True for old results, which are shortened to one line.
        is_cleared: bool,
    },
    /// Reminder from the planner.
    Nudge(Nudge),
    /// Return of the work with its reason.
    Returned(&'a Return),
    /// Hint that follows the results.
    Hint(&'a Hint),
    /// Comments that arrived meanwhile.
    News {
        said: Vec<&'a News>,
        /// True if they include the last comment without rights that the run accepts.
        is_full_of_strangers: bool,
    },
    /// Digest of earlier turns.
    Summary(Box<Card<'a>>),
    /// Repetition of the repository's instructions after a summary.
    Instructions,
    /// Request to summarize the turns so far.
    SumUp,
}

/// Reason for a reminder from the planner.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Nudge {
    /// The reply reached its token limit.
    SmallerSteps,
    /// The reply ended the conversation before its purpose was reached.
    Unfinished,
    /// The same, and the text of the reply contains a tool call.
    CallAsText,
    /// The reply does not have the requested form.
    Unusable(Argument),
}

/// Returns the content of the next model call; `None` if the conversation needs a workspace and has none.
pub(crate) fn conversation<'a>(state: &'a RunState, dialog: &'static DialogSpec) -> Option<Conversation<'a>> {
    let items = state
        .known(dialog)
        .map(|known| items(state, dialog, known, known.turns.len()));
    with_items(state, dialog, items.unwrap_or_default())
}

/// Returns the content of the call that summarizes a conversation's first turns. It shows them as the
/// conversation does, so that the provider's cache applies.
pub(crate) fn to_sum_up<'a>(
    state: &'a RunState,
    dialog: &'static DialogSpec,
    pending: &Pending,
) -> Option<Conversation<'a>> {
    let mut items = items(state, dialog, state.known(dialog)?, pending.turns);
    items.push(Item::SumUp);
    with_items(state, dialog, items)
}

fn with_items<'a>(
    state: &'a RunState,
    dialog: &'static DialogSpec,
    items: Vec<Item<'a>>,
) -> Option<Conversation<'a>> {
    let request = state.request()?;
    let workspace = match dialog.has_workspace {
        true => Some(state.open_workspace()?),
        false => None,
    };
    Some(Conversation {
        dialog,
        ticket: state.run.ticket(),
        request,
        workspace,
        code: state
            .code
            .as_ref()
            .map(|(seeds, note)| (seeds.as_slice(), note.as_str())),
        intake: state.intake().flatten(),
        plan: state.plan().flatten(),
        change: state.diff().zip(state.proof()),
        criteria: state.criteria(),
        nonce: &state.nonce,
        items,
    })
}

/// Returns the items of the first `most` turns, or the digest in their place. A turn without a tool call is
/// followed by new comments, else by a reminder.
fn items<'a>(state: &'a RunState, dialog: &DialogSpec, known: &'a Dialog, most: usize) -> Vec<Item<'a>> {
    let (turns, room) = (&known.turns, &known.room);
    let mut items = Vec::new();
    match &room.summary {
        Some(made) => items.push(Item::Summary(Box::new(card(state, dialog, turns, made)))),
        None => items.extend(news(state, 0, turns.first())),
    }
    let shown = turns.iter().enumerate().take(most).skip(room.first_shown());
    for (place, turn) in shown {
        // A pending call repeats the same content, so its id keeps one meaning.
        let Some(reply) = &turn.reply else { return items };
        items.push(Item::Reply(&reply.blocks));
        if !turn.calls.is_empty() {
            items.push(results(turn, place < room.cleared));
        }
        let (from, next) = (turn.after + 1, turns.get(place + 1));
        let said = news(state, from, next);
        if let Some(problem) = problem(state, dialog, reply) {
            items.push(Item::Nudge(Nudge::Unusable(problem)));
        } else if turn.stopped_with(ReplyStop::MaxTokens) {
            items.push(Item::Nudge(Nudge::SmallerSteps));
        // A comment that instructs already continues the conversation, so it needs no reminder.
        } else if turn.calls.is_empty() && !said.as_ref().is_some_and(is_instruction) {
            items.push(Item::Nudge(unfinished(state, dialog, reply)));
        }
        if room
            .summary
            .as_ref()
            .is_some_and(|made| made.made_after == place + 1)
        {
            items.push(Item::Instructions);
        }
        items.extend(returns(state, dialog, from, next));
        items.extend(turn.hints.iter().map(Item::Hint));
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
fn unfinished(state: &RunState, dialog: &DialogSpec, reply: &Reply) -> Nudge {
    let text = reply.text();
    let has_mark = CALL_MARKS.iter().any(|mark| text.contains(mark));
    // Matches {"name": "read_file", "arguments": {…}}.
    let is_json_call = text.contains('{')
        && ["\"arguments\"", "\"parameters\"", "\"input\""]
            .iter()
            .any(|key| text.contains(key))
        && names(state, dialog).any(|name| text.contains(&format!("\"{name}\"")));
    match has_mark || is_json_call {
        true => Nudge::CallAsText,
        false => Nudge::Unfinished,
    }
}

/// Returns the names of a conversation's tools.
fn names<'a>(state: &'a RunState, dialog: &'a DialogSpec) -> impl Iterator<Item = &'a str> {
    dialog
        .theirs(state)
        .chain(dialog.tools.iter().map(|tool| tool.name))
}

/// Returns the problem with a reply that must have a form.
fn problem(state: &RunState, dialog: &DialogSpec, reply: &Reply) -> Option<Argument> {
    let output = dialog.output.as_ref()?;
    (output.problem)(state, reply)
}

/// Returns true if an item after this many turns of the run belongs before the next turn of the
/// conversation.
fn is_between(after: usize, from: usize, next: Option<&Turn>) -> bool {
    after >= from && next.is_none_or(|next| after <= next.after)
}

fn returns<'a>(
    state: &'a RunState,
    dialog: &DialogSpec,
    from: usize,
    next: Option<&Turn>,
) -> impl Iterator<Item = Item<'a>> {
    let (phase, all) = (dialog.phase, state.returns.iter());
    let here =
        all.filter(move |known| known.why.phase() == phase && is_between(known.after_turns, from, next));
    here.map(|known| Item::Returned(&known.why))
}

fn news<'a>(state: &'a RunState, from: usize, next: Option<&Turn>) -> Option<Item<'a>> {
    let here = |heard: &&Heard| is_between(heard.after_turns, from, next);
    let said: Vec<&News> = state.shown_news().filter(here).map(|heard| &heard.news).collect();
    // The note about omitted comments follows the last shown one, once.
    let last_stranger = state.shown_news().filter(|heard| !heard.may_instruct()).last();
    let is_full_of_strangers = state.is_full_of_strangers() && last_stranger.as_ref().is_some_and(here);
    (!said.is_empty()).then_some(Item::News {
        said,
        is_full_of_strangers,
    })
}

/// Returns true for comments of an author who may instruct.
fn is_instruction(item: &Item<'_>) -> bool {
    match item {
        Item::News { said, .. } => said
            .iter()
            .any(|News::Comment { comment, .. }| comment.may_instruct),
        Item::Reply(_)
        | Item::Results { .. }
        | Item::Nudge(_)
        | Item::Returned(_)
        | Item::Hint(_)
        | Item::Summary(_)
        | Item::Instructions
        | Item::SumUp => false,
    }
}

fn results(turn: &Turn, is_cleared: bool) -> Item<'_> {
    let calls = turn.calls.iter().map(|call| {
        let result = match &call.state {
            CallState::Finished { result, .. } => Some(result),
            CallState::Waiting | CallState::Running { .. } => None,
        };
        (call.call.id.as_str(), result)
    });
    Item::Results {
        calls: calls.collect(),
        unkept: turn.unkept.as_deref(),
        is_cleared,
    }
}
