//! Runs checks: a command in a scratch tree, the results of its tests, and the outcome that follows from
//! both. Only the planner starts checks; the model has no tool for it.

mod candidates;
mod folder_checks;
mod installation;
mod outcome;
mod preparation;
mod report;
mod reports;
mod setup_proposal;

use std::{path::PathBuf, sync::Arc, time::Duration};

use domain::{
    cause::format_error_chain,
    check::{CheckCandidate, MAX_TAIL, TestReport, TreeKind},
    text::{quote_shell_word, take_tail_bytes},
};
use proto::executor::{
    CheckOutcome, CheckResult, OutputChunk, RunCheckRequest, RunCheckResponse, run_check_response::Event,
};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;
use tonic::Status;

pub use folder_checks::{FolderCheckResult, FolderCheckRunner};
use preparation::RepositoryFacts;
use reports::ReportSearch;
pub use setup_proposal::{SETUP_FOLDERS, is_setup_source, propose_setup};

use crate::{
    base_results::{BaseCheckKey, BaseResults},
    sandbox::{CommandEnd, CommandEnding, CommandSpec, IdleLauncher, RoomPermit, shell_command},
    service::{
        calls::ResultRecorder,
        registry::WorkspaceRegistry,
        responses::{run_blocking, wire_level},
        tool_call::{
            OutputResponse, ResponseSender, ResultResponse, elapsed_milliseconds, run_while_awaited,
            send_result,
        },
        workspace_use::{OpenedWorkspace, WorkspaceUse},
    },
    tools,
    workspace::{ScratchContent, ScratchTree, Workspace, WorkspaceError},
};

/// Limit of a check in seconds when the request names none.
const DEFAULT_LIMIT: u32 = 600;
const MAX_LIMIT: u32 = 1800;
// The longest command takes 1,800 seconds. The other 300 are for making its files before it and deleting them
// after it.
pub(crate) const MAX_CALL: Duration = Duration::from_secs(2100);
/// Limit in bytes for each end of the output that the parsers read.
const OUTPUT_BYTES: usize = 4 << 20;
// Linux limits one argument of `execve` to 128 KiB (`MAX_ARG_STRLEN`), and the script is one argument of the
// shell.
const MAX_SCRIPT: usize = 100 * 1024;
/// Limits of a request: patterns of report files, and paths of the tree.
const MAX_PATTERNS: usize = 20;
const MAX_PATHS: usize = 2000;
/// Reason of a check that ends before its command runs.
const CUT_BEFORE_START: &str = "the check was cut before it started";
/// Largest number of commands that are read from the rules.
const MAX_GIVEN: usize = 20;

/// Validated request for a check.
pub(crate) struct ValidatedCheck {
    script: String,
    wanted: ScratchContent,
    limit: Duration,
    reports: Vec<String>,
    /// True when the kept result of an earlier run may answer.
    may_be_kept: bool,
}

/// A check that runs for the first time, with everything that its task needs.
pub(crate) struct CheckCall {
    pub(crate) used: WorkspaceUse,
    pub(crate) registry: Arc<WorkspaceRegistry>,
    pub(crate) call_id: String,
    pub(crate) check: ValidatedCheck,
    /// Key under which results on the base are kept; `None` when they serve this run alone.
    pub(crate) base_key: Option<BaseCheckKey>,
    pub(crate) limit: Duration,
    pub(crate) recorder: ResultRecorder<CheckResult>,
    pub(crate) answers: ResponseSender<RunCheckResponse>,
}

impl OutputResponse for RunCheckResponse {
    fn output(data: Vec<u8>) -> Self {
        let event = Some(Event::Output(OutputChunk { data }));
        Self { event }
    }
}

impl ResultResponse<CheckResult> for RunCheckResponse {
    fn result(result: CheckResult) -> Self {
        let event = Some(Event::Result(result));
        Self { event }
    }
}

/// Validates a request.
///
/// # Errors
/// Returns `INVALID_ARGUMENT` with the reason.
pub(crate) fn validate_check(
    workspace: &Workspace,
    request: &RunCheckRequest,
) -> Result<ValidatedCheck, Status> {
    let wrong = |why: &str| Err(Status::invalid_argument(why));
    if request.call_id.is_empty() {
        return wrong("call_id is missing");
    }
    if request.command.trim().is_empty() {
        return wrong("command is missing");
    }
    if request.command.len() > MAX_SCRIPT {
        return wrong("the command is too long; put it into a file and run that");
    }
    if request.command.contains('\0') {
        return wrong("the command contains a NUL character, which no shell accepts");
    }
    if request.reports.len() > MAX_PATTERNS {
        return wrong("there are too many report patterns");
    }
    let tree = request.tree.clone().unwrap_or_default();
    let kind = TreeKind::try_from(tree).map_err(Status::invalid_argument)?;
    let seconds = match request.limit_s {
        0 => DEFAULT_LIMIT,
        seconds => seconds.min(MAX_LIMIT),
    };
    let inside = |path: &str| workspace.disk.path(path).map_err(Status::invalid_argument);
    Ok(ValidatedCheck {
        script: build_script(&inside(&request.directory)?, &request.command),
        wanted: parse_scratch_content(kind, inside)?,
        limit: Duration::from_secs(seconds.into()),
        reports: request.reports.clone(),
        may_be_kept: request.may_be_kept,
    })
}

fn parse_scratch_content(
    kind: TreeKind,
    inside: impl Fn(&str) -> Result<PathBuf, Status>,
) -> Result<ScratchContent, Status> {
    Ok(match kind {
        TreeKind::Base => ScratchContent::Base,
        TreeKind::Head => ScratchContent::Head,
        TreeKind::BaseWith { paths } if paths.len() > MAX_PATHS => {
            return Err(Status::invalid_argument("there are too many paths"));
        }
        TreeKind::BaseWith { paths } => {
            let paths: Result<_, Status> = paths.iter().map(|path| inside(path)).collect();
            ScratchContent::BaseWith(paths?)
        }
        TreeKind::HeadWithout { head, hunk } => ScratchContent::HeadWithout(head, vec![hunk as usize]),
        TreeKind::HeadWithBase { paths, .. } if paths.len() > MAX_PATHS => {
            return Err(Status::invalid_argument("there are too many paths"));
        }
        TreeKind::HeadWithBase { head, paths, hunks } => {
            let paths: Result<_, Status> = paths.iter().map(|path| inside(path)).collect();
            let hunks = hunks.into_iter().map(|hunk| hunk as usize).collect();
            ScratchContent::HeadWithBase(head, paths?, hunks)
        }
    })
}

/// Builds the script for the shell. The shell gives the command its variables and `&&`.
fn build_script(folder: &std::path::Path, command: &str) -> String {
    if folder.as_os_str().is_empty() {
        return command.to_owned();
    }
    let folder = quote_shell_word(&folder.display().to_string());
    format!("cd -- {folder} || exit 127\n{command}")
}

/// Returns the key under which the result of a check is kept for other runs; `None` if its files are not those of
/// a base that only maintainers have written.
pub(crate) async fn find_base_key(open: &OpenedWorkspace, request: &RunCheckRequest) -> Option<BaseCheckKey> {
    let tree = request.tree.clone().unwrap_or_default();
    match TreeKind::try_from(tree) {
        Ok(TreeKind::Base) => Some(open.trusted_base().await?.key_of(request)),
        Ok(
            TreeKind::Head
            | TreeKind::BaseWith { .. }
            | TreeKind::HeadWithout { .. }
            | TreeKind::HeadWithBase { .. },
        )
        | Err(_) => None,
    }
}

/// Marks the commands whose results on the base are kept. `reports`: files that they write, by the rules.
pub(crate) async fn mark_known_candidates(
    open: &OpenedWorkspace,
    kept: &BaseResults,
    candidates: &mut [CheckCandidate],
    reports: &[String],
) {
    let Some(origin) = open.trusted_base().await else {
        return;
    };
    for candidate in candidates {
        let key = origin.key(&candidate.directory, &candidate.command, reports);
        candidate.known_at_base = kept.renew(&key);
    }
}

/// Runs a check until it ends or until no caller waits for it. A result is recorded unless the check could
/// not start; in that case the caller may repeat the same call.
///
/// Its time limit begins when it has room to run. No launcher is prepared afterwards, because the next command is
/// usually another check, which has its own namespaces.
pub(crate) async fn run_check(call: CheckCall) {
    let cancel = call.used.cancel.child_token();
    let kept = call.base_key.as_ref().filter(|_| call.check.may_be_kept);
    let kept = kept.and_then(|key| call.registry.base_results.find(key));
    let permit = match kept {
        Some(_) => None,
        None => wait_for_room(&call, &cancel).await,
    };
    let started = Instant::now();
    let result = match (kept, permit) {
        (Some(kept), _) => Ok(kept),
        (None, Some(permit)) => {
            let (sink, output) = mpsc::channel(64);
            let work = Box::pin(execute_check(&call, permit, &cancel, &sink));
            run_while_awaited(work, output, &call.answers, &cancel, call.limit).await
        }
        (None, None) => Err(Status::aborted(CUT_BEFORE_START)),
    };
    let run = &call.used.open.workspace.run;
    match result {
        Ok(result) => {
            tracing::info!(
                %run,
                call = call.call_id,
                outcome = result.outcome().as_str_name(),
                exit_code = result.exit_code,
                duration_ms = elapsed_milliseconds(started),
                "check ended"
            );
            call.recorder.finish(result.clone());
            send_result(call.answers, result).await;
        }
        Err(status) => {
            tracing::warn!(%run, call = call.call_id, problem = status.message(), "a check could not be begun");
            call.recorder.forget();
            // The send fails only when the caller is gone, and such a caller repeats its call.
            let _ = call.answers.send(Err(status)).await;
        }
    }
}

/// Waits until the check may run beside other commands; `None` when it is cancelled before.
async fn wait_for_room(call: &CheckCall, cancel: &CancellationToken) -> Option<RoomPermit> {
    let sandbox = &call.registry.sandbox;
    tokio::select! {
        permit = sandbox.room().admit_check(&call.used.open.workspace.id) => Some(permit),
        () = cancel.cancelled() => None,
        () = call.answers.closed() => None,
    }
}

async fn execute_check(
    call: &CheckCall,
    permit: RoomPermit,
    cancel: &CancellationToken,
    sink: &mpsc::Sender<Vec<u8>>,
) -> Result<CheckResult, Status> {
    let (open, is_shown) = (&call.used.open, call.registry.sandbox.shows_checks());
    let Some(turn) = cancel.run_until_cancelled(open.exclusive_turn()).await else {
        return Err(Status::aborted(CUT_BEFORE_START));
    };
    if !is_shown {
        // The idle launcher holds the workspace's folders open, and these folders are about to move.
        open.workspace.spare.clear();
    }
    let (workspace, beside) = (Arc::clone(&open.workspace), call.registry.checks.clone());
    let wanted = call.check.wanted.clone();
    let store = Arc::clone(&call.registry.store);
    let patterns = call.check.reports.clone();
    let made = run_blocking(move || {
        store.make_room();
        let mut scratch = ScratchTree::make(workspace, &beside, &wanted, is_shown)?;
        let reports = ReportSearch::before(scratch.root(), &patterns)?;
        // The swap is the last step, so that a failure before it leaves the workspace untouched.
        scratch.enter()?;
        Ok((scratch, reports))
    });
    let (scratch, reports) = failpoint::around("executor.check.make", made).await?;
    // Tools and other checks may use the workspace from now on, unless its folders are swapped.
    let turn = (!is_shown).then_some(turn);
    let ran = run_in(call, &scratch, cancel, sink).await;
    // The rest takes no memory of commands.
    drop(permit);
    let judging = Arc::clone(open);
    let looked = run_blocking(move || {
        let found = ran.as_ref().ok().map(|_| reports.read(scratch.root()));
        let (tree, tampered) = (scratch.tree.to_string(), scratch.tampered.clone());
        let is_pure_base = scratch.is_pure_base;
        scratch.end()?;
        let facts = || {
            // No tool may change the files meanwhile. A check with swapped folders has the turn already.
            let _turn = is_shown.then(|| judging.blocking_turn());
            RepositoryFacts::read(&judging.workspace).ok()
        };
        let ran = ran.map(|ran| judge_result(ran, found.flatten(), facts));
        Ok((ran, (tree, tampered, is_pure_base)))
    });
    let looked = looked.await;
    drop(turn);
    if looked.is_err() && !is_shown {
        // A failed swap may leave folders in the wrong place. Closing the workspace makes the planner open it
        // again from its last snapshot.
        call.registry.close(&open.workspace.run);
    }
    let (ran, (tree, tampered, is_pure_base)) = looked?;
    let ran = ran.map_err(|error| {
        Status::unavailable(format!(
            "the check cannot be started: {}",
            format_error_chain(&error)
        ))
    })?;
    let result = CheckResult {
        tree,
        tampered,
        sandbox_level: wire_level(call.registry.sandbox.level()).into(),
        ..ran
    };
    if let Some(key) = call.base_key.clone().filter(|_| is_pure_base) {
        call.registry.base_results.record(key, &result);
    }
    Ok(result)
}

/// A command that ran to its end.
struct FinishedCommand {
    end: CommandEnd,
    duration_ms: u64,
}

async fn run_in(
    call: &CheckCall,
    scratch: &ScratchTree,
    cancel: &CancellationToken,
    sink: &mpsc::Sender<Vec<u8>>,
) -> std::io::Result<FinishedCommand> {
    let mut place = tools::build_command_context(&call.used.open.workspace);
    place.environment.extend(report::runner_environment());
    if let Some(shown) = scratch.shown_folder() {
        place.exposed = vec![shown];
    }
    let spec = CommandSpec {
        command: shell_command(call.check.script.clone()),
        place,
        limit: call.check.limit,
        output_bytes: OUTPUT_BYTES,
        whole_bytes: 0,
        egress: None,
    };
    let (started, spare) = (Instant::now(), IdleLauncher::default());
    let ran = call
        .registry
        .sandbox
        .run_admitted(spec, cancel, Some(sink), &spare);
    let end = failpoint::around("executor.check.run", ran).await?;
    Ok(FinishedCommand {
        end,
        duration_ms: elapsed_milliseconds(started),
    })
}

/// Derives the result from the command's end and the report files that it wrote. `facts` reads the repository,
/// if the output requires it.
fn judge_result(
    ran: FinishedCommand,
    found: Option<TestReport>,
    facts: impl FnOnce() -> Option<RepositoryFacts>,
) -> CheckResult {
    let CommandEnd {
        ending,
        output,
        truncated,
        whole: _,
    } = ran.end;
    let output = report::strip_escapes(&output);
    let parse_printed = || {
        let mut printed = report::parse_output(&output)?;
        // The dropped part may name further failing tests.
        printed.truncated |= truncated;
        Some(printed)
    };
    let tests = found.or_else(parse_printed).map(TestReport::bounded);
    let missing = preparation::find_missing_setup(ending, &output, tests.as_ref(), facts);
    let judged = outcome::judge_with(ending, tests.as_ref(), &output, missing.as_ref());
    let tail = text_tail(&output);
    CheckResult {
        outcome: CheckOutcome::from(judged.outcome).into(),
        reason: judged.reason,
        exit_code: match ending {
            CommandEnding::Exited(code) => Some(code),
            CommandEnding::TimedOut | CommandEnding::Cancelled => None,
        },
        duration_ms: ran.duration_ms,
        tests: tests.map(Into::into),
        truncated: truncated || tail.len() < output.len(),
        output_tail: tail.to_owned(),
        setup_hint: missing.map(|missing| missing.hint.into()),
        ..CheckResult::default()
    }
}

/// Returns the end of a text, from the start of a line if one begins near.
fn text_tail(text: &str) -> &str {
    let rest = take_tail_bytes(text, MAX_TAIL);
    match rest.find('\n') {
        Some(end) if rest.len() < text.len() && end < 400 => rest.get(end + 1..).unwrap_or_default(),
        _ => rest,
    }
}

/// Returns the commands that may serve as checks, `given` first. Blocks.
pub(crate) fn find_check_candidates(
    workspace: &Workspace,
    given: Vec<String>,
) -> Result<Vec<CheckCandidate>, WorkspaceError> {
    let given = given.into_iter().take(MAX_GIVEN).collect();
    let files = workspace.git.base_files(candidates::is_check_source)?;
    let files = workspace
        .git
        .with_guides_of_base_branch(files, candidates::is_guide)?;
    let found = candidates::rank_candidates(given, &files);
    if !found.is_empty() {
        return Ok(found);
    }
    Ok(candidates::bare_candidates(
        &workspace.git.base_files(candidates::may_hold_tests)?,
    ))
}

/// Returns true for a file whose text may name checks.
pub fn may_name_checks(path: &str) -> bool {
    candidates::is_check_source(path) || candidates::may_hold_tests(path)
}

/// Returns the commands that may check a repository with these files, the most reliable first. Texts are
/// needed for files that [`may_name_checks`] accepts.
pub fn checks_in(files: &[(String, Option<String>)]) -> Vec<CheckCandidate> {
    let found = candidates::rank_candidates(Vec::new(), files);
    if found.is_empty() {
        candidates::bare_candidates(files)
    } else {
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge_command_end(ending: CommandEnding, output: &str) -> CheckResult {
        let end = CommandEnd {
            ending,
            output: output.to_owned(),
            truncated: false,
            whole: Vec::new(),
        };
        let ran = FinishedCommand { end, duration_ms: 7 };
        judge_result(ran, None, || None)
    }

    #[test]
    fn check_result_has_outcome_tests_tail() {
        let long = ("x".repeat(99) + "\n").repeat(100);
        let output = format!("{long}\x1b[32m===== 2 passed in 0.01s =====\x1b[0m\n");
        let result = judge_command_end(CommandEnding::Exited(0), &output);
        assert_eq!(result.outcome(), CheckOutcome::Green);
        let tail = &result.output_tail;
        assert!(tail.starts_with("xxx") && tail.ends_with("x\n===== 2 passed in 0.01s =====\n"));
        assert!(
            tail.len() <= MAX_TAIL && (tail.len() - 30).is_multiple_of(100),
            "{}",
            tail.len()
        );
        assert!(result.truncated && result.tests.unwrap().passed == 2);
        let cut = judge_command_end(CommandEnding::TimedOut, "===== 2 passed in 0.01s =====\n");
        assert_eq!((cut.outcome(), cut.exit_code), (CheckOutcome::Timeout, None));
    }

    #[test]
    fn dropped_output_leaves_test_list_incomplete() {
        let output = "test a ... FAILED\n[... 9 bytes left out ...]\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let is_incomplete = |found: Option<TestReport>, truncated: bool| {
            let end = CommandEnd {
                ending: CommandEnding::Exited(101),
                output: output.to_owned(),
                truncated,
                whole: Vec::new(),
            };
            let result = judge_result(FinishedCommand { end, duration_ms: 1 }, found, || None);
            result.tests.unwrap().truncated
        };
        assert!(is_incomplete(None, true) && !is_incomplete(None, false));
        // Report files do not depend on the output.
        assert!(!is_incomplete(Some(TestReport::default()), true));
    }

    #[test]
    fn report_file_overrides_printed_output() {
        let end = CommandEnd {
            ending: CommandEnding::Exited(0),
            output: "5 passed in 0.1s\n".to_owned(),
            truncated: false,
            whole: Vec::new(),
        };
        let file = TestReport {
            runner: "junit".to_owned(),
            failed: 1,
            ..TestReport::default()
        };
        let ran = FinishedCommand { end, duration_ms: 1 };
        assert_eq!(
            judge_result(ran, Some(file), || None).outcome(),
            CheckOutcome::Red
        );
    }

    #[test]
    fn missing_check_folder_is_inert() {
        assert_eq!(
            build_script("".as_ref(), "A=1 make && make test"),
            "A=1 make && make test"
        );
        assert_eq!(
            build_script("it's".as_ref(), "make"),
            "cd -- 'it'\\''s' || exit 127\nmake"
        );
    }
}
