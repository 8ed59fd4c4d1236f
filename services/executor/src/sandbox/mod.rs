//! Runs commands in confinement: the launcher, the paths that it makes visible, and each command's output.

mod command;
mod command_room;
mod confined_dir;
mod dialog;
mod egress_relay;
mod output;
mod policy;
mod runner;
mod swap_folders;
mod view;
mod wire;

use std::{
    io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use domain::{SandboxLevel, cause::format_error_chain};
use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};
use serde::Deserialize;
use tokio::time::Instant;

pub(crate) use command::{
    CommandContext, CommandEnd, CommandEnding, CommandSpec, IdleLauncher, shell_command,
};
pub(crate) use command_room::{CommandRoom, RoomPermit};
pub(crate) use confined_dir::{
    ConfinedDir, FileKind, FileStat, FolderEntry, PLAIN, stat_entry, stat_in, stat_of,
};
pub(crate) use dialog::{DialogEnd, DialogOutcome, DialogSpec};
pub use policy::CommandLimits;
#[cfg(test)]
use policy::KernelConfinement;
pub(crate) use policy::{CgroupSupport, InstalledToolchain, PathCover, SandboxProbe};

pub(crate) use egress_relay::{EgressRelay, RelayListener};
pub(crate) use output::END_BYTES;
pub(crate) use runner::{RunnerClient, RunnerSession};
pub(crate) use swap_folders::SwapFolders;
pub(crate) use view::MachineView;
pub(crate) use wire::{FileTask, WorkspaceFolder};

/// Time limit for the runner to start.
const RUNNER_START: Duration = Duration::from_secs(30);

/// Lowest memory limit of commands; with less a command could not start.
const LEAST_MEMORY_MIB: u64 = 64;

/// Confinement of commands on this machine. Each call has a copy, so the large parts are shared.
#[derive(Clone, Debug)]
pub(crate) struct CommandSandbox {
    way: LauncherSource,
    view: Arc<MachineView>,
    limits: CommandLimits,
    probe: Arc<SandboxProbe>,
    room: CommandRoom,
}

/// Means of starting a launcher.
#[derive(Clone, Debug)]
enum LauncherSource {
    /// This process starts the launcher program at this path.
    Launcher(PathBuf),
    /// The runner starts it under the runner's user.
    Runner(RunnerClient),
}

impl CommandSandbox {
    /// Finds the launcher or connects to the runner, and probes which confinement this machine supports.
    ///
    /// `launcher` is the path from the settings, or `None` for the one in this program's folder. `runner` is
    /// the socket of a runner, which then has its own launcher. `view` is the part of the machine that
    /// commands may read.
    pub(crate) async fn open(
        launcher: Option<&Path>,
        runner: Option<&Path>,
        view: MachineView,
        limits: CommandLimits,
    ) -> Result<Self, String> {
        let (way, probe) = match runner {
            Some(socket) => {
                let runner = RunnerClient::new(socket);
                let probe = probe_runner(&runner).await?;
                (LauncherSource::Runner(runner), probe)
            }
            None => {
                let launcher = launcher
                    .map(Path::to_owned)
                    .or_else(|| bootstrap::own_program("launcher"));
                let launcher = launcher.ok_or(
                    "the launcher is neither beside this program nor in ../libexec/journeyman; set its path",
                )?;
                let probe = probe_launcher(&launcher).await?;
                (LauncherSource::Launcher(launcher), probe)
            }
        };
        let limits = limit_to_container(limits, probe.memory_limit, runner.is_some());
        Ok(Self {
            way,
            view: Arc::new(view),
            limits,
            probe: Arc::new(probe),
            room: CommandRoom::new(1),
        })
    }

    /// Sets the room for commands that run at the same time. Every one of `slots` workspaces may run a command, so
    /// their memory is there; checks of one workspace share it.
    #[must_use]
    pub(crate) fn with_room(mut self, slots: u32) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let most = if self.shows_checks() {
            fitting_commands(
                slots as usize,
                cores,
                self.probe.memory_limit,
                self.limits.memory_mib,
            )
        } else {
            1
        };
        self.room = CommandRoom::new(most);
        self
    }

    /// Returns true when the files of a check appear at the workspace's path only for the check's own command, so
    /// that several checks of a workspace can run at the same time. A runner swaps the folders instead.
    pub(crate) fn shows_checks(&self) -> bool {
        self.probe.offers.namespaces && self.runner().is_none()
    }

    /// Returns the room for commands that run at the same time.
    pub(crate) fn room(&self) -> &CommandRoom {
        &self.room
    }

    /// Creates a sandbox for tests that run no command.
    #[cfg(test)]
    pub(crate) fn without_launcher() -> Self {
        Self {
            way: LauncherSource::Launcher(PathBuf::from("/nonexistent")),
            view: Arc::default(),
            limits: CommandLimits::default(),
            room: CommandRoom::new(1),
            probe: Arc::new(SandboxProbe {
                offers: KernelConfinement::default(),
                landlock_abi: 0,
                cgroup: None,
                memory_limit: None,
                process_limit: None,
                namespaces_problem: None,
                gvisor: false,
                uid: 0,
                toolchain: InstalledToolchain::default(),
            }),
        }
    }

    /// Disables mechanisms, as on a machine that does not support them.
    pub(crate) fn without(mut self, mechanisms: &[ConfinementMechanism]) -> Self {
        let probe = Arc::make_mut(&mut self.probe);
        for mechanism in mechanisms {
            match mechanism {
                ConfinementMechanism::Landlock => probe.offers.landlock = 0,
                ConfinementMechanism::Seccomp => probe.offers.seccomp = false,
                ConfinementMechanism::Namespaces => probe.offers.namespaces = false,
                ConfinementMechanism::Cgroup => probe.cgroup = None,
            }
        }
        self
    }

    /// Returns the level that commands actually get.
    pub(crate) fn level(&self) -> SandboxLevel {
        let offers = self.probe.offers;
        // A complete confinement covers files, other processes and the kernel.
        let is_complete = offers.seccomp && offers.landlock >= offers.landlock_needed();
        // Under gVisor a command never calls the host's kernel directly.
        if self.probe.gvisor {
            SandboxLevel::L3
        } else if !is_complete {
            SandboxLevel::L0
        } else if self.has_own_user() {
            SandboxLevel::L2
        } else {
            SandboxLevel::L1
        }
    }

    /// Limits Landlock to the version of an older kernel.
    pub(crate) fn with_landlock_abi(mut self, abi: u32) -> Self {
        let offers = &mut Arc::make_mut(&mut self.probe).offers;
        offers.landlock = abi.min(offers.landlock);
        self
    }

    /// Checks the required level.
    ///
    /// # Errors
    /// Returns the missing mechanisms and the remedy, for the operator.
    pub(crate) fn require(&self, min_level: SandboxLevel) -> Result<(), String> {
        let level = self.level();
        let has = format!(
            "commands get sandbox level {level:?} on this machine: {}",
            self.found()
        );
        if level < min_level {
            return Err(format!(
                "executor.min_level: {has}. {min_level:?} is required: use Linux 6.12 or newer, or 5.19 or newer with user \
                 namespaces allowed, or accept less with executor.min_level = \"{level:?}\" \
                 (JOURNEYMAN__EXECUTOR__MIN_LEVEL={level:?})"
            ));
        }
        if self.runner().is_some() && level < SandboxLevel::L2 {
            return Err(format!(
                "executor.runner_socket: {has}. A runner must reach L2, or commands could read what it holds for others"
            ));
        }
        Ok(())
    }

    /// Checks that a limit on the number of processes exists. Without one, a fork bomb would exhaust the
    /// machine before the executor notices.
    ///
    /// # Errors
    /// Returns the missing limit and the remedy, for the operator.
    pub(crate) fn require_process_limit(&self) -> Result<(), String> {
        let probe = &self.probe;
        let has_group = probe.cgroup.as_ref().is_some_and(|group| group.processes);
        // The kernel's per-user limit (`RLIMIT_NPROC`) applies to every user except root.
        let is_held = probe.uid != 0 || probe.offers.namespaces || has_group || probe.process_limit.is_some();
        if is_held {
            return Ok(());
        }
        Err(
            "executor.allow_unlimited_processes: commands run as root here, without namespaces and without a control group \
             that limits processes, so nothing holds a storm of forks. Run the executor as another user, allow user namespaces, \
             or give its container a limit of processes; or accept it with executor.allow_unlimited_processes = true \
             (JOURNEYMAN__EXECUTOR__ALLOW_UNLIMITED_PROCESSES=true)"
                .to_owned(),
        )
    }

    /// Describes the mechanisms that decide the level.
    fn found(&self) -> String {
        let (offers, probe) = (self.probe.offers, &self.probe);
        let namespaces = match &probe.namespaces_problem {
            _ if offers.namespaces => "namespaces".to_owned(),
            Some(problem) => format!("no namespaces ({problem})"),
            None => "no namespaces".to_owned(),
        };
        format!(
            "Landlock ABI {} ({} or newer is needed), {}seccomp, {namespaces}",
            offers.landlock,
            offers.landlock_needed(),
            if offers.seccomp { "" } else { "no " }
        )
    }

    /// Returns true when commands run under another user than this process.
    pub(crate) fn has_own_user(&self) -> bool {
        self.probe.uid != rustix::process::getuid().as_raw()
    }

    /// Returns the runner that starts commands and holds worktrees for this process.
    pub(crate) fn runner(&self) -> Option<&RunnerClient> {
        match &self.way {
            LauncherSource::Runner(runner) => Some(runner),
            LauncherSource::Launcher(_) => None,
        }
    }

    /// Opens an egress port for commands.
    pub(crate) fn open_egress_port(&self) -> io::Result<RelayListener> {
        if self.probe.offers.namespaces {
            Ok(RelayListener::inside())
        } else {
            RelayListener::here()
        }
    }

    /// Returns the supported confinement, which commands get.
    pub(crate) fn probe(&self) -> &SandboxProbe {
        &self.probe
    }

    /// Returns the limits of one command with all of its descendants.
    pub(crate) fn limits(&self) -> CommandLimits {
        self.limits
    }
}

/// Lowers the memory limit below the container's.
///
/// Above it, the kernel would kill any process of the container without a reason that could be reported. An
/// executor that starts commands itself reserves more memory than a runner.
fn limit_to_container(limits: CommandLimits, container: Option<u64>, has_runner: bool) -> CommandLimits {
    let Some(container) = container else {
        return limits;
    };
    CommandLimits {
        memory_mib: limits.memory_mib.min(command_memory_mib(container, has_runner)),
        ..limits
    }
}

/// Returns the memory of a container in MiB that commands can use.
fn command_memory_mib(container: u64, has_runner: bool) -> u64 {
    let container_mib = container >> 20;
    // 1/16 for a runner and 1/8 for an executor remain for the process itself, at least 64 and 512 MiB.
    let kept = if has_runner {
        (container_mib / 16).max(64)
    } else {
        (container_mib / 8).max(512)
    };
    container_mib.saturating_sub(kept).max(LEAST_MEMORY_MIB)
}

/// Returns the number of commands that may run at the same time, at least one: one for each slot and core, and as
/// many as the container's memory holds if each takes all that it may.
fn fitting_commands(slots: usize, cores: usize, container: Option<u64>, memory_mib: u64) -> usize {
    let in_memory = container.map_or(usize::MAX, |container| {
        let fitting = command_memory_mib(container, false) / memory_mib.max(1);
        usize::try_from(fitting).unwrap_or(usize::MAX)
    });
    slots.min(cores).min(in_memory).max(1)
}

/// Mechanism that confines commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementMechanism {
    /// File access, signals and abstract sockets.
    Landlock,
    /// Denied system calls.
    Seccomp,
    /// Separate processes, network, users and mounts.
    Namespaces,
    /// Limits enforced by the kernel; no level requires them.
    Cgroup,
}

/// Probes through the runner, with retries: a runner in another container may start after this process.
async fn probe_runner(runner: &RunnerClient) -> Result<SandboxProbe, String> {
    let deadline = Instant::now() + RUNNER_START;
    loop {
        let client = runner.clone();
        let answer = tokio::task::spawn_blocking(move || client.probe()).await;
        match answer.map_err(|error| error.to_string())? {
            Ok(probe) => return Ok(probe),
            Err(error) if Instant::now() > deadline => {
                return Err(format!("the runner does not answer: {error}"));
            }
            Err(error) => tracing::info!(error = %format_error_chain(&error), "waiting for the runner"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn probe_launcher(launcher: &Path) -> Result<SandboxProbe, String> {
    let mut command = tokio::process::Command::new(launcher);
    // Commands get this process's `PATH`, so the probe needs it to find the toolchains.
    let path = std::env::var_os("PATH").map(|path| ("PATH", path));
    command
        .arg("probe")
        .env_clear()
        .envs(path)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(10), command.output())
        .await
        .map_err(|_| format!("{} does not answer", launcher.display()))?
        .map_err(|error| format!("{} cannot be started: {error}", launcher.display()))?;
    serde_json::from_slice(&output.stdout).map_err(|_| format!("{} is not a launcher", launcher.display()))
}

/// Returns true when the peer is connected and has sent no unread byte.
fn is_open_and_silent(socket: impl AsFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    recv(socket, &mut [0_u8; 1], flags).is_err_and(|error| error == Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_without_namespaces_needs_process_limit() {
        let root = CommandSandbox::without_launcher();
        let refused = root.require_process_limit().unwrap_err();
        assert!(
            refused.contains("storm of forks") && refused.contains("allow_unlimited_processes = true"),
            "{refused}"
        );
        let with = |change: fn(&mut SandboxProbe)| {
            let mut sandbox = root.clone();
            change(Arc::make_mut(&mut sandbox.probe));
            sandbox.require_process_limit()
        };
        assert_eq!(with(|probe| probe.uid = 1000), Ok(()));
        assert_eq!(with(|probe| probe.offers.namespaces = true), Ok(()));
        assert_eq!(with(|probe| probe.process_limit = Some(1024)), Ok(()));
        let group = |processes| CgroupSupport {
            folder: PathBuf::new(),
            memory: true,
            processes,
        };
        let mut grouped = root.clone();
        Arc::make_mut(&mut grouped.probe).cgroup = Some(group(true));
        assert_eq!(grouped.require_process_limit(), Ok(()));
        Arc::make_mut(&mut grouped.probe).cgroup = Some(group(false));
        assert!(grouped.require_process_limit().is_err());
    }

    #[test]
    fn changed_copy_leaves_other_copies() {
        let first = CommandSandbox::without_launcher();
        let second = first.clone();
        assert!(Arc::ptr_eq(&first.view, &second.view) && Arc::ptr_eq(&first.probe, &second.probe));
        let mut with_seccomp = first.clone();
        Arc::make_mut(&mut with_seccomp.probe).offers.seccomp = true;
        let without = with_seccomp.clone().without(&[ConfinementMechanism::Seccomp]);
        assert!(with_seccomp.probe().offers.seccomp);
        assert!(!without.probe().offers.seccomp && !first.probe().offers.seccomp);
    }

    #[test]
    fn commands_fit_by_slots_cores_memory() {
        let gib = |gib: u64| Some(gib << 30);
        assert_eq!(fitting_commands(4, 2, None, 4096), 2);
        assert_eq!(fitting_commands(1, 8, None, 4096), 1);
        assert_eq!(fitting_commands(8, 8, gib(16), 4096), 3);
        assert_eq!(fitting_commands(8, 8, gib(4), 3584), 1);
        assert_eq!(fitting_commands(8, 8, gib(1), 4096), 1, "one always runs");
        assert_eq!(fitting_commands(0, 0, None, 0), 1);
    }

    #[test]
    fn command_memory_stays_below_container() {
        let wanted = CommandLimits {
            memory_mib: 4096,
            ..CommandLimits::default()
        };
        let memory = |container: Option<u64>, has_runner| {
            limit_to_container(wanted, container.map(|mib| mib << 20), has_runner).memory_mib
        };
        assert_eq!(memory(None, true), 4096);
        assert_eq!(memory(Some(4096), true), 3840);
        assert_eq!(memory(Some(4096), false), 3584);
        assert_eq!(memory(Some(1024), true), 960);
        assert_eq!(memory(Some(65_536), true), 4096);
        assert_eq!(memory(Some(100), false), LEAST_MEMORY_MIB);
    }
}
