//! Size of a change by files, lines and modules.

use serde::{Deserialize, Serialize};

// Maximum number of files that are listed for people.
const MOST_FILES: usize = 200;

/// Role of a file, determined by its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRole {
    /// A file that the repository delivers.
    #[default]
    Product,
    /// Tests and files that only tests need.
    Test,
    /// Settings of tools and of continuous integration.
    Config,
    /// Documentation and other prose.
    Docs,
    /// Files that a program writes: lock files, generated code and snapshots of tests.
    Pinned,
}

/// A file that differs from the base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFileSize {
    /// Path relative to the root.
    pub path: String,
    /// Number of added lines.
    pub added: u32,
    /// Number of removed lines.
    pub removed: u32,
    /// Role of the file.
    #[serde(default)]
    pub role: FileRole,
}

/// Size of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeStatistics {
    /// Files that differ; at most 200 of them.
    pub files: Vec<ChangedFileSize>,
    /// Number of all files that differ.
    pub total: u32,
    /// Number of added lines in all files.
    pub added: u32,
    /// Number of removed lines in all files.
    pub removed: u32,
    /// Number of added and removed lines without those of pinned files.
    pub written: u32,
    /// Modules that the change touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
}

impl ChangeStatistics {
    /// Returns the size of a change to these files in these modules.
    pub fn of(files: &[ChangedFileSize], modules: &[String]) -> Self {
        let sum = |count: fn(&ChangedFileSize) -> u32| files.iter().map(count).fold(0, u32::saturating_add);
        Self {
            files: files.iter().take(MOST_FILES).cloned().collect(),
            total: u32::try_from(files.len()).unwrap_or(u32::MAX),
            added: sum(|file| file.added),
            removed: sum(|file| file.removed),
            written: sum(|file| match file.role {
                // Programs write these files, so their lines say nothing about the size of the work.
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
    fn written_lines_exclude_generated_files() {
        let file = |path: &str, role| ChangedFileSize {
            path: path.to_owned(),
            added: 10,
            removed: 1,
            role,
        };
        let files = [
            file("src/a.rs", FileRole::Product),
            file("Cargo.lock", FileRole::Pinned),
        ];
        let size = ChangeStatistics::of(&files, &["src".to_owned()]);
        assert_eq!(
            (size.total, size.added, size.removed, size.written),
            (2, 20, 2, 11)
        );
        assert_eq!(size.modules, ["src"]);
        let many = vec![file("a", FileRole::Docs); 1000];
        let size = ChangeStatistics::of(&many, &[]);
        assert_eq!(
            (size.files.len(), size.total, size.added),
            (MOST_FILES, 1000, 10_000)
        );
    }
}
