//! Tests that the change weakens, judged by their runs: tests that no longer run although the check passes,
//! and tests whose old form fails with the change.

use domain::check::{ChangeFinding, CheckOutcome, CheckSpec, FindingSeverity, TreeKind};
use domain::comparison::{LostTests, is_named};

use super::MOST_NAMES;
use super::command::CheckCommand;

/// Kind of the finding about tests that no longer run although the check passes.
pub(super) const TEST_SILENCED: &str = "test_silenced";
/// Kind of the finding about tests that pass with and without the change, and whose old form fails with it.
pub(super) const TEST_WEAKENED: &str = "test_weakened";
/// Kind of the finding about tests whose old form cannot run with the change.
pub(super) const TEST_REPLACED: &str = "test_replaced";

/// Returns the missing run: the tests of the base with the change's product, repeated if they fail.
pub(super) fn missing_old_runs(command: &CheckCommand<'_>) -> Vec<CheckSpec> {
    // If the check is worse, the tests do not matter yet; without a result on the base there is no
    // comparison.
    let is_of_interest = command.red().is_none() && is_comparable(command);
    let Some(old) = command.old_tests().filter(|_| is_of_interest) else {
        return Vec::new();
    };
    let first = command.missing_of(vec![(old.clone(), 0)]);
    if first.is_empty() && !failing_old_tests_at(command, 0).is_empty() {
        command.missing_of(vec![(old, 1)])
    } else {
        first
    }
}

fn is_comparable(command: &CheckCommand<'_>) -> bool {
    command.conclusive_head().is_some() && command.conclusive(TreeKind::Base).is_some()
}

/// Returns all findings of one command. `ticket`: text of the ticket.
pub(super) fn weakened_findings(command: &CheckCommand<'_>, ticket: &str) -> Vec<ChangeFinding> {
    if command.red().is_some() || !is_comparable(command) {
        return Vec::new();
    }
    let not_passing = failing_old_tests(command);
    let mut found: Vec<ChangeFinding> = find_silenced_tests(command, &not_passing, ticket)
        .into_iter()
        .collect();
    found.extend(find_changed_tests(command, &not_passing, ticket));
    found.extend(find_hidden_failures(command, ticket));
    found.extend(find_rewritten_tests(command, ticket));
    found.extend(build_replaced_finding(
        command,
        &lost_tests_from(command.replaced()),
        ticket,
    ));
    found
}

/// Returns the finding about tests that failed before and are omitted now, so that the check passes.
fn find_hidden_failures(command: &CheckCommand<'_>, ticket: &str) -> Option<ChangeFinding> {
    let hidden = command.hidden_failures();
    if hidden.is_empty() {
        return None;
    }
    let words = format!(
        "Failed before and runs no more: {}: {}",
        render_count(hidden.count),
        render_names(&hidden, command)
    );
    let kind = (TEST_SILENCED, FindingSeverity::Block);
    Some(build_finding(command, &hidden, kind, words, ticket))
}

/// Returns the findings about tests that failed before and pass only because the change also modifies them
/// or their data.
fn find_rewritten_tests(command: &CheckCommand<'_>, ticket: &str) -> Vec<ChangeFinding> {
    let without = command.conclusive(command.without());
    let fails_without = |name: &String| without.and_then(|run| run.has_failed(name)) == Some(true);
    let (noticed, blind): (Vec<_>, Vec<_>) = command.rewritten().into_iter().partition(fails_without);
    build_changed_findings(command, noticed, blind, ticket)
}

fn lost_tests_from(names: Vec<String>) -> LostTests {
    LostTests {
        count: u32::try_from(names.len()).unwrap_or(u32::MAX),
        names,
    }
}

/// Returns the tests of the base that do not pass with the change's product in both runs.
fn failing_old_tests(command: &CheckCommand<'_>) -> LostTests {
    let first = failing_old_tests_at(command, 0);
    if first.is_empty() {
        first
    } else {
        first.shared_with(&failing_old_tests_at(command, 1))
    }
}

fn failing_old_tests_at(command: &CheckCommand<'_>, again: u32) -> LostTests {
    let base = command.conclusive(TreeKind::Base);
    let old = command.old_tests().and_then(|tree| command.result(tree, again));
    match (base, old) {
        (Some(base), Some(old)) if old.tree.is_some() || old.tests.is_some() => {
            if old.outcome.is_cut_short() {
                return LostTests::default();
            }
            base.tests_not_passing_in(old, command.removed())
        }
        _ => LostTests::default(),
    }
}

/// Returns the finding about tests that passed before and have no result now, although the check passes.
fn find_silenced_tests(
    command: &CheckCommand<'_>,
    not_passing: &LostTests,
    ticket: &str,
) -> Option<ChangeFinding> {
    let lost = command.lost();
    if lost.is_empty() {
        return None;
    }
    // In their old form the tests pass with the change, so nothing is hidden: a flag is enough.
    let was_tried = command
        .old_tests()
        .is_some_and(|tree| command.conclusive(tree).is_some());
    let is_hidden = !was_tried
        || lost.names.iter().any(|name| not_passing.names.contains(name))
        || (lost.names.is_empty() && !not_passing.is_empty());
    let what = if is_hidden && was_tried {
        "Runs no more, and the former version does not pass with the change"
    } else {
        "Runs no more"
    };
    let words = format!(
        "{what}: {}: {}",
        render_count(lost.count),
        render_names(&lost, command)
    );
    let severity = if is_hidden {
        FindingSeverity::Block
    } else {
        FindingSeverity::Flag
    };
    Some(build_finding(
        command,
        &lost,
        (TEST_SILENCED, severity),
        words,
        ticket,
    ))
}

/// Returns the findings about tests that pass in their new form but not in the old one.
fn find_changed_tests(
    command: &CheckCommand<'_>,
    not_passing: &LostTests,
    ticket: &str,
) -> Vec<ChangeFinding> {
    let lost = command.lost();
    let without = command.conclusive(command.without());
    let old = command.old_tests().and_then(|tree| command.conclusive(tree));
    if not_passing.is_empty() {
        return Vec::new();
    }
    if not_passing.names.is_empty() {
        let count = LostTests {
            count: not_passing.count.saturating_sub(lost.count),
            names: Vec::new(),
        };
        if count.is_empty() {
            return Vec::new();
        }
        // Without names of tests, the result of the whole check shows whether the changed tests notice the
        // change.
        let is_noticed = without.is_some_and(|run| run.outcome == CheckOutcome::Red);
        return vec![build_changed_finding(command, &count, is_noticed, ticket)];
    }
    let (mut noticed, mut blind, mut unloaded) = (Vec::new(), Vec::new(), Vec::new());
    for name in &not_passing.names {
        if lost.names.contains(name) {
            continue;
        }
        let fails = |run: Option<&domain::check::CompletedCheck>| run.and_then(|run| run.has_failed(name));
        // Without a result in the old form it is unknown what the test says about the change, even if the new
        // form fails without it: after a rename, a test that asserts nothing does so too.
        match (fails(old), fails(without)) {
            (Some(true), Some(true)) => noticed.push(name.clone()),
            (Some(true), Some(false) | None) => blind.push(name.clone()),
            (Some(false) | None, _) => unloaded.push(name.clone()),
        }
    }
    let mut found = build_changed_findings(command, noticed, blind, ticket);
    found.extend(build_replaced_finding(
        command,
        &lost_tests_from(unloaded),
        ticket,
    ));
    found
}

/// Creates the finding about tests whose old form does not load with the change; `None` without such tests.
/// Honest renames replace tests, so it does not block.
fn build_replaced_finding(
    command: &CheckCommand<'_>,
    tests: &LostTests,
    ticket: &str,
) -> Option<ChangeFinding> {
    if tests.is_empty() {
        return None;
    }
    let words = format!(
        "Replaced: {}. The former version cannot run with the change, so only the changed version was checked: {}",
        render_count(tests.count),
        render_names(tests, command)
    );
    let kind = (TEST_REPLACED, FindingSeverity::Flag);
    Some(build_finding(command, tests, kind, words, ticket))
}

/// Creates the findings about changed tests. `noticed`: those that fail without the change; `blind`: those
/// that pass without it.
fn build_changed_findings(
    command: &CheckCommand<'_>,
    noticed: Vec<String>,
    blind: Vec<String>,
    ticket: &str,
) -> Vec<ChangeFinding> {
    [(lost_tests_from(noticed), true), (lost_tests_from(blind), false)]
        .into_iter()
        .filter(|(tests, _)| !tests.is_empty())
        .map(|(tests, is_noticed)| build_changed_finding(command, &tests, is_noticed, ticket))
        .collect()
}

fn build_changed_finding(
    command: &CheckCommand<'_>,
    tests: &LostTests,
    is_noticed: bool,
    ticket: &str,
) -> ChangeFinding {
    let (what, names) = (render_count(tests.count), render_names(tests, command));
    let (kind, words) = if is_noticed {
        let words = format!(
            "Expectation changed: {what}. The former version fails with the change; the changed version fails without it: {names}"
        );
        (("behavior_changed", FindingSeverity::Flag), words)
    } else {
        let words = format!(
            "Weakened: {what}. The former version fails with the change; the changed version passes with and without it: {names}"
        );
        ((TEST_WEAKENED, FindingSeverity::Block), words)
    };
    build_finding(command, tests, kind, words, ticket)
}

fn render_count(count: u32) -> String {
    match count {
        1 => "1 test".to_owned(),
        count => format!("{count} tests"),
    }
}

fn render_names(tests: &LostTests, command: &CheckCommand<'_>) -> String {
    let shown: Vec<&str> = tests.names.iter().take(MOST_NAMES).map(String::as_str).collect();
    match (shown.len(), tests.count as usize) {
        (0, _) => format!("`{}` names none of them", command.found.command),
        (some, all) if some < all => format!("{} and {} more", shown.join(", "), all - some),
        _ => shown.join(", "),
    }
}

/// Creates a finding about tests. It is only a flag if the ticket requests a change of each test or of its
/// file by name.
fn build_finding(
    command: &CheckCommand<'_>,
    tests: &LostTests,
    (kind, severity): (&str, FindingSeverity),
    words: String,
    ticket: &str,
) -> ChangeFinding {
    let path = find_test_path(command, tests);
    let asked = quote_for(ticket, tests, &path);
    ChangeFinding {
        path,
        line: 0,
        kind: kind.to_owned(),
        severity: if asked.is_empty() {
            severity
        } else {
            FindingSeverity::Flag
        },
        words,
        ticket_words: asked,
    }
}

/// Returns the changed file of the first test, as far as its name shows it.
fn find_test_path(command: &CheckCommand<'_>, tests: &LostTests) -> String {
    let Some(change) = command.change else {
        return String::new();
    };
    let all = || {
        let files = change.test_files.iter().chain(&change.support_files);
        files.chain(&change.removed_test_files)
    };
    let stem = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.split('.').next().unwrap_or(name).to_owned()
    };
    let is_it = |path: &&String| tests.names.iter().any(|name| is_named(name, &stem(path)));
    let product = change.changed.first().map(|file| &file.path);
    let found = all().find(is_it).or_else(|| all().next()).or(product);
    found.cloned().unwrap_or_default()
}

// Beginnings of words in a sentence that requests a different test.
const ASKS: [&str; 20] = [
    "accept", "adapt", "adjust", "allow", "chang", "delet", "disabl", "drop", "let", "loosen", "merg", "mov",
    "obsolet", "outdat", "remov", "renam", "replac", "rewrit", "skip", "updat",
];
// Words in a sentence that wants to keep the tests.
const KEEPS: [&str; 7] = ["correct", "don't", "keep", "never", "not", "right", "unchanged"];

/// Returns true if a sentence requests a different test. A sentence that only locates a failure does not.
fn asks_for_change(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let words = || lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words().any(|word| ASKS.iter().any(|start| word.starts_with(start)))
        && !words().any(|word| KEEPS.contains(&word))
}

/// Returns the sentence of the ticket that requests a change of every test, or of their file.
fn quote_for(ticket: &str, tests: &LostTests, path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let sentence = |name: &str| {
        let mut sentences = ticket.split(['\n', '!', '?']).flat_map(|line| line.split(". "));
        sentences
            .find(|sentence| is_named(sentence, name) && asks_for_change(sentence))
            .map(str::trim)
    };
    if let Some(found) = sentence(file).filter(|_| file.contains('.')) {
        return truncate_quote(found);
    }
    let bare = |id: &str| {
        let leaf = id.rsplit("::").next().unwrap_or(id);
        leaf.split(['[', ' ']).next().unwrap_or(leaf).to_owned()
    };
    let found: Vec<Option<&str>> = tests.names.iter().map(|id| sentence(&bare(id))).collect();
    match found.first() {
        Some(Some(first)) if found.iter().all(Option::is_some) => truncate_quote(first),
        _ => String::new(),
    }
}

fn truncate_quote(sentence: &str) -> String {
    sentence.chars().take(300).collect()
}
