//! The executor's side of the runner: a process under another user that starts commands and keeps the worktree.

use std::{
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::io::Errno;

use super::{
    beneath::{Entry, Stat},
    policy::Probe,
    wire::{self, Answer, Folder, Hello, MAX_ENTRIES, Request, Task, Wants},
};

/// How long an answer may take; before a workspace the one before it is deleted.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// Where the runner is reached.
#[derive(Clone, Debug)]
pub(crate) struct Runner(PathBuf);

/// The files of one workspace at the runner. They go when this is dropped. All its calls block.
#[derive(Debug)]
pub(crate) struct Session {
    socket: Mutex<UnixStream>,
    folder: PathBuf,
    tree: PathBuf,
}

impl Runner {
    pub(crate) fn new(socket: &Path) -> Self {
        Self(socket.to_owned())
    }

    /// What the machine offers to the runner's user. Blocks.
    pub(crate) fn probe(&self) -> io::Result<Probe> {
        let socket = self.connect(Wants::Probe, None)?;
        match answer(&socket)? {
            (Answer::Probe(probe), _) => Ok(probe),
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// A launcher that waits for its policy; the command's output goes to `output`.
    pub(crate) fn start(&self, output: &OwnedFd) -> io::Result<UnixStream> {
        self.connect(Wants::Command, Some(output))
    }

    /// A workspace over a worktree that is there, or over a new one. Waits until the one before is gone. Blocks.
    pub(crate) fn workspace(&self, tree: Option<&Path>) -> io::Result<Session> {
        let wanted = tree.map(Path::to_owned);
        let socket = self.connect(Wants::Workspace { tree: wanted }, None)?;
        match answer(&socket)? {
            (Answer::Workspace(folder), _) => Ok(Session {
                socket: Mutex::new(socket),
                tree: tree.map_or_else(|| folder.join("tree"), Path::to_owned),
                folder,
            }),
            (other, _) => Err(unexpected(&other)),
        }
    }

    fn connect(&self, wants: Wants, file: Option<&OwnedFd>) -> io::Result<UnixStream> {
        let socket = UnixStream::connect(&self.0)?;
        socket.set_read_timeout(Some(ANSWER_TIME))?;
        let hello = Hello {
            version: wire::VERSION,
            wants,
        };
        wire::send(&socket, &hello, file.map(AsFd::as_fd))?;
        Ok(socket)
    }
}

impl Session {
    /// Where the workspace's own folder is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the other side has gone, or has said something that nobody asked for.
    pub(crate) fn is_closed(&self) -> bool {
        // Held: somebody waits for an answer and will be told.
        self.socket
            .try_lock()
            .is_ok_and(|socket| !super::is_open_and_silent(&*socket))
    }

    /// Where one of its folders is.
    pub(crate) fn path(&self, folder: Folder) -> PathBuf {
        match folder {
            Folder::Tree => self.tree.clone(),
            Folder::Scratch => self.folder.join("tmp"),
            // Where they lie once they are entered.
            Folder::CheckTree => self.folder.join("tree"),
            Folder::CheckScratch => self.folder.join("tmp"),
        }
    }

    /// An ordinary file, opened for reading by the runner.
    pub(crate) fn open_file(&self, folder: Folder, path: &Path) -> io::Result<File> {
        let file = self.file(folder, path, Task::Open)?;
        // What a runner that was taken over hands out must not stop us: a pipe would.
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(Errno::ISDIR.into())
        }
    }

    /// Writes a file whole, or leaves the one that is there.
    pub(crate) fn write(&self, folder: Folder, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut file = self.file(folder, path, Task::Replace)?;
        file.write_all(content)?;
        self.done(folder, path, Task::FinishReplace)
    }

    /// Puts an empty file where nothing is.
    pub(crate) fn create(&self, folder: Folder, path: &Path, executable: bool) -> io::Result<File> {
        self.file(folder, path, Task::Create { executable })
    }

    /// What a folder holds, sorted; at most `max` entries, and at most 2,000.
    pub(crate) fn list(&self, folder: Folder, path: &Path, max: usize) -> io::Result<Vec<Entry>> {
        let max = max.min(MAX_ENTRIES);
        match self.call(folder, path, Task::List { max })? {
            (Answer::Entries(entries), _) => Ok(entries),
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// What is at a path.
    pub(crate) fn stat(&self, folder: Folder, path: &Path) -> io::Result<Option<Stat>> {
        match self.call(folder, path, Task::Stat)? {
            (Answer::Stat(stat), _) => Ok(stat),
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// What a link says.
    pub(crate) fn read_link(&self, folder: Folder, path: &Path) -> io::Result<Vec<u8>> {
        match self.call(folder, path, Task::ReadLink)? {
            (Answer::Link(target), _) => Ok(target),
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// A step in the life of the second worktree.
    pub(crate) fn check(&self, step: Task) -> io::Result<()> {
        self.done(Folder::CheckTree, Path::new(""), step)
    }

    /// A task whose answer says no more than that it is done.
    pub(crate) fn done(&self, folder: Folder, path: &Path, task: Task) -> io::Result<()> {
        match self.call(folder, path, task)? {
            (Answer::Done, _) => Ok(()),
            (other, _) => Err(unexpected(&other)),
        }
    }

    fn file(&self, folder: Folder, path: &Path, task: Task) -> io::Result<File> {
        match self.call(folder, path, task)? {
            (Answer::File, Some(file)) => Ok(file.into()),
            (other, _) => Err(unexpected(&other)),
        }
    }

    fn call(&self, folder: Folder, path: &Path, task: Task) -> io::Result<(Answer, Option<OwnedFd>)> {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path.as_os_str().as_bytes().to_vec();
        wire::send(&socket, &Request { folder, path, task }, None)?;
        answer(&socket)
    }
}

fn answer(socket: &UnixStream) -> io::Result<(Answer, Option<OwnedFd>)> {
    match wire::receive(socket)? {
        Some((Answer::Refused(number), _)) => Err(io::Error::from_raw_os_error(number)),
        Some(answer) => Ok(answer),
        None => Err(io::Error::other("the runner closed the connection")),
    }
}

fn unexpected(answer: &Answer) -> io::Error {
    io::Error::other(format!("a strange answer of the runner: {answer:?}"))
}
