//! Lines that a change adds to tests, scripts and settings, and whole files of settings that it changes.

use domain::check::{Finding, Severity};

use super::{
    finding,
    inventory::{Case, cases},
    lines::{Line, lines},
    paths::{Language, Role, language, role},
    patterns::{COMMANDS, RULES, SETTINGS, Where},
    shown,
};
use crate::{pattern::Pattern, workspace::ChangedFile};

/// Manifests with settings of runners and checkers among other things.
static MANIFEST: Pattern = Pattern::new(
    r"(?:^|/)(?:package\.json|pyproject\.toml|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|composer\.json|[^/]+\.csproj|Directory\.Build\.props)$",
);
/// A job of what continuous integration runs.
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
        _ if MANIFEST.is_match(&file.path) => found.extend(settings(file, &changed.added, &changed.removed)),
        _ => {}
    }
    found
}

/// What is there already is weakened; what is new weakens nothing yet.
fn severity(file: &ChangedFile) -> Severity {
    if file.before.is_some() {
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
            let severity = if file.before.is_none() || is_new || is_product {
                Severity::Flag
            } else {
                Severity::Block
            };
            found.push(finding(&file.path, *number, rule.kind, severity, shown(line)));
            break;
        }
    }
    found
}

/// Where the pattern matches only after the mark of a comment that it does not begin with itself.
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

/// Silencers are comments themselves.
static SILENCERS: Pattern = Pattern::new(
    r"eslint-disable|@ts-|istanbul|c8 ignore|v8 ignore|biome-ignore|nolint|nosec|noqa|rubocop|phpstan|psalm|phpcs|NOLINT|NOPMD|noinspection|CHECKSTYLE|LCOV|codeCoverageIgnore|:nocov:",
);

fn case_at(cases: &[Case], line: usize) -> Option<&Case> {
    cases.iter().find(|case| (case.start..=case.end).contains(&line))
}

fn commands(file: &ChangedFile, added: &[Line<'_>]) -> Vec<Finding> {
    let role = role(&file.path);
    let is_manifest = MANIFEST.is_match(&file.path);
    let is_script = language(&file.path) == Language::Shell && role != Role::Docs;
    if !is_script && !is_manifest && !matches!(role, Role::Ci | Role::Config) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (number, line) in added
        .iter()
        .filter(|(_, line)| !line.trim_start().starts_with('#'))
    {
        if let Some((kind, _)) = COMMANDS.iter().find(|(_, pattern)| pattern.is_match(line)) {
            found.push(finding(&file.path, *number, kind, severity(file), shown(line)));
        }
    }
    found
}

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
