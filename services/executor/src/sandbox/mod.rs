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

pub(crate) use command::{CommandSpec, Ending};

/// How commands are run here.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    launcher: PathBuf,
    hidden: Vec<PathBuf>,
    landlock: bool,
}

#[derive(Deserialize)]
struct Probe {
    landlock: bool,
}

impl Sandbox {
    /// Finds the launcher and asks it what this machine offers.
    ///
    /// `launcher`: from the settings; absent: beside the running program. `hidden`: folders commands may not read.
    pub(crate) async fn open(launcher: Option<&Path>, hidden: Vec<PathBuf>) -> Result<Self, String> {
        let launcher = match launcher {
            Some(path) => path.to_owned(),
            None => find_launcher().ok_or("not found beside this program; set its path")?,
        };
        let probe = probe(&launcher).await?;
        Ok(Self {
            launcher,
            hidden,
            landlock: probe.landlock,
        })
    }

    /// For tests of what needs no command.
    #[cfg(test)]
    pub(crate) fn without_launcher() -> Self {
        Self {
            launcher: PathBuf::from("/nonexistent"),
            hidden: Vec::new(),
            landlock: false,
        }
    }

    /// The level that commands really have. L1 needs seccomp besides Landlock, which is not there yet.
    pub(crate) fn level(&self) -> SandboxLevel {
        SandboxLevel::L0
    }

    /// Whether commands are kept to their workspace by Landlock.
    pub(crate) fn landlock(&self) -> bool {
        self.landlock
    }
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
