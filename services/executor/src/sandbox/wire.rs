//! What executor and runner say to each other: frames as the launcher's, some with a file descriptor beside them. The
//! first frame of a connection says what it is for.

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
    beneath::{Entry, Stat},
    policy::{MAX_FRAME, Probe, frame},
};

/// A runner serves executors of its own version only.
pub(crate) const VERSION: u32 = 3;
/// Names in one answer; a frame has room for them.
pub(crate) const MAX_ENTRIES: usize = 2000;

/// The first frame.
#[derive(Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    pub(crate) wants: Wants,
}

/// What a connection is for.
#[derive(Serialize, Deserialize)]
pub(crate) enum Wants {
    /// What the machine offers to the runner's user; one answer.
    Probe,
    /// A launcher: from here on the connection is its own, and the descriptor beside this frame what it says of itself.
    Command,
    /// The files of one workspace, which goes with the connection. One at a time.
    Workspace {
        /// A worktree that is there already and stays; absent: a new one.
        tree: Option<PathBuf>,
    },
}

/// One of a workspace's folders.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Folder {
    /// The worktree.
    Tree,
    /// Scratch space.
    Scratch,
    /// The second worktree, of a check.
    CheckTree,
    /// Its scratch space.
    CheckScratch,
}

/// One task beneath a folder.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) folder: Folder,
    /// Bytes of a relative path.
    pub(crate) path: Vec<u8>,
    pub(crate) task: Task,
}

/// What is to be done at a path.
#[derive(Serialize, Deserialize)]
pub(crate) enum Task {
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
    /// Makes the second worktree and its scratch space; the folder and path of this and the next two count for nothing.
    BeginCheck,
    /// Puts them into the place of the workspace's own.
    EnterCheck,
    /// Puts the workspace's own back and deletes the others.
    EndCheck,
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Done,
    /// The descriptor is beside this frame.
    File,
    Stat(Option<Stat>),
    Entries(Vec<Entry>),
    Link(Vec<u8>),
    Probe(Probe),
    /// The workspace's own folder, with `tree` and `tmp` in it.
    Workspace(PathBuf),
    /// By the error number.
    Refused(i32),
}

/// Sends a value, and a descriptor with its first byte.
pub(crate) fn send(
    mut socket: &UnixStream,
    value: &impl Serialize,
    file: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let bytes = frame(value)?;
    let sent = send_some(socket, &bytes, file)?;
    socket.write_all(bytes.get(sent..).unwrap_or_default())
}

/// Sends as many bytes as there is room for, and a descriptor with the first; how many.
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
        SendFlags::NOSIGNAL,
    )?)
}

/// The next value with the descriptor that came with it; nothing once the other side has closed. Takes no byte beyond.
pub(crate) fn receive<T: DeserializeOwned>(
    mut socket: &UnixStream,
) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut length)];
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
    fn a_value_comes_with_its_descriptor_and_the_next_one_without() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let file = File::open("/dev/null").unwrap();
        send(&ours, &"first", Some(file.as_fd())).unwrap();
        send(&ours, &"second", None).unwrap();
        drop(ours);
        let (text, file) = receive::<String>(&theirs).unwrap().unwrap();
        assert!(text == "first" && file.is_some());
        let (text, file) = receive::<String>(&theirs).unwrap().unwrap();
        assert!(text == "second" && file.is_none());
        assert!(receive::<String>(&theirs).unwrap().is_none());
    }

    #[test]
    fn a_frame_above_the_limit_is_refused_before_it_is_read() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&u32::MAX.to_le_bytes()).unwrap();
        assert!(receive::<String>(&theirs).is_err());
        assert!(send(&theirs, &"x".repeat(MAX_FRAME), None).is_err());
    }
}
