//! Detects effects of a change outside of the changed files: dependencies, pins, data migrations, and replaced
//! modules. All are flags for reviewers, because a ticket may ask for each of them.

use std::collections::BTreeMap;

use domain::check::{Finding, Severity};

use super::{
    finding,
    lines::lines,
    manifests::{Values, read_values},
    paths::{Role, role},
    shown,
};
use crate::{pattern::Pattern, workspace::ChangedFile};

static MIGRATION: Pattern = Pattern::new(
    r"(?:^|/)(?:migrations?|db/migrate|alembic/versions|prisma/migrations|database/migrations|changelogs?/db)/.+\.(?:py|rb|sql|php|js|ts|go|xml|ya?ml|exs|cs|java|kt)$|(?:^|/)V\d+(?:[._]\d+)*__\w+\.sql$",
);
static DEPENDENCY: Pattern = Pattern::new(
    r"^(?:(?:dev|peer|optional|bundled?)?[dD]ependencies\.|project\.(?:dependencies|optional-dependencies)|dependency-groups\.|tool\.(?:poetry|pdm)\.(?:group\.[\w-]+\.)?(?:dev-)?dependencies\.|(?:workspace\.|target\..*\.)?(?:dev-|build-)?dependencies\.|require(?:-dev)?\.|packages\.|dev-packages\.|imports\.|options\.install_requires|build-system\.requires|overrides|resolutions|pnpm\.overrides|patch\.|replace\.)",
);
static REPLACED: Pattern = Pattern::new(r"^(?:patch\.|replace\.|overrides|resolutions|pnpm\.overrides)");
static GO_LINE: Pattern = Pattern::new(r"^\s*(?:require\s+)?([\w.-]+\.[\w./~-]+)\s+(v\S+)");
static GO_REPLACE: Pattern =
    Pattern::new(r"^\s*(?:replace\s+)?\S+(?:\s+v\S+)?\s+=>\s+\S+|^\s*(?:exclude|retract)\s");
static REQUIREMENT: Pattern =
    Pattern::new(r"^\s*([A-Za-z][\w.-]*(?:\[[^\]]*\])?)\s*([<>=!~].*?|@.*)?\s*(?:[;#].*)?$");
static GEM: Pattern =
    Pattern::new(r#"^\s*(?:gem|spec\.add_\w*dependency|s\.add_\w*dependency)\s*\(?\s*['"]([\w-]+)['"](.*)$"#);
static REQUIREMENTS: Pattern = Pattern::new(
    r"(?:^|/)(?:[\w.-]*requirements[\w.-]*\.(?:txt|in)|requirements/[\w.-]+\.(?:txt|in)|constraints\.txt)$",
);
static MAVEN: Pattern = Pattern::new(r"<artifactId>([\w.-]+)</artifactId>");
static GRADLE: Pattern = Pattern::new(
    r#"^\s*\w*(?:[iI]mplementation|[cC]ompile(?:Only)?|[aA]pi|[rR]untimeOnly|kapt)\s*\(?\s*['"]([\w.:-]+?)(?::([\w.+-]+))?['"]"#,
);
static USES: Pattern = Pattern::new(r"^\s*-?\s*uses:\s*([\w./-]+)@(\S+)");
static EXACT: Pattern = Pattern::new(r"^(?:={2,3}|=)?\s*v?\d+(?:\.\d+){1,3}[\w.+-]*$|^[0-9a-f]{40}$");

pub(super) fn findings(files: &[ChangedFile]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.after.is_some())
        .flat_map(of_file)
        .collect()
}

fn of_file(file: &ChangedFile) -> Vec<Finding> {
    let path = file.path.as_str();
    let flag = |line, kind, words: String| finding(path, line, kind, Severity::Flag, words);
    let mut found = Vec::new();
    if MIGRATION.is_match(path) && file.before.is_none() && role(path) != Role::Test {
        found.push(flag(
            0,
            "migration_added",
            "a migration of stored data is new".to_owned(),
        ));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if name == "go.mod" || name == "go.work" {
        let replaced = lines(file)
            .added
            .into_iter()
            .filter(|(_, line)| GO_REPLACE.is_match(line));
        found.extend(replaced.map(|(number, line)| flag(number, "module_replaced", shown(line))));
    }
    // A new manifest declares the needs of a new package, so it is not compared.
    if file.before.is_none() {
        return found;
    }
    let (before, after) = (
        declared(file.before.as_deref(), path),
        declared(file.after.as_deref(), path),
    );
    for (key, version) in &after {
        let (kind, words) = match before.get(key) {
            // Overrides and patches change the code of a dependency, not the list of dependencies.
            None if REPLACED.is_match(key) => ("module_replaced", format!("{key} is {}", shown(version))),
            None => ("dependency_added", format!("{} is a new dependency", shown(key))),
            Some(known) if is_looser(known, version) => (
                "pin_loosened",
                format!("{} is {} instead of {}", shown(key), shown(version), shown(known)),
            ),
            Some(_) => continue,
        };
        found.push(flag(0, kind, words));
    }
    found
}

/// Returns the dependencies of a manifest by name, with their versions.
fn declared(text: Option<&str>, path: &str) -> Values {
    let text = text.unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or(path);
    let pairs = |pattern: &'static Pattern| -> BTreeMap<String, String> {
        text.lines()
            .filter_map(|line| pattern.captures(line))
            .map(|found| {
                (
                    found[1].to_owned(),
                    found
                        .get(2)
                        .map_or("", |version| version.as_str())
                        .trim()
                        .to_owned(),
                )
            })
            .collect()
    };
    if REQUIREMENTS.is_match(path) {
        return pairs(&REQUIREMENT);
    }
    match name {
        "go.mod" => pairs(&GO_LINE),
        "Gemfile" => pairs(&GEM),
        "build.gradle" | "build.gradle.kts" => pairs(&GRADLE),
        "pom.xml" => MAVEN
            .all(text)
            .map(|found| (found[1].to_owned(), String::new()))
            .collect(),
        _ if name.ends_with(".gemspec") => pairs(&GEM),
        _ if role(path) == Role::Ci => pairs(&USES),
        _ => {
            let values = read_values(path, text).unwrap_or_default();
            values
                .into_iter()
                .filter(|(key, _)| DEPENDENCY.is_match(key))
                .flat_map(listed)
                .collect()
        }
    }
}

/// Splits a list of requirements, which is one value of the document, into single dependencies.
fn listed((key, value): (String, String)) -> Vec<(String, String)> {
    let is_list = value.starts_with('[') && value.ends_with(']');
    if !is_list {
        return vec![(key, value)];
    }
    let parts = value.trim_matches(['[', ']']).split(',');
    let parts = parts.map(|part| part.trim().trim_matches(['"', '\'']));
    parts
        .filter_map(|part| REQUIREMENT.captures(part))
        .map(|found| {
            (
                found[1].to_owned(),
                found.get(2).map_or("", |version| version.as_str()).to_owned(),
            )
        })
        .collect()
}

/// Returns true when an exact version became a range.
fn is_looser(before: &str, after: &str) -> bool {
    EXACT.is_match(before.trim())
        && !EXACT.is_match(after.trim())
        // A colon or brace belongs to another form of dependency, such as a path, URL or table, and not to a
        // range.
        && !after.contains(':')
        && !after.starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_pins_and_migrations_are_told() {
        for (path, before, after, kind) in [
            (
                "package.json",
                Some("{\"dependencies\":{\"a\":\"1.0.0\"}}"),
                "{\"dependencies\":{\"a\":\"1.0.0\",\"b\":\"2\"}}",
                "dependency_added",
            ),
            (
                "package.json",
                Some("{\"dependencies\":{\"a\":\"1.0.0\"}}"),
                "{\"dependencies\":{\"a\":\"*\"}}",
                "pin_loosened",
            ),
            (
                "pyproject.toml",
                Some("[project]\ndependencies = [\"a==1.0\"]\n"),
                "[project]\ndependencies = [\"a==1.0\", \"b\"]\n",
                "dependency_added",
            ),
            ("requirements.txt", Some("a==1.0.0\n"), "a>=1.0\n", "pin_loosened"),
            (
                "Cargo.toml",
                Some("[dependencies]\na = \"1\"\n"),
                "[dependencies]\na = \"1\"\nb = \"1\"\n",
                "dependency_added",
            ),
            (
                "go.mod",
                Some("module a\n"),
                "module a\n\nreplace x.org/a => ../a\n",
                "module_replaced",
            ),
            (
                "go.mod",
                Some("module a\n"),
                "module a\n\nrequire x.org/a v1.0.0\n",
                "dependency_added",
            ),
            (
                "Gemfile",
                Some("gem 'a'\n"),
                "gem 'a'\ngem 'b'\n",
                "dependency_added",
            ),
            ("db/migrate/1_a.rb", None, "class A\nend\n", "migration_added"),
            (
                ".github/workflows/ci.yml",
                Some("    - uses: a/b@8f4b7f84864484a7bf31766abe9204da3cbe65b3\n"),
                "    - uses: a/b@main\n",
                "pin_loosened",
            ),
        ] {
            let file = ChangedFile {
                path: path.to_owned(),
                before: before.map(str::to_owned),
                after: Some(after.to_owned()),
            };
            let found = findings(&[file]);
            assert!(found.iter().all(|found| found.severity == Severity::Flag));
            assert_eq!(
                found.iter().map(|found| found.kind.as_str()).collect::<Vec<_>>(),
                [kind],
                "{path}"
            );
        }
    }
}
