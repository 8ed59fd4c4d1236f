//! Commands that install the dependencies of a project, by ecosystem and lock file.

use std::collections::BTreeSet;

use domain::SetupHint;

use crate::pattern::LazyPattern;

/// Family of package managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackageEcosystem {
    Node,
    Python,
    Rust,
    Go,
    Ruby,
    Php,
    Jvm,
    Elixir,
    DotNet,
}

use PackageEcosystem::{DotNet, Elixir, Go, Jvm, Node, Php, Python, Ruby, Rust};

/// Words in a command's output that identify an ecosystem.
static WORDS: [(PackageEcosystem, LazyPattern); 9] = [
    (
        Rust,
        LazyPattern::new(r"rustup|cargo|crate|toolchain '|no matching package named|--offline was specified"),
    ),
    (
        Go,
        LazyPattern::new(r"(?:^|\s)go(?:lang)?\b|go\.(?:sum|mod)|required module|module lookup|goenv"),
    ),
    (
        Jvm,
        LazyPattern::new(
            r"(?i)java|maven|gradle|artifact|POM\b|target release|dependencies for project|jenv",
        ),
    ),
    (
        Python,
        LazyPattern::new(r"(?i)python|pyenv|\.venv|distribution|pytest|interpreter|plugins"),
    ),
    (Ruby, LazyPattern::new(r"(?i)\bgem|bundle|ruby|rbenv")),
    (
        Php,
        LazyPattern::new(r"(?i)\bphp\b|composer|vendor/autoload|phpenv|requirements could not be resolved"),
    ),
    (Elixir, LazyPattern::new(r"\(Mix\)|Hex\b|Unchecked dependencies")),
    (DotNet, LazyPattern::new(r"\.NET|NETSDK|NU1\d\d\d")),
    (
        Node,
        LazyPattern::new(r"(?i)\bnode|npm|npx|yarn|nvm|volta|corepack|engine|project in .* installed"),
    ),
];
/// Manifests at the root that identify an ecosystem, in order of precedence.
const MANIFESTS: [(&str, PackageEcosystem); 12] = [
    ("package.json", Node),
    ("pyproject.toml", Python),
    ("setup.py", Python),
    ("requirements.txt", Python),
    ("Cargo.toml", Rust),
    ("go.mod", Go),
    ("Gemfile", Ruby),
    ("composer.json", Php),
    ("pom.xml", Jvm),
    ("build.gradle", Jvm),
    ("build.gradle.kts", Jvm),
    ("mix.exs", Elixir),
];

/// Lock files of Python at the root, in order of precedence, with the commands that install their packages.
pub(super) const PYTHON_LOCKS: [(&str, &str); 4] = [
    ("uv.lock", "uv sync --frozen"),
    ("poetry.lock", "poetry install --no-interaction"),
    ("pdm.lock", "pdm sync"),
    ("Pipfile.lock", "pipenv sync --dev"),
];

impl PackageEcosystem {
    pub(super) fn of_line(line: &str) -> Option<Self> {
        WORDS
            .iter()
            .find(|(_, words)| words.is_match(line))
            .map(|(ecosystem, _)| *ecosystem)
    }

    /// Returns Rust for a `rustup` message, and `None` otherwise. Other toolchains come with the image or are
    /// installed by a maintainer, not by a package manager.
    pub(super) fn of_toolchain(line: &str) -> Option<Self> {
        Self::of_line(line).filter(|ecosystem| *ecosystem == Rust && line.contains("rustup"))
    }

    pub(super) fn of_paths(paths: &BTreeSet<String>) -> Option<Self> {
        let found = MANIFESTS.iter().find(|(name, _)| paths.contains(*name));
        found.map(|(_, ecosystem)| *ecosystem)
    }

    pub(super) fn of_program(program: &str) -> Option<Self> {
        Some(match program.rsplit('/').next().unwrap_or(program) {
            "pytest" | "tox" | "nox" | "nose" | "coverage" | "ruff" | "mypy" | "flake8" | "hatch"
            | "poetry" | "uv" => Python,
            "jest" | "vitest" | "mocha" | "ava" | "tap" | "tape" | "eslint" | "tsc" | "c8" | "nyc"
            | "playwright" | "turbo" | "nx" | "ts-node" | "tsx" | "vite" | "webpack" | "react-scripts"
            | "ng" => Node,
            "rspec" | "rake" | "minitest" | "rubocop" => Ruby,
            "phpunit" | "pest" | "phpstan" => Php,
            _ => return None,
        })
    }

    const fn registry(self) -> &'static str {
        match self {
            Node => "npm",
            Python => "PyPI",
            Rust => "Cargo",
            Go => "Go module",
            Ruby => "RubyGems",
            Php => "Packagist",
            Jvm => "Maven",
            Elixir => "Hex",
            DotNet => "NuGet",
        }
    }
}

/// Builds the hint for a project. Without an ecosystem the hint names only what is missing.
pub(super) fn install_hint(
    ecosystem: Option<PackageEcosystem>,
    paths: &BTreeSet<String>,
    declared: &[(String, String)],
    missing: &str,
) -> SetupHint {
    let missing = missing.to_owned();
    let Some(ecosystem) = ecosystem else {
        return SetupHint {
            missing,
            ..SetupHint::default()
        };
    };
    let has = |name: &str| paths.contains(name);
    let commands = match ecosystem {
        Node => vec![node_command(&has, declared).to_owned()],
        Python => python_commands(&has, paths),
        Rust if missing.contains("toolchain") => vec![
            "rustup toolchain install stable".to_owned(),
            "rustup default stable".to_owned(),
        ],
        Rust => vec![
            if has("Cargo.lock") {
                "cargo fetch --locked"
            } else {
                "cargo fetch"
            }
            .to_owned(),
        ],
        Go => vec!["go mod download".to_owned()],
        Ruby => vec!["bundle install".to_owned()],
        Php => vec!["composer install --no-interaction".to_owned()],
        Jvm if has("gradlew") => vec!["./gradlew --no-daemon testClasses".to_owned()],
        Jvm if has("build.gradle") || has("build.gradle.kts") => {
            vec!["gradle --no-daemon testClasses".to_owned()]
        }
        Jvm if has("mvnw") => vec!["./mvnw -B -q dependency:go-offline".to_owned()],
        Jvm => vec!["mvn -B -q dependency:go-offline".to_owned()],
        Elixir => vec!["mix deps.get".to_owned()],
        DotNet => vec!["dotnet restore".to_owned()],
    };
    SetupHint {
        missing,
        commands,
        registry: ecosystem.registry().to_owned(),
    }
}

fn node_command(has: &impl Fn(&str) -> bool, declared: &[(String, String)]) -> &'static str {
    // Yarn 1 and later releases share the name of the lock file but not the option that keeps it unchanged;
    // a comment in the file shows the release.
    let is_classic = || {
        let lock = declared.iter().find(|(path, _)| path == "yarn.lock");
        lock.is_none_or(|(_, text)| text.contains("# yarn lockfile v1"))
    };
    if has("package-lock.json") || has("npm-shrinkwrap.json") {
        "npm ci"
    } else if has("pnpm-lock.yaml") {
        "pnpm install --frozen-lockfile"
    } else if has("yarn.lock") && is_classic() {
        "yarn install --frozen-lockfile"
    } else if has("yarn.lock") {
        "yarn install --immutable"
    } else if has("bun.lock") || has("bun.lockb") {
        "bun install --frozen-lockfile"
    } else {
        "npm install"
    }
}

/// Returns true for a list of Python packages at the root, or in the folder `requirements`.
pub(super) fn is_requirements(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_below = path.starts_with("requirements/");
    let is_near = is_below || !path.contains('/');
    is_near && (is_below || name.contains("requirements")) && name.ends_with(".txt")
}

/// Returns true for a path that is one word in every shell and no option. The author of a branch chooses the names of its
/// files, and the command runs as it is proposed.
fn is_plain_word(path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    !path.starts_with('-') && path.chars().all(is_plain)
}

fn python_commands(has: &impl Fn(&str) -> bool, paths: &BTreeSet<String>) -> Vec<String> {
    for (lock, command) in PYTHON_LOCKS {
        if has(lock) {
            return vec![command.to_owned()];
        }
    }
    let mut install = String::from(".venv/bin/pip install");
    let lists = paths
        .iter()
        .filter(|path| is_requirements(path) && is_plain_word(path));
    for path in lists.take(5) {
        install.push_str(&format!(" -r {path}"));
    }
    if has("pyproject.toml") || has("setup.py") {
        install.push_str(" -e .");
    }
    if install.ends_with("install") {
        install.push_str(" pytest");
    }
    vec!["python -m venv .venv".to_owned(), install]
}
