//! Running commands confined: the launcher, what it reaches on this machine, and each command's output.

mod beneath;
mod command;
mod output;
mod policy;
mod runner;
mod way_out;
mod wire;

use std::{
    io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use domain::SandboxLevel;
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
pub(crate) use policy::{Cgroup, Probe};
pub(crate) use runner::{Runner, Session};
pub(crate) use way_out::{Door, WayOut};
pub(crate) use wire::{Folder, Task};

/// How long a runner may take to start.
const RUNNER_START: Duration = Duration::from_secs(30);

/// How commands are run here.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    way: Way,
    hidden: Vec<PathBuf>,
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
    /// is its business. `hidden`: folders commands may not read.
    pub(crate) async fn open(
        launcher: Option<&Path>,
        runner: Option<&Path>,
        hidden: Vec<PathBuf>,
        limits: Limits,
    ) -> Result<Self, String> {
        let (way, probe) = match runner {
            Some(socket) => {
                let runner = Runner::new(socket);
                let probe = probe_at(&runner).await?;
                (Way::Runner(runner), probe)
            }
            None => {
                let launcher = launcher.map(Path::to_owned).or_else(find_launcher);
                let launcher = launcher.ok_or("the launcher is not beside this program; set its path")?;
                let probe = probe(&launcher).await?;
                (Way::Launcher(launcher), probe)
            }
        };
        Ok(Self {
            way,
            hidden,
            limits,
            probe,
        })
    }

    /// For tests of what needs no command.
    #[cfg(test)]
    pub(crate) fn without_launcher() -> Self {
        Self {
            way: Way::Launcher(PathBuf::from("/nonexistent")),
            hidden: Vec::new(),
            limits: Limits::default(),
            probe: Probe {
                offers: Confinement::default(),
                landlock_abi: 0,
                cgroup: None,
                namespaces_problem: None,
                gvisor: false,
                uid: 0,
            },
        }
    }

    /// The same without some of what this machine offers, as on one that offers less.
    pub(crate) fn without(mut self, mechanisms: &[Mechanism]) -> Self {
        for mechanism in mechanisms {
            match mechanism {
                Mechanism::Landlock => self.probe.offers.landlock = false,
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
        if self.probe.gvisor {
            SandboxLevel::L3
        } else if offers.landlock && offers.seccomp && self.has_own_user() {
            SandboxLevel::L2
        } else if offers.landlock && offers.seccomp {
            SandboxLevel::L1
        } else {
            SandboxLevel::L0
        }
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

/// Beside the running program, or one folder up for test binaries.
fn find_launcher() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    let places = [folder.join("launcher"), folder.parent()?.join("launcher")];
    places.into_iter().find(|path| path.is_file())
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
            Err(error) => tracing::info!(%error, "waiting for the runner"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn probe(launcher: &Path) -> Result<Probe, String> {
    let mut command = tokio::process::Command::new(launcher);
    command
        .arg("probe")
        .env_clear()
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
