//! Findings in lines that a change adds to tests, scripts and settings, and in whole settings files that it
//! changes.

use domain::check::{Finding, Severity};

use super::{
    assertions::empty_assertion,
    finding,
    inventory::{Case, cases},
    lines::{Line, lines},
    manifests,
    paths::{Language, Role, language, role},
    patterns::{BACKGROUND, CHECK_COMMAND, COMMANDS, PIPED, RULES, SETTINGS, Where},
    shown,
};
use crate::{pattern::Pattern, workspace::ChangedFile};

/// Manifests that contain settings of runners and checkers among other things.
static MANIFEST: Pattern = Pattern::new(
    r"(?:^|/)(?:package\.json|pyproject\.toml|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|composer\.json|[^/]+\.csproj|Directory\.Build\.props)$",
);
/// A job of continuous integration, or a step of one that runs a check.
static JOB: Pattern = Pattern::new(
    r"^ {0,4}[\w-]+:\s*$|^\s*-?\s*run:\s*\S.*\b(?:test|check|lint|verify)|^\s*-\s+\S*\b(?:pytest|npm|make|cargo|go|mvn|gradle)\b",
);

pub(super) fn findings(files: &[ChangedFile]) -> Vec<Finding> {
    files.iter().flat_map(of).collect()
}

fn of(file: &ChangedFile) -> Vec<Finding> {
    let changed = lines(file);
    let mut found = code(file, &changed.added);
    found.extend(commands(file, &changed.added));
    match role(&file.path) {
        Role::Config => found.push(whole(file, "config_changed", "settings of a runner or checker")),
        Role::Lock => found.push(whole(file, "lockfile_changed", "pinned versions")),
        Role::Ci => found.extend(jobs_gone(file, &changed.removed)),
        // Manifests that can be parsed are compared as documents in `manifests`.
        _ if manifests::is_parsed(file) => {}
        _ if MANIFEST.is_match(&file.path) => found.extend(settings(file, &changed.added, &changed.removed)),
        _ => {}
    }
    found
}

/// Settings files that every test run reads. A new one can change results as much as a changed one.
static RUNNER_CONFIG: Pattern = Pattern::new(
    r"(?x)(?:^|/)(?:pytest\.ini|tox\.ini|\.coveragerc|(?:jest|vitest|karma|cypress|playwright|ava|wtr?|web-test-runner)\.conf(?:ig)?\.\w+ | jest\.(?:setup|preset|transform|resolver|environment)\.\w+
    | (?:vitest|jest|mocha)[.-](?:setup|workspace|global[\w-]*)\.\w+ | global[sS]etup\.[cm]?[jt]s | setupTests\.[cm]?[jt]sx? | \.mocharc\.\w+ | \.nycrc(?:\.json)? | \.taprc | ts-jest\.config\.\w+ | bunfig\.toml
    | \.babelrc(?:\.\w+)? | babel\.config\.\w+ | \.swcrc | nextest\.toml | \.rspec | phpunit\.xml(?:\.dist)? | \.runsettings | junit-platform\.properties | testng\.xml | CTestCustom\.cmake)$",
);

/// Returns the severity for settings. A change can weaken an existing file; a new file weakens nothing unless
/// every test run reads it.
fn severity(file: &ChangedFile) -> Severity {
    if file.before.is_some() || RUNNER_CONFIG.is_match(&file.path) {
        Severity::Block
    } else {
        Severity::Flag
    }
}

fn whole(file: &ChangedFile, kind: &str, what: &str) -> Finding {
    let did = match (&file.before, &file.after) {
        (None, _) => "are new",
        (_, None) => "are gone",
        _ => "differ",
    };
    finding(&file.path, 0, kind, severity(file), format!("{what} {did}"))
}

fn code(file: &ChangedFile, added: &[Line<'_>]) -> Vec<Finding> {
    let (language, role) = (language(&file.path), role(&file.path));
    let after = cases(language, file.after.as_deref().unwrap_or_default());
    let before = cases(language, file.before.as_deref().unwrap_or_default());
    let mut found = Vec::new();
    for (number, line) in added {
        for rule in RULES.iter().filter(|rule| rule.languages.contains(&language)) {
            let is_test =
                role == Role::Test || (language == Language::Rust && case_at(&after, *number).is_some());
            let counts = match rule.place {
                Where::Tests => is_test,
                Where::Code => is_test || matches!(role, Role::Product | Role::Config),
            };
            if !counts || !rule.pattern.is_match(line) || is_prose(line, &rule.pattern) {
                continue;
            }
            let is_new = case_at(&after, *number)
                .is_some_and(|case| !before.iter().any(|known| known.name == case.name));
            let is_product = role == Role::Product
                && !is_test
                && rule.kind != "test_left_out"
                && rule.kind != "severity_lowered";
            let is_style =
                language == Language::Rust && rule.kind == "checker_silenced" && STYLE.is_match(line);
            let severity = if file.before.is_none() || is_new || is_product || is_style {
                Severity::Flag
            } else {
                Severity::Block
            };
            found.push(finding(&file.path, *number, rule.kind, severity, shown(line)));
            // One finding per line is enough, so the first rule that matches decides.
            break;
        }
        let is_test =
            role == Role::Test || (language == Language::Rust && case_at(&after, *number).is_some());
        if let Some(kind) = is_test.then(|| empty_assertion(language, line)).flatten() {
            let is_new = case_at(&after, *number)
                .is_none_or(|case| !before.iter().any(|known| known.name == case.name));
            let severity = if is_new { Severity::Flag } else { Severity::Block };
            found.push(finding(&file.path, *number, kind, severity, shown(line)));
        }
    }
    found
}

/// Returns true when the line is a comment that merely mentions the pattern, and the pattern itself does not
/// begin with a comment mark.
fn is_prose(line: &str, pattern: &Pattern) -> bool {
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
static SILENCERS: Pattern = Pattern::new(
    r"eslint-disable|@ts-|istanbul|c8 ignore|v8 ignore|biome-ignore|nolint|nosec|noqa|rubocop|phpstan|psalm|phpcs|NOLINT|NOPMD|noinspection|CHECKSTYLE|LCOV|codeCoverageIgnore|:nocov:",
);

/// Lints about style, which have no influence on the results of tests.
static STYLE: Pattern = Pattern::new(
    r"^\s*#!?\[(?:allow|expect)\((?:\s*(?:clippy::\w+|dead_code|unused\w*|missing_docs|non_\w+|deprecated)\s*,?)+(?:\s*reason\s*=.*)?\)\]",
);

fn case_at(cases: &[Case], line: usize) -> Option<&Case> {
    cases.iter().find(|case| (case.start..=case.end).contains(&line))
}

fn commands(file: &ChangedFile, added: &[Line<'_>]) -> Vec<Finding> {
    let role = role(&file.path);
    let is_manifest = MANIFEST.is_match(&file.path);
    let is_attributes = file.path.rsplit('/').next() == Some(".gitattributes");
    let is_rakefile = matches!(file.path.rsplit('/').next(), Some("Rakefile"));
    let is_script =
        (language(&file.path) == Language::Shell && role != Role::Docs) || is_attributes || is_rakefile;
    if !is_script && !is_manifest && !matches!(role, Role::Ci | Role::Config) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let has_pipefail = file
        .after
        .as_deref()
        .is_some_and(|text| text.contains("pipefail") || text.contains("shell: bash"));
    let is_ruby = language(&file.path) == Language::Ruby;
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
                    "permissions_widened" => role == Role::Ci,
                    "review_hidden" => is_attributes,
                    "command_replaced" => !is_check && role != Role::Ci,
                    _ => true,
                };
                counts && pattern.is_match(line)
            })
            .map(|(kind, _)| *kind)
            .or(is_hidden.then_some("failure_hidden"));
        // `rescue` hides a failure only in Ruby; elsewhere it is another command.
        let is_rescue = kind == Some("failure_hidden") && line.trim_start().starts_with("rescue");
        if let Some(kind) = kind.filter(|kind| *kind != "command_replaced" && (is_ruby || !is_rescue)) {
            found.push(finding(&file.path, *number, kind, severity(file), shown(line)));
        }
    }
    found.extend(checks_gone(file, is_manifest));
    found
}

/// Finds a command of a check that the change removes from a script or build file.
fn checks_gone(file: &ChangedFile, is_manifest: bool) -> Option<Finding> {
    let (before, after) = (file.before.as_deref()?, file.after.as_deref().unwrap_or_default());
    if is_manifest || role(&file.path) == Role::Config {
        return None;
    }
    let is_told = |line: &&str| {
        !line.trim_start().starts_with('#') && !ECHOED.is_match(line) && !VERSIONED.is_match(line)
    };
    let count = |text: &str| {
        text.lines()
            .filter(is_told)
            .filter(|line| CHECK_COMMAND.is_match(line))
            .count()
    };
    let gone = before
        .lines()
        .filter(is_told)
        .find(|line| CHECK_COMMAND.is_match(line) && !after.lines().any(|other| other.trim() == line.trim()));
    let line = gone.filter(|_| count(after) < count(before))?;
    // `jobs_gone` reports this line.
    if role(&file.path) == Role::Ci && JOB.is_match(line) {
        return None;
    }
    let words = format!("no longer run: {}", shown(line));
    Some(finding(&file.path, 0, "check_removed", Severity::Block, words))
}

/// A runner with a version is a package to install, not a command.
static VERSIONED: Pattern = Pattern::new(r"\w@\^?~?\d");
/// An `echo` of a command does not run the command.
static ECHOED: Pattern = Pattern::new(r"^\s*(?:-\s+)?(?:run:\s*)?@?(?:echo|printf)\b");

fn jobs_gone(file: &ChangedFile, removed: &[Line<'_>]) -> Vec<Finding> {
    let added = file.after.as_deref().unwrap_or_default();
    let gone = removed
        .iter()
        .filter(|(_, line)| JOB.is_match(line) && !added.lines().any(|other| other.trim() == line.trim()));
    gone.map(|(number, line)| {
        let words = format!("no longer run: {}", shown(line));
        finding(&file.path, *number, "job_removed", Severity::Block, words)
    })
    .collect()
}

fn settings(file: &ChangedFile, added: &[Line<'_>], removed: &[Line<'_>]) -> Option<Finding> {
    let (number, line) = added
        .iter()
        .chain(removed)
        .find(|(_, line)| SETTINGS.is_match(line))?;
    let words = format!("settings of a runner or checker differ: {}", shown(line));
    Some(finding(
        &file.path,
        *number,
        "config_changed",
        severity(file),
        words,
    ))
}
