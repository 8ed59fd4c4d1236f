//! Child process of a server: output in a log file, awaited until it answers, stopped, always reaped.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::cleanup::{OwnerWatcher, ServerRecord, ServerRemains};
use crate::{Error, free_port};

/// Time in which a server must answer: also with much data, on a machine that stands still for some seconds.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Time in which a server must end after SIGTERM.
const STOP_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
const LOG_TAIL_LINES: usize = 15;
const PORT_TRIES: u32 = 5;

/// Data directory: a given one is kept, a temporary one is deleted with its owner.
pub(crate) enum DataDir {
    Given(PathBuf),
    Temporary(tempfile::TempDir),
}

impl DataDir {
    pub(crate) fn new(given: Option<&Path>) -> Result<Self, Error> {
        match given {
            Some(path) => {
                std::fs::create_dir_all(path).map_err(|source| map_file_error(path, source))?;
                let path = path
                    .canonicalize()
                    .map_err(|source| map_file_error(path, source))?;
                Ok(Self::Given(path))
            }
            None => tempfile::Builder::new()
                .prefix("journeyman-")
                .tempdir()
                .map(Self::Temporary)
                .map_err(|source| map_file_error(&std::env::temp_dir(), source)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}

pub(crate) fn map_file_error(path: &Path, source: std::io::Error) -> Error {
    Error::Files {
        path: path.to_path_buf(),
        source,
    }
}

/// Writes a settings file that only this user can read, because it may contain secrets.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let written = || {
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        // A file of an earlier start may have other permissions.
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())
    };
    written().map_err(|source| map_file_error(path, source))
}

/// Starts a server on a reserved port, and on another one if a program outside has taken the port meanwhile.
///
/// # Errors
/// That of `launch`, or [`Error::Port`].
pub(crate) async fn launch_at_free_port(
    launch: impl AsyncFn(u16) -> Result<ServerProcess, Error>,
) -> Result<(ServerProcess, u16), Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        let port = free_port().map_err(|source| Error::Port { source })?;
        match launch(port).await {
            Ok(process) => return Ok((process, port)),
            Err(error) if tries < PORT_TRIES && is_port_in_use(&error) => {
                tracing::debug!(port, %error, "trying another port");
            }
            Err(error) => return Err(error),
        }
    }
}

/// True if the log of a server that ended contains the system's message about a used port.
pub(crate) fn is_port_in_use(error: &Error) -> bool {
    matches!(error, Error::NotReady { log_tail, .. } if log_tail.to_ascii_lowercase().contains("address already in use"))
}

/// Running child process. Dropping it kills and reaps it.
pub(crate) struct ServerProcess {
    name: &'static str,
    child: Child,
    /// Kills the child when this process ends in any way.
    watcher: Option<OwnerWatcher>,
    record: ServerRecord,
    /// Server that an earlier start left running.
    remains: Option<ServerRemains>,
    log: PathBuf,
}

impl ServerProcess {
    /// Starts `program` in a separate process group. So Ctrl-C reaches only the owner, which stops the server
    /// in order.
    pub(crate) fn spawn(
        name: &'static str,
        program: &Path,
        args: &[&Path],
        log: &Path,
    ) -> Result<Self, Error> {
        let output = File::options()
            .create(true)
            // A restart keeps the log of the crash before it.
            .append(true)
            .open(log)
            .map_err(|source| map_file_error(log, source))?;
        // The record of an earlier start is read before it is overwritten.
        let record = ServerRecord::of(name, log);
        let remains = record.clean_up(name);
        let errors = output.try_clone().map_err(|source| map_file_error(log, source))?;
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Spawn {
                program: program.to_path_buf(),
                source,
            })?;
        tracing::debug!(server = name, pid = child.id(), "server started");
        record.write(child.id());
        Ok(Self {
            name,
            watcher: OwnerWatcher::start(name, child.id()),
            record,
            remains,
            child,
            log: log.to_path_buf(),
        })
    }

    pub(crate) fn remains(&self) -> Option<&ServerRemains> {
        self.remains.as_ref()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Polls `probe` until it returns a value, the child ends, or the time is over.
    pub(crate) async fn ready<T>(
        &mut self,
        mut probe: impl AsyncFnMut(u32) -> Option<T>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if let Some(status) = self.ended() {
                return Err(self.not_ready(format!("ended with {status} before it answered")));
            }
            // A probe can hang at a server that accepts connections but does not answer yet. The limit
            // lets the loop notice its end and the deadline.
            let answer = tokio::time::timeout(Duration::from_secs(1), probe(self.pid())).await;
            if let Ok(Some(found)) = answer {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                return Err(self.not_ready(format!("did not answer within {} s", READY_WITHIN.as_secs())));
            }
            sleep(POLL).await;
        }
    }

    /// Stops the server with SIGTERM, and kills it when it does not end in time.
    pub(crate) async fn stop(&mut self) {
        self.signal(rustix::process::Signal::TERM);
        let deadline = Instant::now() + STOP_WITHIN;
        while self.ended().is_none() {
            if Instant::now() >= deadline {
                tracing::warn!(server = self.name, "server did not end in time and is killed");
                return self.kill();
            }
            sleep(POLL).await;
        }
    }

    /// Kills and reaps the server at once, like a crash.
    pub(crate) fn kill(&mut self) {
        // Both calls fail only if the child has ended already.
        self.watcher = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.record.remove();
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        let ended = self.child.try_wait().ok().flatten();
        if ended.is_some() {
            // The process is reaped, so its id may soon belong to another one, which the watcher must
            // not kill.
            self.watcher = None;
            self.record.remove();
        }
        ended
    }

    fn signal(&mut self, signal: rustix::process::Signal) {
        if self.ended().is_none()
            && let Some(pid) = i32::try_from(self.pid())
                .ok()
                .and_then(rustix::process::Pid::from_raw)
            && let Err(error) = rustix::process::kill_process(pid, signal)
        {
            tracing::debug!(server = self.name, %error, "signal not delivered");
        }
    }

    fn not_ready(&self, problem: String) -> Error {
        Error::NotReady {
            program: self.name.to_owned(),
            problem,
            log_tail: log_tail(&self.log),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn log_tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}
