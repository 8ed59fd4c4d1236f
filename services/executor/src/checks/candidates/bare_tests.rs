//! Derives commands for test files without any configuration from their texts.

use std::collections::BTreeSet;

use domain::check::CheckCandidate;

use super::{BaseFiles, file_name, parent_folder};
use crate::{
    pattern::LazyPattern,
    test_files::{is_bats_test, is_node_test, is_python_test},
};

static NODE_RUNNER: LazyPattern = LazyPattern::new(r"['\x22]node:test['\x22]");
static UNITTEST: LazyPattern = LazyPattern::new(r"\bunittest\b|\bTestCase\b");
static BARE_FUNCTION: LazyPattern =
    LazyPattern::new(r"(?m)^(?:async\s+)?def\s+test\w*\s*\(|\bimport\s+pytest\b|\bfrom\s+pytest\b");

/// Returns true for a test file whose text shows the runner that it needs.
pub(super) fn is_bare_test(path: &str) -> bool {
    is_python_test(path) || is_node_test(path) || is_bats_test(path)
}

/// Returns the commands for tests that no other candidate runs.
pub(super) fn find_bare_test_commands(files: &BaseFiles) -> Vec<CheckCandidate> {
    let of = |is_collected: fn(&str) -> bool| -> Vec<(&str, &str)> {
        let read = files
            .iter()
            .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)));
        read.filter(|(path, _)| is_collected(path)).collect()
    };
    let mut found = python_commands(&of(is_python_test), files);
    if of(is_node_test)
        .iter()
        .any(|(_, text)| NODE_RUNNER.is_match(text))
    {
        found.push(build_candidate(
            "node --test".to_owned(),
            "test files of node's own runner are there",
        ));
    }
    let bats: BTreeSet<&str> = of(is_bats_test)
        .into_iter()
        .map(|(path, _)| parent_folder(path))
        .collect();
    found.extend(bats.first().map(|place| {
        let place = if place.is_empty() { "." } else { place };
        build_candidate(format!("bats -r {place}"), "test files of bats are there")
    }));
    found
}

fn build_candidate(command: String, why: &str) -> CheckCandidate {
    CheckCandidate {
        command,
        directory: String::new(),
        why: why.to_owned(),
        known_at_base: false,
    }
}

/// Returns the commands for Python tests. pytest runs both kinds but is not installed everywhere; unittest
/// is, but runs only its own kind.
fn python_commands(tests: &[(&str, &str)], files: &BaseFiles) -> Vec<CheckCandidate> {
    let mut found = Vec::new();
    if tests.iter().any(|(_, text)| BARE_FUNCTION.is_match(text)) {
        found.push(build_candidate(
            "python3 -m pytest".to_owned(),
            "test files for pytest are there",
        ));
    }
    let unit = tests
        .iter()
        .filter(|(path, text)| UNITTEST.is_match(text) && file_name(path).starts_with("test"));
    let folders: BTreeSet<&str> = unit.map(|(path, _)| parent_folder(path)).collect();
    found.extend(folders.first().map(|place| {
        let is_package = files
            .iter()
            .any(|(path, _)| parent_folder(path) == *place && file_name(path) == "__init__.py");
        let command = match (place.is_empty(), is_package) {
            (true, _) => "python3 -m unittest discover -v".to_owned(),
            (false, true) => format!("python3 -m unittest discover -v -s {place} -t ."),
            (false, false) => format!("python3 -m unittest discover -v -s {place}"),
        };
        build_candidate(command, "test files for unittest are there")
    }));
    found
}
