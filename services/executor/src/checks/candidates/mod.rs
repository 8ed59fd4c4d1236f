//! Candidates for check commands: those of the rules, those that guides name, and those that manifests imply.
//! Pure: computed from paths and texts of the base commit.

mod bare_tests;
mod guides;
mod manifests;

use domain::check::CheckCandidate;

use crate::pattern::LazyPattern;

/// Largest number of candidates for one repository.
const MAX_CANDIDATES: usize = 20;
// Manifests in deeper folders belong to a part of the repository, not to its checks.
const MAX_DEPTH: usize = 3;
/// Folders that contain code of others, build results or examples, so their manifests do not describe the
/// repository.
const FOREIGN: [&str; 10] = [
    ".venv",
    "dist",
    "examples",
    "fixtures",
    "node_modules",
    "target",
    "testdata",
    "third_party",
    "vendor",
    "venv",
];

/// Every path at the base commit, with the text of those files that are read.
pub(super) type BaseFiles = [(String, Option<String>)];

/// Returns true for a file whose text is read, because it may name checks.
pub(super) fn is_check_source(path: &str) -> bool {
    is_near(path) && (guides::is_guide_path(path) || manifests::is_manifest_path(path))
}

/// Returns true for a guide for contributors or agents.
pub(super) fn is_guide(path: &str) -> bool {
    guides::is_guide_path(path)
}

fn is_near(path: &str) -> bool {
    let folders: Vec<&str> = path.split('/').collect();
    folders.len() <= MAX_DEPTH && !folders.iter().any(|folder| FOREIGN.contains(folder))
}

/// Returns true for a test file whose text shows the runner. It is read only where no other file names
/// checks.
pub(super) fn may_hold_tests(path: &str) -> bool {
    is_near(path) && bare_tests::is_bare_test(path)
}

/// Candidates of a repository whose test files are the only source about its checks.
pub(super) fn bare_candidates(files: &BaseFiles) -> Vec<CheckCandidate> {
    bare_tests::find_bare_test_commands(files)
}

/// Returns the candidates, the most reliable first, each command once per folder.
pub(super) fn rank_candidates(given: Vec<String>, files: &BaseFiles) -> Vec<CheckCandidate> {
    let given = given.into_iter().map(|command| CheckCandidate {
        command,
        directory: String::new(),
        why: "the repository's rules name it".to_owned(),
        known_at_base: false,
    });
    let mut near: Vec<(&str, &str)> = files
        .iter()
        .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
        .filter(|(path, _)| is_near(path))
        .collect();
    // Commands at the root check the whole repository, so they precede those of a folder.
    near.sort_by_key(|(path, _)| (path.matches('/').count(), *path));
    let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    let guides: Vec<CheckCandidate> = near
        .iter()
        .flat_map(|(path, text)| guides::find_guide_commands(path, text))
        .collect();
    let is_known = |implied: &CheckCandidate| {
        implied.directory.is_empty()
            && guides
                .iter()
                .any(|guide| covers_implied_command(&guide.command, &implied.command))
    };
    let manifests: Vec<CheckCandidate> = near
        .iter()
        .flat_map(|(path, text)| manifests::find_manifest_commands(path, text, &paths))
        .filter(|implied| !is_known(implied))
        .collect();
    let mut found: Vec<CheckCandidate> = Vec::new();
    for candidate in given.chain(guides.iter().cloned()).chain(manifests) {
        let is_known = found
            .iter()
            .any(|known| known.command == candidate.command && known.directory == candidate.directory);
        if !is_known && !candidate.command.trim().is_empty() && found.len() < MAX_CANDIDATES {
            found.push(candidate);
        }
    }
    found
}

static RUNNER: LazyPattern = LazyPattern::new(
    r"\b(?:pytest|unittest|tox|nox|cargo (?:test|nextest)|go test|(?:npm|pnpm|yarn|bun) (?:run )?test|jest|vitest|mocha|mvnw?|gradlew?|rspec|phpunit|dotnet test|mix test|dbt build)\b",
);
static NARROW: LazyPattern = LazyPattern::new(
    r"\s(?:-[kmptn]|-run|--package|--test|--filter|--lib|--bins?|--doc|--select|--project|-pl|--tests)(?:[\s=]|$)|\s[\w./-]*/[\w./-]+|\s\w+\.\w+\s*$",
);

/// Returns true when a guide's command replaces the one that a manifest implies: it is the same with more or
/// fewer options, or the same runner over everything.
fn covers_implied_command(guide: &str, implied: &str) -> bool {
    let has_words = |text: &str, part: &str| format!("{text} ").contains(&format!("{part} "));
    let runner = |command: &str| {
        RUNNER
            .find(command)
            .map(|found| (found.as_str().to_owned(), found.end()))
    };
    let same_runner = match (runner(guide), runner(implied)) {
        (Some((guided, end)), Some((own, _))) => {
            // `./...` and `//...` name everything in Go and Bazel, so they do not narrow a run.
            let rest = guide.get(end..).unwrap_or_default();
            let rest = rest.replace(" ./...", "").replace(" //...", "");
            guided == own && !NARROW.is_match(&rest)
        }
        _ => false,
    };
    has_words(guide, implied) || (implied.starts_with(guide) && has_words(implied, guide)) || same_runner
}

/// Returns the folder that contains a path; empty for the root.
fn parent_folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_candidates(given: &[&str], files: &[(&str, &str)]) -> Vec<(String, String)> {
        let files: Vec<(String, Option<String>)> = files
            .iter()
            .map(|(path, text)| {
                let is_read = is_check_source(path) || may_hold_tests(path);
                let text = is_read.then(|| (*text).to_owned());
                ((*path).to_owned(), text)
            })
            .collect();
        let given = given.iter().map(|command| (*command).to_owned()).collect();
        let mut found = rank_candidates(given, &files);
        if found.is_empty() {
            found = bare_candidates(&files);
        }
        found
            .into_iter()
            .map(|candidate| (candidate.directory, candidate.command))
            .collect()
    }

    fn copy_pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(directory, command)| ((*directory).to_owned(), (*command).to_owned()))
            .collect()
    }

    #[test]
    fn candidates_rank_given_guides_manifests() {
        let guide = "# Work\n\nRun the tests:\n\n```sh\n$ make check\ncd web && npm test\n```\n";
        let makefile = "check:\n\tcargo test\n\ntest: check\n";
        assert_eq!(
            list_candidates(&["just ci"], &[("AGENTS.md", guide), ("Makefile", makefile)]),
            copy_pairs(&[
                ("", "just ci"),
                ("", "make check"),
                ("", "cd web && npm test"),
                ("", "make test")
            ])
        );
    }

    #[test]
    fn each_kind_of_manifest_implies_its_command() {
        for (files, expected) in [
            (vec![("Makefile", "test: build\n\tgo test\n")], "make test"),
            (
                vec![("package.json", r#"{"scripts":{"test":"jest"}}"#)],
                "npm test",
            ),
            (
                vec![
                    ("package.json", r#"{"scripts":{"test":"vitest run"}}"#),
                    ("pnpm-lock.yaml", ""),
                ],
                "pnpm test",
            ),
            (
                vec![
                    ("package.json", r#"{"scripts":{"test":"jest"}}"#),
                    ("yarn.lock", ""),
                ],
                "yarn test",
            ),
            (vec![("tox.ini", "[tox]\nenvlist = py\n")], "tox"),
            (vec![("noxfile.py", "import nox\n")], "nox"),
            (
                vec![("pyproject.toml", "[tool.pytest.ini_options]\n")],
                "python -m pytest",
            ),
            (
                vec![
                    ("pyproject.toml", "[project]\nname = \"shop\"\n"),
                    ("tests/test_cart.py", ""),
                ],
                "python -m pytest",
            ),
            (
                vec![("pyproject.toml", "[tool.pytest.ini_options]\n"), ("uv.lock", "")],
                "uv run pytest",
            ),
            (vec![("Cargo.toml", "[package]\nname = \"shop\"\n")], "cargo test"),
            (
                vec![("Cargo.toml", "[workspace]\nmembers = []\n")],
                "cargo test --workspace",
            ),
            (vec![("go.mod", "module acme/shop\n")], "go test ./..."),
            (
                vec![
                    ("go.mod", "module acme/shop\n"),
                    ("AGENTS.md", "```sh\ngo test -vet=off ./...\n```\n"),
                ],
                "go test -vet=off ./...",
            ),
            (vec![("gradlew", ""), ("build.gradle", "")], "./gradlew test"),
            (vec![("pom.xml", "<project/>")], "mvn -B -q test"),
            (vec![("pom.xml", "<project/>"), ("mvnw", "")], "./mvnw -B -q test"),
            (vec![("dbt_project.yml", "name: shop\n")], "dbt build"),
            (
                vec![("Gemfile", "gem 'rspec'\n"), (".rspec", "")],
                "bundle exec rspec",
            ),
            (vec![("phpunit.xml", "")], "vendor/bin/phpunit"),
            (vec![("Shop.sln", "")], "dotnet test"),
        ] {
            assert_eq!(
                list_candidates(&[], &files),
                copy_pairs(&[("", expected)]),
                "{files:?}"
            );
        }
    }

    #[test]
    fn nested_manifest_runs_in_its_folder() {
        let package = r#"{"scripts":{"test":"jest"}}"#;
        let files = [
            ("web/package.json", package),
            ("node_modules/x/package.json", package),
            ("a/b/c/package.json", package),
        ];
        assert_eq!(list_candidates(&[], &files), copy_pairs(&[("web", "npm test")]));
    }

    #[test]
    fn workspace_members_run_with_root() {
        let files = [
            ("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n"),
            ("a/Cargo.toml", "[package]\nname = \"a\"\n"),
            ("pom.xml", "<project/>"),
            ("api/pom.xml", "<project/>"),
        ];
        assert_eq!(
            list_candidates(&[], &files),
            copy_pairs(&[("", "cargo test --workspace"), ("", "mvn -B -q test")])
        );
    }

    #[test]
    fn npm_placeholder_script_gives_no_check() {
        let package =
            r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1","lint":"eslint ."}}"#;
        assert!(list_candidates(&[], &[("package.json", package)]).is_empty());
        assert!(
            list_candidates(
                &[],
                &[("package.json", "not json"), ("Makefile", "all:\n\ttest -f x\n")]
            )
            .is_empty()
        );
    }

    #[test]
    fn guide_command_replaces_implied_one() {
        let cargo = ("Cargo.toml", "[workspace]\nmembers = []\n");
        let guide = |command: &str| format!("Run the tests:\n\n```\n{command}\n```\n");
        for (command, implied) in [
            ("cargo test", None),
            ("cargo test --workspace --all-features", None),
            ("cargo test -p shop", Some("cargo test --workspace")),
        ] {
            let text = guide(command);
            let expected: Vec<(&str, &str)> = std::iter::once(command)
                .chain(implied)
                .map(|command| ("", command))
                .collect();
            assert_eq!(
                list_candidates(&[], &[("AGENTS.md", &text), cargo]),
                copy_pairs(&expected),
                "{command}"
            );
        }
        let text = guide("/opt/venv/bin/python -m pytest -q");
        assert_eq!(
            list_candidates(&[], &[("AGENTS.md", &text), ("pytest.ini", "[pytest]\n")]),
            copy_pairs(&[("", "/opt/venv/bin/python -m pytest -q")])
        );
    }

    #[test]
    fn files_without_configuration_imply_their_runner() {
        let unit = "import unittest\n\nclass CartTest(unittest.TestCase):\n    pass\n";
        let plain = "def test_total():\n    assert True\n";
        for (files, expected) in [
            (
                vec![("test_cart.py", unit), ("cart.py", "")],
                vec!["python3 -m unittest discover -v"],
            ),
            (
                vec![("tests/test_cart.py", unit)],
                vec!["python3 -m unittest discover -v -s tests"],
            ),
            (
                vec![("tests/test_cart.py", unit), ("tests/__init__.py", "")],
                vec!["python3 -m unittest discover -v -s tests -t ."],
            ),
            (
                vec![("shop/tests.py", unit), ("shop/__init__.py", "")],
                vec!["python3 -m unittest discover -v -s shop -t ."],
            ),
            (
                vec![("testcart.py", unit)],
                vec!["python3 -m unittest discover -v"],
            ),
            (vec![("testimonials.py", unit)], vec![]),
            (
                vec![("test-cart.mjs", "import test from 'node:test';\n")],
                vec!["node --test"],
            ),
            (vec![("test_cart.py", plain)], vec!["python3 -m pytest"]),
            (
                vec![("test_cart.py", plain), ("test_more.py", unit)],
                vec!["python3 -m pytest", "python3 -m unittest discover -v"],
            ),
            (
                vec![
                    ("test_cart.py", unit),
                    ("Makefile", "test:\n\tpython3 -m unittest\n"),
                ],
                vec!["make test"],
            ),
            (
                vec![("cart.test.mjs", "import test from 'node:test';\n")],
                vec!["node --test"],
            ),
            (
                vec![
                    ("cart.test.mjs", "import test from 'node:test';\n"),
                    ("package.json", "{}"),
                ],
                vec!["node --test"],
            ),
            (vec![("test/cart.bats", "@test 'x' {\n}\n")], vec!["bats -r test"]),
        ] {
            let expected: Vec<(&str, &str)> = expected.into_iter().map(|command| ("", command)).collect();
            assert_eq!(list_candidates(&[], &files), copy_pairs(&expected), "{files:?}");
        }
    }

    #[test]
    fn guide_yields_only_test_commands() {
        let guide = "```python\nimport pytest\n```\n\n```\nnpm install\n# run\nnpm test -- --watch=false\ncurl https://x | sh\n```\n";
        assert_eq!(
            list_candidates(&[], &[("CONTRIBUTING.md", guide)]),
            copy_pairs(&[("", "npm test -- --watch=false")])
        );
    }
}
