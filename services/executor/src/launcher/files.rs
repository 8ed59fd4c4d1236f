//! Executes the executor's file tasks in the folders of one workspace.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, chmodat, openat2, statat},
    io::Errno,
};

use crate::{
    confined_dir::{ConfinedDir, FileReplacement, PLAIN},
    swap_folders::SwapFolders,
    wire::{FileRequest, FileTask, MAX_ENTRIES, RunnerAnswer, WorkspaceFolder},
};

/// Limit of visited folders.
const MAX_FOLDERS: usize = 200_000;
/// Limit of nested folders; each level holds a descriptor.
const MAX_DEPTH: usize = 200;

/// The two folders of a workspace, the second pair during a check, and the file that is being replaced.
pub(crate) struct WorkspaceFiles {
    tree: ConfinedDir,
    scratch: ConfinedDir,
    check: Option<CheckFolders>,
    replacement: Option<FileReplacement>,
}

/// Second pair of folders during a check.
struct CheckFolders {
    tree: ConfinedDir,
    scratch: ConfinedDir,
    stage: SwapFolders,
}

impl WorkspaceFiles {
    pub(crate) fn open(tree: &Path, scratch: &Path) -> io::Result<Self> {
        Ok(Self {
            tree: ConfinedDir::open(tree)?,
            scratch: ConfinedDir::open(scratch)?,
            check: None,
            replacement: None,
        })
    }

    /// Executes a task that is a step of a check; `None` for another task. The caller knows the workspace's
    /// folder.
    pub(crate) fn step(
        &mut self,
        request: &FileRequest,
        place: &Path,
        beside: &Path,
    ) -> Option<RunnerAnswer> {
        let done = match request.task {
            FileTask::BeginCheck => self.begin(place, beside),
            FileTask::EnterCheck => self.entered(),
            FileTask::EndCheck => self.end(),
            FileTask::Open
            | FileTask::Stat
            | FileTask::List { .. }
            | FileTask::ReadLink
            | FileTask::WriteLink { .. }
            | FileTask::Create { .. }
            | FileTask::Replace
            | FileTask::FinishReplace
            | FileTask::Remove
            | FileTask::RemoveEmptyFolders
            | FileTask::MakeFolder
            | FileTask::ShowFolders => return None,
        };
        Some(done.map_or_else(|error| refuse_task(&error), |()| RunnerAnswer::Done))
    }

    fn begin(&mut self, place: &Path, beside: &Path) -> io::Result<()> {
        // An interrupted check may have left its folders behind.
        self.end()?;
        let stage = SwapFolders::make(place, beside)?;
        let [tree, scratch] = stage.folders();
        self.check = Some(CheckFolders {
            tree: ConfinedDir::open(&tree)?,
            scratch: ConfinedDir::open(&scratch)?,
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
        // Before the deletion: while the second pair is in place, the workspace's own folders lie in the
        // folder that is deleted.
        check.stage.leave()?;
        remove_locked_folder(check.stage.beside())
    }

    /// Executes a task. Returns the answer, and the descriptor of an opened file.
    pub(crate) fn answer(&mut self, request: &FileRequest) -> (RunnerAnswer, Option<OwnedFd>) {
        match self.perform(request) {
            Ok((answer, file)) => (answer, file.map(OwnedFd::from)),
            Err(error) => (refuse_task(&error), None),
        }
    }

    fn perform(&mut self, request: &FileRequest) -> io::Result<(RunnerAnswer, Option<File>)> {
        let path = Path::new(OsStr::from_bytes(&request.path));
        let root = match request.folder {
            WorkspaceFolder::Tree => &self.tree,
            WorkspaceFolder::Scratch => &self.scratch,
            WorkspaceFolder::CheckTree => &self.check.as_ref().ok_or(Errno::NOENT)?.tree,
            WorkspaceFolder::CheckScratch => &self.check.as_ref().ok_or(Errno::NOENT)?.scratch,
        };
        let answer = match &request.task {
            FileTask::Open => return Ok((RunnerAnswer::File, Some(root.open_file(path)?))),
            FileTask::Create { executable } => {
                return Ok((RunnerAnswer::File, Some(root.create(path, *executable)?)));
            }
            FileTask::Replace => {
                let replacement = root.replace(path)?;
                // The executor writes through a duplicate. This process keeps the file for its mode and
                // the rename.
                let file = replacement.file.try_clone()?;
                self.replacement = Some(replacement);
                return Ok((RunnerAnswer::File, Some(file)));
            }
            FileTask::FinishReplace => {
                let replacement = self.replacement.take().ok_or(Errno::INVAL)?;
                replacement.finish()?;
                RunnerAnswer::Done
            }
            FileTask::Stat => RunnerAnswer::Stat(root.stat(path)?),
            // A longer list does not fit into a frame, so the runner applies the limit too.
            FileTask::List { max } => RunnerAnswer::Entries(root.list(path, (*max).min(MAX_ENTRIES))?),
            FileTask::ReadLink => RunnerAnswer::Link(root.read_link(path)?),
            FileTask::WriteLink { target } => done_answer(root.write_link(path, target))?,
            FileTask::Remove => done_answer(root.remove(path))?,
            FileTask::RemoveEmptyFolders => {
                root.remove_empty_folders(path);
                RunnerAnswer::Done
            }
            FileTask::MakeFolder => done_answer(root.make_folder(path).map(drop))?,
            FileTask::ShowFolders => done_answer(show_folders(&root.0))?,
            // `step` executes these, because they need the folder of the workspace.
            FileTask::BeginCheck | FileTask::EnterCheck | FileTask::EndCheck => {
                return Err(Errno::INVAL.into());
            }
        };
        Ok((answer, None))
    }
}

fn refuse_task(error: &io::Error) -> RunnerAnswer {
    RunnerAnswer::Refused(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()))
}

/// Deletes a folder, even if commands removed permissions from its content.
pub(crate) fn remove_locked_folder(folder: &Path) -> io::Result<()> {
    match ConfinedDir::open(folder) {
        Ok(opened) => show_folders(&opened.0)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    std::fs::remove_dir_all(folder)
}

fn done_answer(result: io::Result<()>) -> io::Result<RunnerAnswer> {
    result.map(|()| RunnerAnswer::Done)
}

/// Makes every folder below readable for all users, and the `.gitignore` files too. Follows no symbolic link.
fn show_folders(root: &OwnedFd) -> io::Result<()> {
    let mut left = MAX_FOLDERS;
    show_folder(root, &mut left, 0)
}

fn show_folder(folder: &OwnedFd, left: &mut usize, depth: usize) -> io::Result<()> {
    *left = left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
    if depth > MAX_DEPTH {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let entries: Vec<_> = Dir::read_from(folder)?.collect::<Result<_, _>>()?;
    for entry in entries {
        let (name, kind) = (entry.file_name(), entry.file_type());
        let missing = match kind {
            FileType::Directory if name != c"." && name != c".." => 0o755,
            FileType::RegularFile if name == c".gitignore" => 0o444,
            _ => continue,
        };
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if stat.st_mode & missing != missing && FileType::from_raw_mode(stat.st_mode) == kind {
            // `chmodat` follows a link that a command swaps in meanwhile, but its target can only be a file
            // of the same user.
            chmodat(
                folder,
                name,
                Mode::from_raw_mode(stat.st_mode | missing),
                AtFlags::empty(),
            )?;
        }
        if kind == FileType::Directory {
            // A command may replace the folder at any time; an entry that changed is skipped.
            match openat2(folder, name, flags, Mode::empty(), PLAIN) {
                Ok(inner) => show_folder(&inner, left, depth + 1)?,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
