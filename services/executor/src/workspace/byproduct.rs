//! By-products of commands: caches, installed packages, build outputs, logs. They belong to no change.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// Names of folders that tools write and that users do not edit.
const FOLDERS: [&str; 42] = [
    ".bundle",
    ".cache",
    ".dart_tool",
    ".eggs",
    ".gradle",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".next",
    ".nox",
    ".npm",
    ".nuxt",
    ".nyc_output",
    ".parcel-cache",
    ".phpunit.cache",
    ".pnpm-store",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".vite",
    "__pycache__",
    "__pypackages__",
    "_build",
    "bower_components",
    "build",
    "cmake-build-debug",
    "coverage",
    "dbt_packages",
    "dist",
    "htmlcov",
    "node_modules",
    "playwright-report",
    "storybook-static",
    "surefire-reports",
    "target",
    "test-results",
    "venv",
];
const FOLDER_ENDS: [&str; 2] = [".egg-info", ".dist-info"];
const FILES: [&str; 16] = [
    ".coverage",
    ".ds_store",
    ".eslintcache",
    ".phpunit.result.cache",
    ".stylelintcache",
    "a.out",
    "clover.xml",
    "coverage.out",
    "coverage.xml",
    "desktop.ini",
    "lcov.info",
    "nohup.out",
    "npm-debug.log",
    "thumbs.db",
    "yarn-debug.log",
    "yarn-error.log",
];
const ENDS: [&str; 20] = [
    ".class",
    ".coverprofile",
    ".dll",
    ".dylib",
    ".exe",
    ".gcda",
    ".gcno",
    ".log",
    ".o",
    ".obj",
    ".orig",
    ".profraw",
    ".pyc",
    ".pyd",
    ".pyo",
    ".rej",
    ".so",
    ".swp",
    ".tmp",
    ".tsbuildinfo",
];
/// Magic numbers of programs and libraries: ELF, three forms of Mach-O, PE.
const PROGRAMS: [&[u8]; 5] = [
    b"\x7fELF",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"MZ\x90\0",
];

/// Reason in the message for the model.
pub(super) const WHY: &str =
    "commands leave such files behind; write it with write_file if it belongs to the change";

/// By-products that the repository itself contains: a folder, or files of a kind in a folder. Such paths may
/// belong to a change.
#[derive(Default)]
pub(super) struct OwnByproducts(BTreeSet<(PathBuf, String)>);

impl OwnByproducts {
    /// Collects them from the paths of a repository.
    pub(super) fn among<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Self {
        Self(paths.filter_map(|path| find_kind(path)).collect())
    }

    /// Returns the folder or file of a by-product that contains the path; `None` for a file that may belong
    /// to a change.
    pub(super) fn find<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let kind = find_kind(path)?;
        if self.0.contains(&kind) {
            return None;
        }
        Some(find_folder(path).unwrap_or(path))
    }
}

/// Returns true for the content of a native program or library.
pub(super) fn is_program(content: &[u8]) -> bool {
    PROGRAMS.iter().any(|start| content.starts_with(start))
}

/// Returns the by-product folder above a path, or else its parent folder with the kind of file.
fn find_kind(path: &Path) -> Option<(PathBuf, String)> {
    if let Some(folder) = find_folder(path) {
        return Some((folder.to_owned(), String::new()));
    }
    // Names are compared in lower case, because `Thumbs.db` and `.DS_Store` occur in several spellings.
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let end = ENDS
        .iter()
        // A file that is called `.log` has a name, not an ending.
        .find(|end| name.ends_with(*end) && name.len() > end.len());
    let is_named = FILES.contains(&name.as_str()) || name.starts_with(".coverage.");
    let kind = match end {
        Some(end) => (*end).to_owned(),
        None if is_named => name,
        None => return None,
    };
    Some((path.parent()?.to_owned(), kind))
}

/// Returns the outermost by-product folder above a path.
fn find_folder(path: &Path) -> Option<&Path> {
    let is_one = |name: &OsStr| {
        let name = name.to_str().unwrap_or_default();
        FOLDERS.contains(&name) || FOLDER_ENDS.iter().any(|end| name.ends_with(end))
    };
    // Ancestors go upwards, so the last match is the outermost folder.
    let above = path.ancestors().skip(1);
    above
        .filter(|folder| folder.file_name().is_some_and(is_one))
        .last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_byproduct(own: &[&str], path: &str) -> Option<String> {
        let own: Vec<PathBuf> = own.iter().map(PathBuf::from).collect();
        let own = OwnByproducts::among(own.iter());
        own.find(Path::new(path)).map(|found| found.display().to_string())
    }

    #[test]
    fn outermost_folder_is_named_once() {
        for (path, folder) in [
            ("__pycache__/cart.cpython-311.pyc", "__pycache__"),
            ("web/node_modules/a/dist/x.js", "web/node_modules"),
            ("shop.egg-info/PKG-INFO", "shop.egg-info"),
            ("target/debug/shop", "target"),
        ] {
            assert_eq!(find_byproduct(&[], path).as_deref(), Some(folder), "{path}");
        }
        for path in ["npm-debug.log", "src/.DS_Store", ".coverage.host.12", "a/b.pyc"] {
            assert_eq!(find_byproduct(&[], path).as_deref(), Some(path), "{path}");
        }
    }

    #[test]
    fn sources_are_no_byproducts() {
        for path in [
            "src/build.rs",
            "build",
            "dist.py",
            "lib/target.go",
            "Cargo.lock",
            "__snapshots__/a.snap",
            "docs/coverage.md",
            ".log",
            "migrations/0001_init.sql",
        ] {
            assert_eq!(find_byproduct(&[], path), None, "{path}");
        }
    }

    #[test]
    fn kinds_that_the_repository_has_stay() {
        assert_eq!(find_byproduct(&["dist/app.js"], "dist/new.js"), None);
        assert_eq!(
            find_byproduct(&["dist/app.js"], "web/dist/new.js").as_deref(),
            Some("web/dist")
        );
        assert_eq!(
            find_byproduct(&["tests/data/one.log"], "tests/data/two.log"),
            None
        );
        assert!(find_byproduct(&["tests/data/one.log"], "two.log").is_some());
    }
}
