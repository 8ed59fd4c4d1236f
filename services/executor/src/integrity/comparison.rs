//! Compares the tests before and after a change: removed tests, weaker assertions, and changed expectations.

use std::collections::HashSet;

use domain::check::{ChangeFinding, FindingSeverity};
use similar::TextDiff;

use super::{
    assertions,
    inventory::{ListedTest, list_test_cases},
    new_finding,
    pairing::{are_alike, is_merged_into, pair_cases},
    paths::{FilePurpose, SourceLanguage, can_contain_tests, classify_path, detect_language},
    patterns::LOOSER,
    product::ProductDefinitions,
    truncate_line,
};
use crate::{pattern::LazyPattern, test_files, workspace::ChangedFile};

static CLASS: LazyPattern = LazyPattern::new(r"(?m)^\s*class\s+(\w+)\s*(?:\(|<\s*|extends\s+)([^):{\n]*)");
static CLASS_HEAD: LazyPattern =
    LazyPattern::new(r"(?m)^\s*class\s+(\w+)\s*(?:(?:\(|<\s*|extends\s+)([^):{\n]*))?");
static LITERAL: LazyPattern = LazyPattern::new(
    r#""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|\b\d[\w.]*\b|\b(?:[Tt]rue|[Ff]alse|[Nn]one|null|nil)\b"#,
);
/// Both sides of a comparison, in the notations of the supported languages.
static EQUAL: LazyPattern = LazyPattern::new(
    r"^assert\s+(.+?)\s*==\s*(.+?)$|\bexpect\((.+)\)\.to(?:Be|Equal|StrictEqual)\((.+)\);?$|\b(?:assert_eq!|assertEqual|assert\.(?:equal|strictEqual|deepEqual|deepStrictEqual))\((.+?),\s*(.+?)\);?$|\bassert_equal[ (](.+?),\s*(.+?)\)?$",
);
static WORD: LazyPattern = LazyPattern::new(r"^[A-Za-z_]\w*$");
/// Test files of Go that only another operating system or architecture compiles.
static OS_SUFFIX: LazyPattern = LazyPattern::new(
    r"_(?:windows|darwin|freebsd|openbsd|netbsd|dragonfly|plan9|solaris|illumos|aix|js|wasip1|android|ios|arm|386|mips\w*|ppc64\w*|riscv64|s390x|wasm)_test\.go$",
);
static ASSERTED: LazyPattern =
    LazyPattern::new(r"(?i)assert|expect|should|require\.|t\.(?:Error|Fatal)|must_");

/// Tests of one file before and after the change.
struct FileCases<'f> {
    file: &'f ChangedFile,
    before: Vec<ListedTest>,
    after: Vec<ListedTest>,
}

pub(super) fn compare_tests(files: &[ChangedFile]) -> Vec<ChangeFinding> {
    let pairs: Vec<FileCases<'_>> = files
        .iter()
        .filter(|file| can_contain_tests(&file.path))
        .map(read_file_cases)
        .collect();
    let mut found: Vec<ChangeFinding> = pairs.iter().flat_map(compare_kept_tests).collect();
    found.extend(find_removed_tests(&pairs, &ProductDefinitions::of(files)));
    found.extend(
        files
            .iter()
            .filter_map(|file| find_removed_test_file(file, files)),
    );
    found.extend(pairs.iter().filter_map(find_skipped_new_tests));
    found.extend(find_changed_snapshots(files));
    found
}

fn read_file_cases(file: &ChangedFile) -> FileCases<'_> {
    let read = |text: &Option<String>| {
        list_test_cases(detect_language(&file.path), text.as_deref().unwrap_or_default())
    };
    FileCases {
        file,
        before: read(&file.before),
        after: read(&file.after),
    }
}

fn compare_kept_tests(pair: &FileCases<'_>) -> Vec<ChangeFinding> {
    let pairs = pair_cases(&pair.before, &pair.after);
    let text = pair.file.after.as_deref().unwrap_or_default();
    let path = pair.file.path.as_str();
    let is_changed = |before: &ListedTest, after: &ListedTest| {
        before.body != after.body || before.is_skipped != after.is_skipped
    };
    let mut found = Vec::new();
    for (before, after) in pairs
        .both
        .into_iter()
        .filter(|(before, after)| is_changed(before, after))
    {
        found.extend(find_weaker_assertions(pair.file, before, after));
        if before.name != after.name {
            let words = format!("{} became {}", before.name, after.name);
            found.push(new_finding(
                path,
                after.line,
                "test_renamed",
                FindingSeverity::Flag,
                words,
            ));
        }
        found.extend(assertions::find_unreachable_assertion(
            path,
            text,
            Some(before),
            after,
        ));
    }
    for after in pairs.added {
        let unreachable = assertions::find_unreachable_assertion(path, text, None, after);
        found.extend(unreachable.map(|found| ChangeFinding {
            severity: FindingSeverity::Flag,
            ..found
        }));
    }
    found.extend(find_lost_base_class(pair.file));
    found
}

/// Finds a test class that lost the base class by which its runner collects it.
fn find_lost_base_class(file: &ChangedFile) -> Option<ChangeFinding> {
    let (before, after) = (file.before.as_deref()?, file.after.as_deref()?);
    let is_collected = |bases: &str| bases.contains("Test");
    CLASS
        .all(before)
        .filter(|class| is_collected(&class[2]))
        .find_map(|class| {
            let other = CLASS_HEAD.all(after).find(|other| other[1] == class[1])?;
            let bases = other.get(2).map_or("", |bases| bases.as_str());
            if is_collected(bases)
                // Runners collect a class whose name begins with `Test` without any base class.
                || class[1].starts_with("Test") && !bases.contains("object") && bases.is_empty()
            {
                return None;
            }
            let at = other.get(0)?.start();
            let line = after.get(..at)?.matches('\n').count() + 1;
            let words = format!("{} is not a test class any more", &class[1]);
            Some(new_finding(
                &file.path,
                line,
                "test_left_out",
                FindingSeverity::Block,
                words,
            ))
        })
}

fn fewer_assertions(path: &str, before: &ListedTest, after: &ListedTest) -> Option<ChangeFinding> {
    let words = format!(
        "{} has {} assertions instead of {}",
        after.name, after.assertions, before.assertions
    );
    let removed = || {
        new_finding(
            path,
            after.line,
            "assertions_removed",
            FindingSeverity::Block,
            words,
        )
    };
    (after.assertions < before.assertions).then(removed)
}

fn find_weaker_assertions(file: &ChangedFile, before: &ListedTest, after: &ListedTest) -> Vec<ChangeFinding> {
    let path = file.path.as_str();
    let mut found = Vec::from_iter(fewer_assertions(path, before, after));
    found.extend(computed_expectation(path, before, after));
    if after.is_skipped && !before.is_skipped {
        let words = format!("{} is left out now", after.name);
        found.push(new_finding(
            path,
            after.start,
            "test_skipped",
            FindingSeverity::Block,
            words,
        ));
    }
    let language = detect_language(path);
    for (_, strong, weak) in LOOSER
        .iter()
        .filter(|(of, ..)| of.is_none_or(|of| of == language))
    {
        let count = |pattern: &LazyPattern, case: &ListedTest| {
            case.body.iter().filter(|line| pattern.is_match(line)).count()
        };
        let less = count(strong, after) < count(strong, before);
        if less && count(weak, after) > count(weak, before) {
            let line = after
                .body
                .iter()
                .find(|line| weak.is_match(line) && !before.body.contains(line));
            let words = format!(
                "{} asserts less than before: {}",
                after.name,
                truncate_line(line.map_or("", String::as_str))
            );
            found.push(new_finding(
                path,
                after.line,
                "assertion_loosened",
                FindingSeverity::Block,
                words,
            ));
            break;
        }
    }
    found.extend(other_expectation(path, before, after));
    found
}

/// Finds an assertion whose expected value was a literal and is now computed by the code under test.
fn computed_expectation(path: &str, before: &ListedTest, after: &ListedTest) -> Option<ChangeFinding> {
    let sides = |line: &str| {
        let sides = EQUAL.captures(line)?;
        let left = sides.get(1).or(sides.get(3)).or(sides.get(5)).or(sides.get(7))?;
        let right = sides.get(2).or(sides.get(4)).or(sides.get(6)).or(sides.get(8))?;
        Some((left.as_str().trim().to_owned(), right.as_str().trim().to_owned()))
    };
    let gone = before
        .body
        .iter()
        .filter(|line| !after.body.contains(line))
        .filter_map(|line| sides(line));
    let gone: Vec<(String, String)> = gone
        .filter(|(_, right)| LITERAL.is_match(right) && !right.contains('('))
        .collect();
    let new = after.body.iter().filter(|line| !before.body.contains(line));
    let (line, _) = new
        .filter_map(|line| Some((line, sides(line)?)))
        .find(|(_, (left, right))| {
            let function = left.split('(').next().unwrap_or(left).trim();
            let is_computed =
                |value: &str| value.contains('(') && !function.is_empty() && value.contains(function);
            let assigned = after.body.iter().find_map(|line| {
                let value = line
                    .trim_start_matches("const ")
                    .trim_start_matches("let ")
                    .trim_start_matches("var ");
                value
                    .strip_prefix(right.as_str())?
                    .trim_start()
                    .strip_prefix(":=")
                    .or_else(|| value.strip_prefix(right.as_str())?.trim_start().strip_prefix('='))
            });
            let computes = is_computed(right) || (WORD.is_match(right) && assigned.is_some_and(is_computed));
            computes && gone.iter().any(|(known, _)| known == left)
        })?;
    let words = format!(
        "{} compares the code with itself: {}",
        after.name,
        truncate_line(line)
    );
    Some(new_finding(
        path,
        after.line,
        "expectation_computed",
        FindingSeverity::Block,
        words,
    ))
}

/// Finds an assertion that now expects another literal.
fn other_expectation(path: &str, before: &ListedTest, after: &ListedTest) -> Option<ChangeFinding> {
    let asserted = |case: &ListedTest, other: &ListedTest| -> Vec<String> {
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
        truncate_line(new),
        truncate_line(old)
    );
    Some(new_finding(
        path,
        after.line,
        "expectation_changed",
        FindingSeverity::Flag,
        words,
    ))
}

/// Finds removed tests. A test that moved or was renamed is not removed.
fn find_removed_tests(pairs: &[FileCases<'_>], definitions: &ProductDefinitions) -> Vec<ChangeFinding> {
    let mut new: Vec<(&str, &ListedTest)> = Vec::new();
    let mut missing: Vec<(&FileCases<'_>, &ListedTest)> = Vec::new();
    for pair in pairs {
        let pairs = pair_cases(&pair.before, &pair.after);
        missing.extend(pairs.gone.into_iter().map(|case| (pair, case)));
        new.extend(
            pairs
                .added
                .into_iter()
                .map(|case| (pair.file.path.as_str(), case)),
        );
    }
    let mut taken = HashSet::new();
    let mut found: Vec<ChangeFinding> = Vec::new();
    // Identical bodies are matched first, so that a merely similar test does not take their place.
    missing.retain(|(pair, case)| {
        let moved = new
            .iter()
            .position(|(_, other)| other.body == case.body && !taken.contains(&(other.line, &other.name)));
        let Some((place, other)) = moved.and_then(|at| new.get(at)) else {
            return true;
        };
        taken.insert((other.line, &other.name));
        if is_collected(&pair.file.path) && !is_collected(place) {
            let words = format!(
                "{} is in {place} now, where its runner does not collect it",
                case.name
            );
            found.push(new_finding(
                place,
                other.line,
                "test_left_out",
                FindingSeverity::Block,
                words,
            ));
        }
        false
    });
    let mut merged = HashSet::new();
    missing.retain(|(pair, case)| {
        let changed = pairs.iter().find_map(|other| {
            let text = other.file.after.as_deref()?;
            let table = other.after.iter().find(|table| {
                let is_old = other.before.iter().any(|known| {
                    known.name == table.name
                        && known.body == table.body
                        && known.start.abs_diff(known.line) == table.start.abs_diff(table.line)
                });
                !is_old && is_merged_into(case, table, text)
            })?;
            Some((other.file.path.as_str(), table))
        });
        let Some((place, table)) = changed else {
            return true;
        };
        merged.insert((table.line, table.name.as_str()));
        let words = format!("{} is a row of {} in {place} now", case.name, table.name);
        found.push(new_finding(
            &pair.file.path,
            case.line,
            "test_merged",
            FindingSeverity::Flag,
            words,
        ));
        false
    });
    taken.extend(merged.into_iter().filter_map(|(line, name)| {
        let (_, case) = new
            .iter()
            .find(|(_, case)| case.line == line && case.name == name)?;
        Some((case.line, &case.name))
    }));
    for (pair, case) in missing {
        let path = pair.file.path.as_str();
        let alike = new
            .iter()
            .find(|(_, other)| !taken.contains(&(other.line, &other.name)) && are_alike(case, other));
        if let Some((place, other)) = alike {
            taken.insert((other.line, &other.name));
            let words = format!("{} became {} in {place}", case.name, other.name);
            found.push(new_finding(
                path,
                case.line,
                "test_renamed",
                FindingSeverity::Flag,
                words,
            ));
            found.extend(fewer_assertions(place, case, other));
            continue;
        }
        found.push(if definitions.are_gone(&case.body) {
            let words = format!("{} is gone, like all that it tested", case.name);
            new_finding(path, case.line, "test_removed", FindingSeverity::Flag, words)
        } else {
            new_finding(
                path,
                case.line,
                "test_removed",
                FindingSeverity::Block,
                format!("{} is gone", case.name),
            )
        });
    }
    found
}

/// Finds a removed test file whose tests the inventory cannot read.
fn find_removed_test_file(file: &ChangedFile, files: &[ChangedFile]) -> Option<ChangeFinding> {
    let before = file.before.as_deref()?;
    let is_gone = file.after.is_none() && classify_path(&file.path) == FilePurpose::Test;
    let is_unread = is_gone && list_test_cases(detect_language(&file.path), before).is_empty();
    let renamed = files.iter().find(|other| {
        other.before.is_none()
            && classify_path(&other.path) == FilePurpose::Test
            && other
                .after
                .as_deref()
                .is_some_and(|after| is_same_file(before, after))
    });
    if let Some(other) = renamed.filter(|_| is_unread) {
        let words = format!("became {}", other.path);
        return Some(new_finding(
            &file.path,
            0,
            "test_file_renamed",
            FindingSeverity::Flag,
            words,
        ));
    }
    is_unread.then(|| {
        new_finding(
            &file.path,
            0,
            "test_file_removed",
            FindingSeverity::Block,
            "a file that tests are in or need is gone",
        )
    })
}

/// Returns true when two texts are one file under two names.
fn is_same_file(before: &str, after: &str) -> bool {
    // Comparison takes quadratic time in the worst case, so files of 20 KB and more count as different unless
    // they are equal.
    let longest = before.len().max(after.len());
    before == after || (longest > 0 && longest < 20_000 && TextDiff::from_lines(before, after).ratio() >= 0.8)
}

/// Returns true when the runner of the file's language collects tests from a file of this name. Languages
/// without such a rule always return true.
fn is_collected(path: &str) -> bool {
    match detect_language(path) {
        SourceLanguage::Python => test_files::is_collected(path) && !path.contains("/__"),
        SourceLanguage::Go => test_files::is_collected(path) && !OS_SUFFIX.is_match(path),
        SourceLanguage::Script | SourceLanguage::Jvm | SourceLanguage::Ruby | SourceLanguage::Php => {
            test_files::is_collected(path)
        }
        SourceLanguage::Rust
        | SourceLanguage::CSharp
        | SourceLanguage::Cpp
        | SourceLanguage::Sql
        | SourceLanguage::Shell
        | SourceLanguage::Yaml
        | SourceLanguage::Other => true,
    }
}

fn find_skipped_new_tests(pair: &FileCases<'_>) -> Option<ChangeFinding> {
    let added = pair_cases(&pair.before, &pair.after).added;
    let first = added.first()?;
    let is_none_run = added.iter().all(|case| case.is_skipped);
    is_none_run.then(|| {
        let words = "every new test here is left out";
        new_finding(
            &pair.file.path,
            first.line,
            "new_tests_skipped",
            FindingSeverity::Block,
            words,
        )
    })
}

/// Reports changed snapshots and golden files as one finding with their number, because a single change often
/// rewrites many.
fn find_changed_snapshots(files: &[ChangedFile]) -> Option<ChangeFinding> {
    let changed: Vec<&ChangedFile> = files
        .iter()
        .filter(|file| classify_path(&file.path) == FilePurpose::Expected && file.before.is_some())
        .collect();
    let first = changed.first()?;
    let words = format!("{} file(s) that tests compare with differ", changed.len());
    Some(new_finding(
        &first.path,
        0,
        "snapshots_changed",
        FindingSeverity::Flag,
        words,
    ))
}
