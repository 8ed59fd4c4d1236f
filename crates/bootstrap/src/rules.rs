//! Repository rules from a directory of YAML files, reloaded without a restart.
//!
//! A file without `repo:` holds defaults for every repository; a file with `repo:` is one repository. A bad file
//! disables its repository alone and is named with line and key.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
    time::Duration,
};

use domain::{Instance, RepositoryName, Rules, TicketKey};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::settings;

/// How often the directory is read again: soon for a person who saves a file, cheap for a few dozen files.
const RELOAD_INTERVAL: Duration = Duration::from_secs(2);

/// `[rules]` of the settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The directory; `*.yaml` and `*.yml` are read, sub-directories are not.
    pub dir: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("configs"),
        }
    }
}

/// What is wrong in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// File name.
    pub file: String,
    /// Line, from 1; 0 when the problem has no place.
    pub line: u64,
    /// The key, as far as it is known.
    pub key: String,
    /// What to change.
    pub problem: String,
    /// The repository that is disabled by it, when the file says which.
    pub repository: Option<RepositoryName>,
}

/// All rules as of one reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RulesBook {
    rules: Vec<Rules>,
    problems: Vec<FileProblem>,
}

impl RulesBook {
    /// Reads every file of the directory, in name order.
    ///
    /// # Errors
    /// Only when the directory itself cannot be read.
    pub fn read(dir: &Path) -> std::io::Result<Self> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|ending| ending == "yaml" || ending == "yml")
                && path.is_file()
            {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                files.push((name, std::fs::read_to_string(&path)?));
            }
        }
        files.sort();
        Ok(Self::parse(&files))
    }

    /// The rules in files given by name and text.
    pub fn parse(files: &[(String, String)]) -> Self {
        let mut book = Self::default();
        let mut defaults = Value::Object(serde_json::Map::new());
        let mut repositories = Vec::new();
        for (name, text) in files {
            match parse_file(name, text) {
                Ok(value) if value.get("repo").is_none() => merge(&mut defaults, value),
                Ok(value) => repositories.push((name, value)),
                Err(problem) => book.problems.push(problem),
            }
        }
        for (name, value) in repositories {
            let mut merged = defaults.clone();
            merge(&mut merged, value);
            match finish(name, merged, &book.rules) {
                Ok(rules) => book.rules.push(rules),
                Err(problem) => book.problems.push(problem),
            }
        }
        book
    }

    /// The rules of one repository; `None` when there are none, or they are disabled by a problem.
    pub fn for_repository(&self, repository: &RepositoryName) -> Option<&Rules> {
        self.rules
            .iter()
            .find(|rules| rules.repository().is_ok_and(|name| name == *repository))
    }

    /// The rules of the repository that a ticket belongs to: by its Jira project, or the one it lives in.
    pub fn for_ticket(&self, ticket: &TicketKey) -> Option<&Rules> {
        self.rules.iter().find(|rules| rules.cover(ticket))
    }

    /// Every usable repository.
    pub fn repositories(&self) -> impl Iterator<Item = &Rules> {
        self.rules.iter()
    }

    /// What is wrong, file by file.
    pub fn problems(&self) -> &[FileProblem] {
        &self.problems
    }
}

fn parse_file(name: &str, text: &str) -> Result<Value, FileProblem> {
    let value: Result<Value, _> = serde_saphyr::from_str(text);
    let repository = value.as_ref().ok().and_then(repository_of);
    match (serde_saphyr::from_str::<Rules>(text), value) {
        (Ok(_), Ok(Value::Null)) => Ok(Value::Object(serde_json::Map::new())),
        (Ok(_), Ok(value)) => Ok(value),
        (Err(error), _) | (Ok(_), Err(error)) => Err(located(name, text, &error, repository)),
    }
}

fn located(
    name: &str,
    text: &str,
    error: &serde_saphyr::Error,
    repository: Option<RepositoryName>,
) -> FileProblem {
    let line = error.location().map_or(0, |location| location.line());
    let source = usize::try_from(line)
        .ok()
        .and_then(|line| text.lines().nth(line.checked_sub(1)?));
    let key = source
        .and_then(|source| source.split_once(':'))
        .map_or("", |(key, _)| key.trim().trim_start_matches("- "));
    let rendered = error.without_snippet().to_string();
    let problem = rendered.split_whitespace().collect::<Vec<_>>().join(" ");
    FileProblem {
        file: name.to_owned(),
        line,
        key: key.to_owned(),
        problem,
        repository,
    }
}

fn repository_of(value: &Value) -> Option<RepositoryName> {
    let repo = value.get("repo")?;
    let instance = match repo.get("instance") {
        Some(name) => Some(name.as_str()?.parse::<Instance>().ok()?),
        None => None,
    };
    let named = RepositoryName::new(repo.get("owner")?.as_str()?, repo.get("name")?.as_str()?);
    Some(named.ok()?.on(instance))
}

fn finish(name: &str, merged: Value, known: &[Rules]) -> Result<Rules, FileProblem> {
    let repository = repository_of(&merged);
    let problem = |key: &str, problem: String| FileProblem {
        file: name.to_owned(),
        line: 0,
        key: key.to_owned(),
        problem,
        repository: repository.clone(),
    };
    let rules: Rules = serde_json::from_value(merged).map_err(|error| problem("", error.to_string()))?;
    rules.check().map_err(|error| problem(error.key, error.problem))?;
    let same_project = |other: &&Rules| {
        let project = |rules: &Rules| (rules.jira.instance.clone(), rules.jira.project_key.clone());
        !rules.jira.project_key.is_empty() && project(other) == project(&rules)
    };
    if known.iter().any(|other| other.repository() == rules.repository()) {
        return Err(problem(
            "repo.name",
            "an earlier file has rules for the same repository".to_owned(),
        ));
    }
    if known.iter().any(|other| same_project(&other)) {
        return Err(problem(
            "jira.project_key",
            "an earlier file claims the same Jira project".to_owned(),
        ));
    }
    Ok(rules)
}

/// Overlays maps key by key; anything else replaces.
fn merge(base: &mut Value, overlay: Value) {
    match (base, overlay) {
        (Value::Object(base), Value::Object(overlay)) => {
            for (key, value) in overlay {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, overlay) => *base = overlay,
    }
}

/// The current rules, shared. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RulesStore {
    dir: PathBuf,
    book: Arc<RwLock<Arc<RulesBook>>>,
}

impl RulesStore {
    /// Reads the directory once.
    ///
    /// # Errors
    /// `rules.dir` when the directory cannot be read.
    pub fn open(settings: &Settings) -> Result<Self, settings::Error> {
        let book = RulesBook::read(&settings.dir).map_err(|error| {
            settings::Error::new(
                "rules.dir",
                format!("cannot read {}: {error}", settings.dir.display()),
            )
        })?;
        log_problems(&book);
        Ok(Self {
            dir: settings.dir.clone(),
            book: Arc::new(RwLock::new(Arc::new(book))),
        })
    }

    /// The rules as of the last reading.
    pub fn book(&self) -> Arc<RulesBook> {
        self.book
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Reads the directory again every two seconds until shutdown.
    pub async fn run(&self, shutdown: CancellationToken) {
        while shutdown
            .run_until_cancelled(tokio::time::sleep(RELOAD_INTERVAL))
            .await
            .is_some()
        {
            self.reload();
        }
    }

    /// Reads the directory now. A directory that cannot be read keeps the rules as they were.
    pub fn reload(&self) {
        match RulesBook::read(&self.dir) {
            Ok(book) if book != *self.book() => {
                tracing::info!(
                    repositories = book.rules.len(),
                    problems = book.problems.len(),
                    "rules reloaded"
                );
                log_problems(&book);
                *self
                    .book
                    .write()
                    .unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(book);
            }
            Ok(_) => {}
            Err(error) => tracing::error!(dir = %self.dir.display(), %error, "rules cannot be read"),
        }
    }
}

fn log_problems(book: &RulesBook) {
    for FileProblem {
        file,
        line,
        key,
        problem,
        repository,
    } in book.problems()
    {
        let repository = repository.as_ref().map(ToString::to_string);
        tracing::error!(file, line, key, problem, repository, "rules file is disabled");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACME_DATA: &str = include_str!("../testdata/acme-data.yaml");
    const ACME_CI: &str = include_str!("../testdata/acme-ci.yaml");

    fn book(files: &[(&str, &str)]) -> RulesBook {
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        RulesBook::parse(&files)
    }

    #[test]
    fn both_documented_fragments_load_unchanged() {
        let book = book(&[("acme-ci.yaml", ACME_CI), ("acme-data.yaml", ACME_DATA)]);
        assert_eq!(book.problems(), []);
        let rules = book.for_ticket(&"jira:AENG-1".parse().unwrap()).unwrap();
        assert_eq!(rules.repository().unwrap().to_string(), "acme/data");
        assert_eq!(rules.target_branch(), "develop");
        assert_eq!(rules.ci.auto_fix, ["pre-commit", "dbt_compile"]);
        assert_eq!(rules.dbt.projects[0].path, "dbt-databricks");
        assert_eq!(rules.skip.labels, ["no-automation", "manual-only"]);
    }

    #[test]
    fn a_repository_overrides_the_organisation() {
        let defaults = "agent:\n  max_turns: 20\nskip:\n  labels: [a]\n";
        let shop = "repo: {owner: acme, name: shop}\nskip:\n  labels: [b]\n";
        let book = book(&[("0.yaml", defaults), ("shop.yaml", shop)]);
        let rules = book.for_repository(&"acme/shop".parse().unwrap()).unwrap();
        assert_eq!(
            (rules.agent.max_turns, rules.skip.labels.as_slice()),
            (20, ["b".to_owned()].as_slice())
        );
    }

    #[test]
    fn a_bad_file_disables_its_repository_alone_and_is_named_with_line_and_key() {
        let bad = "repo:\n  owner: acme\n  name: bad\nagent:\n  statsu: x\n";
        let book = book(&[
            ("bad.yaml", bad),
            ("shop.yaml", "repo: {owner: acme, name: shop}\n"),
        ]);
        assert!(book.for_repository(&"acme/shop".parse().unwrap()).is_some());
        let [problem] = book.problems() else {
            panic!("{:?}", book.problems())
        };
        assert_eq!(
            (problem.file.as_str(), problem.line, problem.key.as_str()),
            ("bad.yaml", 5, "statsu")
        );
        assert_eq!(problem.repository.as_ref().unwrap().to_string(), "acme/bad");
        assert!(problem.problem.contains("statsu"), "{problem:?}");
    }

    #[test]
    fn values_that_make_no_sense_are_named_by_key() {
        let cases = [
            (
                "repo: {owner: acme, name: shop}\nagent: {max_turns: 51}\n",
                "agent.max_turns",
            ),
            ("repo: {owner: acme, name: 'sh op'}\n", "repo.name"),
            (
                "repo: {owner: acme, name: shop}\nbranching: {pattern: 'x'}\n",
                "branching.pattern",
            ),
        ];
        for (text, key) in cases {
            let book = book(&[("a.yaml", text)]);
            assert_eq!(book.problems()[0].key, key);
            assert_eq!(book.repositories().count(), 0);
        }
    }

    #[test]
    fn the_same_project_and_path_on_two_instances_are_two_repositories() {
        let here = "repo: {owner: acme, name: shop}\njira: {project_key: ENG}\n";
        let there =
            "repo: {owner: acme, name: shop, instance: ghe}\njira: {project_key: ENG, instance: dc}\n";
        let book = book(&[("here.yaml", here), ("there.yaml", there)]);
        assert_eq!(book.problems(), []);
        let repository = |ticket: &str| {
            let rules = book.for_ticket(&ticket.parse().unwrap())?;
            Some(rules.repository().unwrap().to_string())
        };
        assert_eq!(repository("jira:ENG-1").as_deref(), Some("acme/shop"));
        assert_eq!(repository("jira+dc:ENG-1").as_deref(), Some("ghe:acme/shop"));
        assert_eq!(
            repository("github+ghe:acme/shop#7").as_deref(),
            Some("ghe:acme/shop")
        );
        assert_eq!(repository("jira+other:ENG-1"), None);
    }

    #[test]
    fn two_files_cannot_claim_one_project() {
        let one = "repo: {owner: acme, name: one}\njira: {project_key: ENG}\n";
        let two = "repo: {owner: acme, name: two}\njira: {project_key: ENG}\n";
        let book = book(&[("one.yaml", one), ("two.yaml", two)]);
        assert_eq!(
            book.for_ticket(&"jira:ENG-1".parse().unwrap()).unwrap().repo.name,
            "one"
        );
        assert_eq!(book.problems()[0].key, "jira.project_key");
    }

    #[test]
    fn a_changed_file_is_seen_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.yaml");
        std::fs::write(&file, "repo: {owner: acme, name: shop}\n").unwrap();
        let store = RulesStore::open(&Settings {
            dir: folder.path().to_owned(),
        })
        .unwrap();
        std::fs::write(&file, "repo: {owner: acme, name: shop}\nagent: {status: Go}\n").unwrap();
        store.reload();
        assert_eq!(store.book().repositories().next().unwrap().agent.status, "Go");
    }
}
