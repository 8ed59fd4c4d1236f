//! What the model is shown of a run.

use domain::{Block, JobRequest, ReplyStop, TicketKey, ToolResult, ToolSpec, WorkspaceInfo};

use super::decide::{is_empty, stopped_with};
use super::state::{CallState, RunState, Turn};
use super::tools;
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
    let (request, info) = (state.request()?, state.open_workspace()?);
    Some(Transcript {
        system: prompts::system(request, info),
        tools: tools::offered(info),
        messages: messages(state.run.ticket(), request, info, &state.turns),
    })
}

fn messages(ticket: &TicketKey, request: &JobRequest, info: &WorkspaceInfo, turns: &[Turn]) -> Vec<Message> {
    let mut messages = vec![Message::User(prompts::task(ticket, request, &info.instructions))];
    for turn in turns {
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
        if stopped_with(turn, ReplyStop::MaxTokens) {
            messages.push(Message::User(prompts::SMALLER_STEPS.to_owned()));
        } else if turn.calls.is_empty() {
            messages.push(Message::User(prompts::REMINDER.to_owned()));
        }
    }
    messages
}

fn results(turn: &Turn) -> Vec<(String, ToolResult)> {
    let result = |state: &CallState| match state {
        CallState::Finished { result, .. } => result.clone(),
        CallState::Waiting | CallState::Running { .. } => ToolResult::error("Not run."),
    };
    turn.calls
        .iter()
        .map(|call| (call.call.id.clone(), result(&call.state)))
        .collect()
}
