//! Checks of a folder without the gRPC service. Each check runs in its own workspace, confined like every
//! command.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use domain::check::{CheckOutcome, TestReport};
use tokio_util::sync::CancellationToken;

use super::{
    outcome,
    preparation::{self, RepositoryFacts},
    report,
    reports::ReportSearch,
    text_tail,
};
use crate::{
    config::ExecutorSettings,
    sandbox::{CommandEnd, CommandEnding, CommandSandbox, CommandSpec, IdleLauncher, shell_command},
    tools,
    workspace::Workspace,
};

// Limit in bytes for each end of a command's output. It is larger than that of checks, because the output of
// a whole test suite names every test, and graders need all names.
const OUTPUT_BYTES: usize = 16 << 20;
// Setup commands get longer than checks, because they download and build dependencies.
const SETUP_LIMIT: Duration = Duration::from_secs(1800);

/// Sandbox for commands on folders. Its commands have no network where the kernel allows namespaces.
pub struct FolderCheckRunner {
    sandbox: CommandSandbox,
    workspaces: PathBuf,
}

/// Outcome, tests and output of the commands of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderCheckResult {
    /// Outcome of the first command that did not end green, or green.
    pub outcome: CheckOutcome,
    /// Reason for the outcome, in words; empty where the outcome alone is clear.
    pub reason: String,
    /// Tests of all commands together, with the name of every test; `None` when nothing shows that a test
    /// ran.
    pub tests: Option<TestReport>,
    /// End of the output of each command.
    pub output: String,
}

impl FolderCheckRunner {
    /// Opens the sandbox with the executor's settings, without a runner. Workspaces lie below `workspaces`.
    ///
    /// # Errors
    /// Fails when the launcher is missing, or when the sandbox level is below `executor.min_level`.
    pub async fn open(settings: &ExecutorSettings, workspaces: PathBuf) -> anyhow::Result<Self> {
        let sandbox = settings.open_sandbox(None, [workspaces.clone()]).await?;
        Ok(Self { sandbox, workspaces })
    }

    /// Runs each command of `setup`, which must succeed, and then each of `checks` within `limit`, in the
    /// folder `tree`. The commands may change `tree`.
    ///
    /// # Errors
    /// Fails when a command cannot be started, when the folder cannot be used, or when `cancel` is cancelled.
    pub async fn check(
        &self,
        tree: &Path,
        setup: &[String],
        checks: &[String],
        limit: Duration,
        cancel: &CancellationToken,
    ) -> anyhow::Result<FolderCheckResult> {
        let (workspaces, tree) = (self.workspaces.clone(), tree.canonicalize()?);
        let can_cover = self.sandbox.probe().offers.namespaces;
        let adopted =
            tokio::task::spawn_blocking(move || Workspace::adopt(&workspaces, &tree, None, can_cover));
        let workspace = Arc::new(adopted.await??);
        for command in setup {
            let end = self.run(&workspace, command, SETUP_LIMIT, cancel).await?;
            if !matches!(end.ending, CommandEnding::Exited(0)) {
                return Ok(report_failed_setup(command, &end));
            }
        }
        let mut all: Option<FolderCheckResult> = None;
        for command in checks {
            let checked = self.one(&workspace, command, limit, cancel).await?;
            all = Some(match all {
                Some(before) => before.with(checked),
                None => checked,
            });
        }
        all.context("there is no command to run")
    }

    async fn one(
        &self,
        workspace: &Arc<Workspace>,
        command: &str,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> anyhow::Result<FolderCheckResult> {
        // The report files are listed before the command runs, so that reports of an earlier command do not
        // count for this one.
        let looking = Arc::clone(workspace);
        let before = tokio::task::spawn_blocking(move || ReportSearch::before(looking.root(), &[])).await??;
        let end = self.run(workspace, command, limit, cancel).await?;
        let looking = Arc::clone(workspace);
        let found = tokio::task::spawn_blocking(move || before.read(looking.root())).await?;
        let output = report::strip_escapes(&end.output);
        // Report files are more precise than the printed text, so the text is parsed only without them.
        let tests = found.or_else(|| report::parse_output(&output));
        let looking = Arc::clone(workspace);
        let (ending, text, known) = (end.ending, output.clone(), tests.clone());
        let missing = tokio::task::spawn_blocking(move || {
            preparation::find_missing_setup(ending, &text, known.as_ref(), || {
                RepositoryFacts::read(&looking).ok()
            })
        });
        let missing = missing.await?;
        let judged = outcome::judge_with(ending, tests.as_ref(), &output, missing.as_ref());
        Ok(FolderCheckResult {
            outcome: judged.outcome,
            reason: judged.reason,
            tests,
            output: text_tail(&output).to_owned(),
        })
    }

    async fn run(
        &self,
        workspace: &Workspace,
        command: &str,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> anyhow::Result<CommandEnd> {
        let mut place = tools::build_command_context(workspace);
        place.environment.extend(report::runner_environment());
        let spec = CommandSpec {
            command: shell_command(command.to_owned()),
            place,
            limit,
            output_bytes: OUTPUT_BYTES,
            whole_bytes: 0,
            egress: None,
        };
        let end = self
            .sandbox
            .run(spec, cancel, None, &IdleLauncher::default())
            .await?;
        anyhow::ensure!(!matches!(end.ending, CommandEnding::Cancelled), "cut");
        Ok(end)
    }
}

impl FolderCheckResult {
    fn with(self, other: Self) -> Self {
        let (outcome, reason) = if self.outcome == CheckOutcome::Green {
            (other.outcome, other.reason)
        } else {
            (self.outcome, self.reason)
        };
        Self {
            outcome,
            reason,
            tests: match (self.tests, other.tests) {
                (Some(ours), Some(theirs)) => Some(ours.with(theirs)),
                (ours, theirs) => ours.or(theirs),
            },
            output: format!("{}\n{}", self.output.trim_end(), other.output),
        }
    }
}

fn report_failed_setup(command: &str, end: &CommandEnd) -> FolderCheckResult {
    let output = report::strip_escapes(&end.output);
    let short: String = command.chars().take(200).collect();
    FolderCheckResult {
        outcome: CheckOutcome::Infra,
        reason: format!("the setup command {short:?} failed"),
        tests: None,
        output: text_tail(&output).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_folder_result(outcome: CheckOutcome, passing: &[&str]) -> FolderCheckResult {
        FolderCheckResult {
            outcome,
            reason: outcome.as_str().to_owned(),
            tests: (!passing.is_empty()).then(|| TestReport {
                runner: "r".to_owned(),
                passing: passing.iter().map(ToString::to_string).collect(),
                ..TestReport::default()
            }),
            output: "x\n".to_owned(),
        }
    }

    #[test]
    fn commands_green_only_if_each_is() {
        use CheckOutcome::{Green, Red};
        let both = build_folder_result(Green, &["a"]).with(build_folder_result(Green, &["b"]));
        assert_eq!(both.outcome, Green);
        assert_eq!(both.tests.unwrap().passing, ["a", "b"]);
        assert_eq!(
            build_folder_result(Green, &["a"])
                .with(build_folder_result(Red, &[]))
                .reason,
            "red"
        );
        let first = build_folder_result(Red, &[]).with(build_folder_result(Green, &["b"]));
        assert_eq!((first.outcome, first.tests.unwrap().passing.len()), (Red, 1));
    }
}
