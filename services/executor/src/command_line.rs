//! Commands for users and administrators: `executor doctor`, `executor exec`, `executor tool`, `executor
//! index`.

use std::{
    io::{IsTerminal as _, Write, stderr, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use domain::{SandboxLevel, cause::format_error_chain, text::sanitize_output};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    absolute_paths, retrieval,
    sandbox::{
        CgroupSupport, CommandEnding, CommandLimits, CommandSandbox, ConfinementMechanism, MachineView,
    },
    tools::{self, ToolContext},
    workspace::Workspace,
};

/// Exit code of `doctor` when the sandbox level is too low.
const EXIT_BELOW: u8 = 3;

#[derive(Parser)]
#[command(name = "executor", about = "The executor's sandbox and tools, by hand")]
struct ExecutorArguments {
    #[command(subcommand)]
    task: ExecutorTask,
}

#[derive(Subcommand)]
enum ExecutorTask {
    /// Show what confines commands on this machine
    Doctor(DoctorArguments),
    /// Run one command in the sandbox, on a folder
    Exec(ExecArguments),
    /// Run one tool on a folder, as the model would
    Tool(ToolArguments),
    /// Index a bare repository, and search it
    Index(retrieval::IndexArguments),
}

#[derive(Args)]
struct SandboxArguments {
    /// Path of the launcher's program [default: the one in this program's folder]
    #[arg(long)]
    launcher: Option<PathBuf>,
    /// Socket of a runner that starts commands instead
    #[arg(long, value_name = "SOCKET")]
    runner: Option<PathBuf>,
    /// Do without a mechanism: landlock, seccomp, namespaces or cgroup
    #[arg(long, value_name = "MECHANISM", value_parser = parse_mechanism)]
    without: Vec<ConfinementMechanism>,
    /// Use Landlock as a kernel with this ABI does, if it is older than this machine's
    #[arg(long, value_name = "N")]
    landlock_abi: Option<u32>,
    /// Folder or file that commands may read, in addition to the system and its toolchains
    #[arg(long, value_name = "PATH")]
    expose: Vec<PathBuf>,
    /// Folder or file that commands may not read
    #[arg(long, value_name = "PATH")]
    hide: Vec<PathBuf>,
}

#[derive(Args)]
struct DoctorArguments {
    #[command(flatten)]
    machine: SandboxArguments,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Exit with 3 below this level: L0, L1, L2 or L3 [default: that of the settings, else L1]
    #[arg(long, value_parser = parse_level)]
    min_level: Option<SandboxLevel>,
}

/// Settings that concern the sandbox. `doctor` reads them, above all in the container of the service.
#[derive(Default, Deserialize)]
struct SandboxSettingsFile {
    #[serde(default)]
    executor: ExecutorSandboxSettings,
}

#[derive(Default, Deserialize)]
struct ExecutorSandboxSettings {
    min_level: Option<SandboxLevel>,
    launcher: Option<PathBuf>,
    runner_socket: Option<PathBuf>,
    #[serde(default)]
    without: Vec<ConfinementMechanism>,
}

impl DoctorArguments {
    /// Fills missing arguments from the settings of this environment.
    fn with_settings(mut self) -> anyhow::Result<Self> {
        let file = std::env::var_os("JOURNEYMAN_CONFIG").map(PathBuf::from);
        let other =
            bootstrap::settings::load_process_settings::<SandboxSettingsFile>(file.as_deref())?.executor;
        self.min_level = self.min_level.or(other.min_level);
        self.machine.launcher = self.machine.launcher.or(other.launcher);
        self.machine.runner = self.machine.runner.or(other.runner_socket);
        self.machine.without.extend(other.without);
        Ok(self)
    }
}

#[derive(Args)]
struct ExecArguments {
    #[command(flatten)]
    machine: SandboxArguments,
    /// Folder that the command may write to
    #[arg(long)]
    dir: PathBuf,
    /// Time limit in seconds
    #[arg(long, default_value_t = 600)]
    timeout_s: u64,
    /// Memory limit in MiB for the command and all that it starts
    #[arg(long)]
    memory_mib: Option<u64>,
    /// Limit of processes and threads at a time
    #[arg(long)]
    processes: Option<u64>,
    /// Limit in MiB of the files in the folder
    #[arg(long)]
    disk_mib: Option<u64>,
    /// Program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

#[derive(Args)]
struct ToolArguments {
    #[command(flatten)]
    machine: SandboxArguments,
    /// Folder that the tool works on
    #[arg(long)]
    dir: PathBuf,
    /// Name of the tool
    name: String,
    /// Input of the tool as JSON
    #[arg(default_value = "{}")]
    input: String,
}

/// Runs the task that the process's arguments name. `None` without such a task: the caller then starts the
/// service.
pub fn run_command_line() -> Option<ExitCode> {
    // `std::env::args` would panic for an argument that is not UTF-8.
    let Some(task) = std::env::args_os().nth(1)?.to_str().map(str::to_owned) else {
        // The error is ignored: standard error is the last place for a message.
        let _ = writeln!(stderr(), "executor: the first argument is not UTF-8");
        return Some(ExitCode::from(64));
    };
    if !matches!(task.as_str(), "doctor" | "exec" | "tool" | "index") {
        return None;
    }
    let task = ExecutorArguments::parse().task;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let done = runtime.context("the runtime").and_then(|runtime| {
        runtime.block_on(Box::pin(async {
            match task {
                ExecutorTask::Doctor(task) => run_doctor(task).await,
                ExecutorTask::Exec(task) => run_exec(task).await,
                ExecutorTask::Tool(task) => run_tool(task).await,
                ExecutorTask::Index(task) => {
                    tokio::task::spawn_blocking(move || retrieval::run_index_command(&task)).await?
                }
            }
        }))
    });
    Some(done.unwrap_or_else(|error| {
        // The error is ignored: standard error is the last place for a message.
        let _ = writeln!(stderr(), "executor: {}", format_error_chain(error.as_ref()));
        ExitCode::from(64)
    }))
}

fn parse_mechanism(text: &str) -> Result<ConfinementMechanism, String> {
    serde_json::from_value(text.into()).map_err(|_| "landlock, seccomp, namespaces or cgroup".to_owned())
}

fn parse_level(text: &str) -> Result<SandboxLevel, String> {
    serde_json::from_value(text.into()).map_err(|_| "L0, L1, L2 or L3".to_owned())
}

async fn open_sandbox(machine: SandboxArguments, limits: CommandLimits) -> anyhow::Result<CommandSandbox> {
    let view = MachineView::of_this_machine(absolute_paths(&machine.expose)?, absolute_paths(&machine.hide)?);
    let opened = CommandSandbox::open(
        machine.launcher.as_deref(),
        machine.runner.as_deref(),
        view,
        limits,
    )
    .await;
    let opened = opened.map_err(|problem| anyhow::anyhow!("the launcher: {problem}"))?;
    let opened = opened.without(&machine.without);
    Ok(match machine.landlock_abi {
        Some(abi) => opened.with_landlock_abi(abi),
        None => opened,
    })
}

async fn run_doctor(task: DoctorArguments) -> anyhow::Result<ExitCode> {
    let task = task.with_settings()?;
    let min_level = task.min_level.unwrap_or(SandboxLevel::L1);
    let sandbox = open_sandbox(task.machine, CommandLimits::default()).await?;
    let (level, probe) = (sandbox.level(), sandbox.probe());
    let meets = level >= min_level;
    if task.json {
        let report = serde_json::json!({
            "level": level, "min_level": min_level, "meets_min_level": meets, "probe": probe,
            "limits": sandbox.limits(), "network": describe_network(probe.offers.namespaces),
        });
        writeln!(stdout(), "{report:#}")?;
    } else {
        let yes = |offered: bool| if offered { "yes" } else { "no" };
        let namespaces = probe.namespaces_problem.as_ref().map_or_else(
            || yes(probe.offers.namespaces).to_owned(),
            |problem| format!("no ({problem})"),
        );
        let mut out = stdout().lock();
        writeln!(out, "level       {level:?} (wanted: {min_level:?} or better)")?;
        writeln!(
            out,
            "landlock    ABI {} of the kernel's {} ({} or newer is needed for L1 here)",
            probe.offers.landlock,
            probe.landlock_abi,
            probe.offers.landlock_needed()
        )?;
        writeln!(out, "seccomp     {}", yes(probe.offers.seccomp))?;
        writeln!(out, "namespaces  {namespaces}")?;
        writeln!(out, "cgroup v2   {}", describe_cgroup(probe.cgroup.as_ref()))?;
        let around = probe.memory_limit.map_or_else(
            || "the container sets no limit".to_owned(),
            |bytes| format!("the container's limit is {} MiB", bytes >> 20),
        );
        writeln!(
            out,
            "memory      {} MiB for a command; {around}",
            sandbox.limits().memory_mib
        )?;
        writeln!(out, "gvisor      {}", yes(probe.gvisor))?;
        let whose = if sandbox.has_own_user() {
            "the runner's"
        } else {
            "the executor's own"
        };
        writeln!(out, "uid         {}, {whose}", probe.uid)?;
        writeln!(out, "network     {}", describe_network(probe.offers.namespaces))?;
        if let Err(problem) = sandbox.require(min_level) {
            writeln!(out, "\n{problem}")?;
        }
        if let Err(problem) = sandbox.require_process_limit() {
            writeln!(out, "\n{problem}")?;
        }
    }
    Ok(if meets {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_BELOW)
    })
}

fn describe_cgroup(cgroup: Option<&CgroupSupport>) -> String {
    let Some(cgroup) = cgroup else {
        return "cannot be written; memory and processes of a command are checked ten times a second"
            .to_owned();
    };
    let counted = [(cgroup.memory, "memory"), (cgroup.processes, "processes")];
    let counted: Vec<_> = counted
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, name)| *name)
        .collect();
    let counted = if counted.is_empty() {
        "counts nothing there".to_owned()
    } else {
        format!("limits {}", counted.join(" and "))
    };
    format!("{}: ends commands, {counted}", cgroup.folder.display())
}

const fn describe_network(namespaces: bool) -> &'static str {
    if namespaces {
        "commands see a loopback of their own and nothing else"
    } else {
        "commands share this machine's; only the pod's network policy keeps them from it"
    }
}

async fn open_tool_context(
    machine: SandboxArguments,
    dir: &Path,
    limits: CommandLimits,
) -> anyhow::Result<ToolContext> {
    let sandbox = open_sandbox(machine, limits).await?;
    let dir = dir.canonicalize().with_context(|| dir.display().to_string())?;
    let workspaces = std::env::temp_dir().canonicalize()?;
    let runner = sandbox.runner().cloned();
    let can_cover = sandbox.probe().offers.namespaces;
    let opened =
        tokio::task::spawn_blocking(move || Workspace::adopt(&workspaces, &dir, runner.as_ref(), can_cover));
    Ok(ToolContext {
        workspace: Arc::new(opened.await??),
        sandbox,
        index: None,
        commit_time_s: bootstrap::read_wall_clock().unix_s(),
        commit_author: domain::CommitAuthor::journeyman(),
        cancel: CancellationToken::new(),
    })
}

async fn run_exec(task: ExecArguments) -> anyhow::Result<ExitCode> {
    let default = CommandLimits::default();
    let limits = CommandLimits {
        memory_mib: task.memory_mib.unwrap_or(default.memory_mib),
        processes: task.processes.unwrap_or(default.processes),
        disk_mib: task.disk_mib.unwrap_or(default.disk_mib),
        ..default
    };
    let call = open_tool_context(task.machine, &task.dir, limits).await?;
    let mut spec = tools::build_command_spec(&call, String::new(), Duration::from_secs(task.timeout_s));
    spec.command = task.command;
    // A full channel drops chunks of output, and the terminal should show all of them.
    let (sink, mut chunks) = mpsc::channel::<Vec<u8>>(4096);
    let printer = tokio::spawn(async move {
        let mut shown = stdout().is_terminal().then(TerminalText::default);
        while let Some(chunk) = chunks.recv().await {
            let printed = match &mut shown {
                Some(shown) => shown.take(&chunk),
                None => chunk,
            };
            stdout().write_all(&printed)?;
            stdout().flush()?;
        }
        let left = shown.map(TerminalText::end).unwrap_or_default();
        stdout().write_all(&left)
    });
    let end = call
        .sandbox
        .run(spec, &call.cancel, Some(&sink), &call.workspace.spare)
        .await?;
    drop(sink);
    printer.await??;
    match end.ending {
        CommandEnding::Exited(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(255))),
        CommandEnding::TimedOut => anyhow::bail!("killed after {} s", task.timeout_s),
        CommandEnding::Cancelled => anyhow::bail!("cut"),
    }
}

/// Output for a user's terminal, in chunks. It must not control the terminal, for example by writing to its
/// clipboard.
#[derive(Default)]
struct TerminalText {
    /// Bytes after the last line feed.
    line: Vec<u8>,
}

impl TerminalText {
    /// Limit in bytes of a line that is held back until it ends.
    const MAX_LINE: usize = 64 * 1024;

    fn take(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.line.extend_from_slice(chunk);
        let end = self.line.iter().rposition(|byte| *byte == b'\n');
        let end = match end {
            Some(end) => end + 1,
            None if self.line.len() > Self::MAX_LINE => self.line.len(),
            None => return Vec::new(),
        };
        let whole: Vec<u8> = self.line.drain(..end).collect();
        Self::shown(&whole)
    }

    fn end(self) -> Vec<u8> {
        Self::shown(&self.line)
    }

    fn shown(bytes: &[u8]) -> Vec<u8> {
        sanitize_output(&String::from_utf8_lossy(bytes))
            .into_owned()
            .into_bytes()
    }
}

async fn run_tool(task: ToolArguments) -> anyhow::Result<ExitCode> {
    let tool = tools::find_tool(&task.name).map_err(anyhow::Error::msg)?;
    let call = open_tool_context(task.machine, &task.dir, CommandLimits::default()).await?;
    let (sink, _chunks) = mpsc::channel(1);
    let outcome = Box::pin(tools::run_tool(tool, call, &task.input, &sink)).await;
    writeln!(stdout(), "{}", outcome.text.trim_end())?;
    Ok(ExitCode::from(u8::from(
        outcome.ending != tools::ToolEnding::Done,
    )))
}
