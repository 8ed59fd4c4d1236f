//! Findings in lines that a change adds to tests, scripts and settings, and in whole settings files that it
//! changes.

use domain::check::{ChangeFinding, FindingSeverity};

use super::{
    assertions::empty_assertion,
    inventory::{ListedTest, list_test_cases},
    manifests, new_finding,
    paths::{FilePurpose, SourceLanguage, classify_path, detect_language},
    patterns::{BACKGROUND, CHECK_COMMAND, COMMANDS, PIPED, RULES, RuleScope, SETTINGS},
    size::{NumberedLine, compare_lines},
    truncate_line,
};
use crate::{pattern::LazyPattern, workspace::ChangedFile};

/// Manifests that contain settings of runners and checkers among other things.
static MANIFEST: LazyPattern = LazyPattern::new(
    r"(?:^|/)(?:package\.json|pyproject\.toml|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|composer\.json|[^/]+\.csproj|Directory\.Build\.props)$",
);
/// A job of continuous integration, or a step of one that runs a check.
static JOB: LazyPattern = LazyPattern::new(
    r"^ {0,4}[\w-]+:\s*$|^\s*-?\s*run:\s*\S.*\b(?:test|check|lint|verify)|^\s*-\s+\S*\b(?:pytest|npm|make|cargo|go|mvn|gradle)\b",
);

pub(super) fn check_added_lines(files: &[ChangedFile]) -> Vec<ChangeFinding> {
    files.iter().flat_map(check_changed_file).collect()
}

fn check_changed_file(file: &ChangedFile) -> Vec<ChangeFinding> {
    let changed = compare_lines(file);
    let mut found = check_code_lines(file, &changed.added);
    found.extend(check_command_lines(file, &changed.added));
    match classify_path(&file.path) {
        FilePurpose::Config => found.push(report_whole_file(
            file,
            "config_changed",
            "settings of a runner or checker",
        )),
        FilePurpose::Lock => found.push(report_whole_file(file, "lockfile_changed", "pinned versions")),
        FilePurpose::Ci => found.extend(find_removed_jobs(file, &changed.removed)),
        FilePurpose::Test
        | FilePurpose::Expected
        | FilePurpose::Generated
        | FilePurpose::Docs
        | FilePurpose::Product => {
            // Manifests that can be parsed are compared as documents in `manifests`.
            if !manifests::is_parsed(file) && MANIFEST.is_match(&file.path) {
                found.extend(check_settings_lines(file, &changed.added, &changed.removed));
            }
        }
    }
    found
}

/// Settings files that every test run reads. A new one can change results as much as a changed one.
static RUNNER_CONFIG: LazyPattern = LazyPattern::new(
    r"(?x)(?:^|/)(?:pytest\.ini|tox\.ini|\.coveragerc|(?:jest|vitest|karma|cypress|playwright|ava|wtr?|web-test-runner)\.conf(?:ig)?\.\w+ | jest\.(?:setup|preset|transform|resolver|environment)\.\w+
    | (?:vitest|jest|mocha)[.-](?:setup|workspace|global[\w-]*)\.\w+ | global[sS]etup\.[cm]?[jt]s | setupTests\.[cm]?[jt]sx? | \.mocharc\.\w+ | \.nycrc(?:\.json)? | \.taprc | ts-jest\.config\.\w+ | bunfig\.toml
    | \.babelrc(?:\.\w+)? | babel\.config\.\w+ | \.swcrc | nextest\.toml | \.rspec | phpunit\.xml(?:\.dist)? | \.runsettings | junit-platform\.properties | testng\.xml | CTestCustom\.cmake)$",
);

/// Returns the severity for settings. A change can weaken an existing file; a new file weakens nothing unless
/// every test run reads it.
fn settings_severity(file: &ChangedFile) -> FindingSeverity {
    if file.before.is_some() || RUNNER_CONFIG.is_match(&file.path) {
        FindingSeverity::Block
    } else {
        FindingSeverity::Flag
    }
}

fn report_whole_file(file: &ChangedFile, kind: &str, what: &str) -> ChangeFinding {
    let did = match (&file.before, &file.after) {
        (None, _) => "are new",
        (_, None) => "are gone",
        _ => "differ",
    };
    new_finding(
        &file.path,
        0,
        kind,
        settings_severity(file),
        format!("{what} {did}"),
    )
}

fn check_code_lines(file: &ChangedFile, added: &[NumberedLine<'_>]) -> Vec<ChangeFinding> {
    let (language, role) = (detect_language(&file.path), classify_path(&file.path));
    let after = list_test_cases(language, file.after.as_deref().unwrap_or_default());
    let before = list_test_cases(language, file.before.as_deref().unwrap_or_default());
    let mut found = Vec::new();
    for (number, line) in added {
        for rule in RULES.iter().filter(|rule| rule.languages.contains(&language)) {
            let is_test = role == FilePurpose::Test
                || (language == SourceLanguage::Rust && case_at(&after, *number).is_some());
            let counts = match rule.place {
                RuleScope::Tests => is_test,
                RuleScope::Code => is_test || matches!(role, FilePurpose::Product | FilePurpose::Config),
            };
            if !counts || !rule.pattern.is_match(line) || is_prose(line, &rule.pattern) {
                continue;
            }
            let is_new = case_at(&after, *number)
                .is_some_and(|case| !before.iter().any(|known| known.name == case.name));
            let is_product = role == FilePurpose::Product
                && !is_test
                && rule.kind != "test_left_out"
                && rule.kind != "severity_lowered";
            let is_style =
                language == SourceLanguage::Rust && rule.kind == "checker_silenced" && STYLE.is_match(line);
            let severity = if file.before.is_none() || is_new || is_product || is_style {
                FindingSeverity::Flag
            } else {
                FindingSeverity::Block
            };
            found.push(new_finding(
                &file.path,
                *number,
                rule.kind,
                severity,
                truncate_line(line),
            ));
            // One finding per line is enough, so the first rule that matches decides.
            break;
        }
        let is_test = role == FilePurpose::Test
            || (language == SourceLanguage::Rust && case_at(&after, *number).is_some());
        if let Some(kind) = is_test.then(|| empty_assertion(language, line)).flatten() {
            let is_new = case_at(&after, *number)
                .is_none_or(|case| !before.iter().any(|known| known.name == case.name));
            let severity = if is_new {
                FindingSeverity::Flag
            } else {
                FindingSeverity::Block
            };
            found.push(new_finding(
                &file.path,
                *number,
                kind,
                severity,
                truncate_line(line),
            ));
        }
    }
    found
}

/// Returns true when the line is a comment that merely mentions the pattern, and the pattern itself does not
/// begin with a comment mark.
fn is_prose(line: &str, pattern: &LazyPattern) -> bool {
    let line = line.trim_start();
    let is_comment = line.starts_with("//")
        || (line.starts_with('#')
            && !line.starts_with("#[")
            && !line.starts_with("#!")
            && !line.starts_with("#pragma"));
    let at = pattern.find(line).map_or(0, |found| found.start());
    let mark = line
        .get(at..)
        .is_some_and(|rest| rest.starts_with('#') || rest.starts_with("//"));
    is_comment && !mark && !SILENCERS.is_match(line)
}

/// Directives that silence a checker; they are comments themselves.
static SILENCERS: LazyPattern = LazyPattern::new(
    r"eslint-disable|@ts-|istanbul|c8 ignore|v8 ignore|biome-ignore|nolint|nosec|noqa|rubocop|phpstan|psalm|phpcs|NOLINT|NOPMD|noinspection|CHECKSTYLE|LCOV|codeCoverageIgnore|:nocov:",
);

/// Lints about style, which have no influence on the results of tests.
static STYLE: LazyPattern = LazyPattern::new(
    r"^\s*#!?\[(?:allow|expect)\((?:\s*(?:clippy::\w+|dead_code|unused\w*|missing_docs|non_\w+|deprecated)\s*,?)+(?:\s*reason\s*=.*)?\)\]",
);

fn case_at(cases: &[ListedTest], line: usize) -> Option<&ListedTest> {
    cases.iter().find(|case| (case.start..=case.end).contains(&line))
}

fn check_command_lines(file: &ChangedFile, added: &[NumberedLine<'_>]) -> Vec<ChangeFinding> {
    let role = classify_path(&file.path);
    let is_manifest = MANIFEST.is_match(&file.path);
    let is_attributes = file.path.rsplit('/').next() == Some(".gitattributes");
    let is_rakefile = matches!(file.path.rsplit('/').next(), Some("Rakefile"));
    let is_script = (detect_language(&file.path) == SourceLanguage::Shell && role != FilePurpose::Docs)
        || is_attributes
        || is_rakefile;
    if !is_script && !is_manifest && !matches!(role, FilePurpose::Ci | FilePurpose::Config) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let has_pipefail = file
        .after
        .as_deref()
        .is_some_and(|text| text.contains("pipefail") || text.contains("shell: bash"));
    let is_ruby = detect_language(&file.path) == SourceLanguage::Ruby;
    for (number, line) in added
        .iter()
        .filter(|(_, line)| !line.trim_start().starts_with('#'))
    {
        let is_check = CHECK_COMMAND.is_match(line);
        let is_hidden = is_check && (BACKGROUND.is_match(line) || (PIPED.is_match(line) && !has_pipefail));
        let kind = COMMANDS
            .iter()
            .find(|(kind, pattern)| {
                let counts = match *kind {
                    "permissions_widened" => role == FilePurpose::Ci,
                    "review_hidden" => is_attributes,
                    "command_replaced" => !is_check && role != FilePurpose::Ci,
                    _ => true,
                };
                counts && pattern.is_match(line)
            })
            .map(|(kind, _)| *kind)
            .or(is_hidden.then_some("failure_hidden"));
        // `rescue` hides a failure only in Ruby; elsewhere it is another command.
        let is_rescue = kind == Some("failure_hidden") && line.trim_start().starts_with("rescue");
        if let Some(kind) = kind.filter(|kind| *kind != "command_replaced" && (is_ruby || !is_rescue)) {
            found.push(new_finding(
                &file.path,
                *number,
                kind,
                settings_severity(file),
                truncate_line(line),
            ));
        }
    }
    found.extend(checks_gone(file, is_manifest));
    found
}

/// Finds a command of a check that the change removes from a script or build file.
fn checks_gone(file: &ChangedFile, is_manifest: bool) -> Option<ChangeFinding> {
    let (before, after) = (file.before.as_deref()?, file.after.as_deref().unwrap_or_default());
    if is_manifest || classify_path(&file.path) == FilePurpose::Config {
        return None;
    }
    let is_executed = |line: &&str| {
        !line.trim_start().starts_with('#') && !ECHOED.is_match(line) && !VERSIONED.is_match(line)
    };
    let count = |text: &str| {
        text.lines()
            .filter(is_executed)
            .filter(|line| CHECK_COMMAND.is_match(line))
            .count()
    };
    let gone = before
        .lines()
        .filter(is_executed)
        .find(|line| CHECK_COMMAND.is_match(line) && !after.lines().any(|other| other.trim() == line.trim()));
    let line = gone.filter(|_| count(after) < count(before))?;
    // `find_removed_jobs` reports this line.
    if classify_path(&file.path) == FilePurpose::Ci && JOB.is_match(line) {
        return None;
    }
    let words = format!("no longer run: {}", truncate_line(line));
    Some(new_finding(
        &file.path,
        0,
        "check_removed",
        FindingSeverity::Block,
        words,
    ))
}

/// A runner with a version is a package to install, not a command.
static VERSIONED: LazyPattern = LazyPattern::new(r"\w@\^?~?\d");
/// An `echo` of a command does not run the command.
static ECHOED: LazyPattern = LazyPattern::new(r"^\s*(?:-\s+)?(?:run:\s*)?@?(?:echo|printf)\b");

fn find_removed_jobs(file: &ChangedFile, removed: &[NumberedLine<'_>]) -> Vec<ChangeFinding> {
    let added = file.after.as_deref().unwrap_or_default();
    let gone = removed
        .iter()
        .filter(|(_, line)| JOB.is_match(line) && !added.lines().any(|other| other.trim() == line.trim()));
    gone.map(|(number, line)| {
        let words = format!("no longer run: {}", truncate_line(line));
        new_finding(&file.path, *number, "job_removed", FindingSeverity::Block, words)
    })
    .collect()
}

fn check_settings_lines(
    file: &ChangedFile,
    added: &[NumberedLine<'_>],
    removed: &[NumberedLine<'_>],
) -> Option<ChangeFinding> {
    let (number, line) = added
        .iter()
        .chain(removed)
        .find(|(_, line)| SETTINGS.is_match(line))?;
    let words = format!("settings of a runner or checker differ: {}", truncate_line(line));
    Some(new_finding(
        &file.path,
        *number,
        "config_changed",
        settings_severity(file),
        words,
    ))
}
