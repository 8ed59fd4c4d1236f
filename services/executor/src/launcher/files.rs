//! The runner's answers to tasks beneath the folders of one workspace.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::io::Errno;

use crate::{
    beneath::{Beneath, Replacement},
    show,
    wire::{Answer, Folder, MAX_ENTRIES, Request, Task},
};

/// The two folders, and the file that is being replaced.
pub(crate) struct Files {
    tree: Beneath,
    scratch: Beneath,
    replacement: Option<Replacement>,
}

impl Files {
    pub(crate) fn open(tree: &Path, scratch: &Path) -> io::Result<Self> {
        Ok(Self {
            tree: Beneath::open(tree)?,
            scratch: Beneath::open(scratch)?,
            replacement: None,
        })
    }

    /// Lets everybody look into every folder of the worktree, so that the executor can walk over it.
    pub(crate) fn show_folders(&self) -> io::Result<()> {
        show::folders(&self.tree.0)
    }

    /// Does a task; the descriptor goes beside the answer.
    pub(crate) fn answer(&mut self, request: &Request) -> (Answer, Option<OwnedFd>) {
        match self.perform(request) {
            Ok((answer, file)) => (answer, file.map(OwnedFd::from)),
            Err(error) => {
                let number = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
                (Answer::Refused(number), None)
            }
        }
    }

    fn perform(&mut self, request: &Request) -> io::Result<(Answer, Option<File>)> {
        let path = Path::new(OsStr::from_bytes(&request.path));
        let root = match request.folder {
            Folder::Tree => &self.tree,
            Folder::Scratch => &self.scratch,
        };
        let answer = match &request.task {
            Task::Open => return Ok((Answer::File, Some(root.open_file(path)?))),
            Task::Create { executable } => return Ok((Answer::File, Some(root.create(path, *executable)?))),
            Task::Replace => {
                let replacement = root.replace(path)?;
                let file = replacement.file.try_clone()?;
                self.replacement = Some(replacement);
                return Ok((Answer::File, Some(file)));
            }
            Task::FinishReplace => {
                let replacement = self.replacement.take().ok_or(Errno::INVAL)?;
                replacement.finish()?;
                Answer::Done
            }
            Task::Stat => Answer::Stat(root.stat(path)?),
            Task::List { max } => Answer::Entries(root.list(path, (*max).min(MAX_ENTRIES))?),
            Task::ReadLink => Answer::Link(root.read_link(path)?),
            Task::WriteLink { target } => done(root.write_link(path, target))?,
            Task::Remove => done(root.remove(path))?,
            Task::RemoveEmptyFolders => {
                root.remove_empty_folders(path);
                Answer::Done
            }
            Task::MakeFolder => done(root.make_folder(path).map(drop))?,
            Task::ShowFolders => done(show::folders(&root.0))?,
        };
        Ok((answer, None))
    }
}

fn done(result: io::Result<()>) -> io::Result<Answer> {
    result.map(|()| Answer::Done)
}
