//! Derives check commands from manifests of build tools and package managers.

use domain::check::CheckCandidate;

use super::{file_name, parent_folder};
use crate::pattern::LazyPattern;

static TARGET: LazyPattern = LazyPattern::new(r"(?m)^(test|tests|check|ci|unit-test|unittest)\s*:(?:[^=]|$)");
static TEST_FILE: LazyPattern = LazyPattern::new(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$");
/// Text of the placeholder test script that `npm init` writes.
const NO_TEST: &str = "no test specified";

/// File names of the manifests that are read.
const NAMES: [&str; 24] = [
    ".rspec",
    "Cargo.toml",
    "Gemfile",
    "GNUmakefile",
    "Justfile",
    "Makefile",
    "build.gradle",
    "build.gradle.kts",
    "dbt_project.yml",
    "go.mod",
    "gradlew",
    "justfile",
    "makefile",
    "mix.exs",
    "noxfile.py",
    "package.json",
    "phpunit.xml",
    "phpunit.xml.dist",
    "pom.xml",
    "pyproject.toml",
    "pytest.ini",
    "setup.cfg",
    "setup.py",
    "tox.ini",
];

pub(super) fn is_manifest_path(path: &str) -> bool {
    NAMES.contains(&file_name(path)) || file_name(path).ends_with(".sln")
}

/// Returns the commands for one manifest. `paths` lists every file of the repository, because a lock file or
/// wrapper in the same folder decides on the command.
pub(super) fn find_manifest_commands(path: &str, text: &str, paths: &[&str]) -> Vec<CheckCandidate> {
    let place = ManifestFolder {
        folder: parent_folder(path),
        paths,
    };
    let commands = match file_name(path) {
        "Makefile" | "GNUmakefile" | "makefile" => find_make_targets(text, "make"),
        "Justfile" | "justfile" => find_make_targets(text, "just"),
        "package.json" => derive_package_command(text, &place),
        "tox.ini" if text.contains("[tox]") || text.contains("[testenv") => vec!["tox".to_owned()],
        "tox.ini" | "setup.cfg" | "pytest.ini" | "setup.py" | "pyproject.toml" => {
            derive_python_command(path, text, &place)
        }
        "noxfile.py" => vec!["nox".to_owned()],
        "Cargo.toml" => derive_cargo_command(text, &place),
        "go.mod" => vec!["go test ./...".to_owned()],
        "build.gradle" | "build.gradle.kts" => derive_gradle_command(&place),
        "pom.xml" if place.is_outermost("pom.xml") => {
            let program = if place.has("mvnw") { "./mvnw" } else { "mvn" };
            vec![format!("{program} -B -q test")]
        }
        "dbt_project.yml" => vec!["dbt build".to_owned()],
        ".rspec" => vec!["bundle exec rspec".to_owned()],
        "phpunit.xml" | "phpunit.xml.dist" => vec!["vendor/bin/phpunit".to_owned()],
        "mix.exs" => vec!["mix test".to_owned()],
        name if name.ends_with(".sln") => vec!["dotnet test".to_owned()],
        _ => Vec::new(),
    };
    let candidate = |command| CheckCandidate {
        command,
        directory: place.folder.to_owned(),
        why: format!("{path} is there"),
        known_at_base: false,
    };
    commands.into_iter().map(candidate).collect()
}

/// A folder, with the list of all files of the repository.
struct ManifestFolder<'a> {
    folder: &'a str,
    paths: &'a [&'a str],
}

impl ManifestFolder<'_> {
    fn has(&self, name: &str) -> bool {
        self.paths
            .iter()
            .any(|path| parent_folder(path) == self.folder && super::file_name(path) == name)
    }

    /// Returns true when no enclosing folder has a manifest of this name.
    fn is_outermost(&self, name: &str) -> bool {
        let is_around = |path: &&&str| {
            let other = parent_folder(path);
            super::file_name(path) == name
                && other != self.folder
                && (other.is_empty() || self.folder.starts_with(&format!("{other}/")))
        };
        !self.paths.iter().any(|path| is_around(&path))
    }

    fn has_beneath(&self, pattern: &LazyPattern) -> bool {
        let inside = |path: &str| self.folder.is_empty() || path.starts_with(&format!("{}/", self.folder));
        self.paths
            .iter()
            .any(|path| inside(path) && pattern.is_match(path))
    }
}

fn find_make_targets(text: &str, program: &str) -> Vec<String> {
    let found = TARGET.all(text).map(|target| format!("{program} {}", &target[1]));
    found.collect()
}

fn derive_package_command(text: &str, place: &ManifestFolder<'_>) -> Vec<String> {
    let manifest: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let script = manifest
        .pointer("/scripts/test")
        .and_then(serde_json::Value::as_str);
    if script.is_none_or(|script| script.contains(NO_TEST)) {
        return Vec::new();
    }
    let program = [
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun run"),
        ("bun.lockb", "bun run"),
    ];
    let program = program.into_iter().find(|(lock, _)| place.has(lock));
    vec![format!("{} test", program.map_or("npm", |(_, program)| program))]
}

fn derive_python_command(path: &str, text: &str, place: &ManifestFolder<'_>) -> Vec<String> {
    let is_declared = match file_name(path) {
        "pyproject.toml" => text.contains("[tool.pytest"),
        "pytest.ini" => true,
        _ => text.contains("[tool:pytest]") || text.contains("[pytest]"),
    };
    if !is_declared && !place.has_beneath(&TEST_FILE) {
        return Vec::new();
    }
    let command = if place.has("uv.lock") {
        "uv run pytest"
    } else if place.has("poetry.lock") {
        "poetry run pytest"
    } else {
        "python -m pytest"
    };
    vec![command.to_owned()]
}

fn derive_cargo_command(text: &str, place: &ManifestFolder<'_>) -> Vec<String> {
    if !place.is_outermost("Cargo.toml") {
        return Vec::new();
    }
    let command = if text.contains("[workspace]") {
        "cargo test --workspace"
    } else {
        "cargo test"
    };
    vec![command.to_owned()]
}

fn derive_gradle_command(place: &ManifestFolder<'_>) -> Vec<String> {
    // The root project's command also runs the tests of its subprojects.
    let is_part = !place.is_outermost("build.gradle") || !place.is_outermost("build.gradle.kts");
    if is_part || !place.is_outermost("gradlew") {
        return Vec::new();
    }
    let program = if place.has("gradlew") {
        "./gradlew"
    } else {
        "gradle"
    };
    vec![format!("{program} test")]
}
