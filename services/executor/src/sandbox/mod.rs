//! Running commands confined: the launcher, what it reaches on this machine, and each command's output.

mod command;
mod output;
mod policy;

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use domain::SandboxLevel;
use serde::Deserialize;

pub(crate) use command::{CommandSpec, Ending, shell};
#[cfg(test)]
use policy::Confinement;
pub use policy::Limits;
pub(crate) use policy::Probe;

/// How commands are run here.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    launcher: PathBuf,
    hidden: Vec<PathBuf>,
    limits: Limits,
    probe: Probe,
}

impl Sandbox {
    /// Finds the launcher and asks it what this machine offers.
    ///
    /// `launcher`: from the settings; absent: beside the running program. `hidden`: folders commands may not read.
    pub(crate) async fn open(
        launcher: Option<&Path>,
        hidden: Vec<PathBuf>,
        limits: Limits,
    ) -> Result<Self, String> {
        let launcher = match launcher {
            Some(path) => path.to_owned(),
            None => find_launcher().ok_or("not found beside this program; set its path")?,
        };
        let probe = probe(&launcher).await?;
        Ok(Self {
            launcher,
            hidden,
            limits,
            probe,
        })
    }

    /// For tests of what needs no command.
    #[cfg(test)]
    pub(crate) fn without_launcher() -> Self {
        Self {
            launcher: PathBuf::from("/nonexistent"),
            hidden: Vec::new(),
            limits: Limits::default(),
            probe: Probe {
                offers: Confinement::default(),
                landlock_abi: 0,
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
            }
        }
        self
    }

    /// The level that commands really have.
    pub(crate) fn level(&self) -> SandboxLevel {
        let offers = self.probe.offers;
        if self.probe.gvisor {
            SandboxLevel::L3
        } else if offers.landlock && offers.seccomp {
            SandboxLevel::L1
        } else {
            SandboxLevel::L0
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
}

/// Beside the running program, or one folder up for test binaries.
fn find_launcher() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    let places = [folder.join("launcher"), folder.parent()?.join("launcher")];
    places.into_iter().find(|path| path.is_file())
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
