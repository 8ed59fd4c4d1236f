//! The tests before and after a change: which went, which say less, which expect something else.

use std::collections::{BTreeMap, HashSet};

use domain::check::{Finding, Severity};
use similar::TextDiff;

use super::{
    definitions::Definitions,
    finding,
    inventory::{Case, cases},
    paths::{Language, Role, language, role},
    patterns::LOOSER,
    shown,
};
use crate::{pattern::Pattern, workspace::ChangedFile};

/// Two bodies that are at least so much alike are one test under two names.
const ALIKE: f32 = 0.6;

static LITERAL: Pattern = Pattern::new(
    r#""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|\b\d[\w.]*\b|\b(?:[Tt]rue|[Ff]alse|[Nn]one|null|nil)\b"#,
);
static ASSERTED: Pattern = Pattern::new(r"(?i)assert|expect|should|require\.|t\.(?:Error|Fatal)|must_");

/// The tests of one file on both sides.
struct Pair<'f> {
    file: &'f ChangedFile,
    before: Vec<Case>,
    after: Vec<Case>,
}

pub(super) fn findings(files: &[ChangedFile]) -> Vec<Finding> {
    let pairs: Vec<Pair<'_>> = files.iter().filter(|file| has_tests(file)).map(pair).collect();
    let mut found: Vec<Finding> = pairs.iter().flat_map(kept).collect();
    found.extend(gone(&pairs, &Definitions::of(files)));
    found.extend(files.iter().filter_map(unreadable_gone));
    found.extend(pairs.iter().filter_map(all_new_skipped));
    found.extend(expected(files));
    found
}

/// Tests of Rust stand in the product's files.
fn has_tests(file: &ChangedFile) -> bool {
    let language = language(&file.path);
    role(&file.path) == Role::Test
        || matches!(language, Language::Rust)
        || (language == Language::Yaml && role(&file.path) == Role::Product)
}

fn pair(file: &ChangedFile) -> Pair<'_> {
    let read = |text: &Option<String>| cases(language(&file.path), text.as_deref().unwrap_or_default());
    Pair {
        file,
        before: read(&file.before),
        after: read(&file.after),
    }
}

/// Tests of the same name on both sides, in order where a name stands twice.
fn same<'p>(pair: &'p Pair<'_>) -> (Vec<(&'p Case, &'p Case)>, Vec<&'p Case>, Vec<&'p Case>) {
    let mut after: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in pair.after.iter().rev() {
        after.entry(&case.name).or_default().push(case);
    }
    let (mut both, mut gone) = (Vec::new(), Vec::new());
    for case in &pair.before {
        match after.get_mut(case.name.as_str()).and_then(Vec::pop) {
            Some(other) => both.push((case, other)),
            None => gone.push(case),
        }
    }
    (both, gone, after.into_values().flatten().collect())
}

fn kept(pair: &Pair<'_>) -> Vec<Finding> {
    let (both, ..) = same(pair);
    let changed = both
        .into_iter()
        .filter(|(before, after)| before.body != after.body || before.is_skipped != after.is_skipped);
    changed
        .flat_map(|(before, after)| weaker(pair.file, before, after))
        .collect()
}

fn fewer_assertions(path: &str, before: &Case, after: &Case) -> Option<Finding> {
    let words = format!(
        "{} has {} assertions instead of {}",
        after.name, after.assertions, before.assertions
    );
    let removed = || finding(path, after.line, "assertions_removed", Severity::Block, words);
    (after.assertions < before.assertions).then(removed)
}

fn weaker(file: &ChangedFile, before: &Case, after: &Case) -> Vec<Finding> {
    let path = file.path.as_str();
    let mut found = Vec::from_iter(fewer_assertions(path, before, after));
    if after.is_skipped && !before.is_skipped {
        let words = format!("{} is left out now", after.name);
        found.push(finding(path, after.start, "test_skipped", Severity::Block, words));
    }
    let language = language(path);
    for (_, strong, weak) in LOOSER
        .iter()
        .filter(|(of, ..)| of.is_none_or(|of| of == language))
    {
        let count =
            |pattern: &Pattern, case: &Case| case.body.iter().filter(|line| pattern.is_match(line)).count();
        let less = count(strong, after) < count(strong, before);
        if less && count(weak, after) > count(weak, before) {
            let line = after
                .body
                .iter()
                .find(|line| weak.is_match(line) && !before.body.contains(line));
            let words = format!(
                "{} asserts less than before: {}",
                after.name,
                shown(line.map_or("", String::as_str))
            );
            found.push(finding(
                path,
                after.line,
                "assertion_loosened",
                Severity::Block,
                words,
            ));
            break;
        }
    }
    found.extend(other_expectation(path, before, after));
    found
}

/// The same assertion about another value.
fn other_expectation(path: &str, before: &Case, after: &Case) -> Option<Finding> {
    let asserted = |case: &Case, other: &Case| -> Vec<String> {
        let own = case
            .body
            .iter()
            .filter(|line| ASSERTED.is_match(line) && !other.body.contains(line));
        own.cloned().collect()
    };
    let (was, is) = (asserted(before, after), asserted(after, before));
    let bare = |line: &str| {
        LITERAL.all(line).fold(line.to_owned(), |text, literal| {
            text.replacen(&literal[0], "_", 1)
        })
    };
    let (old, new) = was
        .iter()
        .find_map(|old| Some((old, is.iter().find(|new| bare(new) == bare(old))?)))?;
    let words = format!(
        "{} expects something else: {} instead of {}",
        after.name,
        shown(new),
        shown(old)
    );
    Some(finding(
        path,
        after.line,
        "expectation_changed",
        Severity::Flag,
        words,
    ))
}

/// Tests that are nowhere any more; one that moved or has another name is still there.
fn gone(pairs: &[Pair<'_>], definitions: &Definitions) -> Vec<Finding> {
    let mut new: Vec<(&str, &Case)> = Vec::new();
    let mut missing: Vec<(&Pair<'_>, &Case)> = Vec::new();
    for pair in pairs {
        let (_, gone, added) = same(pair);
        missing.extend(gone.into_iter().map(|case| (pair, case)));
        new.extend(added.into_iter().map(|case| (pair.file.path.as_str(), case)));
    }
    let mut taken = HashSet::new();
    let mut found = Vec::new();
    // Whole moves first, so that no resemblance takes their place.
    missing.retain(|(_, case)| {
        let moved = new
            .iter()
            .position(|(_, other)| other.body == case.body && !taken.contains(&(other.line, &other.name)));
        moved
            .and_then(|at| new.get(at))
            .is_none_or(|(_, other)| !taken.insert((other.line, &other.name)))
    });
    for (pair, case) in missing {
        let path = pair.file.path.as_str();
        let alike = new
            .iter()
            .find(|(_, other)| !taken.contains(&(other.line, &other.name)) && are_alike(case, other));
        if let Some((place, other)) = alike {
            taken.insert((other.line, &other.name));
            let words = format!("{} became {} in {place}", case.name, other.name);
            found.push(finding(path, case.line, "test_renamed", Severity::Flag, words));
            found.extend(fewer_assertions(place, case, other));
            continue;
        }
        found.push(if definitions.are_gone(&case.body) {
            let words = format!("{} is gone, like all that it tested", case.name);
            finding(path, case.line, "test_removed", Severity::Flag, words)
        } else {
            finding(
                path,
                case.line,
                "test_removed",
                Severity::Block,
                format!("{} is gone", case.name),
            )
        });
    }
    found
}

fn are_alike(one: &Case, other: &Case) -> bool {
    let text = |case: &Case| {
        case.body
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let (one, other) = (text(one), text(other));
    let longest = one.len().max(other.len());
    longest > 0 && longest < 20_000 && TextDiff::from_lines(&one, &other).ratio() >= ALIKE
}

/// A file of tests that went and whose tests cannot be told one from another.
fn unreadable_gone(file: &ChangedFile) -> Option<Finding> {
    let before = file.before.as_deref()?;
    let is_gone = file.after.is_none() && role(&file.path) == Role::Test;
    let is_unread = is_gone && cases(language(&file.path), before).is_empty();
    is_unread.then(|| {
        finding(
            &file.path,
            0,
            "test_file_removed",
            Severity::Block,
            "a file that tests are in or need is gone",
        )
    })
}

fn all_new_skipped(pair: &Pair<'_>) -> Option<Finding> {
    let (_, _, added) = same(pair);
    let first = added.first()?;
    let is_none_run = added.iter().all(|case| case.is_skipped);
    is_none_run.then(|| {
        let words = "every new test here is left out";
        finding(
            &pair.file.path,
            first.line,
            "new_tests_skipped",
            Severity::Block,
            words,
        )
    })
}

/// Snapshots and golden files are told with their number.
fn expected(files: &[ChangedFile]) -> Option<Finding> {
    let changed: Vec<&ChangedFile> = files
        .iter()
        .filter(|file| role(&file.path) == Role::Expected && file.before.is_some())
        .collect();
    let first = changed.first()?;
    let words = format!("{} file(s) that tests compare with differ", changed.len());
    Some(finding(
        &first.path,
        0,
        "snapshots_changed",
        Severity::Flag,
        words,
    ))
}
