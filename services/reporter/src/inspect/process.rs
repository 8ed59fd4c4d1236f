//! Start of inspector processes, and transfer of their verdicts.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    sync::{Semaphore, SemaphorePermit},
};

use super::{InspectionTask, InspectionVerdict};
use crate::{effect_error::EffectError, mirror::run_blocking};

pub(super) const UNCONFINED: &str = "--unconfined";
pub(super) const MEMORY: &str = "--memory=";
const NAME: &str = "inspector";
// Wall-clock limit, longer than the CPU time of the inspector and of the `git` that it runs (60 s each).
const DEADLINE: Duration = Duration::from_secs(150);
const PROBE_DEADLINE: Duration = Duration::from_secs(20);
// Concurrent inspectors. One may use half of the container's memory.
const MAX_AT_ONCE: usize = 1;
/// Memory of an inspector without a container limit, in bytes. It is also the upper bound.
pub(super) const MOST_MEMORY: u64 = 1536 << 20;
const LEAST_MEMORY: u64 = 256 << 20;
// Largest verdict, in bytes: the longest difference with every character escaped.
const MAX_ANSWER: u64 = 64 * 1024 * 1024;
// The complaint becomes part of one log line, and hostile objects can influence it.
const MAX_COMPLAINT: u64 = 4 * 1024;

/// Launcher of inspector processes.
pub(crate) struct ChangeInspector {
    program: PathBuf,
    is_confined: bool,
    places: Semaphore,
    deadline: Duration,
    /// Parent of the quarantine folders, on the disk of the mirrors, so that a pack can be moved.
    quarantines: PathBuf,
    /// Memory of each process of an inspector, in bytes.
    memory: u64,
}

/// The right to run the one inspector.
pub(crate) struct InspectionTurn<'a>(
    #[expect(dead_code, reason = "held until the inspection ends")] SemaphorePermit<'a>,
);

/// Returns half of the container's memory, within bounds. The other half is for the pack, the verdict and the
/// reporter itself.
fn inspector_memory(container: Option<u64>) -> u64 {
    container.map_or(MOST_MEMORY, |bytes| (bytes / 2).clamp(LEAST_MEMORY, MOST_MEMORY))
}

impl ChangeInspector {
    /// Finds the inspector, clears `quarantines` and probes the confinement.
    ///
    /// Without `program`, the inspector is in the folder of the running program. `quarantines` is a folder on the
    /// mirrors' disk.
    ///
    /// # Errors
    /// The kernel cannot confine the inspector and `allow_unconfined` is false, or the inspector or the folder is
    /// unusable.
    pub(crate) async fn open(
        program: Option<&Path>,
        quarantines: &Path,
        allow_unconfined: bool,
    ) -> Result<Self, String> {
        let program = program
            .map(Path::to_owned)
            .or_else(|| bootstrap::own_program(NAME));
        let program = program.ok_or("the inspector is not beside this program; set reporter.inspector")?;
        let mut inspector = Self {
            program,
            is_confined: true,
            places: Semaphore::new(MAX_AT_ONCE),
            deadline: DEADLINE,
            quarantines: quarantines.to_owned(),
            memory: inspector_memory(bootstrap::memory::container_limit()),
        };
        inspector
            // An earlier process may have died during an inspection, so the folder is emptied.
            .make_quarantines()
            .map_err(|error| format!("{}: {error}", quarantines.display()))?;
        let Err(problem) = inspector.probe().await else {
            return Ok(inspector);
        };
        if !allow_unconfined {
            return Err(format!(
                "changes cannot be inspected in a confined process: {problem}. \
                 reporter.allow_unconfined = true does it unconfined, beside the reporter's credentials"
            ));
        }
        tracing::warn!(%problem, "changes are inspected unconfined, as reporter.allow_unconfined says");
        inspector.is_confined = false;
        Ok(inspector)
    }

    /// Builds an inspector for tests that push nothing.
    #[cfg(test)]
    pub(crate) fn absent() -> Self {
        Self {
            program: PathBuf::from("/nonexistent"),
            is_confined: true,
            places: Semaphore::new(MAX_AT_ONCE),
            deadline: DEADLINE,
            quarantines: PathBuf::from("/nonexistent"),
            memory: MOST_MEMORY,
        }
    }

    fn make_quarantines(&self) -> std::io::Result<()> {
        match std::fs::remove_dir_all(&self.quarantines) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            // A missing folder is as good as an emptied one.
            Ok(()) | Err(_) => {}
        }
        std::fs::create_dir_all(&self.quarantines)
    }

    fn quarantine(&self) -> std::io::Result<TempDir> {
        tempfile::Builder::new()
            .prefix("push-")
            .tempdir_in(&self.quarantines)
    }

    async fn probe(&self) -> Result<(), String> {
        let trouble = |error: std::io::Error| error.to_string();
        let (mirror, quarantine) = (
            self.quarantine().map_err(trouble)?,
            self.quarantine().map_err(trouble)?,
        );
        let mirror = mirror.path().join("mirror.git");
        git::BareRepository::init_bare(&mirror).map_err(|error| domain::cause::format_error_chain(&error))?;
        let mut command = self.command(&mirror, quarantine.path());
        command.arg("--probe").stdin(Stdio::null());
        let probed = tokio::time::timeout(PROBE_DEADLINE, command.output()).await;
        let output = probed
            .map_err(|_| "no answer".to_owned())?
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(said.trim().chars().take(300).collect())
    }

    /// Waits until no other inspector runs. Callers read the pack after that, because waiting packs would fill the
    /// memory.
    pub(crate) async fn turn(&self) -> Result<InspectionTurn<'_>, EffectError> {
        let permit = self.places.acquire().await;
        permit.map(InspectionTurn).map_err(|_| EffectError::Shutdown)
    }

    /// Inspects a push for the mirror at `mirror`, and moves an accepted pack into it.
    ///
    /// An inspector that dies or exceeds its deadline refuses the change.
    pub(crate) async fn inspect(
        &self,
        _turn: &InspectionTurn<'_>,
        mirror: &Path,
        task: &InspectionTask,
        pack: Bytes,
    ) -> Result<InspectionVerdict, EffectError> {
        let quarantine = self.quarantine().map_err(|error| EffectError::Later {
            detail: format!("no folder can be made for the inspector: {error}"),
            after: None,
        })?;
        let verdict = self.examine(mirror, quarantine.path(), task, pack).await?;
        // The reporter moves the pack, because the inspector can only read the mirror.
        if let InspectionVerdict::Clean { .. } = verdict {
            let mirror = mirror.to_owned();
            run_blocking(move || {
                let checked = quarantine.path().join("objects/pack");
                git::adopt_pack(&checked, &mirror.join("objects/pack"))
            })
            .await?;
        }
        Ok(verdict)
    }

    async fn examine(
        &self,
        mirror: &Path,
        quarantine: &Path,
        task: &InspectionTask,
        pack: Bytes,
    ) -> Result<InspectionVerdict, EffectError> {
        let mut command = self.command(mirror, quarantine);
        if !self.is_confined {
            command.arg(UNCONFINED);
        }
        let mut line = serde_json::to_vec(task).map_err(|error| EffectError::Failed(error.to_string()))?;
        line.push(b'\n');
        command.stdin(Stdio::piped());
        let child = command.spawn().map_err(|error| EffectError::Later {
            detail: format!("the inspector cannot be started: {error}"),
            after: None,
        })?;
        let running = RunningInspector(child);
        match tokio::time::timeout(self.deadline, running.answer(line, pack)).await {
            Ok(Ok(verdict)) => Ok(verdict),
            Ok(Err(problem)) => {
                tracing::error!(repository = %task.push.repository, problem, "inspector ended without a verdict");
                Err(EffectError::Refused(domain::OutboundRefusal::NotInspected))
            }
            Err(_) => {
                tracing::error!(repository = %task.push.repository, "inspector took too long");
                Err(EffectError::Refused(domain::OutboundRefusal::NotInspected))
            }
        }
    }

    fn command(&self, mirror: &Path, quarantine: &Path) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut command = Command::new(&self.program);
        command.arg(mirror).arg(quarantine);
        command.arg(format!("{MEMORY}{}", self.memory));
        // No environment: it contains the reporter's credentials.
        command.env_clear().env("PATH", path);
        // A process group, so that the git processes of the inspector end with it.
        command.current_dir("/").process_group(0).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// An inspector with the processes that it started. Dropping it kills its process group.
struct RunningInspector(Child);

impl RunningInspector {
    async fn answer(mut self, task: Vec<u8>, pack: Bytes) -> Result<InspectionVerdict, String> {
        let (stdin, stdout, stderr) = (self.0.stdin.take(), self.0.stdout.take(), self.0.stderr.take());
        let tell = async {
            // The inspector may close its input before it has read everything.
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(&task).await;
                let _ = stdin.write_all(&pack).await;
            }
        };
        let hear = async {
            let (mut said, mut complaint) = (Vec::new(), Vec::new());
            if let (Some(stdout), Some(stderr)) = (stdout, stderr) {
                // The output comes from a process that read hostile objects, so its length is bounded.
                let (mut stdout, mut stderr) = (stdout.take(MAX_ANSWER), stderr.take(MAX_COMPLAINT));
                let (one, two) =
                    tokio::join!(stdout.read_to_end(&mut said), stderr.read_to_end(&mut complaint));
                one.and(two)?;
            }
            Ok::<_, std::io::Error>((said, complaint))
        };
        // Both run at the same time: with one after the other, each process could wait for the other at
        // a full pipe.
        let ((), heard) = tokio::join!(tell, hear);
        let (said, complaint) = heard.map_err(|error| error.to_string())?;
        let status = self.0.wait().await.map_err(|error| error.to_string())?;
        if !status.success() {
            let complaint = String::from_utf8_lossy(&complaint);
            return Err(format!("{status}: {}", complaint.trim()));
        }
        serde_json::from_slice(&said).map_err(|error| format!("its verdict: {error}"))
    }
}

impl Drop for RunningInspector {
    fn drop(&mut self) {
        // `kill_on_drop` ends the inspector alone, not the git processes in its group. After `wait` the
        // child has no id, so the signal cannot hit another process that got the same number.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(Pid::from_raw) {
            // The group may have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn inspector_memory_is_half_within_bounds() {
        for (container, memory) in [
            (None, 1536 * MIB),
            (Some(0), 256 * MIB),
            (Some(400 * MIB), 256 * MIB),
            (Some(1024 * MIB), 512 * MIB),
            (Some(3072 * MIB), 1536 * MIB),
            (Some(64 << 30), 1536 * MIB),
        ] {
            assert_eq!(inspector_memory(container), memory, "{container:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn second_inspection_waits_for_first() {
        let inspector = ChangeInspector::absent();
        let first = inspector.turn().await.unwrap();
        let second = tokio::time::timeout(DEADLINE, inspector.turn()).await;
        assert!(second.is_err(), "two inspectors run");
        drop(first);
        inspector.turn().await.unwrap();
    }
}
