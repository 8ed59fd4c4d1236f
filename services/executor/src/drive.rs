//! One tool call from its request to its stored result.

use std::{sync::Arc, time::Duration};

use proto::executor::{
    CallToolRequest, CallToolResponse, OutputChunk, ToolResult, ToolStatus, call_tool_response::Event,
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::{
    answer::{blocking, level},
    calls::Recorder,
    registry::Use,
    sandbox::Sandbox,
    tools::{self, Call, Ending, Outcome},
};

type Answers = mpsc::Sender<Result<CallToolResponse, Status>>;

/// A call that runs for the first time.
pub(crate) struct ToolRun {
    pub(crate) used: Use,
    pub(crate) sandbox: Sandbox,
    pub(crate) request: CallToolRequest,
    pub(crate) limit: Duration,
    pub(crate) recorder: Recorder,
    pub(crate) answers: Answers,
}

/// Answers a repeated call with the first one's result, once it is there.
pub(crate) async fn repeat(used: Use, mut result: watch::Receiver<Option<ToolResult>>, answers: Answers) {
    let found = tokio::select! {
        found = result.wait_for(Option::is_some) => found.ok().and_then(|found| found.clone()),
        () = answers.closed() => None,
    };
    if let Some(result) = found {
        answer(&answers, result).await;
    }
    drop(used);
}

/// Runs a call to its end, or until nobody waits for it: the caller went away, its deadline passed, a newer fence came
/// or the executor stops. Whatever happens, a result is stored.
pub(crate) async fn run(run: ToolRun) {
    let started = Instant::now();
    let cancel = run.used.cancel.child_token();
    let (sink, mut output) = mpsc::channel(64);
    let work = execute(&run, cancel.clone(), sink);
    tokio::pin!(work);
    let deadline = tokio::time::sleep_until(started + run.limit);
    tokio::pin!(deadline);
    let mut result = loop {
        tokio::select! {
            result = &mut work => break result,
            Some(data) = output.recv() => {
                let event = Event::Output(OutputChunk { data });
                // A reader who is too slow misses chunks; the result has what counts.
                let _ = run.answers.try_send(Ok(CallToolResponse { event: Some(event) }));
            }
            () = run.answers.closed(), if !cancel.is_cancelled() => cancel.cancel(),
            () = &mut deadline, if !cancel.is_cancelled() => cancel.cancel(),
        }
    };
    result.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        run = %run.used.open.workspace.run,
        call = run.request.call_id,
        status = result.status().as_str_name(),
        duration_ms = result.duration_ms,
        "tool call ended"
    );
    run.recorder.finish(result.clone());
    answer(&run.answers, result).await;
    if tools::is_command(&run.request.name) {
        // Where one command ran another will, soon.
        let workspace = &run.used.open.workspace;
        let place = tools::command_place(workspace);
        run.sandbox.prepare(place, &workspace.spare).await;
    }
}

async fn answer(answers: &Answers, result: ToolResult) {
    // A caller who went away repeats the call and finds the stored result.
    let _ = answers
        .send(Ok(CallToolResponse {
            event: Some(Event::Result(result)),
        }))
        .await;
}

async fn execute(run: &ToolRun, cancel: CancellationToken, sink: mpsc::Sender<Vec<u8>>) -> ToolResult {
    let open = &run.used.open;
    let tool = match tools::find(&run.request.name) {
        Ok(tool) => tool,
        Err(text) => return result(run, Outcome::failed(text), false),
    };
    let Some(_turn) = cancel.run_until_cancelled(open.turn.lock()).await else {
        return result(run, Outcome::cut("The call was cut before it started."), false);
    };
    let call = Call {
        workspace: Arc::clone(&open.workspace),
        sandbox: run.sandbox.clone(),
        commit_time_s: run.request.commit_time_s,
        cancel,
    };
    let mut outcome = Box::pin(tools::run(tool, call, &run.request.input_json, &sink)).await;
    if tool.read_only {
        return result(run, outcome, false);
    }
    let (changed, note) = look(run).await;
    outcome.add(&note);
    result(run, outcome, changed)
}

/// Whether something has changed, and what the model should know of it.
async fn look(run: &ToolRun) -> (bool, String) {
    let workspace = Arc::clone(&run.used.open.workspace);
    let looked = blocking(move || Ok((workspace.has_changed()?, workspace.news()))).await;
    looked.unwrap_or_else(|status| {
        // A snapshot is due: it will tell.
        let note = format!("[the files could not be looked at: {}]", status.message());
        (true, note)
    })
}

fn result(run: &ToolRun, outcome: Outcome, changed: bool) -> ToolResult {
    let status = match outcome.ending {
        Ending::Done => ToolStatus::Ok,
        Ending::Failed => ToolStatus::Error,
        Ending::Cut => ToolStatus::Interrupted,
    };
    let (branch, head) = run.used.open.workspace.branch();
    ToolResult {
        status: status.into(),
        content: outcome.text,
        changed,
        sandbox_level: level(run.sandbox.level()).into(),
        duration_ms: 0,
        branch: branch.unwrap_or_default(),
        head_commit: head.map(String::from).unwrap_or_default(),
        exit_code: outcome.exit_code,
        truncated: outcome.truncated,
    }
}
