//! Reads of a reply that may run at the executor before their turn, because no call between them changes
//! anything.

use domain::{CallId, ToolCall};

use super::{PlannerRunState, TurnCall};

// Reads of one reply that run at the same time.
const MOST_READS: usize = 8;

/// Place of a tool call: the model call of its reply, and its number in the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallPlace {
    pub(crate) turn: CallId,
    pub(crate) number: usize,
}

/// Returns the place of the open call, if the model made it.
pub(crate) fn find_open_place(state: &PlannerRunState) -> Option<CallPlace> {
    let turn = state.conversation().dialog()?.turns.last()?;
    let number = turn.calls.iter().position(TurnCall::is_open)?;
    Some(CallPlace {
        turn: turn.id.clone(),
        number,
    })
}

/// Returns the reads that follow the open call directly, if it is a read itself.
pub(crate) fn list_following_reads(state: &PlannerRunState) -> Vec<(CallPlace, &ToolCall)> {
    let (Some(open), Some(info)) = (find_open_place(state), state.source().open_workspace()) else {
        return Vec::new();
    };
    let Some(turn) = state.conversation().dialog().and_then(|known| known.turns.last()) else {
        return Vec::new();
    };
    let is_read = |call: &TurnCall| {
        let mut tools = info.tools.iter();
        call.call.input.is_object() && tools.any(|tool| tool.name == call.call.name && tool.read_only)
    };
    let reads = turn.calls.iter().enumerate().skip(open.number);
    let reads = reads.take_while(|(_, call)| is_read(call)).take(MOST_READS);
    let following = reads.skip(1).map(|(number, call)| {
        let place = CallPlace {
            turn: open.turn.clone(),
            number,
        };
        (place, &call.call)
    });
    following.collect()
}
