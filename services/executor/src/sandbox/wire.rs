//! Protocol between executor and runner: frames like the launcher's, some with a file descriptor. The first
//! frame of a connection is a [`RunnerHello`] with its purpose.

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    confined_dir::{FileStat, FolderEntry},
    policy::{MAX_FRAME, SandboxProbe, encode_frame},
};

/// Version of the protocol. A runner serves only executors of the same version.
pub(crate) const VERSION: u32 = 5;
/// Limit of names in one answer, so that it fits into a frame.
pub(crate) const MAX_ENTRIES: usize = 2000;

/// First frame of a connection.
#[derive(Serialize, Deserialize)]
pub(crate) struct RunnerHello {
    pub(crate) version: u32,
    pub(crate) wants: ConnectionPurpose,
}

/// Purpose of a connection.
#[derive(Serialize, Deserialize)]
pub(crate) enum ConnectionPurpose {
    /// Probe of the machine for the runner's user; one answer.
    Probe,
    /// A launcher, which owns the connection from then on. The descriptor of this frame receives its
    /// messages.
    Command,
    /// Files of one workspace, which is deleted with the connection. A runner holds one workspace at a time.
    Workspace {
        /// Existing worktree, which is not deleted; `None` for a new one.
        tree: Option<PathBuf>,
    },
}

/// Folder of a workspace.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum WorkspaceFolder {
    /// Worktree of the workspace.
    Tree,
    /// Scratch space with the home folder.
    Scratch,
    /// Second worktree, for a check.
    CheckTree,
    /// Scratch space of the check.
    CheckScratch,
}

/// Task in a folder.
#[derive(Serialize, Deserialize)]
pub(crate) struct FileRequest {
    pub(crate) folder: WorkspaceFolder,
    /// Bytes of a relative path.
    pub(crate) path: Vec<u8>,
    pub(crate) task: FileTask,
}

/// Operation on a path.
#[derive(Serialize, Deserialize)]
pub(crate) enum FileTask {
    Open,
    Stat,
    List {
        max: usize,
    },
    ReadLink,
    WriteLink {
        target: Vec<u8>,
    },
    Create {
        executable: bool,
    },
    Replace,
    FinishReplace,
    Remove,
    RemoveEmptyFolders,
    MakeFolder,
    ShowFolders,
    /// Creates the second worktree and its scratch space. This and the next two tasks ignore folder and path.
    BeginCheck,
    /// Swaps them with the workspace's folders.
    EnterCheck,
    /// Restores the workspace's folders and deletes the others.
    EndCheck,
}

/// Result of a task.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RunnerAnswer {
    Done,
    /// The descriptor is sent with this frame.
    File,
    Stat(Option<FileStat>),
    Entries(Vec<FolderEntry>),
    Link(Vec<u8>),
    Probe(SandboxProbe),
    /// Folder of the workspace, which contains `tree` and `tmp`.
    Workspace(PathBuf),
    /// Failure with its error number (`errno`).
    Refused(i32),
}

/// Sends a value, with a descriptor on its first byte.
pub(crate) fn send_frame(
    mut socket: &UnixStream,
    value: &impl Serialize,
    file: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let bytes = encode_frame(value)?;
    let sent = send_some(socket, &bytes, file)?;
    socket.write_all(bytes.get(sent..).unwrap_or_default())
}

/// Sends as many bytes as the socket accepts, with a descriptor on the first one. Returns their number.
pub(crate) fn send_some(socket: impl AsFd, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&files));
    }
    Ok(sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        // A closed peer becomes an error, also in a process that does not ignore `SIGPIPE`.
        SendFlags::NOSIGNAL,
    )?)
}

/// Receives the next value with its descriptor; `None` after the peer closed the connection. Reads no byte of
/// the next frame.
pub(crate) fn receive_frame<T: DeserializeOwned>(
    mut socket: &UnixStream,
) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    // Only the four bytes of the length are requested, so that the next frame stays in the socket with its
    // descriptor.
    let mut parts = [IoSliceMut::new(&mut length)];
    // `CMSG_CLOEXEC`, because a child that another thread starts now must not inherit the descriptor.
    let count = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.last();
        }
    }
    if count == 0 {
        return Ok(None);
    }
    socket.read_exact(length.get_mut(count..).unwrap_or_default())?;
    let length = u32::from_le_bytes(length) as usize;
    // The peer chooses the length, so it is checked before the allocation.
    if length > MAX_FRAME {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body)?;
    Ok(Some((serde_json::from_slice(&body)?, file)))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use super::*;

    #[test]
    fn descriptor_belongs_to_its_frame() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let file = File::open("/dev/null").unwrap();
        send_frame(&ours, &"first", Some(file.as_fd())).unwrap();
        send_frame(&ours, &"second", None).unwrap();
        drop(ours);
        let (text, file) = receive_frame::<String>(&theirs).unwrap().unwrap();
        assert!(text == "first" && file.is_some());
        let (text, file) = receive_frame::<String>(&theirs).unwrap().unwrap();
        assert!(text == "second" && file.is_none());
        assert!(receive_frame::<String>(&theirs).unwrap().is_none());
    }

    #[test]
    fn oversized_runner_frame_is_not_read() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&u32::MAX.to_le_bytes()).unwrap();
        assert!(receive_frame::<String>(&theirs).is_err());
        assert!(send_frame(&theirs, &"x".repeat(MAX_FRAME), None).is_err());
    }
}
