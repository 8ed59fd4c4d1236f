//! A workspace over an existing folder, for one tool or command from a terminal.
//!
//! Its git starts at the checked-out commit of the folder. If the folder is not a repository, it starts at
//! the files as they are.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use domain::{CommitAuthor, CommitId};
use git2::Oid;

use super::{
    WorkspaceError, WorkspaceRoot, commits::write_commit, disk::VIEW, tracked_files::list_tracked_files,
};
use crate::sandbox::PathCover;

const BRANCH: &str = "main";
/// Name of the git directory or file in a worktree.
const GIT_FILE: &str = ".git";
/// File in the scratch space that names the view, for a folder whose `.git` is a file.
const POINTER: &str = "checkout.gitfile";
/// Folder in the git directory with a mount point for each object folder, where commands find the folder's
/// objects.
const SHARED: &str = "shared";
// Limit of object folders that refer to each other; git itself follows five levels of alternates.
const MAX_OBJECT_FOLDERS: usize = 8;
/// Limit of a list of alternates, in bytes.
const MAX_LIST_BYTES: u64 = 64 * 1024;

/// State of a workspace over an existing folder.
pub(super) struct AdoptedFolder {
    /// Object folders of the existing repository, at the paths of commands.
    pub(super) objects: Vec<PathBuf>,
    /// Paths that commands see differently from this process; empty if variables point git to the view.
    pub(super) covers: Vec<PathCover>,
    /// Held only for its destructor.
    _git_folder: Option<MadeFolder>,
}

impl AdoptedFolder {
    /// Returns true when git in commands finds the repository without variables.
    pub(super) fn is_covered(&self) -> bool {
        !self.covers.is_empty()
    }
}

/// Empty `.git` folder in a folder that had none. Dropping it removes the folder.
struct MadeFolder(PathBuf);

impl Drop for MadeFolder {
    fn drop(&mut self) {
        // The error is ignored: a folder that is not empty anymore contains files of the user.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Repository at the root of a worktree, if there is one.
struct FolderStart {
    repository: git::BareRepository,
    head: Option<git::FolderHead>,
    objects: Vec<PathBuf>,
}

/// Git of a worktree that existed before.
pub(super) struct AdoptedGit {
    pub(super) repository: git::BareRepository,
    pub(super) adopted: AdoptedFolder,
    pub(super) base: CommitId,
    pub(super) base_branch: String,
    /// True when the folder is not a repository: the base is then an empty commit, until the files are known.
    pub(super) is_new: bool,
}

impl AdoptedGit {
    /// Creates the git directory of a workspace over `tree`.
    ///
    /// The git directory of `tree` is not written to, and only objects and `HEAD` are read from it.
    /// `can_cover`: commands have a separate mount namespace. Blocks.
    pub(super) fn open(
        git_dir: &Path,
        tree: &Path,
        scratch: &WorkspaceRoot,
        can_cover: bool,
    ) -> Result<Self, WorkspaceError> {
        let FolderStart {
            repository,
            head,
            objects,
        } = open_folder_repository(git_dir, tree)?;
        let adopted = plan_adoption(tree, scratch, git_dir, objects, can_cover)?;
        let is_new = head.is_none();
        let (base, base_branch) = match head {
            Some(head) => (head.commit, head.branch),
            None => {
                let empty = repository.objects().treebuilder(None)?.write()?;
                (commit_base(&repository, empty)?, BRANCH.to_owned())
            }
        };
        Ok(Self {
            repository,
            adopted,
            base,
            base_branch,
            is_new,
        })
    }
}

/// Creates the git directory for a folder. If the folder is the root of a repository with a commit, the git
/// directory reads that repository's objects.
fn open_folder_repository(git_dir: &Path, tree: &Path) -> Result<FolderStart, WorkspaceError> {
    let own = git::FolderRepository::open(tree)
        .ok()
        .filter(|own| own.path() == tree);
    if let Some(own) = own
        && let Ok(head) = own.head()
    {
        let repository = own.view_at(git_dir)?;
        if is_whole(&repository, &head.commit) {
            return Ok(FolderStart {
                objects: object_folders(&git_dir.join("objects")),
                head: Some(head),
                repository,
            });
        }
        // Some objects are missing, as in a partial clone, so the repository cannot be used.
        fs::remove_dir_all(git_dir)?;
    }
    git::BareRepository::init_bare(git_dir)?;
    Ok(FolderStart {
        repository: git::BareRepository::open(git_dir)?,
        head: None,
        objects: Vec::new(),
    })
}

fn is_whole(repository: &git::BareRepository, commit: &CommitId) -> bool {
    let git = repository.objects();
    let tree = Oid::from_str(commit.as_str()).and_then(|id| Ok(git.find_commit(id)?.tree_id()));
    let files = tree
        .map_err(WorkspaceError::from)
        .and_then(|tree| list_tracked_files(git, tree));
    files.is_ok_and(|files| {
        let odb = git.odb();
        let is_here = |id: &Oid| odb.as_ref().is_ok_and(|odb| odb.exists(*id));
        let blobs = files.values().filter(|(_, mode)| *mode != 0o160_000);
        blobs.map(|(id, _)| id).all(is_here)
    })
}

/// Returns the object folders that this one refers to, directly and indirectly, without itself.
fn object_folders(objects: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut queue = vec![objects.to_owned()];
    while let Some(folder) = queue.pop() {
        let list = folder.join("info/alternates");
        let is_short = fs::metadata(&list).is_ok_and(|list| list.len() <= MAX_LIST_BYTES);
        let list = if is_short {
            fs::read_to_string(list)
        } else {
            Ok(String::new())
        };
        let named = list.unwrap_or_default();
        for line in named
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            // Git resolves relative entries from the folder whose list contains them.
            let Ok(path) = folder.join(line).canonicalize() else {
                continue;
            };
            if found.len() < MAX_OBJECT_FOLDERS && path.is_dir() && !found.contains(&path) {
                found.push(path.clone());
                queue.push(path);
            }
        }
    }
    found
}

/// Computes the view of commands. With a mount namespace, the view covers `.git`, and the folder's hidden
/// objects are mounted at other paths.
fn plan_adoption(
    tree: &Path,
    scratch: &WorkspaceRoot,
    git_dir: &Path,
    objects: Vec<PathBuf>,
    can_cover: bool,
) -> Result<AdoptedFolder, WorkspaceError> {
    let git_file = tree.join(GIT_FILE);
    let there = fs::symlink_metadata(&git_file);
    let made = match &there {
        Err(error) if can_cover && error.kind() == io::ErrorKind::NotFound => fs::create_dir(&git_file).ok(),
        Ok(_) | Err(_) => None,
    };
    let made = made.map(|()| MadeFolder(git_file.clone()));
    let from = match there {
        Ok(there) if there.is_dir() => Some(scratch.path().join(VIEW)),
        Ok(there) if there.is_file() => {
            let content = format!("gitdir: {}\n", scratch.path().join(VIEW).display());
            scratch.write(Path::new(POINTER), content.as_bytes())?;
            Some(scratch.path().join(POINTER))
        }
        _ => made.as_ref().map(|_| scratch.path().join(VIEW)),
    };
    let Some(from) = from.filter(|_| can_cover) else {
        return Ok(AdoptedFolder {
            objects,
            covers: Vec::new(),
            _git_folder: made,
        });
    };
    let mut covers = Vec::new();
    let mut seen = Vec::new();
    for (number, folder) in objects.into_iter().enumerate() {
        let at = git_dir.join(SHARED).join(number.to_string());
        fs::create_dir_all(&at)?;
        seen.push(at.clone());
        let list = Path::new("info/alternates");
        let names_others = folder.join(list).exists();
        covers.push(PathCover {
            from: folder,
            at: at.clone(),
            writable: false,
        });
        if names_others {
            // Commands cannot reach the paths in this list. The view names all object folders, so an empty
            // list replaces it.
            let from = git_dir.join(SHARED).join("alternates");
            fs::write(&from, "")?;
            covers.push(PathCover {
                from,
                at: at.join(list),
                writable: false,
            });
        }
    }
    covers.push(PathCover {
        from,
        at: git_file,
        writable: true,
    });
    Ok(AdoptedFolder {
        objects: seen,
        covers,
        _git_folder: made,
    })
}

/// Creates the commit that the work starts from.
pub(super) fn commit_base(repository: &git::BareRepository, tree: Oid) -> Result<CommitId, WorkspaceError> {
    let author = CommitAuthor::journeyman();
    write_commit(repository.objects(), tree, &[], "As it was\n", (&author, 0))
}
