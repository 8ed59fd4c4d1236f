//! How much a change is, and where.

use serde::{Deserialize, Serialize};

/// Files of a change that are named to people.
const MOST_FILES: usize = 200;

/// What a file is for, by its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRole {
    /// What the repository delivers.
    #[default]
    Product,
    /// Tests, and what only they need.
    Test,
    /// Settings of tools and of continuous integration.
    Config,
    /// Prose.
    Docs,
    /// What a program writes: lock files, generated code, and what tests compare with.
    Pinned,
}

/// A file that differs from the base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Relative to the root.
    pub path: String,
    /// Lines that are new.
    pub added: u32,
    /// Lines that are gone.
    pub removed: u32,
    /// What it is for.
    #[serde(default)]
    pub role: FileRole,
}

/// How much a change is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSize {
    /// Files that differ, at most 200 of them.
    pub files: Vec<FileChange>,
    /// How many there are.
    pub total: u32,
    /// Lines that are new, in all of them.
    pub added: u32,
    /// Lines that are gone.
    pub removed: u32,
    /// Lines added and removed that somebody wrote: those of pinned files are left out.
    pub written: u32,
    /// Modules that are touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
}

impl ChangeSize {
    /// The size of a change to these files in these modules.
    pub fn of(files: &[FileChange], modules: &[String]) -> Self {
        let sum = |count: fn(&FileChange) -> u32| files.iter().map(count).fold(0, u32::saturating_add);
        Self {
            files: files.iter().take(MOST_FILES).cloned().collect(),
            total: u32::try_from(files.len()).unwrap_or(u32::MAX),
            added: sum(|file| file.added),
            removed: sum(|file| file.removed),
            written: sum(|file| match file.role {
                FileRole::Pinned => 0,
                FileRole::Product | FileRole::Test | FileRole::Config | FileRole::Docs => {
                    file.added.saturating_add(file.removed)
                }
            }),
            modules: modules.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_writes_is_in_the_sums_and_not_in_what_was_written() {
        let file = |path: &str, role| FileChange {
            path: path.to_owned(),
            added: 10,
            removed: 1,
            role,
        };
        let files = [
            file("src/a.rs", FileRole::Product),
            file("Cargo.lock", FileRole::Pinned),
        ];
        let size = ChangeSize::of(&files, &["src".to_owned()]);
        assert_eq!(
            (size.total, size.added, size.removed, size.written),
            (2, 20, 2, 11)
        );
        assert_eq!(size.modules, ["src"]);
        let many = vec![file("a", FileRole::Docs); 1000];
        let size = ChangeSize::of(&many, &[]);
        assert_eq!(
            (size.files.len(), size.total, size.added),
            (MOST_FILES, 1000, 10_000)
        );
    }
}
