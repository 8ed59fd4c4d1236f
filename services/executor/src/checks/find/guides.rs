//! Commands in fenced blocks of AGENTS.md and CONTRIBUTING.

use domain::check::CheckCandidate;

use super::{folder, name};
use crate::pattern::Pattern;

/// Longer lines are no commands that people type.
const MAX_COMMAND: usize = 300;
/// Languages of blocks that hold commands.
const SHELLS: [&str; 7] = ["", "bash", "console", "sh", "shell", "shell-session", "zsh"];
/// What runs tests.
static TESTS: Pattern = Pattern::new(
    r"(?x)^(?:[A-Z_][A-Z0-9_]*=\S*\s+)*(?:cd\s+[\w./-]+\s*&&\s*)?(?:
    make\s+[\w-]*(?:test|check|ci|verify)[\w-]*\b | just\s+[\w-]*(?:test|check|ci)[\w-]*\b
    | (?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:test|check)[\w:-]*\b | npx\s+(?:jest|vitest|mocha)\b
    | (?:uv\s+run\s+|poetry\s+run\s+|pipenv\s+run\s+|hatch\s+run\s+|python3?\s+-m\s+)?(?:pytest|unittest)\b | tox\b | nox\b
    | python3?\s+manage\.py\s+test\b | cargo\s+(?:test|nextest)\b | go\s+test\b
    | (?:\./)?(?:gradlew|mvnw|gradle|mvn)\b.*\b(?:test|check|verify)\b
    | (?:bundle\s+exec\s+)?(?:rspec|rake\s+(?:test|spec))\b | (?:bin/rails|rails)\s+test\b
    | (?:\./)?vendor/bin/(?:phpunit|pest)\b | composer\s+(?:run\s+)?test\b | dotnet\s+test\b | dbt\s+(?:test|build)\b
    | mix\s+test\b | node\s+--test\b | (?:\./)?(?:scripts?|bin)/[\w-]*test[\w.-]*\b )",
);

pub(super) fn is_one(path: &str) -> bool {
    let name = name(path).to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    matches!(stem, "agents" | "contributing") && matches!(folder(path), "" | ".github" | "docs")
}

pub(super) fn commands(path: &str, text: &str) -> Vec<CheckCandidate> {
    if !is_one(path) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut is_shell = None;
    for line in text.lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            let language = language.split_whitespace().next().unwrap_or_default();
            is_shell = match is_shell {
                None => Some(SHELLS.contains(&language)),
                Some(_) => None,
            };
            continue;
        }
        let command = line.strip_prefix("$ ").unwrap_or(line);
        let command = command.split(" # ").next().unwrap_or_default().trim();
        if is_shell == Some(true) && command.len() <= MAX_COMMAND && TESTS.is_match(command) {
            found.push(CheckCandidate {
                command: command.to_owned(),
                directory: String::new(),
                why: format!("{path} names it"),
            });
        }
    }
    found
}
