//! Running commands confined: the launcher, what it reaches on this machine, and each command's output.

mod beneath;
mod command;
mod output;
mod policy;
mod runner;
mod stage;
mod view;
mod way_out;
mod wire;

use std::{
    io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use domain::{SandboxLevel, cause::chain};
use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};
use serde::Deserialize;
use tokio::time::Instant;

pub(crate) use beneath::{Beneath, Entry, Kind, PLAIN, Stat, stat_of};
pub(crate) use command::{CommandEnd, CommandSpec, Ending, Place, Spare, shell};
#[cfg(test)]
use policy::Confinement;
pub use policy::Limits;
pub(crate) use policy::{Cgroup, Cover, Probe, Toolchain};

pub(crate) use output::END_BYTES;
pub(crate) use runner::{Runner, Session};
pub(crate) use stage::Stage;
pub(crate) use view::View;
pub(crate) use way_out::{Door, WayOut};
pub(crate) use wire::{Folder, Task};

/// How long a runner may take to start.
const RUNNER_START: Duration = Duration::from_secs(30);

/// A command with less could not start.
const LEAST_MEMORY_MIB: u64 = 64;

/// How commands are run here.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    way: Way,
    view: View,
    limits: Limits,
    probe: Probe,
}

/// How a launcher is started.
#[derive(Clone, Debug)]
enum Way {
    /// By this process: its program.
    Launcher(PathBuf),
    /// By the runner, under the runner's user.
    Runner(Runner),
}

impl Sandbox {
    /// Finds the launcher, or else the runner, and asks it what this machine offers.
    ///
    /// `launcher`: from the settings; absent: beside the running program. `runner`: the socket of one; then the launcher
    /// is its business. `view`: what commands may read of the machine.
    pub(crate) async fn open(
        launcher: Option<&Path>,
        runner: Option<&Path>,
        view: View,
        limits: Limits,
    ) -> Result<Self, String> {
        let (way, probe) = match runner {
            Some(socket) => {
                let runner = Runner::new(socket);
                let probe = probe_at(&runner).await?;
                (Way::Runner(runner), probe)
            }
            None => {
                let launcher = launcher
                    .map(Path::to_owned)
                    .or_else(|| bootstrap::own_program("launcher"));
                let launcher = launcher.ok_or(
                    "the launcher is neither beside this program nor in ../libexec/journeyman; set its path",
                )?;
                let probe = probe(&launcher).await?;
                (Way::Launcher(launcher), probe)
            }
        };
        let limits = within(limits, probe.memory_limit, runner.is_some());
        Ok(Self {
            way,
            view,
            limits,
            probe,
        })
    }

    /// For tests of what needs no command.
    #[cfg(test)]
    pub(crate) fn without_launcher() -> Self {
        Self {
            way: Way::Launcher(PathBuf::from("/nonexistent")),
            view: View::default(),
            limits: Limits::default(),
            probe: Probe {
                offers: Confinement::default(),
                landlock_abi: 0,
                cgroup: None,
                memory_limit: None,
                process_limit: None,
                namespaces_problem: None,
                gvisor: false,
                uid: 0,
                toolchain: Toolchain::default(),
            },
        }
    }

    /// The same without some of what this machine offers, as on one that offers less.
    pub(crate) fn without(mut self, mechanisms: &[Mechanism]) -> Self {
        for mechanism in mechanisms {
            match mechanism {
                Mechanism::Landlock => self.probe.offers.landlock = 0,
                Mechanism::Seccomp => self.probe.offers.seccomp = false,
                Mechanism::Namespaces => self.probe.offers.namespaces = false,
                Mechanism::Cgroup => self.probe.cgroup = None,
            }
        }
        self
    }

    /// The level that commands really have.
    pub(crate) fn level(&self) -> SandboxLevel {
        let offers = self.probe.offers;
        // Files, other processes and the kernel are out of a command's reach.
        let is_complete = offers.seccomp && offers.landlock >= offers.landlock_needed();
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

    /// The same with Landlock as an older kernel has it.
    pub(crate) fn with_landlock_abi(mut self, abi: u32) -> Self {
        self.probe.offers.landlock = abi.min(self.probe.offers.landlock);
        self
    }

    /// Refuses a level that is not enough.
    ///
    /// # Errors
    /// What is missing, and how to go on, for the operator.
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

    /// Refuses to start commands whose number nothing holds: a storm of forks would take the machine before it is noticed.
    ///
    /// # Errors
    /// What is missing, and how to go on, for the operator.
    pub(crate) fn require_process_limit(&self) -> Result<(), String> {
        let probe = &self.probe;
        let has_group = probe.cgroup.as_ref().is_some_and(|group| group.processes);
        // Of every other user the kernel counts the processes itself.
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

    /// What decides the level, in words.
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

    /// Whether commands run under another user than this process.
    pub(crate) fn has_own_user(&self) -> bool {
        self.probe.uid != rustix::process::getuid().as_raw()
    }

    /// Who starts commands and keeps worktrees for this process.
    pub(crate) fn runner(&self) -> Option<&Runner> {
        match &self.way {
            Way::Runner(runner) => Some(runner),
            Way::Launcher(_) => None,
        }
    }

    /// Where commands that may get out do so.
    pub(crate) fn door(&self) -> io::Result<Door> {
        if self.probe.offers.namespaces {
            Ok(Door::inside())
        } else {
            Door::here()
        }
    }

    /// What this machine offers and commands get.
    pub(crate) fn probe(&self) -> &Probe {
        &self.probe
    }

    /// What one command and everything it starts may use.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }
}

/// Limits below the container's: the kernel would end whatever it likes, and nobody could say why. An executor that
/// starts commands itself needs more of the container than a runner.
fn within(limits: Limits, container: Option<u64>, has_runner: bool) -> Limits {
    let Some(container_mib) = container.map(|bytes| bytes >> 20) else {
        return limits;
    };
    let kept = if has_runner {
        (container_mib / 16).max(64)
    } else {
        (container_mib / 8).max(512)
    };
    let most = container_mib.saturating_sub(kept).max(LEAST_MEMORY_MIB);
    Limits {
        memory_mib: limits.memory_mib.min(most),
        ..limits
    }
}

/// A mechanism that confines commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// File access, signals and abstract sockets.
    Landlock,
    /// Denied system calls.
    Seccomp,
    /// Processes, network, users and mounts of their own.
    Namespaces,
    /// Limits by the kernel; no level needs it.
    Cgroup,
}

/// A runner in another container may start later than this process.
async fn probe_at(runner: &Runner) -> Result<Probe, String> {
    let deadline = Instant::now() + RUNNER_START;
    loop {
        let asked = runner.clone();
        let answer = tokio::task::spawn_blocking(move || asked.probe()).await;
        match answer.map_err(|error| error.to_string())? {
            Ok(probe) => return Ok(probe),
            Err(error) if Instant::now() > deadline => {
                return Err(format!("the runner does not answer: {error}"));
            }
            Err(error) => tracing::info!(error = %chain(&error), "waiting for the runner"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn probe(launcher: &Path) -> Result<Probe, String> {
    let mut command = tokio::process::Command::new(launcher);
    // The search path is that of commands.
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

/// Whether the other side is there and has said nothing that nobody has read.
fn is_open_and_silent(socket: impl AsFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    recv(socket, &mut [0_u8; 1], flags).is_err_and(|error| error == Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_without_namespaces_needs_something_that_limits_processes() {
        let root = Sandbox::without_launcher();
        let refused = root.require_process_limit().unwrap_err();
        assert!(
            refused.contains("storm of forks") && refused.contains("allow_unlimited_processes = true"),
            "{refused}"
        );
        let with = |change: fn(&mut Probe)| {
            let mut sandbox = root.clone();
            change(&mut sandbox.probe);
            sandbox.require_process_limit()
        };
        assert_eq!(with(|probe| probe.uid = 1000), Ok(()));
        assert_eq!(with(|probe| probe.offers.namespaces = true), Ok(()));
        assert_eq!(with(|probe| probe.process_limit = Some(1024)), Ok(()));
        let group = |processes| Cgroup {
            folder: PathBuf::new(),
            memory: true,
            processes,
        };
        let mut grouped = root.clone();
        grouped.probe.cgroup = Some(group(true));
        assert_eq!(grouped.require_process_limit(), Ok(()));
        grouped.probe.cgroup = Some(group(false));
        assert!(grouped.require_process_limit().is_err());
    }

    #[test]
    fn a_command_may_use_less_than_its_container() {
        let wanted = Limits {
            memory_mib: 4096,
            ..Limits::default()
        };
        let memory = |container: Option<u64>, has_runner| {
            within(wanted, container.map(|mib| mib << 20), has_runner).memory_mib
        };
        assert_eq!(memory(None, true), 4096);
        assert_eq!(memory(Some(4096), true), 3840);
        assert_eq!(memory(Some(4096), false), 3584);
        assert_eq!(memory(Some(1024), true), 960);
        assert_eq!(memory(Some(65_536), true), 4096);
        assert_eq!(memory(Some(100), false), LEAST_MEMORY_MIB);
    }
}
