//! Lines that a change adds and removes, their number, and the modules that the change touches.

use std::{collections::BTreeSet, time::Duration};

use similar::{Algorithm, ChangeTag, TextDiff};

use super::paths::{FilePurpose, classify_path};
use crate::workspace::ChangedFile;

// After this time the diff falls back to a coarser result, which is sufficient here.
const DIFF_LIMIT: Duration = Duration::from_millis(500);

/// Manifests that make their folder a module.
const MANIFESTS: [&str; 14] = [
    "Cargo.toml",
    "Gemfile",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "dbt_project.yml",
    "go.mod",
    "mix.exs",
    "package.json",
    "pom.xml",
    "pubspec.yaml",
    "pyproject.toml",
    "setup.py",
    "Package.swift",
];

/// A line with its number in its version of the file, from 1.
pub(super) type NumberedLine<'t> = (usize, &'t str);

#[derive(Debug, Default)]
pub(super) struct ChangedLines<'t> {
    pub(super) added: Vec<NumberedLine<'t>>,
    pub(super) removed: Vec<NumberedLine<'t>>,
}

/// Compares the texts of a file before and after the change.
pub(super) fn compare_lines(file: &ChangedFile) -> ChangedLines<'_> {
    let (before, after) = (
        file.before.as_deref().unwrap_or_default(),
        file.after.as_deref().unwrap_or_default(),
    );
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Patience)
        .timeout(DIFF_LIMIT)
        .diff_lines(before, after);
    let mut found = ChangedLines::default();
    for change in diff.iter_all_changes() {
        let line = change.value().trim_end_matches(['\n', '\r']);
        match (change.tag(), change.old_index(), change.new_index()) {
            (ChangeTag::Insert, _, Some(at)) => found.added.push((at + 1, line)),
            (ChangeTag::Delete, Some(at), _) => found.removed.push((at + 1, line)),
            _ => {}
        }
    }
    found
}

/// Added and removed lines by purpose of their files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineTotals {
    pub(crate) product: u32,
    pub(crate) test: u32,
}

/// Returns the number of lines that a file gains and loses.
pub(crate) fn count_changed_lines(file: &ChangedFile) -> (u32, u32) {
    let changed = compare_lines(file);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    (count(changed.added.len()), count(changed.removed.len()))
}

/// Computes the size of a change. Generated files, lock files and golden files do not count.
pub(crate) fn measure_change(files: &[ChangedFile]) -> LineTotals {
    let mut size = LineTotals::default();
    for file in files {
        let (added, removed) = count_changed_lines(file);
        let count = added.saturating_add(removed);
        let sum = match classify_path(&file.path) {
            FilePurpose::Test => &mut size.test,
            FilePurpose::Product | FilePurpose::Config | FilePurpose::Ci | FilePurpose::Docs => {
                &mut size.product
            }
            FilePurpose::Expected | FilePurpose::Lock | FilePurpose::Generated => continue,
        };
        *sum = sum.saturating_add(count);
    }
    size
}

/// Returns the folders of the modules that the change touches; `.` is the root of the repository. `paths`
/// lists every file of the repository.
pub(crate) fn touched_modules(files: &[ChangedFile], paths: &[String]) -> Vec<String> {
    let all = paths.iter().chain(files.iter().map(|file| &file.path));
    let is_manifest = |name: &str| MANIFESTS.contains(&name) || name.ends_with(".csproj");
    let folders: BTreeSet<&str> = all
        .filter_map(|path| {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            // A nested package belongs to the module of its top-level package.
            let is_top_level = matches!(folder.split('/').collect::<Vec<_>>()[..], [_] | ["src", _]);
            let is_package =
                name == "__init__.py" && is_top_level && classify_path(path) != FilePurpose::Test;
            (is_manifest(name) || is_package).then_some(folder)
        })
        .collect();
    // Lock files, documentation and CI configuration concern all modules, so they touch none.
    let touched = files.iter().filter(|file| {
        !matches!(
            classify_path(&file.path),
            FilePurpose::Lock | FilePurpose::Docs | FilePurpose::Ci
        )
    });
    let modules: BTreeSet<String> = touched.map(|file| nearest_module(&file.path, &folders)).collect();
    modules.into_iter().collect()
}

/// Returns the nearest enclosing folder with a manifest.
fn nearest_module(path: &str, folders: &BTreeSet<&str>) -> String {
    let mut folder = path;
    while let Some((around, _)) = folder.rsplit_once('/') {
        if folders.contains(around) {
            return around.to_owned();
        }
        folder = around;
    }
    ".".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_and_test_lines_count_separately() {
        let files = [
            ChangedFile::sample("src/cart.py", Some("a\nb\nc\n"), Some("a\nx\nc\nd\n")),
            ChangedFile::sample("tests/test_cart.py", None, Some("1\n2\n")),
            ChangedFile::sample("uv.lock", Some("1\n"), Some("2\n")),
            ChangedFile::sample("tests/__snapshots__/a.snap", Some("1\n"), None),
        ];
        assert_eq!(measure_change(&files), LineTotals { product: 3, test: 2 });
    }

    #[test]
    fn module_is_nearest_manifest_folder() {
        let paths = ["Cargo.toml", "crates/cart/Cargo.toml", "web/package.json"].map(str::to_owned);
        let files = [
            ChangedFile::sample("crates/cart/src/lib.rs", Some(""), Some("x\n")),
            ChangedFile::sample("web/src/a/b.ts", Some(""), Some("x\n")),
            ChangedFile::sample("scripts/run.sh", Some(""), Some("x\n")),
            ChangedFile::sample("web/yarn.lock", Some(""), Some("x\n")),
            ChangedFile::sample("docs/cart.md", Some(""), Some("x\n")),
        ];
        assert_eq!(touched_modules(&files, &paths), [".", "crates/cart", "web"]);
    }

    #[test]
    fn modules_default_to_top_level_packages() {
        let paths = [
            "pyproject.toml",
            "shop/__init__.py",
            "shop/tax/__init__.py",
            "src/bank/__init__.py",
            "tests/__init__.py",
        ]
        .map(str::to_owned);
        let files = [
            ChangedFile::sample("shop/tax/vat.py", Some(""), Some("x\n")),
            ChangedFile::sample("src/bank/pay.py", Some(""), Some("x\n")),
            ChangedFile::sample("tests/test_cart.py", Some(""), Some("x\n")),
        ];
        assert_eq!(touched_modules(&files, &paths), [".", "shop", "src/bank"]);
    }
}
