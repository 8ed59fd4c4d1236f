//! Trees that separate what a change does to the product from what it does to tests.

use domain::FileRole;
use domain::check::{ChangeReport, TreeKind};

/// The change without its product: the base with the tests, and with the files beside them that runs of tests read. The base
/// where the change has none.
pub(super) fn without_product(change: Option<&ChangeReport>) -> TreeKind {
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
        hunks: numbers(change, |path, is_test| !is_test && mixed.contains(&path)),
    }
}

/// The change's product with tests and support files as the base has them; nothing where the change touches neither.
pub(super) fn with_old_tests(change: &ChangeReport) -> Option<TreeKind> {
    let paths = [
        change.test_files.as_slice(),
        &change.removed_test_files,
        &change.support_files,
    ]
    .concat();
    let mixed = mixed_files(change);
    let hunks = numbers(change, |path, is_test| is_test && mixed.contains(&path));
    (!paths.is_empty() || !hunks.is_empty()).then(|| TreeKind::HeadWithBase {
        head: change.tree.clone(),
        paths,
        hunks,
    })
}

/// Product files that tests are in as well, where both changed.
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

fn numbers(change: &ChangeReport, is_it: impl Fn(&str, bool) -> bool) -> Vec<u32> {
    let numbered = (0_u32..).zip(&change.hunks);
    numbered
        .filter(|(_, hunk)| is_it(&hunk.path, hunk.is_test))
        .map(|(number, _)| number)
        .collect()
}
