//! The runner: starts commands and keeps worktrees under a user of its own, for one executor under another.

use std::{
    fs,
    io::{self, Write},
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
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rustix::{fs::Mode, io::Errno, net::sockopt::socket_peercred, process::umask};

use crate::{
    files::Files,
    leftovers,
    policy::Probe,
    wire::{self, Answer, Hello, Request, Wants},
};

/// Connections at a time; each has a thread.
const MAX_CONNECTIONS: usize = 128;
/// How long a connection may take to say what it is for.
const HELLO_TIME: Duration = Duration::from_secs(10);

struct Server {
    folder: PathBuf,
    /// Held as long as a workspace lives.
    workspace: Mutex<u64>,
    connections: AtomicUsize,
}

/// Serves at a socket until it is killed. `arguments`: the socket, the folder for worktrees and the number of the only
/// user that is served.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let [socket, folder, peer] = arguments else {
        return Err("usage: launcher runner SOCKET FOLDER USER".to_owned());
    };
    let peer: u32 = peer
        .parse()
        .map_err(|_| format!("{peer:?} is no user's number"))?;
    umask(Mode::from_raw_mode(0o022));
    let folder = PathBuf::from(folder);
    let listener = prepare(Path::new(socket), &folder).map_err(|error| format!("{socket}: {error}"))?;
    let server = Arc::new(Server {
        folder: folder.canonicalize().map_err(|error| error.to_string())?,
        workspace: Mutex::new(0),
        connections: AtomicUsize::new(0),
    });
    for connection in listener.incoming() {
        let Ok(connection) = connection else { continue };
        // Commands have the runner's own user, so they are refused as well.
        if socket_peercred(&connection).is_ok_and(|other| other.uid.as_raw() == peer) {
            server.accept(connection);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a runner listens at a socket. It takes no connection from its own user any further.
pub(crate) fn alive(socket: &str) -> Result<ExitCode, String> {
    let connected = UnixStream::connect(socket).map_err(|error| format!("{socket}: {error}"));
    connected.map(|_| ExitCode::SUCCESS)
}

/// Binds the socket; what an earlier runner left goes.
fn prepare(socket: &Path, folder: &Path) -> io::Result<UnixListener> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        remove(&entry?.path());
    }
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    // Whoever connects is told apart by its user.
    fs::set_permissions(socket, fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

impl Server {
    fn accept(self: &Arc<Self>, connection: UnixStream) {
        if self.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            self.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let server = Arc::clone(self);
        std::thread::spawn(move || {
            if let Err(error) = server.serve(connection) {
                // The log of its container is all that a runner has.
                let _ = writeln!(io::stderr(), "runner: {error}");
            }
            server.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }

    fn serve(&self, connection: UnixStream) -> io::Result<()> {
        connection.set_read_timeout(Some(HELLO_TIME))?;
        let Some((hello, output)) = wire::receive::<Hello>(&connection)? else {
            return Ok(());
        };
        if hello.version != wire::VERSION {
            return wire::send(&connection, &Answer::Refused(Errno::PROTO.raw_os_error()), None);
        }
        connection.set_read_timeout(None)?;
        match hello.wants {
            Wants::Probe => wire::send(&connection, &Answer::Probe(probe()?), None),
            Wants::Command => start(connection, output.ok_or(io::ErrorKind::InvalidInput)?),
            Wants::Workspace { tree } => self.keep(&connection, tree),
        }
    }

    /// Serves the files of one workspace until its executor goes.
    fn keep(&self, connection: &UnixStream, tree: Option<PathBuf>) -> io::Result<()> {
        let mut number = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        *number += 1;
        let folder = self.folder.join(number.to_string());
        let served = serve_files(connection, &folder, tree);
        remove(&folder);
        leftovers::remove();
        served
    }
}

fn serve_files(connection: &UnixStream, folder: &Path, tree: Option<PathBuf>) -> io::Result<()> {
    let make = |path: &Path| fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    make(&folder.join("tmp/home"))?;
    let tree = match tree {
        Some(tree) => tree,
        None => {
            make(&folder.join("tree"))?;
            folder.join("tree")
        }
    };
    let mut files = Files::open(&tree, &folder.join("tmp"))?;
    wire::send(connection, &Answer::Workspace(folder.to_owned()), None)?;
    while let Some((request, _)) = wire::receive::<Request>(connection)? {
        let (answer, file) = files.answer(&request);
        wire::send(connection, &answer, file.as_ref().map(AsFd::as_fd))?;
    }
    Ok(())
}

fn probe() -> io::Result<Probe> {
    let output = Command::new(std::env::current_exe()?).arg("probe").output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// From here on the connection is the launcher's alone: it ends the command when the executor goes.
fn start(connection: UnixStream, output: OwnedFd) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env_clear().current_dir("/");
    command
        .stdin(OwnedFd::from(connection))
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(output);
    let mut child = command.spawn()?;
    drop(command);
    child.wait().map(drop)
}

/// Deletes a workspace, folders that its commands have locked included.
fn remove(folder: &Path) {
    if let Err(error) = Files::open(folder, folder)
        .and_then(|files| files.show_folders())
        .and_then(|()| fs::remove_dir_all(folder))
    {
        // The log of its container is all that a runner has.
        let _ = writeln!(io::stderr(), "runner: {} stays behind: {error}", folder.display());
    }
}
