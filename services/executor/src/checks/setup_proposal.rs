//! Setup that a fresh clone needs before its checks can run, by the manifests of the repository.

use std::collections::BTreeSet;

use domain::SetupHint;
use serde_json::Value;

use super::installation::{PYTHON_LOCKS, PackageEcosystem, install_hint, is_requirements};

/// Folders whose files show that the repository contains its dependencies itself, and the root.
pub const SETUP_FOLDERS: [&str; 6] = [
    "",
    ".cargo",
    ".yarn/cache",
    "node_modules",
    "requirements",
    "vendor",
];

/// Manifests and files of folders with dependencies, with their texts where they are known.
struct DeclaredFiles<'a> {
    paths: BTreeSet<String>,
    texts: &'a [(String, String)],
}

/// Returns the setup that installs the dependencies of a repository. `None` when the manifests declare no dependencies, or
/// the repository contains them.
///
/// `paths` are the files in [`SETUP_FOLDERS`], `texts` those of them that [`is_setup_source`] accepts.
pub fn propose_setup(paths: BTreeSet<String>, texts: &[(String, String)]) -> Option<SetupHint> {
    let ecosystem = PackageEcosystem::of_paths(&paths)?;
    let files = DeclaredFiles { paths, texts };
    let missing = files.find_missing(ecosystem)?;
    Some(install_hint(Some(ecosystem), &files.paths, texts, missing))
}

/// Returns true for a file whose text shows whether a repository has dependencies.
pub fn is_setup_source(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(
        name,
        "package.json"
            | "pyproject.toml"
            | "Cargo.toml"
            | "Cargo.lock"
            | "composer.json"
            | "Gemfile"
            | "yarn.lock"
            | "config.toml"
    ) || is_requirements(path)
}

impl DeclaredFiles<'_> {
    /// Returns the folder that a clone lacks; `None` when nothing is missing.
    fn find_missing(&self, ecosystem: PackageEcosystem) -> Option<&'static str> {
        let (is_declared, missing) = match ecosystem {
            PackageEcosystem::Node => (self.has_node_packages(), "`node_modules`"),
            PackageEcosystem::Python => (self.has_python_packages(), "a virtual environment"),
            PackageEcosystem::Rust => (self.has_crates(), "the downloaded crates of `target`"),
            PackageEcosystem::Go => (
                self.has("go.sum") && !self.has("vendor/modules.txt"),
                "the downloaded Go modules",
            ),
            PackageEcosystem::Ruby => (
                self.has_line("Gemfile", |line| line.trim_start().starts_with("gem ")),
                "the installed gems",
            ),
            PackageEcosystem::Php => (self.has_composer_packages(), "`vendor`"),
            PackageEcosystem::Jvm => (true, "the downloaded artifacts"),
            PackageEcosystem::Elixir => (self.has("mix.lock"), "`deps`"),
            PackageEcosystem::DotNet => (false, ""),
        };
        is_declared.then_some(missing)
    }

    fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    fn has_folder(&self, prefix: &str) -> bool {
        self.paths.iter().any(|path| path.starts_with(prefix))
    }

    fn text(&self, path: &str) -> Option<&str> {
        let found = self.texts.iter().find(|(known, _)| known == path);
        found.map(|(_, text)| text.as_str())
    }

    fn has_line(&self, path: &str, is_match: fn(&str) -> bool) -> bool {
        self.text(path).is_some_and(|text| text.lines().any(is_match))
    }

    fn parse_json(&self, path: &str) -> Option<Value> {
        serde_json::from_str(self.text(path)?).ok()
    }

    fn has_node_packages(&self) -> bool {
        let is_declared = self.parse_json("package.json").is_some_and(|manifest| {
            ["dependencies", "devDependencies", "workspaces"]
                .iter()
                .any(|key| manifest.get(key).is_some_and(has_entries))
        });
        is_declared && !self.has_folder("node_modules/") && !self.has_folder(".yarn/cache/")
    }

    fn has_python_packages(&self) -> bool {
        let is_listed = |line: &str| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        };
        let requirements = self.paths.iter().filter(|path| is_requirements(path));
        let mut texts = requirements.filter_map(|path| self.text(path));
        texts.any(|text| text.lines().any(is_listed))
            || PYTHON_LOCKS.iter().any(|(lock, _)| self.has(lock))
            || self.has_project_packages()
    }

    fn has_project_packages(&self) -> bool {
        let text = self.text("pyproject.toml").unwrap_or_default();
        let Ok(document) = toml::from_str::<Value>(text) else {
            return false;
        };
        let project = &document["project"];
        [
            &project["dependencies"],
            &project["optional-dependencies"],
            &document["dependency-groups"],
        ]
        .into_iter()
        .any(has_entries)
    }

    fn has_crates(&self) -> bool {
        let is_vendored = self.has_line(".cargo/config.toml", |line| line.contains("vendored-sources"));
        let is_downloaded = match self.text("Cargo.lock") {
            Some(lock) => lock.lines().any(|line| line.starts_with("source = ")),
            None => self.has_line("Cargo.toml", |line| line.contains("dependencies]")),
        };
        is_downloaded && !is_vendored
    }

    fn has_composer_packages(&self) -> bool {
        // PHP itself and its extensions come with the machine.
        let is_package = |name: &String| name.contains('/');
        let is_declared = self.parse_json("composer.json").is_some_and(|manifest| {
            ["require", "require-dev"].iter().any(|key| {
                let packages = manifest.get(key).and_then(Value::as_object);
                packages.is_some_and(|packages| packages.keys().any(is_package))
            })
        });
        is_declared && !self.has("vendor/autoload.php")
    }
}

fn has_entries(value: &Value) -> bool {
    match value {
        Value::Object(entries) => !entries.is_empty(),
        Value::Array(entries) => !entries.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn propose(files: &[(&str, &str)]) -> Option<SetupHint> {
        let paths = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let texts: Vec<_> = files
            .iter()
            .filter(|(path, _)| is_setup_source(path))
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        propose_setup(paths, &texts)
    }

    #[test]
    fn declared_packages_need_install_command_of_lock_file() {
        for (files, command, registry) in [
            (
                vec![
                    ("package.json", r#"{"devDependencies": {"left-pad": "1"}}"#),
                    ("package-lock.json", "{}"),
                ],
                "npm ci",
                "npm",
            ),
            (
                vec![
                    ("pyproject.toml", "[project]\ndependencies = [\"flask\"]\n"),
                    ("uv.lock", ""),
                ],
                "uv sync --frozen",
                "PyPI",
            ),
            (
                vec![
                    ("Cargo.toml", "[package]\n"),
                    (
                        "Cargo.lock",
                        "[[package]]\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n",
                    ),
                ],
                "cargo fetch --locked",
                "Cargo",
            ),
            (
                vec![("go.mod", "module x\n"), ("go.sum", "x\n")],
                "go mod download",
                "Go module",
            ),
            (
                vec![(
                    "composer.json",
                    r#"{"require": {"php": "8", "monolog/monolog": "3"}}"#,
                )],
                "composer install --no-interaction",
                "Packagist",
            ),
        ] {
            let hint = propose(&files).unwrap_or_else(|| panic!("{files:?}"));
            assert_eq!(
                (hint.commands[0].as_str(), hint.registry.as_str()),
                (command, registry)
            );
        }
    }

    #[test]
    fn requirements_become_virtual_environment() {
        let hint = propose(&[("requirements.txt", "# tests\npytest\n")]).unwrap();
        assert_eq!(
            hint.commands,
            [
                "python -m venv .venv",
                ".venv/bin/pip install -r requirements.txt"
            ]
        );
        assert_eq!(hint.missing, "a virtual environment");
    }

    #[test]
    fn only_plain_names_are_proposed() {
        let hint = propose(&[
            ("-requirements.txt", "a\n"),
            ("my requirements.txt", "b\n"),
            ("requirements$(id).txt", "c\n"),
            ("requirements;id;.txt", "d\n"),
            ("requirements.txt", "e\n"),
            ("requirements/test-1.0_all.txt", "f\n"),
        ])
        .unwrap();
        assert_eq!(
            hint.commands[1],
            ".venv/bin/pip install -r requirements.txt -r requirements/test-1.0_all.txt"
        );
    }

    #[test]
    fn repository_without_foreign_packages_needs_no_setup() {
        for files in [
            vec![("cart.py", "")],
            vec![("package.json", r#"{"scripts": {"test": "node --test"}}"#)],
            vec![("package.json", "broken")],
            vec![(
                "pyproject.toml",
                "[project]\nname = \"shop\"\ndependencies = []\n",
            )],
            vec![("requirements.txt", "# none\n\n")],
            vec![("setup.py", ""), ("vendor/requirements.txt", "flask\n")],
            vec![
                ("Cargo.toml", "[package]\n"),
                ("Cargo.lock", "[[package]]\nname = \"x\"\n"),
            ],
            vec![("composer.json", r#"{"require": {"php": "8"}}"#)],
        ] {
            assert_eq!(propose(&files), None, "{files:?}");
        }
    }

    #[test]
    fn packages_in_repository_need_no_setup() {
        for files in [
            vec![
                ("package.json", r#"{"dependencies": {"left-pad": "1"}}"#),
                ("node_modules/.package-lock.json", "{}"),
            ],
            vec![
                ("Cargo.toml", "[dependencies]\n"),
                (".cargo/config.toml", "replace-with = \"vendored-sources\"\n"),
            ],
            vec![("go.mod", ""), ("go.sum", ""), ("vendor/modules.txt", "")],
        ] {
            assert_eq!(propose(&files), None, "{files:?}");
        }
    }
}
