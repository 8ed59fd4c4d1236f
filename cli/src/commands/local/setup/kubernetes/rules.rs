//! Rules files for the `ConfigMap` of a cluster.

use std::path::Path;

use anyhow::ensure;
use bootstrap::rules::{ConfiguredInstances, RulesBook};

use crate::commands::local::rules_files::read_rules_files;

// File of the base with defaults for every repository.
const DEFAULTS: (&str, &str) = (
    "defaults.yaml",
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../k8s/base/rules/defaults.yaml"
    )),
);
// Kubernetes accepts 1 MiB of data in a ConfigMap; the rest is room for names.
const MOST_BYTES: usize = 1_000_000;

/// Rules files by name.
pub(super) struct ClusterRules {
    pub(super) files: Vec<(String, String)>,
    repositories: usize,
    problems: Vec<String>,
}

impl ClusterRules {
    /// Reads the files of a folder. A missing folder has the defaults of the base alone. `connections`: instances that the
    /// settings of the cluster have.
    pub(super) fn read(folder: &Path, connections: &ConfiguredInstances) -> anyhow::Result<Self> {
        let mut files = read_rules_files(folder)?;
        for (name, _) in &files {
            ensure!(
                is_map_key(name),
                "{}: Kubernetes accepts letters, digits, dashes, dots and underscores in the names of files: rename it",
                folder.join(name).display()
            );
        }
        if files.is_empty() {
            files.push((DEFAULTS.0.to_owned(), DEFAULTS.1.to_owned()));
        }
        let size: usize = files.iter().map(|(name, text)| name.len() + text.len()).sum();
        ensure!(
            size <= MOST_BYTES,
            "{}: the rules have {size} bytes, and Kubernetes accepts {MOST_BYTES} in a ConfigMap: shorten them",
            folder.display()
        );
        // Rules that name another instance or a folder have a problem.
        let book = RulesBook::parse(&files, connections);
        Ok(Self {
            repositories: book.repositories().count(),
            problems: book.problems().iter().map(ToString::to_string).collect(),
            files,
        })
    }

    /// Lines for the user.
    pub(super) fn describe(&self) -> Vec<String> {
        let mut lines = vec![match self.repositories {
            0 => "rules    no repository: add one with `journeyman repo add`".to_owned(),
            1 => "rules    1 repository".to_owned(),
            count => format!("rules    {count} repositories"),
        }];
        lines.extend(self.problems.iter().map(|problem| format!("warning  {problem}")));
        lines
    }
}

/// True for a name that is valid as a key of a `ConfigMap`.
fn is_map_key(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    name.len() <= 253 && name.bytes().all(is_legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_folder_are_taken_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("shop.yaml", "repo: {owner: acme, name: shop}\n");
        write("other.yml", "repo: {owner: acme, name: other}\nrepi: {}\n");
        write("notes.md", "no rules\n");
        let nothing = ConfiguredInstances::default();
        let rules = ClusterRules::read(folder.path(), &nothing).unwrap();
        let names: Vec<&str> = rules.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["other.yml", "shop.yaml"]);
        let lines = rules.describe();
        assert_eq!(lines[0], "rules    1 repository");
        assert!(
            lines[1].starts_with("warning  other.yml:2 repi: unknown key"),
            "{lines:?}"
        );
        write("a b.yaml", "");
        assert!(ClusterRules::read(folder.path(), &nothing).is_err());
    }

    #[test]
    fn missing_folder_has_defaults_alone() {
        let rules =
            ClusterRules::read(Path::new("/no/such/folder"), &ConfiguredInstances::default()).unwrap();
        assert_eq!(rules.files.len(), 1);
        assert_eq!(
            rules.describe(),
            ["rules    no repository: add one with `journeyman repo add`"]
        );
    }
}
