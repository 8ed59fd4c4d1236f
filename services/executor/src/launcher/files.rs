//! Executes the executor's file tasks in the folders of one workspace.

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
    stage::Stage,
    wire::{Answer, Folder, MAX_ENTRIES, Request, Task},
};

/// The two folders of a workspace, the second pair during a check, and the file that is being replaced.
pub(crate) struct Files {
    tree: Beneath,
    scratch: Beneath,
    check: Option<Check>,
    replacement: Option<Replacement>,
}

/// Second pair of folders during a check.
struct Check {
    tree: Beneath,
    scratch: Beneath,
    stage: Stage,
}

impl Files {
    pub(crate) fn open(tree: &Path, scratch: &Path) -> io::Result<Self> {
        Ok(Self {
            tree: Beneath::open(tree)?,
            scratch: Beneath::open(scratch)?,
            check: None,
            replacement: None,
        })
    }

    /// Executes a task that is a step of a check; `None` for another task. The caller knows the workspace's
    /// folder.
    pub(crate) fn step(&mut self, request: &Request, place: &Path, beside: &Path) -> Option<Answer> {
        let done = match request.task {
            Task::BeginCheck => self.begin(place, beside),
            Task::EnterCheck => self.entered(),
            Task::EndCheck => self.end(),
            _ => return None,
        };
        Some(done.map_or_else(|error| refused(&error), |()| Answer::Done))
    }

    fn begin(&mut self, place: &Path, beside: &Path) -> io::Result<()> {
        // An interrupted check may have left its folders behind.
        self.end()?;
        let stage = Stage::make(place, beside)?;
        let [tree, scratch] = stage.folders();
        self.check = Some(Check {
            tree: Beneath::open(&tree)?,
            scratch: Beneath::open(&scratch)?,
            stage,
        });
        Ok(())
    }

    fn entered(&mut self) -> io::Result<()> {
        self.check.as_mut().ok_or(Errno::INVAL)?.stage.enter()
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(mut check) = self.check.take() else {
            return Ok(());
        };
        check.stage.leave()?;
        remove(check.stage.beside())
    }

    /// Executes a task. Returns the answer, and the descriptor of an opened file.
    pub(crate) fn answer(&mut self, request: &Request) -> (Answer, Option<OwnedFd>) {
        match self.perform(request) {
            Ok((answer, file)) => (answer, file.map(OwnedFd::from)),
            Err(error) => (refused(&error), None),
        }
    }

    fn perform(&mut self, request: &Request) -> io::Result<(Answer, Option<File>)> {
        let path = Path::new(OsStr::from_bytes(&request.path));
        let root = match request.folder {
            Folder::Tree => &self.tree,
            Folder::Scratch => &self.scratch,
            Folder::CheckTree => &self.check.as_ref().ok_or(Errno::NOENT)?.tree,
            Folder::CheckScratch => &self.check.as_ref().ok_or(Errno::NOENT)?.scratch,
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
            Task::BeginCheck | Task::EnterCheck | Task::EndCheck => return Err(Errno::INVAL.into()),
        };
        Ok((answer, None))
    }
}

fn refused(error: &io::Error) -> Answer {
    Answer::Refused(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()))
}

/// Deletes a folder, even if commands removed permissions from its content.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match Beneath::open(folder) {
        Ok(opened) => show::folders(&opened.0)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    std::fs::remove_dir_all(folder)
}

fn done(result: io::Result<()>) -> io::Result<Answer> {
    result.map(|()| Answer::Done)
}
