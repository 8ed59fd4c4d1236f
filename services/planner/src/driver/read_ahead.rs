//! Reads of one reply that run at the executor at the same time.
//!
//! The journal keeps its order: each read has its request and its result in turn. Only the time of the
//! execution differs, so a planner that takes over simply runs the reads again.

use std::sync::Arc;

use domain::{
    CallId, ExecutorWorkspace, Timestamp, ToolCall, ToolResult, ToolStatus, cause::format_error_chain,
};
use parking_lot::Mutex;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::{RunDriver, StepContext};
use crate::executors::RunCaller;
use crate::run::{CallPlace, PlannerRunState, find_open_place, list_following_reads};
use crate::telemetry;

/// Reads of one run that run before their turn. Dropping them cancels them.
#[derive(Default)]
pub(crate) struct ReadAhead(Mutex<Vec<EarlyRead>>);

/// Read that runs, or has run, before its turn.
struct EarlyRead {
    workspace: String,
    place: CallPlace,
    /// `None`: the read failed, so it runs again in its turn.
    result: AbortOnDropHandle<Option<ToolResult>>,
}

impl ReadAhead {
    /// Cancels the reads and forgets their results.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Returns the result of the open call, if it runs already. Reads of other replies and workspaces are
    /// void.
    pub(super) async fn take(&self, state: &PlannerRunState, info: &ExecutorWorkspace) -> Option<ToolResult> {
        let open = find_open_place(state)?;
        let early = {
            let mut early = self.0.lock();
            early.retain(|read| read.workspace == info.id && read.place.turn == open.turn);
            let at = early.iter().position(|read| read.place == open)?;
            early.swap_remove(at)
        };
        early.result.await.ok().flatten()
    }

    fn has(&self, place: &CallPlace) -> bool {
        self.0.lock().iter().any(|read| read.place == *place)
    }
}

impl RunDriver {
    /// Starts the reads that follow the open call `id` in its reply.
    pub(super) fn start_following_reads(
        &self,
        step: &StepContext,
        caller: &RunCaller,
        info: &ExecutorWorkspace,
        (id, at): (&CallId, Timestamp),
    ) {
        for (place, call) in list_following_reads(&step.state) {
            if step.ahead.has(&place) {
                continue;
            }
            let early = EarlyCall {
                id: id.read_ahead(place.number),
                call: call.clone(),
                at,
            };
            let read = self.read_early(caller.clone(), info.clone(), early, &step.state);
            step.ahead.0.lock().push(EarlyRead {
                workspace: info.id.clone(),
                place,
                result: AbortOnDropHandle::new(tokio::spawn(read)),
            });
        }
    }

    /// Runs a read under an id of its own: a planner that takes over uses the id of the journal, for which
    /// the executor has no interrupted result then.
    fn read_early(
        &self,
        caller: RunCaller,
        info: ExecutorWorkspace,
        EarlyCall { id, call, at }: EarlyCall,
        state: &PlannerRunState,
    ) -> impl Future<Output = Option<ToolResult>> + use<> {
        let executors = Arc::clone(&self.executors);
        let author = state.request().map(|request| request.rules.commits.author());
        let author = author.unwrap_or_default();
        let span = telemetry::tool_span(&caller.run.to_string(), &call.name, id.as_str());
        let read = async move {
            let start = Instant::now();
            // Reads have no output while they run.
            let (output, _) = mpsc::channel(1);
            let workspace = executors.workspace(&caller, &info);
            let called = workspace.call_tool(&id, &call, (at, &author), &output);
            match called.await {
                Ok(result) if result.status != ToolStatus::Interrupted => {
                    telemetry::count_tool_call(&call.name, start, &result);
                    Some(result)
                }
                Ok(_) => None,
                Err(error) => {
                    tracing::debug!(error = %format_error_chain(&error), "a read failed before its turn");
                    None
                }
            }
        };
        read.instrument(span)
    }
}

/// Call that runs before its turn.
struct EarlyCall {
    id: CallId,
    call: ToolCall,
    at: Timestamp,
}
