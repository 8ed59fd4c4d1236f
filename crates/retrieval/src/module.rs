//! Modules of a tree, to which its files belong.

/// Files that make a folder a package.
const MANIFESTS: &[&str] = &[
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "Gemfile",
    "dbt_project.yml",
];

/// Folders of modules, as rules name them or as manifests show them.
#[derive(Clone, Debug, Default)]
pub struct ModuleFolders(Vec<String>);

impl ModuleFolders {
    /// Creates modules from their folders.
    pub fn new(folders: impl IntoIterator<Item = String>) -> Self {
        let trimmed = folders
            .into_iter()
            .map(|folder| folder.trim_matches('/').to_owned());
        let mut folders: Vec<String> = trimmed.filter(|folder| !folder.is_empty()).collect();
        // The longest first, so that an inner module precedes the outer one.
        folders.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        folders.dedup();
        Self(folders)
    }

    /// Packages of a tree: every folder with a manifest.
    pub(crate) fn detected<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let folders = paths.filter_map(|path| {
            let (folder, name) = path.rsplit_once('/')?;
            MANIFESTS.contains(&name).then(|| folder.to_owned())
        });
        Self::new(folders)
    }

    /// True when no module is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Module of a file: the innermost one that contains it, otherwise its first two folders.
    pub(crate) fn of<'a>(&'a self, path: &'a str) -> &'a str {
        let known = self.0.iter().find(|folder| is_in(path, folder));
        known.map_or_else(|| first_folders(path), String::as_str)
    }

    /// True when a file is in one of the modules, or when there are no modules.
    #[must_use]
    pub fn hold(&self, path: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|folder| is_in(path, folder))
    }
}

fn is_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

fn first_folders(path: &str) -> &str {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let second = folder.match_indices('/').nth(1).map(|(at, _)| at);
    &folder[..second.unwrap_or(folder.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_belongs_to_innermost_package() {
        let paths = [
            "Cargo.toml",
            "crates/a/Cargo.toml",
            "crates/a/web/package.json",
            "src/x/y/z.rs",
        ];
        let modules = ModuleFolders::detected(paths.into_iter());
        for (path, module) in [
            ("crates/a/src/lib.rs", "crates/a"),
            ("crates/a/web/src/x.ts", "crates/a/web"),
            ("crates/ab/src/lib.rs", "crates/ab"),
            ("src/x/y/z.rs", "src/x"),
            ("README.md", ""),
        ] {
            assert_eq!(modules.of(path), module, "{path}");
        }
    }
}
