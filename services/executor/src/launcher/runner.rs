//! Runner: runs commands and holds worktrees under its own user, for one executor under another user.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            fs::{DirBuilderExt, PermissionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use rustix::{fs::Mode, io::Errno, process::umask};

use crate::{
    files::{self, WorkspaceFiles},
    leftovers,
    policy::SandboxProbe,
    sys::{self, StopSignals},
    wire::{self, ConnectionPurpose, FileRequest, RunnerAnswer, RunnerHello},
};

/// Limit of open connections; each has a thread.
const MAX_CONNECTIONS: usize = 128;
/// Time limit for the first message of a connection.
const HELLO_TIME: Duration = Duration::from_secs(10);

/// Time limit for commands to end after the stop signal. The end of process 1 of a container then ends all
/// remaining processes.
const STOP_TIME: Duration = Duration::from_millis(800);

struct RunnerServer {
    folder: PathBuf,
    /// Number of the last workspace. The lock is held as long as a workspace is open, so there is only one at
    /// a time.
    workspace: Mutex<u64>,
    connections: AtomicUsize,
    launchers: RunningLaunchers,
}

/// Running launchers by process id, each with a copy of its connection. Closing the connection ends its
/// commands.
#[derive(Default)]
struct RunningLaunchers {
    running: Mutex<HashMap<u32, UnixStream>>,
    ended: Condvar,
}

impl RunningLaunchers {
    fn add(&self, launcher: u32, connection: UnixStream) {
        self.running.lock().insert(launcher, connection);
    }

    fn remove(&self, launcher: u32) {
        self.running.lock().remove(&launcher);
        self.ended.notify_all();
    }

    /// Ends all launchers and waits up to [`STOP_TIME`] for them.
    fn stop(&self) {
        let mut running = self.running.lock();
        for connection in running.values() {
            // The error is ignored: a launcher whose executor closed the connection already ends.
            let _ = connection.shutdown(Shutdown::Both);
        }
        // The result is ignored: the process ends now, with the remaining launchers.
        let _ = self
            .ended
            .wait_while_for(&mut running, |running| !running.is_empty(), STOP_TIME);
    }
}

/// Serves a socket until a stop signal. `arguments`: the path of the socket, the folder for worktrees, and
/// the numeric id of the only user that may connect.
pub(crate) fn serve_runner(arguments: &[String]) -> Result<ExitCode, String> {
    let [socket, folder, peer] = arguments else {
        return Err("usage: launcher runner SOCKET FOLDER USER".to_owned());
    };
    let peer: u32 = peer.parse().map_err(|_| format!("{peer:?} is not a user id"))?;
    // The executor is another user and must be able to read the worktree.
    umask(Mode::from_raw_mode(0o022));
    // Before any thread starts, because threads inherit the mask.
    let signals = StopSignals::hold();
    let folder = PathBuf::from(folder);
    let listener = bind_socket(Path::new(socket), &folder).map_err(|error| format!("{socket}: {error}"))?;
    let server = Arc::new(RunnerServer {
        folder: folder.canonicalize().map_err(|error| error.to_string())?,
        workspace: Mutex::new(0),
        connections: AtomicUsize::new(0),
        launchers: RunningLaunchers::default(),
    });
    let accepting = Arc::clone(&server);
    std::thread::spawn(move || accepting.listen(&listener, peer));
    signals.wait();
    log_line("asked to stop");
    server.launchers.stop();
    Ok(ExitCode::SUCCESS)
}

/// Writes a line to standard error, the log of the container.
fn log_line(text: &str) {
    let _ = writeln!(io::stderr(), "runner: {text}");
}

/// Tests whether a runner listens on a socket. The runner closes connections of the runner's user at once.
pub(crate) fn check_alive(socket: &str) -> Result<ExitCode, String> {
    let connected = UnixStream::connect(socket).map_err(|error| format!("{socket}: {error}"));
    connected.map(|_| ExitCode::SUCCESS)
}

/// Binds the socket, after removing the worktrees and the socket of an earlier runner.
fn bind_socket(socket: &Path, folder: &Path) -> io::Result<UnixListener> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        remove_workspace(&entry?.path());
    }
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    // Every user may connect; the runner checks the user of each peer.
    fs::set_permissions(socket, fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

impl RunnerServer {
    fn listen(self: &Arc<Self>, listener: &UnixListener, peer: u32) {
        let own = rustix::process::getuid().as_raw();
        for connection in listener.incoming() {
            // Commands run as the runner's user, so their connections are refused too.
            let checked =
                connection.and_then(|connection| Ok((sys::peer_user(connection.as_fd())?, connection)));
            match checked {
                Ok((user, connection)) if user == peer => self.accept(connection),
                // A health check by `launcher alive`, every few seconds; not worth a log line.
                Ok((user, _)) if user == own => {}
                Ok((user, _)) => log_line(&format!(
                    "refused a connection of user {user}: only user {peer} is served"
                )),
                Err(error) => log_line(&format!("refused a connection: its user is unknown: {error}")),
            }
        }
    }

    fn accept(self: &Arc<Self>, connection: UnixStream) {
        if self.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            self.connections.fetch_sub(1, Ordering::Relaxed);
            log_line(&format!("refused a connection: {MAX_CONNECTIONS} are open"));
            return;
        }
        let server = Arc::clone(self);
        std::thread::spawn(move || {
            if let Err(error) = server.serve(connection) {
                log_line(&error.to_string());
            }
            server.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }

    fn serve(&self, connection: UnixStream) -> io::Result<()> {
        connection.set_read_timeout(Some(HELLO_TIME))?;
        let Some((hello, output)) = wire::receive_frame::<RunnerHello>(&connection)? else {
            return Ok(());
        };
        // Frames of another version could be misread.
        if hello.version != wire::VERSION {
            return wire::send_frame(
                &connection,
                &RunnerAnswer::Refused(Errno::PROTO.raw_os_error()),
                None,
            );
        }
        connection.set_read_timeout(None)?;
        match hello.wants {
            ConnectionPurpose::Probe => {
                wire::send_frame(&connection, &RunnerAnswer::Probe(run_probe()?), None)
            }
            ConnectionPurpose::Command => self.start(connection, output.ok_or(io::ErrorKind::InvalidInput)?),
            ConnectionPurpose::Workspace { tree } => self.keep(&connection, tree),
        }
    }

    /// Serves the files of one workspace until the executor closes the connection.
    fn keep(&self, connection: &UnixStream, tree: Option<PathBuf>) -> io::Result<()> {
        let mut number = self.workspace.lock();
        *number += 1;
        let folder = self.folder.join(number.to_string());
        let beside = self.folder.join(format!("{number}.check"));
        let served = serve_files(connection, &folder, &beside, tree);
        remove_workspace(&folder);
        remove_workspace(&beside);
        // The next workspace has the same user and would find them.
        leftovers::remove_leftovers();
        served
    }

    /// Starts a launcher with the connection as its control socket. The launcher ends the command when the
    /// executor closes the connection.
    fn start(&self, connection: UnixStream, output: OwnedFd) -> io::Result<()> {
        let copy = connection.try_clone()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.env_clear().current_dir("/");
        command
            .stdin(OwnedFd::from(connection))
            .stdout(Stdio::from(output.try_clone()?))
            .stderr(output);
        let mut child = command.spawn()?;
        // `command` holds descriptors of the connection and the output, which must close for the peer to see
        // their end.
        drop(command);
        self.launchers.add(child.id(), copy);
        let ended = child.wait();
        self.launchers.remove(child.id());
        ended.map(drop)
    }
}

/// Serves the files of a worktree. `beside` is the folder for a check's files; a worktree that existed before
/// has no checks.
fn serve_files(
    connection: &UnixStream,
    folder: &Path,
    beside: &Path,
    tree: Option<PathBuf>,
) -> io::Result<()> {
    let make = |path: &Path| fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    make(&folder.join("tmp/home"))?;
    let is_own = tree.is_none();
    let tree = match tree {
        Some(tree) => tree,
        None => {
            make(&folder.join("tree"))?;
            folder.join("tree")
        }
    };
    let mut files = WorkspaceFiles::open(&tree, &folder.join("tmp"))?;
    wire::send_frame(connection, &RunnerAnswer::Workspace(folder.to_owned()), None)?;
    while let Some((request, _)) = wire::receive_frame::<FileRequest>(connection)? {
        let step = is_own.then(|| files.step(&request, folder, beside)).flatten();
        let (answer, file) = match step {
            Some(answer) => (answer, None),
            None => files.answer(&request),
        };
        wire::send_frame(connection, &answer, file.as_ref().map(AsFd::as_fd))?;
    }
    Ok(())
}

fn run_probe() -> io::Result<SandboxProbe> {
    let output = Command::new(std::env::current_exe()?).arg("probe").output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Deletes a workspace, including folders whose permissions its commands removed. Failures are logged.
fn remove_workspace(folder: &Path) {
    if let Err(error) = files::remove_locked_folder(folder) {
        log_line(&format!("{} stays behind: {error}", folder.display()));
    }
}
