//! One tool call from its request to its stored result.

use std::{sync::Arc, time::Duration};

use domain::CommitAuthor;
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

/// Where the answers of one call go.
pub(crate) type Answers<A> = mpsc::Sender<Result<A, Status>>;

/// An answer of a call that prints something.
pub(crate) trait Printed: Sized {
    /// Some of what it prints.
    fn output(data: Vec<u8>) -> Self;
}

/// An answer of a call that has a result.
pub(crate) trait Answer<R>: Sized {
    /// What came of it.
    fn result(result: R) -> Self;
}

impl Printed for CallToolResponse {
    fn output(data: Vec<u8>) -> Self {
        let event = Some(Event::Output(OutputChunk { data }));
        Self { event }
    }
}

impl Answer<ToolResult> for CallToolResponse {
    fn result(result: ToolResult) -> Self {
        let event = Some(Event::Result(result));
        Self { event }
    }
}

/// A call that runs for the first time.
pub(crate) struct ToolRun {
    pub(crate) used: Use,
    pub(crate) sandbox: Sandbox,
    pub(crate) request: CallToolRequest,
    pub(crate) limit: Duration,
    pub(crate) recorder: Recorder<ToolResult>,
    pub(crate) answers: Answers<CallToolResponse>,
}

/// Answers a repeated call with the first one's result, once it is there.
pub(crate) async fn repeat<R: Clone, A: Answer<R>>(
    used: Use,
    mut result: watch::Receiver<Option<R>>,
    answers: Answers<A>,
) {
    let found = tokio::select! {
        found = result.wait_for(Option::is_some) => found.ok().and_then(|found| found.clone()),
        () = answers.closed() => None,
    };
    if let Some(result) = found {
        tell(&answers, result).await;
    }
    drop(used);
}

/// Lets work go on to its end. Once nobody waits for it (the caller went away, or the time is over) `cancel` fires, and
/// the work ends soon.
pub(crate) async fn attend<R, A: Printed>(
    work: impl Future<Output = R>,
    mut output: mpsc::Receiver<Vec<u8>>,
    answers: &Answers<A>,
    cancel: &CancellationToken,
    limit: Duration,
) -> R {
    tokio::pin!(work);
    let deadline = tokio::time::sleep(limit);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            result = &mut work => return result,
            Some(data) = output.recv() => {
                // A reader who is too slow misses chunks; the result has what counts.
                let _ = answers.try_send(Ok(A::output(data)));
            }
            () = answers.closed(), if !cancel.is_cancelled() => cancel.cancel(),
            () = &mut deadline, if !cancel.is_cancelled() => cancel.cancel(),
        }
    }
}

/// Runs a call to its end, or until nobody waits for it: the caller went away, its deadline passed, a newer fence came
/// or the executor stops. Whatever happens, a result is stored.
pub(crate) async fn run(run: ToolRun) {
    let started = Instant::now();
    let cancel = run.used.cancel.child_token();
    let (sink, output) = mpsc::channel(64);
    let work = execute(&run, cancel.clone(), sink);
    let mut result = attend(work, output, &run.answers, &cancel, run.limit).await;
    result.duration_ms = milliseconds(started);
    tracing::info!(
        run = %run.used.open.workspace.run,
        call = run.request.call_id,
        status = result.status().as_str_name(),
        duration_ms = result.duration_ms,
        "tool call ended"
    );
    run.recorder.finish(result.clone());
    tell(&run.answers, result).await;
    if tools::is_command(&run.request.name) {
        // Where one command ran another will, soon.
        let workspace = &run.used.open.workspace;
        let place = tools::command_place(workspace);
        run.sandbox.prepare(place, &workspace.spare).await;
    }
}

/// Since then.
pub(crate) fn milliseconds(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A caller who went away repeats the call and finds the stored result.
pub(crate) async fn tell<R, A: Answer<R>>(answers: &Answers<A>, result: R) {
    let _ = answers.send(Ok(A::result(result))).await;
}

/// The author that the planner names. A planner of an earlier release names none, and its reporter expects one of that release.
fn author_of(named: &str) -> CommitAuthor {
    named
        .parse()
        .unwrap_or_else(|_| CommitAuthor::of_earlier_releases())
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
        index: open.index.clone(),
        commit_time_s: run.request.commit_time_s,
        commit_author: author_of(&run.request.commit_author),
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
        tree: run.used.open.workspace.last_tree().unwrap_or_default(),
    }
}
