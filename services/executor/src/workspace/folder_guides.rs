//! Instructions of a repository for its contributors: those of the root, and those of the folders that the model
//! works in.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use domain::{CommitId, text::truncate_bytes};
use git::BareRepository;

use super::WorkspaceError;

/// Files with instructions in a folder, the preferred one first.
const INSTRUCTION_FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md"];
/// Folder of rules in a folder, for repositories with none of the files.
const RULE_FOLDER: &str = ".cursor/rules";
/// Limit of the instructions of one folder, in bytes.
const MAX_GUIDE: usize = 8 * 1024;
// Limit of folders between the root and a file.
const MAX_DEPTH: usize = 32;
/// Limits of the folders that are remembered: their number, and the bytes of a name.
const MAX_ANSWERED: usize = 1000;
const MAX_NAME: usize = 4096;

/// Text of instructions, and the path that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderGuide {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Guides that the model has read in a workspace.
#[derive(Debug, Default)]
pub(crate) struct FolderGuides {
    /// Commit from which guides are read; `None` inside if the base branch is unknown.
    commit: OnceLock<Option<CommitId>>,
    shown: Mutex<BTreeSet<String>>,
    /// Folders whose nearest guide the model has read, or which have none. The commit stays the same, so no later
    /// search in them finds another one.
    answered: Mutex<BTreeSet<String>>,
}

impl FolderGuides {
    /// Returns the folder of a file if a search from there may find a guide that the model has not read yet.
    pub(crate) fn find_unanswered(&self, file: &str) -> Option<String> {
        find_guide_folder(file).filter(|folder| !lock_names(&self.answered).contains(folder))
    }

    /// Records that the search for the guide of a folder has ended.
    pub(super) fn note_answered(&self, folder: String) {
        let mut answered = lock_names(&self.answered);
        if answered.len() < MAX_ANSWERED && folder.len() <= MAX_NAME {
            answered.insert(folder);
        }
    }

    /// Returns the commit, which `find` determines once.
    pub(super) fn commit(
        &self,
        find: impl FnOnce() -> Result<Option<CommitId>, WorkspaceError>,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        if let Some(known) = self.commit.get() {
            return Ok(known.clone());
        }
        let found = find()?;
        Ok(self.commit.get_or_init(|| found).clone())
    }

    /// Returns true when the model has not read this guide yet, and remembers it.
    pub(super) fn is_new(&self, path: &str) -> bool {
        lock_names(&self.shown).insert(path.to_owned())
    }
}

fn lock_names(names: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    // The set is valid after every step, so a panic elsewhere does not matter.
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the instructions of a folder at a commit, without those of its parents. The empty path is the root.
pub(super) fn read_guide(
    repository: &BareRepository,
    commit: &CommitId,
    folder: &str,
) -> Result<Option<FolderGuide>, WorkspaceError> {
    let place = |name: &str| {
        if folder.is_empty() {
            name.to_owned()
        } else {
            format!("{folder}/{name}")
        }
    };
    for name in INSTRUCTION_FILES {
        let path = place(name);
        if let Some(bytes) = repository.read_file(commit, &path)? {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            // An empty file instructs nobody, and must not hide the next one.
            if !text.trim().is_empty() {
                return Ok(Some(FolderGuide { path, text }));
            }
        }
    }
    let rules = place(RULE_FOLDER);
    let mut names = repository.files_in(commit, &rules)?;
    names.retain(|name| name.ends_with(".mdc") || name.ends_with(".md"));
    names.sort();
    let mut text = String::new();
    for name in names {
        if let Some(bytes) = repository.read_file(commit, &format!("{rules}/{name}"))?
            && let Some(rule) = strip_front_matter(&String::from_utf8_lossy(&bytes))
        {
            text.push_str(rule.trim());
            text.push_str("\n\n");
        }
    }
    let text = text.trim_end().to_owned();
    Ok((!text.is_empty()).then_some(FolderGuide { path: rules, text }))
}

/// Returns the folder of a file from which the search for instructions begins; `None` for a file of the root, whose
/// instructions the model has from the start, and for a path outside of the worktree.
fn find_guide_folder(file: &str) -> Option<String> {
    let parts: Vec<&str> = file
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if file.starts_with('/') || parts.contains(&"..") {
        return None;
    }
    let depth = parts.len().min(MAX_DEPTH).checked_sub(1)?;
    parts
        .get(..depth)
        .filter(|folder| !folder.is_empty())
        .map(|folder| folder.join("/"))
}

/// Reads the instructions of a folder, or the nearest ones above it, without those of the root.
pub(super) fn read_nearest_guide(
    repository: &BareRepository,
    commit: &CommitId,
    folder: &str,
) -> Result<Option<FolderGuide>, WorkspaceError> {
    let mut next = Some(folder);
    while let Some(folder) = next {
        if let Some(mut guide) = read_guide(repository, commit, folder)? {
            guide.text.truncate(truncate_bytes(&guide.text, MAX_GUIDE).len());
            return Ok(Some(guide));
        }
        next = folder.rsplit_once('/').map(|(above, _)| above);
    }
    Ok(None)
}

/// Returns the text of a rule that always applies; `None` for a rule with conditions.
fn strip_front_matter(text: &str) -> Option<String> {
    let text = text.replace("\r\n", "\n");
    let Some(rest) = text.strip_prefix("---\n") else {
        return Some(text);
    };
    let (front, body) = rest.split_once("\n---").unwrap_or((rest, ""));
    let always = front.lines().any(|line| {
        let pair = line.split_once(':');
        pair.is_some_and(|(key, value)| key.trim() == "alwaysApply" && value.trim() == "true")
    });
    always.then(|| body.to_owned())
}

#[cfg(test)]
mod tests {
    use git2::{FileMode, build::TreeUpdateBuilder};

    use super::*;
    use crate::workspace::tests::commit_tree;

    fn commit_files(files: &[(&str, &str)]) -> (tempfile::TempDir, BareRepository, CommitId) {
        let folder = tempfile::tempdir().unwrap();
        let repository = BareRepository::init_bare(folder.path()).unwrap();
        let git = repository.objects();
        let mut update = TreeUpdateBuilder::new();
        for (path, text) in files {
            update.upsert(*path, git.blob(text.as_bytes()).unwrap(), FileMode::Blob);
        }
        let empty = git
            .find_tree(git.treebuilder(None).unwrap().write().unwrap())
            .unwrap();
        let commit = commit_tree(git, update.create_updated(git, &empty).unwrap(), None);
        drop(empty);
        (folder, repository, commit)
    }

    #[test]
    fn nearest_guide_wins_over_its_parents() {
        let (_folder, repository, commit) = commit_files(&[
            ("AGENTS.md", "root"),
            ("services/AGENTS.md", "services"),
            ("services/api/CLAUDE.md", "api"),
            ("services/api/AGENTS.md", "api for all"),
            ("web/.cursor/rules/b.mdc", "---\nalwaysApply: true\n---\nsecond"),
            ("web/.cursor/rules/a.md", "first"),
            ("web/.cursor/rules/c.mdc", "---\nglobs: '*.css'\n---\nthird"),
            ("docs/x.md", ""),
        ]);
        let nearest = |file: &str| {
            let guide = read_nearest_guide(&repository, &commit, &find_guide_folder(file)?).unwrap();
            guide.map(|guide| (guide.path, guide.text))
        };
        for (file, expected) in [
            (
                "services/api/src/main.rs",
                Some(("services/api/AGENTS.md", "api for all")),
            ),
            (
                "./services//api/new.rs",
                Some(("services/api/AGENTS.md", "api for all")),
            ),
            ("services/other/main.rs", Some(("services/AGENTS.md", "services"))),
            ("web/app.ts", Some(("web/.cursor/rules", "first\n\nsecond"))),
            ("docs/x.md", None),
            ("main.rs", None),
            ("", None),
            ("docs/../services/api/x", None),
            ("/services/api/x", None),
        ] {
            let expected = expected.map(|(path, text)| (path.to_owned(), text.to_owned()));
            assert_eq!(nearest(file), expected, "{file}");
        }
        let root = read_guide(&repository, &commit, "").unwrap().unwrap();
        assert_eq!((root.path.as_str(), root.text.as_str()), ("AGENTS.md", "root"));
    }

    #[test]
    fn empty_guide_hides_no_other() {
        let (_folder, repository, commit) = commit_files(&[
            ("AGENTS.md", " \n"),
            ("CLAUDE.md", "root"),
            ("a/CLAUDE.md", "a"),
            ("a/b/AGENTS.md", ""),
        ]);
        let root = read_guide(&repository, &commit, "").unwrap().unwrap();
        assert_eq!((root.path.as_str(), root.text.as_str()), ("CLAUDE.md", "root"));
        let nearest = read_nearest_guide(&repository, &commit, "a/b").unwrap().unwrap();
        assert_eq!(
            (nearest.path.as_str(), nearest.text.as_str()),
            ("a/CLAUDE.md", "a")
        );
    }

    #[test]
    fn long_guide_is_cut_at_character() {
        let long = "ü".repeat(MAX_GUIDE);
        let (_folder, repository, commit) = commit_files(&[("a/AGENTS.md", &long)]);
        let guide = read_nearest_guide(&repository, &commit, "a").unwrap().unwrap();
        assert_eq!(guide.text.len(), MAX_GUIDE);
        let guides = FolderGuides::default();
        assert!(guides.is_new("a/AGENTS.md") && !guides.is_new("a/AGENTS.md"));
    }

    #[test]
    fn answered_folder_needs_no_search() {
        let guides = FolderGuides::default();
        for (file, folder) in [
            ("services/api/main.rs", Some("services/api")),
            ("./services//api/other.rs", Some("services/api")),
            ("services/main.rs", Some("services")),
            ("main.rs", None),
            ("./main.rs", None),
            ("", None),
            ("/services/main.rs", None),
            ("services/../main.rs", None),
        ] {
            assert_eq!(guides.find_unanswered(file).as_deref(), folder, "{file}");
        }
        guides.note_answered("services/api".to_owned());
        for (file, may_be_new) in [
            ("services/api/main.rs", false),
            ("services/./api/other.rs", false),
            ("services/main.rs", true),
            ("services/api/src/main.rs", true),
        ] {
            assert_eq!(guides.find_unanswered(file).is_some(), may_be_new, "{file}");
        }
        // A path of any length comes from the model.
        let long = "x".repeat(MAX_NAME + 1);
        guides.note_answered(long.clone());
        assert!(guides.find_unanswered(&format!("{long}/main.rs")).is_some());
        for number in 0..2 * MAX_ANSWERED {
            guides.note_answered(number.to_string());
        }
        assert_eq!(lock_names(&guides.answered).len(), MAX_ANSWERED);
    }
}
