//! Trees that separate the effect of a change on the product from its effect on tests.

use domain::FileRole;
use domain::check::{ChangeReport, TreeKind};

/// Returns the change without its product: the base with the changed tests and the files that test runs
/// read. The base if the change has neither.
pub(super) fn tree_without_product(change: Option<&ChangeReport>) -> TreeKind {
    let Some(change) = change else {
        return TreeKind::Base;
    };
    let paths = [change.test_files.as_slice(), &change.support_files].concat();
    let mixed = mixed_files(change);
    if mixed.is_empty() {
        return match paths.is_empty() {
            true => TreeKind::Base,
            false => TreeKind::BaseWith { paths },
        };
    }
    let is_product = |path: &String| !paths.contains(path) && !mixed.contains(&path.as_str());
    let product = change.changed.iter().filter(|file| file.role != FileRole::Test);
    TreeKind::HeadWithBase {
        head: change.tree.clone(),
        paths: product.map(|file| file.path.clone()).filter(is_product).collect(),
        hunks: hunk_numbers(change, |path, is_test| !is_test && mixed.contains(&path)),
    }
}

/// Returns the change's product with tests and support files of the base; `None` if the change touches
/// neither.
pub(super) fn tree_with_old_tests(change: &ChangeReport) -> Option<TreeKind> {
    let paths = [
        change.test_files.as_slice(),
        &change.removed_test_files,
        &change.support_files,
    ]
    .concat();
    let mixed = mixed_files(change);
    let hunks = hunk_numbers(change, |path, is_test| is_test && mixed.contains(&path));
    (!paths.is_empty() || !hunks.is_empty()).then(|| TreeKind::HeadWithBase {
        head: change.tree.clone(),
        paths,
        hunks,
    })
}

/// Returns the product files that also contain tests, if both changed.
fn mixed_files(change: &ChangeReport) -> Vec<&str> {
    if change.truncated {
        return Vec::new();
    }
    let is_test_file =
        |path: &String| change.test_files.contains(path) || change.removed_test_files.contains(path);
    let tests = change
        .hunks
        .iter()
        .filter(|hunk| hunk.is_test && !is_test_file(&hunk.path));
    let mut paths: Vec<&str> = tests.map(|hunk| hunk.path.as_str()).collect();
    paths.dedup();
    paths
}

fn hunk_numbers(change: &ChangeReport, is_it: impl Fn(&str, bool) -> bool) -> Vec<u32> {
    let numbered = (0_u32..).zip(&change.hunks);
    numbered
        .filter(|(_, hunk)| is_it(&hunk.path, hunk.is_test))
        .map(|(number, _)| number)
        .collect()
}
