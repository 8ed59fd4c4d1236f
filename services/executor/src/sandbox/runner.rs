//! Client of the runner, a process under another user that starts commands and holds worktrees.

use std::{
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::Mutex;
use rustix::io::Errno;

use super::{
    confined_dir::{FileStat, FolderEntry},
    policy::SandboxProbe,
    wire::{
        self, ConnectionPurpose, FileRequest, FileTask, MAX_ENTRIES, RunnerAnswer, RunnerHello,
        WorkspaceFolder,
    },
};

/// Time limit for an answer. It is long, because the runner deletes the previous workspace before it opens
/// one.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// Path of the runner's socket.
#[derive(Clone, Debug)]
pub(crate) struct RunnerClient(PathBuf);

/// Files of one workspace at the runner. Dropping the session deletes them. All calls block.
#[derive(Debug)]
pub(crate) struct RunnerSession {
    socket: Mutex<UnixStream>,
    folder: PathBuf,
    tree: PathBuf,
}

impl RunnerClient {
    pub(crate) fn new(socket: &Path) -> Self {
        Self(socket.to_owned())
    }

    /// Probes the confinement for the runner's user. Blocks.
    pub(crate) fn probe(&self) -> io::Result<SandboxProbe> {
        let socket = self.connect(ConnectionPurpose::Probe, None)?;
        match receive_answer(&socket)? {
            (RunnerAnswer::Probe(probe), _) => Ok(probe),
            (other, _) => Err(unexpected_answer(&other)),
        }
    }

    /// Starts a launcher that waits for its policy. The command writes its output to `output`.
    pub(crate) fn start(&self, output: &OwnedFd) -> io::Result<UnixStream> {
        self.connect(ConnectionPurpose::Command, Some(output))
    }

    /// Opens a workspace over an existing worktree, or over a new one. Waits until the previous workspace is
    /// deleted. Blocks.
    pub(crate) fn workspace(&self, tree: Option<&Path>) -> io::Result<RunnerSession> {
        let wanted = tree.map(Path::to_owned);
        let socket = self.connect(ConnectionPurpose::Workspace { tree: wanted }, None)?;
        match receive_answer(&socket)? {
            (RunnerAnswer::Workspace(folder), _) => Ok(RunnerSession {
                socket: Mutex::new(socket),
                tree: tree.map_or_else(|| folder.join("tree"), Path::to_owned),
                folder,
            }),
            (other, _) => Err(unexpected_answer(&other)),
        }
    }

    fn connect(&self, wants: ConnectionPurpose, file: Option<&OwnedFd>) -> io::Result<UnixStream> {
        let socket = UnixStream::connect(&self.0)?;
        socket.set_read_timeout(Some(ANSWER_TIME))?;
        let hello = RunnerHello {
            version: wire::VERSION,
            wants,
        };
        wire::send_frame(&socket, &hello, file.map(AsFd::as_fd))?;
        Ok(socket)
    }
}

impl RunnerSession {
    /// Returns the folder of the workspace.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns true when the runner closed the connection or sent an unexpected answer.
    pub(crate) fn is_closed(&self) -> bool {
        // A locked socket belongs to a call in progress, which will notice the failure itself.
        self.socket
            .try_lock()
            .is_some_and(|socket| !super::is_open_and_silent(&*socket))
    }

    /// Returns the path of a folder of the workspace.
    pub(crate) fn path(&self, folder: WorkspaceFolder) -> PathBuf {
        match folder {
            WorkspaceFolder::Tree => self.tree.clone(),
            WorkspaceFolder::Scratch => self.folder.join("tmp"),
            // Paths after the second pair has replaced the workspace's folders.
            WorkspaceFolder::CheckTree => self.folder.join("tree"),
            WorkspaceFolder::CheckScratch => self.folder.join("tmp"),
        }
    }

    /// Opens a regular file for reading at the runner.
    pub(crate) fn open_file(&self, folder: WorkspaceFolder, path: &Path) -> io::Result<File> {
        let file = self.file(folder, path, FileTask::Open)?;
        // A compromised runner could send the descriptor of a pipe, and reading it would block.
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(Errno::ISDIR.into())
        }
    }

    /// Replaces a file completely, or leaves the existing one unchanged.
    pub(crate) fn write(&self, folder: WorkspaceFolder, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut file = self.file(folder, path, FileTask::Replace)?;
        file.write_all(content)?;
        self.done(folder, path, FileTask::FinishReplace)
    }

    /// Creates an empty file at a free path.
    pub(crate) fn create(&self, folder: WorkspaceFolder, path: &Path, executable: bool) -> io::Result<File> {
        self.file(folder, path, FileTask::Create { executable })
    }

    /// Lists the entries of a folder, sorted: at most `max`, and at most 2,000.
    pub(crate) fn list(
        &self,
        folder: WorkspaceFolder,
        path: &Path,
        max: usize,
    ) -> io::Result<Vec<FolderEntry>> {
        // The runner applies the same limit.
        let max = max.min(MAX_ENTRIES);
        match self.call(folder, path, FileTask::List { max })? {
            (RunnerAnswer::Entries(entries), _) => Ok(entries),
            (other, _) => Err(unexpected_answer(&other)),
        }
    }

    /// Returns the type and values of a path; `None` when it does not exist.
    pub(crate) fn stat(&self, folder: WorkspaceFolder, path: &Path) -> io::Result<Option<FileStat>> {
        match self.call(folder, path, FileTask::Stat)? {
            (RunnerAnswer::Stat(stat), _) => Ok(stat),
            (other, _) => Err(unexpected_answer(&other)),
        }
    }

    /// Returns the target of a symbolic link.
    pub(crate) fn read_link(&self, folder: WorkspaceFolder, path: &Path) -> io::Result<Vec<u8>> {
        match self.call(folder, path, FileTask::ReadLink)? {
            (RunnerAnswer::Link(target), _) => Ok(target),
            (other, _) => Err(unexpected_answer(&other)),
        }
    }

    /// Executes a step of a check with the second worktree.
    pub(crate) fn check(&self, step: FileTask) -> io::Result<()> {
        self.done(WorkspaceFolder::CheckTree, Path::new(""), step)
    }

    /// Executes a task without a result.
    pub(crate) fn done(&self, folder: WorkspaceFolder, path: &Path, task: FileTask) -> io::Result<()> {
        match self.call(folder, path, task)? {
            (RunnerAnswer::Done, _) => Ok(()),
            (other, _) => Err(unexpected_answer(&other)),
        }
    }

    fn file(&self, folder: WorkspaceFolder, path: &Path, task: FileTask) -> io::Result<File> {
        match self.call(folder, path, task)? {
            (RunnerAnswer::File, Some(file)) => Ok(file.into()),
            (other, _) => Err(unexpected_answer(&other)),
        }
    }

    fn call(
        &self,
        folder: WorkspaceFolder,
        path: &Path,
        task: FileTask,
    ) -> io::Result<(RunnerAnswer, Option<OwnedFd>)> {
        // The lock spans request and answer: frames have no number, so only their order relates the two.
        let socket = self.socket.lock();
        let path = path.as_os_str().as_bytes().to_vec();
        wire::send_frame(&socket, &FileRequest { folder, path, task }, None)?;
        receive_answer(&socket)
    }
}

fn receive_answer(socket: &UnixStream) -> io::Result<(RunnerAnswer, Option<OwnedFd>)> {
    match wire::receive_frame(socket)? {
        Some((RunnerAnswer::Refused(number), _)) => Err(io::Error::from_raw_os_error(number)),
        Some(answer) => Ok(answer),
        None => Err(io::Error::other("the runner closed the connection")),
    }
}

fn unexpected_answer(answer: &RunnerAnswer) -> io::Error {
    io::Error::other(format!("a strange answer of the runner: {answer:?}"))
}
