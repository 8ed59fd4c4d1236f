//! Files of the base commit, the repository's own instructions, and names that a new branch can have.

use std::{iter, path::Path};

use domain::{CommitId, text::truncate_bytes};
use git2::ObjectType;

use super::{
    WorkspaceError,
    conversion::CheckoutAttributes,
    folder_guides::{FolderGuide, FolderGuides, read_guide, read_nearest_guide},
    git_directory::GitDirectory,
    tracked_files::list_tracked_files,
};

/// Limits of files at the base: listed ones, and read ones.
const MAX_FILES: usize = 200_000;
const MAX_TEXTS: usize = 200;
/// Limit of a read file, in bytes.
const MAX_TEXT: usize = 256 * 1024;

/// Returns the newest commit of the base branch's history that is an ancestor of the base. If the base itself
/// is in that history, it is the base. `None` if the base branch is unknown.
pub(crate) fn find_foundation(
    mirror: &Path,
    base: &CommitId,
    base_branch: &str,
) -> Result<Option<CommitId>, WorkspaceError> {
    let mirror = git::BareRepository::open(mirror)?;
    match mirror.branch_head(base_branch)? {
        Some(head) => Ok(mirror.merge_base(&head, base)?),
        None => Ok(None),
    }
}

impl GitDirectory {
    /// Lists every file at the base, with its text if it is wanted and within the limits. Blocks.
    pub(crate) fn base_files(
        &self,
        is_wanted: fn(&str) -> bool,
    ) -> Result<Vec<(String, Option<String>)>, WorkspaceError> {
        let repository = self.open()?;
        let git = repository.objects();
        let (mut found, mut texts) = (Vec::new(), 0);
        for (path, (id, mode)) in list_tracked_files(git, self.base_tree(git)?)?
            .into_iter()
            .take(MAX_FILES)
        {
            let Some(path) = path.to_str().map(str::to_owned) else {
                continue;
            };
            let is_read = matches!(mode, 0o100_644 | 0o100_755) && texts < MAX_TEXTS && is_wanted(&path);
            let text = is_read.then(|| git.find_blob(id)).transpose()?;
            let text = text.filter(|blob| blob.size() <= MAX_TEXT);
            texts += usize::from(text.is_some());
            found.push((
                path,
                text.map(|blob| String::from_utf8_lossy(blob.content()).into_owned()),
            ));
        }
        Ok(found)
    }

    /// Returns the commit from which the repository's own instructions are read: the newest commit of the
    /// base branch that is an ancestor of the base.
    ///
    /// At the head of a pull request, its author could instruct the model. `None` if the base branch is
    /// unknown.
    fn instructing_commit(&self) -> Result<Option<CommitId>, WorkspaceError> {
        // The folder belongs to the user who started the command, so all of its files are trusted.
        if self.is_adopted() {
            return Ok(Some(self.base.clone()));
        }
        find_foundation(&self.mirror, &self.base, &self.base_branch)
    }

    /// Returns true when the base is in the history of its branch, so that no pull request wrote it. False when the
    /// history cannot be read. Blocks.
    pub(crate) fn is_base_on_branch(&self) -> bool {
        let known = find_foundation(&self.mirror, &self.base, &self.base_branch);
        known.is_ok_and(|commit| commit.as_ref() == Some(&self.base))
    }

    /// Replaces the text of guides by that of the base branch. Blocks.
    pub(crate) fn with_guides_of_base_branch(
        &self,
        mut files: Vec<(String, Option<String>)>,
        is_guide: fn(&str) -> bool,
    ) -> Result<Vec<(String, Option<String>)>, WorkspaceError> {
        let commit = self.instructing_commit()?;
        if commit.as_ref() == Some(&self.base) {
            return Ok(files);
        }
        let repository = self.open()?;
        for (path, text) in files
            .iter_mut()
            .filter(|(path, text)| text.is_some() && is_guide(path))
        {
            let trusted = match &commit {
                Some(commit) => repository.read_file(commit, path)?,
                None => None,
            };
            *text = trusted.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        }
        Ok(files)
    }

    /// Returns the repository's instructions from the base branch, truncated to `max_bytes`.
    pub(crate) fn instructions(&self, max_bytes: usize) -> Result<String, WorkspaceError> {
        let Some(commit) = self.instructing_commit()? else {
            return Ok(String::new());
        };
        let guide = read_guide(&self.open()?, &commit, "")?;
        let text = guide.map(|guide| guide.text).unwrap_or_default();
        Ok(truncate_bytes(&text, max_bytes).to_owned())
    }

    /// Returns the instructions nearest to a file, from the base branch, if the model has not read them yet. Blocks.
    pub(crate) fn new_guide_of(
        &self,
        guides: &FolderGuides,
        file: &str,
    ) -> Result<Option<FolderGuide>, WorkspaceError> {
        let Some(folder) = guides.find_unanswered(file) else {
            return Ok(None);
        };
        let Some(commit) = guides.commit(|| self.instructing_commit())? else {
            return Ok(None);
        };
        let guide = read_nearest_guide(&self.open()?, &commit, &folder)?;
        guides.note_answered(folder);
        Ok(guide.filter(|guide| guides.is_new(&guide.path)))
    }

    /// Returns a file at the base; `None` if it does not exist or is too large.
    pub(crate) fn read_base(&self, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        Ok(self.open()?.read_file(&self.base, path)?)
    }

    /// Returns the bytes that a checkout of the base writes for a file; `None` if it does not exist. Blocks.
    pub(crate) fn read_checked_out(&self, path: &Path) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let repository = self.open()?;
        let git = repository.objects();
        let tree = git.find_tree(self.base_tree(git)?)?;
        let entry = tree.get_path(path).ok();
        let Some(entry) = entry.filter(|entry| entry.kind() == Some(ObjectType::Blob)) else {
            return Ok(None);
        };
        let blob = git.find_blob(entry.id())?;
        let mut attributes = CheckoutAttributes::of_paths(git, &tree, iter::once(path), &self.lfs);
        let content = attributes.convert(path, blob.content(), (entry.id(), entry.filemode()));
        Ok(Some(content.into_owned()))
    }

    /// Returns the name if a new branch on the remote can have it. Otherwise it returns the first similar
    /// free name: with `-` for `/`, then with a number.
    pub(super) fn free_name(&self, name: &str) -> Result<String, WorkspaceError> {
        let mirror = git::BareRepository::open(&self.mirror)?;
        if self.is_continued_by(&mirror, name)? {
            return Ok(name.to_owned());
        }
        let taken = mirror.taken_names()?;
        let is_free = |name: &str| {
            !taken.contains(name)
                && git::find_conflicting_branch(name, taken.iter().map(String::as_str)).is_none()
        };
        if is_free(name) {
            return Ok(name.to_owned());
        }
        let flat = name.replace('/', "-");
        let base = match taken.contains(name) || taken.contains(&flat) {
            // A number suffices, unless another branch occupies a folder of the name.
            true if git::find_conflicting_branch(name, taken.iter().map(String::as_str)).is_none() => name,
            true | false => flat.as_str(),
        };
        let numbered = (2..10_000).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.to_owned()).chain(numbered);
        let free = names.find(|name| is_free(name));
        Ok(free.unwrap_or_else(|| name.to_owned()))
    }

    /// Returns true when this work continues the branch: its head is the base commit, which is not a commit
    /// of the base branch, or the head that is merged into the base.
    fn is_continued_by(&self, mirror: &git::BareRepository, name: &str) -> Result<bool, WorkspaceError> {
        let Some(head) = mirror.branch_head(name)? else {
            return Ok(false);
        };
        let start = self.merge().map_or(&self.base, |merge| &merge.head);
        let is_ours = match mirror.is_descendant(&head, start) {
            // Work that it continues is at the start itself, so such a branch is another one.
            Err(git::Error::HistoryIncomplete) => false,
            is_descendant => is_descendant?,
        };
        if self.merge().is_some() {
            return Ok(is_ours);
        }
        let Some(main) = mirror.branch_head(&self.base_branch)? else {
            return Ok(is_ours);
        };
        Ok(is_ours && !mirror.is_descendant(&main, &self.base)?)
    }
}

#[cfg(test)]
mod tests {
    use git2::Oid;
    use serde_json::json;

    use crate::{tools::tests::World, workspace::tests::commit_tree};

    /// Remote branches, and the name that a new branch gets for a wanted one.
    struct NameCase {
        /// Branches whose objects are in the mirror.
        here: &'static [&'static str],
        /// Branches of which the mirror has only the names.
        elsewhere: &'static [&'static str],
        wanted: &'static str,
        free: &'static str,
    }

    fn open_mirror(world: &World) -> git::BareRepository {
        git::BareRepository::open(&world.call.workspace.git.mirror).unwrap()
    }

    #[test]
    fn new_branch_gets_free_name() {
        for NameCase {
            here,
            elsewhere,
            wanted,
            free,
        } in [
            NameCase {
                here: &["fix/ENG-1", "feat-x"],
                elsewhere: &["fix/ENG-12-x-2"],
                wanted: "fix/ENG-12-x",
                free: "fix/ENG-12-x",
            },
            NameCase {
                here: &["fix/x"],
                elsewhere: &[],
                wanted: "fix/x",
                free: "fix/x-2",
            },
            NameCase {
                here: &["fix/x"],
                elsewhere: &["fix/x-2", "fix/x-3"],
                wanted: "fix/x",
                free: "fix/x-4",
            },
            NameCase {
                here: &[],
                elsewhere: &["fix/x"],
                wanted: "fix/x",
                free: "fix/x-2",
            },
            NameCase {
                here: &["fix"],
                elsewhere: &[],
                wanted: "fix/x",
                free: "fix-x",
            },
            NameCase {
                here: &[],
                elsewhere: &["fix"],
                wanted: "fix/x",
                free: "fix-x",
            },
            NameCase {
                here: &["fix"],
                elsewhere: &["fix-x"],
                wanted: "fix/x",
                free: "fix-x-2",
            },
            NameCase {
                here: &["fix/x/deep"],
                elsewhere: &[],
                wanted: "fix/x",
                free: "fix-x",
            },
            NameCase {
                here: &["x/deep"],
                elsewhere: &[],
                wanted: "x",
                free: "x-2",
            },
        ] {
            let world = World::new();
            let workspace = &world.call.workspace;
            let (mirror, base) = (open_mirror(&world), &workspace.git.base);
            for name in here {
                mirror.set_branch(name, base).unwrap();
            }
            let id = Oid::from_str(base.as_str()).unwrap();
            for name in elsewhere {
                let reference = format!("refs/taken/{name}");
                mirror.objects().reference(&reference, id, true, "test").unwrap();
            }
            let text = world
                .run("create_branch", &json!({ "branch_name": wanted }))
                .unwrap();
            let case = format!("{wanted} with {here:?} and {elsewhere:?}");
            assert_eq!(workspace.history.branch().0.as_deref(), Some(free), "{case}");
            let is_explained = text.contains(&format!("The remote has a branch with the name {wanted}"));
            assert_eq!(is_explained, wanted != free, "{case}: {text}");
        }
    }

    #[test]
    fn answered_guide_needs_no_repository() {
        let world = World::new();
        let workspace = &world.call.workspace;
        let find = |file: &str| workspace.git.new_guide_of(&workspace.guides, file);
        assert_eq!(find("shop/cart.py").unwrap(), None);
        let path = workspace.git.path();
        std::fs::rename(path, path.with_extension("away")).unwrap();
        for file in ["shop/cart.py", "shop/other.py", "README.md"] {
            assert_eq!(find(file).unwrap(), None, "{file}");
        }
        assert!(find("docs/a.md").is_err());
    }

    #[test]
    fn boundary_of_mirror_applies_to_workspace() {
        let world = World::new();
        let git = &world.call.workspace.git;
        assert!(!git.lacks_history_of("git log") && git.boundary_file().is_none());
        let boundary = format!("{}\n", git.base);
        std::fs::write(git.mirror.join("shallow"), &boundary).unwrap();
        git.copy_boundary().unwrap();
        assert_eq!(git.boundary_file(), Some(boundary.into_bytes()));
        for (command, is_history) in [
            ("git log -3", true),
            ("cd src && git -C . blame a.txt | head", true),
            ("git bisect start", true),
            ("git status", false),
            ("cat log", false),
            ("log | git diff", false),
        ] {
            assert_eq!(git.lacks_history_of(command), is_history, "{command}");
        }
        std::fs::remove_file(git.mirror.join("shallow")).unwrap();
        git.copy_boundary().unwrap();
        assert!(git.boundary_file().is_none());
    }

    #[test]
    fn continued_branch_keeps_its_name() {
        let world = World::new();
        let (mirror, git) = (open_mirror(&world), &world.call.workspace.git);
        // The base is the head of the branch, and no commit of the base branch.
        mirror.set_branch("fix/x", &git.base).unwrap();
        let objects = mirror.objects();
        let base = objects.find_commit(Oid::from_str(git.base.as_str()).unwrap());
        let other = commit_tree(objects, base.unwrap().tree_id(), None);
        mirror.set_branch("main", &other).unwrap();
        assert_eq!(git.free_name("fix/x").unwrap(), "fix/x");
        assert_eq!(git.free_name("main").unwrap(), "main-2");
    }
}
