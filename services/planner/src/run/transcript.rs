//! What the model is shown of a run.

use domain::{Block, News, ReplyStop, ToolResult, ToolSpec};

use super::implement::stopped_with;
use super::state::{CallState, Goal, RunState, Turn};
use super::{tools, triage};
use crate::prompts;

/// Everything of one model call that does not depend on the provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transcript {
    pub(crate) system: String,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) messages: Vec<Message>,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    User(String),
    /// A reply, verbatim.
    Assistant(Vec<Block>),
    /// The results of the reply's tool calls, in its order: the model's call id and the result.
    ToolResults(Vec<(String, ToolResult)>),
}

/// What the model is shown next; `None` while there is no workspace to work in.
pub(crate) fn transcript(state: &RunState) -> Option<Transcript> {
    if let Goal::Triage(request) = &state.goal {
        return Some(triage::transcript(state, request));
    }
    let (request, info) = (state.request()?, state.open_workspace()?);
    let task = Message::User(prompts::task(
        state.run.ticket(),
        request,
        &info.instructions,
        &state.nonce,
    ));
    Some(Transcript {
        system: prompts::system(request, info),
        tools: tools::offered(info),
        messages: turns(task, state, prompts::REMINDER),
    })
}

/// The task and every turn after it; a turn that ended without a tool call is followed by the news that came
/// meanwhile, else by the reminder.
pub(super) fn turns(task: Message, state: &RunState, reminder: &str) -> Vec<Message> {
    let mut messages = vec![task];
    messages.extend(news(state, 0));
    for (place, turn) in state.turns.iter().enumerate() {
        let Some(reply) = &turn.reply else { continue };
        let blocks = if is_empty(&reply.blocks) {
            vec![Block::Text {
                text: "(no words)".to_owned(),
            }]
        } else {
            reply.blocks.clone()
        };
        messages.push(Message::Assistant(blocks));
        if !turn.calls.is_empty() {
            messages.push(Message::ToolResults(results(turn)));
        }
        let news = news(state, place + 1);
        if stopped_with(turn, ReplyStop::MaxTokens) {
            messages.push(Message::User(prompts::SMALLER_STEPS.to_owned()));
        } else if turn.calls.is_empty() && news.is_none() {
            messages.push(Message::User(reminder.to_owned()));
        }
        messages.extend(news);
    }
    messages
}

/// What was said while a turn was under way.
fn news(state: &RunState, after_turns: usize) -> Option<Message> {
    let said: Vec<&News> = state
        .news
        .iter()
        .filter(|heard| heard.after_turns == after_turns)
        .map(|heard| &heard.news)
        .collect();
    (!said.is_empty()).then(|| Message::User(prompts::news(&said, &state.nonce)))
}

fn results(turn: &Turn) -> Vec<(String, ToolResult)> {
    let result = |state: &CallState| match state {
        CallState::Finished { result, .. } => result.clone(),
        CallState::Waiting | CallState::Running { .. } => ToolResult::error("Not run."),
    };
    let mut results: Vec<(String, ToolResult)> = turn
        .calls
        .iter()
        .map(|call| (call.call.id.clone(), result(&call.state)))
        .collect();
    if let (Some(notice), Some((_, last))) = (&turn.notice, results.last_mut()) {
        last.content = format!("{}\n\n{notice}", last.content);
    }
    results
}

/// True when a reply holds nothing that a model could be shown again.
fn is_empty(blocks: &[Block]) -> bool {
    blocks
        .iter()
        .all(|block| matches!(block, Block::Text { text } if text.trim().is_empty()))
}
