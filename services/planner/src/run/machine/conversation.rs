//! What the model is to be shown of a conversation, as data: the prompts have the words.

use domain::{Block, CodeSeed, Hint, JobRequest, News, ReplyStop, Return, TicketKey, WorkspaceInfo};

use super::{CallResult, CallState, DialogSpec, RunState, Turn};

/// One model call.
pub(crate) struct Conversation<'a> {
    pub(crate) dialog: &'static DialogSpec,
    pub(crate) ticket: &'a TicketKey,
    pub(crate) request: &'a JobRequest,
    /// The workspace, for a conversation that has the executor's tools.
    pub(crate) workspace: Option<&'a WorkspaceInfo>,
    /// Code that the ticket may be about, and what else there is to say of it.
    pub(crate) code: Option<(&'a [CodeSeed], &'a str)>,
    /// A code that nobody outside the run knows.
    pub(crate) nonce: &'a str,
    /// What followed the task.
    pub(crate) items: Vec<Item<'a>>,
}

/// Something that follows the task.
#[derive(Debug, PartialEq)]
pub(crate) enum Item<'a> {
    /// A reply, verbatim.
    Reply(&'a [Block]),
    /// The results of the reply's tool calls, in its order; a call without one was not run.
    Results {
        calls: Vec<(&'a str, Option<&'a CallResult>)>,
        /// Why what they changed could not be kept.
        unkept: Option<&'a str>,
    },
    /// A word of the planner.
    Nudge(Nudge),
    /// The work is not accepted, and why.
    Returned(&'a Return),
    /// What the planner tells beside the results.
    Hint(&'a Hint),
    /// What was said about the ticket meanwhile.
    News(Vec<&'a News>),
}

/// Why the planner has a word to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nudge {
    /// The reply was cut at its token limit.
    SmallerSteps,
    /// The reply ended the conversation before its purpose was reached.
    Unfinished,
}

/// What the model is shown next; `None` when the conversation needs a workspace and has none.
pub(crate) fn conversation<'a>(state: &'a RunState, dialog: &'static DialogSpec) -> Option<Conversation<'a>> {
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
        nonce: &state.nonce,
        items: items(state),
    })
}

/// Every turn; one that ended without a tool call is followed by the news that came meanwhile, else by a nudge.
fn items(state: &RunState) -> Vec<Item<'_>> {
    let turns = state.dialog().map_or(&[][..], |dialog| &dialog.turns);
    let mut items = Vec::new();
    let mut heard = 0;
    for turn in turns {
        items.extend(news(state, heard, turn.after));
        heard = turn.after + 1;
        // A call under way is repeated as it was.
        let Some(reply) = &turn.reply else { return items };
        items.push(Item::Reply(&reply.blocks));
        if !turn.calls.is_empty() {
            items.push(results(turn));
        }
        let has_news = state.news.iter().any(|said| said.after_turns == heard);
        if turn.stopped_with(ReplyStop::MaxTokens) {
            items.push(Item::Nudge(Nudge::SmallerSteps));
        } else if turn.calls.is_empty() && !has_news {
            items.push(Item::Nudge(Nudge::Unfinished));
        }
        let here = state.returns.iter().filter(|known| known.after_turns == heard);
        items.extend(here.map(|known| Item::Returned(&known.why)));
        items.extend(turn.hints.iter().map(Item::Hint));
    }
    items.extend(news(state, heard, usize::MAX));
    items
}

/// What was said while the run had begun so many turns.
fn news(state: &RunState, from: usize, to: usize) -> Option<Item<'_>> {
    let is_new = |after: usize| (from..=to).contains(&after);
    let said: Vec<&News> = state
        .news
        .iter()
        .filter(|heard| is_new(heard.after_turns))
        .map(|heard| &heard.news)
        .collect();
    (!said.is_empty()).then_some(Item::News(said))
}

fn results(turn: &Turn) -> Item<'_> {
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
    }
}
