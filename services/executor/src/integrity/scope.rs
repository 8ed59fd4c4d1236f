//! Detects effects of a change outside of the changed files: dependencies, pins, data migrations, and replaced
//! modules. All are flags for reviewers, because a ticket may ask for each of them.

use std::collections::BTreeMap;

use domain::check::{ChangeFinding, FindingSeverity};

use super::{
    manifests::{ManifestValues, read_values},
    new_finding,
    paths::{FilePurpose, classify_path},
    size::compare_lines,
    truncate_line,
};
use crate::{pattern::LazyPattern, workspace::ChangedFile};

static MIGRATION: LazyPattern = LazyPattern::new(
    r"(?:^|/)(?:migrations?|db/migrate|alembic/versions|prisma/migrations|database/migrations|changelogs?/db)/.+\.(?:py|rb|sql|php|js|ts|go|xml|ya?ml|exs|cs|java|kt)$|(?:^|/)V\d+(?:[._]\d+)*__\w+\.sql$",
);
static DEPENDENCY: LazyPattern = LazyPattern::new(
    r"^(?:(?:dev|peer|optional|bundled?)?[dD]ependencies\.|project\.(?:dependencies|optional-dependencies)|dependency-groups\.|tool\.(?:poetry|pdm)\.(?:group\.[\w-]+\.)?(?:dev-)?dependencies\.|(?:workspace\.|target\..*\.)?(?:dev-|build-)?dependencies\.|require(?:-dev)?\.|packages\.|dev-packages\.|imports\.|options\.install_requires|build-system\.requires|overrides|resolutions|pnpm\.overrides|patch\.|replace\.)",
);
static REPLACED: LazyPattern =
    LazyPattern::new(r"^(?:patch\.|replace\.|overrides|resolutions|pnpm\.overrides)");
static GO_LINE: LazyPattern = LazyPattern::new(r"^\s*(?:require\s+)?([\w.-]+\.[\w./~-]+)\s+(v\S+)");
static GO_REPLACE: LazyPattern =
    LazyPattern::new(r"^\s*(?:replace\s+)?\S+(?:\s+v\S+)?\s+=>\s+\S+|^\s*(?:exclude|retract)\s");
static REQUIREMENT: LazyPattern =
    LazyPattern::new(r"^\s*([A-Za-z][\w.-]*(?:\[[^\]]*\])?)\s*([<>=!~].*?|@.*)?\s*(?:[;#].*)?$");
static GEM: LazyPattern = LazyPattern::new(
    r#"^\s*(?:gem|spec\.add_\w*dependency|s\.add_\w*dependency)\s*\(?\s*['"]([\w-]+)['"](.*)$"#,
);
static REQUIREMENTS: LazyPattern = LazyPattern::new(
    r"(?:^|/)(?:[\w.-]*requirements[\w.-]*\.(?:txt|in)|requirements/[\w.-]+\.(?:txt|in)|constraints\.txt)$",
);
static MAVEN: LazyPattern = LazyPattern::new(r"<artifactId>([\w.-]+)</artifactId>");
static GRADLE: LazyPattern = LazyPattern::new(
    r#"^\s*\w*(?:[iI]mplementation|[cC]ompile(?:Only)?|[aA]pi|[rR]untimeOnly|kapt)\s*\(?\s*['"]([\w.:-]+?)(?::([\w.+-]+))?['"]"#,
);
static USES: LazyPattern = LazyPattern::new(r"^\s*-?\s*uses:\s*([\w./-]+)@(\S+)");
static EXACT: LazyPattern = LazyPattern::new(r"^(?:={2,3}|=)?\s*v?\d+(?:\.\d+){1,3}[\w.+-]*$|^[0-9a-f]{40}$");

pub(super) fn find_outside_effects(files: &[ChangedFile]) -> Vec<ChangeFinding> {
    files
        .iter()
        .filter(|file| file.after.is_some())
        .flat_map(check_manifest)
        .collect()
}

fn check_manifest(file: &ChangedFile) -> Vec<ChangeFinding> {
    let path = file.path.as_str();
    let flag = |line, kind, words: String| new_finding(path, line, kind, FindingSeverity::Flag, words);
    let mut found = Vec::new();
    if MIGRATION.is_match(path) && file.before.is_none() && classify_path(path) != FilePurpose::Test {
        found.push(flag(
            0,
            "migration_added",
            "a migration of stored data is new".to_owned(),
        ));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if name == "go.mod" || name == "go.work" {
        let replaced = compare_lines(file)
            .added
            .into_iter()
            .filter(|(_, line)| GO_REPLACE.is_match(line));
        found.extend(replaced.map(|(number, line)| flag(number, "module_replaced", truncate_line(line))));
    }
    // A new manifest declares the needs of a new package, so it is not compared.
    if file.before.is_none() {
        return found;
    }
    let (before, after) = (
        read_dependencies(file.before.as_deref(), path),
        read_dependencies(file.after.as_deref(), path),
    );
    for (key, version) in &after {
        let (kind, words) = match before.get(key) {
            // Overrides and patches change the code of a dependency, not the list of dependencies.
            None if REPLACED.is_match(key) => {
                ("module_replaced", format!("{key} is {}", truncate_line(version)))
            }
            None => (
                "dependency_added",
                format!("{} is a new dependency", truncate_line(key)),
            ),
            Some(known) if is_looser(known, version) => (
                "pin_loosened",
                format!(
                    "{} is {} instead of {}",
                    truncate_line(key),
                    truncate_line(version),
                    truncate_line(known)
                ),
            ),
            Some(_) => continue,
        };
        found.push(flag(0, kind, words));
    }
    found
}

/// Returns the dependencies of a manifest by name, with their versions.
fn read_dependencies(text: Option<&str>, path: &str) -> ManifestValues {
    let text = text.unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or(path);
    let pairs = |pattern: &'static LazyPattern| -> BTreeMap<String, String> {
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
        _ if classify_path(path) == FilePurpose::Ci => pairs(&USES),
        _ => {
            let values = read_values(path, text).unwrap_or_default();
            values
                .into_iter()
                .filter(|(key, _)| DEPENDENCY.is_match(key))
                .flat_map(split_requirement_list)
                .collect()
        }
    }
}

/// Splits a list of requirements, which is one value of the document, into single dependencies.
fn split_requirement_list((key, value): (String, String)) -> Vec<(String, String)> {
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
    fn dependencies_pins_and_migrations_are_flagged() {
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
            let file = ChangedFile::sample(path, before, Some(after));
            let found = find_outside_effects(&[file]);
            assert!(found.iter().all(|found| found.severity == FindingSeverity::Flag));
            assert_eq!(
                found.iter().map(|found| found.kind.as_str()).collect::<Vec<_>>(),
                [kind],
                "{path}"
            );
        }
    }
}
