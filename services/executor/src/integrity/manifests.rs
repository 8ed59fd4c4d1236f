//! Compares manifests as parsed documents, because they contain settings of runners and checkers among other
//! things.

use std::collections::BTreeMap;

use domain::check::{ChangeFinding, FindingSeverity};

use super::{new_finding, truncate_line};
use crate::{pattern::LazyPattern, workspace::ChangedFile};

/// Largest number of differences reported for one file.
const MAX_FINDINGS: usize = 10;

/// Values of a document by the path of their keys, joined with dots.
pub(super) type ManifestValues = BTreeMap<String, String>;

static PYPROJECT: LazyPattern = LazyPattern::new(
    r"^tool\.(?:pytest|ruff|mypy|coverage|pylint|black|isort|pyright|basedpyright|flake8|tox|nox|bandit|interrogate|vulture|poe|taskipy|pdm\.scripts|hatch\.envs|hatch\.scripts|pytest-\w+|mutmut|cibuildwheel)\b",
);
static PACKAGE: LazyPattern = LazyPattern::new(
    r"^(?:scripts\.(?:(?:pre|post)?(?:test|lint|check|ci|verify|validate|types?|typecheck|type-check|coverage|e2e|unit|jest|vitest|mocha|tsc|eslint)(?:[:_-][\w:-]*)?|pretest|posttest|preinstall|postinstall|prepare)|jest|mocha|ava|tap|nyc|c8|babel|eslintConfig|eslintIgnore|vitest|stylelint|prettier|lint-staged|husky|size-limit|jasmine|cypress|playwright|wallaby|xo|standard|browserify\.transform)(?:\.|$)",
);
static CARGO: LazyPattern = LazyPattern::new(
    r"^(?:workspace\.)?lints\b|^(?:lib|bin|test|bench|example)(?:\.\d+)?\.(?:harness|test|doctest)$|^test\.\d+\.(?:required-features|path)$|^package\.(?:autotests|autobins|autobenches|build)$|^profile\.(?:test|dev)\b|^package\.metadata\.(?:nextest|cargo-\w+)|^workspace\.metadata\.nextest",
);
static SETUP_CFG: LazyPattern =
    LazyPattern::new(r"^(?:tool:pytest|pytest|mypy|flake8|coverage|isort|pylint|pycodestyle|pydocstyle|tox)");
static COMPOSER: LazyPattern = LazyPattern::new(
    r"^scripts\.(?:[\w:-]*(?:test|lint|check|stan|psalm|cs|phpunit|pest)[\w:-]*)(?:\.|$)|^autoload-dev\b",
);
static DENO: LazyPattern = LazyPattern::new(
    r"^(?:tasks\.[\w:-]*(?:test|lint|check)[\w:-]*|test|lint|bench|compilerOptions|nodeModulesDir)(?:\.|$)",
);
/// Settings of a runner whose new values cannot weaken a check.
static HARMLESS: LazyPattern = LazyPattern::new(
    r"^tool\.(?:black|isort)\.(?:line[-_]length|target[-_]version|profile)\b|^tool\.ruff\.(?:line-length|target-version|src)\b|^prettier\b|^scripts\.prepare$|^profile\.(?:test|dev)\.(?:opt-level|debug|codegen-units|incremental|strip)$|^profile\.(?:test|dev)\.package\b|^jest\.testTimeout$|^tool\.tox\..*\.description$",
);

static NEW_SCRIPT: LazyPattern = LazyPattern::new(
    r"^scripts\.(?:lint|check|ci|verify|validate|types?|typecheck|type-check|coverage|e2e|unit|test[:_-])[\w:-]*$",
);

/// Parses a manifest. Returns `None` for another kind of file, or for one that cannot be parsed.
pub(super) fn read_values(path: &str, text: &str) -> Option<ManifestValues> {
    let mut values = ManifestValues::new();
    match path.rsplit('/').next().unwrap_or(path) {
        "package.json" | "composer.json" | "deno.json" => {
            let document: serde_json::Value = serde_json::from_str(text).ok()?;
            flatten_json("", &document, &mut values);
        }
        "pyproject.toml" | "Cargo.toml" | "Pipfile" => {
            let document: toml::Table = text.parse().ok()?;
            flatten_toml("", &toml::Value::Table(document), &mut values);
        }
        "setup.cfg" => flatten_ini(text, &mut values),
        _ => return None,
    }
    Some(values)
}

/// Returns true when both versions of a file can be compared as documents.
pub(super) fn is_parsed(file: &ChangedFile) -> bool {
    let is_read = |text: &Option<String>| {
        text.as_deref()
            .is_none_or(|text| read_values(&file.path, text).is_some())
    };
    settings_of(&file.path).is_some() && is_read(&file.before) && is_read(&file.after)
}

fn settings_of(path: &str) -> Option<&'static LazyPattern> {
    Some(match path.rsplit('/').next().unwrap_or(path) {
        "pyproject.toml" => &PYPROJECT,
        "package.json" => &PACKAGE,
        "Cargo.toml" => &CARGO,
        "setup.cfg" => &SETUP_CFG,
        "composer.json" => &COMPOSER,
        "deno.json" => &DENO,
        _ => return None,
    })
}

pub(super) fn compare_manifests(files: &[ChangedFile]) -> Vec<ChangeFinding> {
    files
        .iter()
        .filter(|file| is_parsed(file))
        .flat_map(compare_manifest)
        .collect()
}

fn compare_manifest(file: &ChangedFile) -> Vec<ChangeFinding> {
    let Some(settings) = settings_of(&file.path) else {
        return Vec::new();
    };
    let read = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or_default();
        read_values(&file.path, text).unwrap_or_default()
    };
    let (before, after) = (read(&file.before), read(&file.after));
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differ = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    let reported = differ.filter(|key| settings.is_match(key) && !HARMLESS.is_match(key));
    // A new manifest cannot disable a check that existed before.
    let severity = if file.before.is_some() {
        FindingSeverity::Block
    } else {
        FindingSeverity::Flag
    };
    let found = reported.take(MAX_FINDINGS).map(|key| {
        let value = |values: &ManifestValues| {
            values
                .get(key)
                .map_or("nothing".to_owned(), |value| truncate_line(value))
        };
        let words = format!(
            "settings of a runner or checker differ: {key} is {} instead of {}",
            value(&after),
            value(&before)
        );
        // No process runs a new script under a new name yet, but `pre` and `post` scripts run with a known
        // one.
        let is_addition = !before.contains_key(key) && NEW_SCRIPT.is_match(key);
        let severity = if is_addition {
            FindingSeverity::Flag
        } else {
            severity
        };
        let line = find_line(file.after.as_deref().unwrap_or_default(), key);
        new_finding(&file.path, line, "config_changed", severity, words)
    });
    found.collect()
}

/// Returns the line that contains the last part of a key; 0 when the change removes it.
fn find_line(text: &str, key: &str) -> usize {
    let parts = key.split('.').rev().find(|part| part.parse::<usize>().is_err());
    let Some(part) = parts else { return 0 };
    let names = |line: &str| {
        let line = line.trim_start();
        line.trim_start_matches(['"', '\'', '[']).starts_with(part)
    };
    text.lines().position(names).map_or(0, |at| at + 1)
}

fn join_key_path(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn flatten_json(path: &str, value: &serde_json::Value, values: &mut ManifestValues) {
    match value {
        serde_json::Value::Object(table) => {
            for (key, value) in table {
                flatten_json(&join_key_path(path, key), value, values);
            }
        }
        // A list of tables gets one path per element, so that a finding names the changed key. Any other list
        // is one value.
        serde_json::Value::Array(list) if list.iter().any(serde_json::Value::is_object) => {
            for (at, value) in list.iter().enumerate() {
                flatten_json(&join_key_path(path, &at.to_string()), value, values);
            }
        }
        serde_json::Value::String(text) => drop(values.insert(path.to_owned(), text.clone())),
        serde_json::Value::Array(_)
        | serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_) => drop(values.insert(path.to_owned(), value.to_string())),
    }
}

fn flatten_toml(path: &str, value: &toml::Value, values: &mut ManifestValues) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                flatten_toml(&join_key_path(path, key), value, values);
            }
        }
        toml::Value::Array(list) if list.iter().any(toml::Value::is_table) => {
            for (at, value) in list.iter().enumerate() {
                flatten_toml(&join_key_path(path, &at.to_string()), value, values);
            }
        }
        toml::Value::String(text) => drop(values.insert(path.to_owned(), text.clone())),
        toml::Value::Array(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => drop(values.insert(path.to_owned(), value.to_string())),
    }
}

fn flatten_ini(text: &str, values: &mut ManifestValues) {
    let (mut section, mut key) = (String::new(), String::new());
    for line in text.lines() {
        let is_continued = line.starts_with([' ', '\t']) && !key.is_empty();
        let words = line.trim();
        if words.is_empty() || words.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = words.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            (section, key) = (name.to_owned(), String::new());
        } else if is_continued {
            let value = values.entry(key.clone()).or_default();
            value.push('\n');
            value.push_str(words);
        } else {
            let (name, value) = words.split_once(['=', ':']).unwrap_or((words, ""));
            key = join_key_path(&section, name.trim());
            values.insert(key.clone(), value.trim().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_manifest_changes(path: &str, before: &str, after: &str) -> Vec<String> {
        let file = ChangedFile::sample(path, Some(before), Some(after));
        compare_manifest(&file)
            .into_iter()
            .map(|found| found.words)
            .collect()
    }

    #[test]
    fn tables_of_runners_and_checkers_are_compared() {
        for (path, before, after, key) in [
            (
                "pyproject.toml",
                "[tool.mypy]\nstrict = true\n",
                "[tool.mypy]\nstrict = false\n",
                "tool.mypy.strict",
            ),
            (
                "pyproject.toml",
                "[tool.ruff.lint]\nselect = [\"E\", \"F\"]\n",
                "[tool.ruff.lint]\nselect = [\"E\"]\n",
                "tool.ruff.lint.select",
            ),
            (
                "Cargo.toml",
                "[lints.clippy]\nall = \"deny\"\n",
                "[lints.clippy]\nall = \"allow\"\n",
                "lints.clippy.all",
            ),
            (
                "Cargo.toml",
                "[[test]]\nname = \"a\"\n",
                "[[test]]\nname = \"a\"\nharness = false\n",
                "test.0.harness",
            ),
            (
                "package.json",
                "{\"scripts\":{\"test\":\"jest\"}}",
                "{\"scripts\":{\"test\":\"echo ok\"}}",
                "scripts.test",
            ),
            (
                "package.json",
                "{}",
                "{\"jest\":{\"globalSetup\":\"./x.js\"}}",
                "jest.globalSetup",
            ),
            (
                "setup.cfg",
                "[tool:pytest]\naddopts =\n    -x\n",
                "[tool:pytest]\naddopts =\n    -x\n    -k cart\n",
                "tool:pytest.addopts",
            ),
        ] {
            let reported = describe_manifest_changes(path, before, after);
            assert!(
                reported.len() == 1 && reported[0].contains(key),
                "{key}: {reported:?}"
            );
        }
    }

    #[test]
    fn other_tables_are_nothing() {
        for (path, before, after) in [
            (
                "pyproject.toml",
                "[project]\nversion = \"1\"\n",
                "[project]\nversion = \"2\"\n",
            ),
            (
                "pyproject.toml",
                "[tool.mypy]\nstrict = true\n",
                "[tool.mypy]\nstrict = true\n[tool.poetry]\nname = \"a\"\n",
            ),
            (
                "Cargo.toml",
                "[dependencies]\na = \"1\"\n",
                "[dependencies]\na = \"2\"\n",
            ),
            (
                "package.json",
                "{\"scripts\":{\"test\":\"jest\"}}",
                "{\n\"scripts\": {\"start\": \"x\", \"test\": \"jest\"}\n}",
            ),
        ] {
            assert_eq!(describe_manifest_changes(path, before, after), [""; 0], "{after}");
        }
        for pattern in [
            &PYPROJECT, &PACKAGE, &CARGO, &SETUP_CFG, &COMPOSER, &DENO, &HARMLESS,
        ] {
            assert!(pattern.is_sound());
        }
    }
}
