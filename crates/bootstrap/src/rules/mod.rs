//! Repository rules from a directory of YAML files, reloaded without a restart.
//!
//! A file without `repo:` holds defaults for every repository; a file with `repo:` is one repository. An
//! invalid file of a repository disables that repository alone. An invalid file of defaults disables every
//! repository, because the restrictions in it are unknown. Each problem is reported with file, line and key.

mod file;
mod keys;
mod store;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
    string::FromUtf8Error,
};

use domain::{
    CommitAuthor, InstanceName, InvalidId, JiraField, RepositoryChoice, RepositoryName, RepositoryRules,
    SkipReason, TicketKey, TicketMarks,
};
use serde::Deserialize;
use serde_json::Value;

use file::{RulesFile, merge_values};
pub use store::RulesStore;

/// Section `[rules]` of the settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Directory of the rules. `*.yaml` and `*.yml` are read, subdirectories are not.
    pub dir: PathBuf,
    /// Author and committer of commits, `Name <address>`, for repositories whose rules name none.
    pub commit_author: Option<CommitAuthor>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("configs"),
            commit_author: None,
        }
    }
}

/// Named instances and folders to which the settings have a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredInstances {
    /// Instances of GitHub.
    pub github: BTreeSet<InstanceName>,
    /// Instances of Jira.
    pub jira: BTreeSet<InstanceName>,
    /// Local folders, as `[folder.<name>]`.
    pub folders: BTreeSet<InstanceName>,
}

impl ConfiguredInstances {
    /// Collects the names of the three kinds of sections.
    pub fn of<G, J, F>(
        github: &BTreeMap<InstanceName, G>,
        jira: &BTreeMap<InstanceName, J>,
        folders: &BTreeMap<InstanceName, F>,
    ) -> Self {
        Self {
            github: github.keys().cloned().collect(),
            jira: jira.keys().cloned().collect(),
            folders: folders.keys().cloned().collect(),
        }
    }
}

/// Problem in one rules file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// Name of the file in the directory.
    pub file: String,
    /// Line, from 1; 0 for a problem without a position.
    pub line: u64,
    /// Key, if known; otherwise empty.
    pub key: String,
    /// Description of the problem and its remedy.
    pub problem: String,
    /// Repository that the problem disables, if the file names it.
    pub repository: Option<RepositoryName>,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            key,
            problem,
            ..
        } = self;
        f.write_str(file)?;
        if *line > 0 {
            write!(f, ":{line}")?;
        }
        if !key.is_empty() {
            write!(f, " {key}")?;
        }
        write!(f, ": {problem}")
    }
}

impl FileProblem {
    fn not_utf8(file: &str, error: &FromUtf8Error) -> Self {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        Self {
            file: file.to_owned(),
            line: lines as u64 + 1,
            key: String::new(),
            problem: "is not UTF-8: save the file in this encoding".to_owned(),
            repository: None,
        }
    }
}

/// Place of a key in the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySource {
    /// Name of the file in the directory.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
}

/// Texts of the files of a directory.
struct RulesTexts {
    /// Names and texts, in the order of names.
    files: Vec<(String, String)>,
    /// Files that are not UTF-8, in the order of names.
    unreadable: Vec<(String, FromUtf8Error)>,
}

impl RulesTexts {
    fn read(dir: &Path) -> std::io::Result<Self> {
        let (mut files, mut unreadable) = (Vec::new(), Vec::new());
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
                // An unreadable file fails the whole reading, so that the previous rules stay in force.
                // Text that is not UTF-8 is a problem of its file alone, which a maintainer can correct.
                let bytes = std::fs::read(&path).map_err(|error| {
                    let kind = error.kind();
                    let named = anyhow::Error::new(error).context(format!("cannot read {}", path.display()));
                    std::io::Error::new(kind, named)
                })?;
                match String::from_utf8(bytes) {
                    Ok(text) => files.push((name, text)),
                    Err(error) => unreadable.push((name, error)),
                }
            }
        }
        // `read_dir` has no order, and later defaults override earlier ones.
        files.sort();
        unreadable.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Self { files, unreadable })
    }
}

/// Rules of all repositories at one reading of the directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RulesBook {
    rules: Vec<RepositoryRules>,
    problems: Vec<FileProblem>,
}

impl RulesBook {
    /// Reads every file of the directory, in the order of names.
    ///
    /// # Errors
    /// When the directory or one of its files cannot be read.
    pub fn read(dir: &Path, connections: &ConfiguredInstances) -> std::io::Result<Self> {
        let RulesTexts { files, unreadable } = RulesTexts::read(dir)?;
        Ok(Self::parse_beside(&unreadable, &files, connections))
    }

    /// Reads the texts of the files of the directory by name, in the order of names.
    ///
    /// # Errors
    /// When the directory or one of its files cannot be read, or a file is not UTF-8.
    pub fn read_texts(dir: &Path) -> std::io::Result<Vec<(String, String)>> {
        let RulesTexts { files, unreadable } = RulesTexts::read(dir)?;
        match unreadable.into_iter().next() {
            None => Ok(files),
            Some((name, error)) => {
                let named = anyhow::Error::new(error).context(format!("{name} is not UTF-8"));
                Err(std::io::Error::new(std::io::ErrorKind::InvalidData, named))
            }
        }
    }

    /// Finds the place that sets a key for a repository: its own file, else the last file of defaults with the key. `None`
    /// when no file sets it.
    ///
    /// # Errors
    /// When the directory or one of its files cannot be read.
    pub fn find_key_source(
        dir: &Path,
        repository: &RepositoryName,
        key: &str,
    ) -> std::io::Result<Option<KeySource>> {
        let texts = RulesTexts::read(dir)?.files;
        let parsed = texts
            .iter()
            .filter_map(|(name, text)| RulesFile::parse(name, text).ok());
        let (defaults, own): (Vec<_>, Vec<_>) = parsed.partition(RulesFile::is_defaults);
        let own = own
            .iter()
            .find(|file| file.repository().as_ref() == Some(repository));
        Ok(own.and_then(|file| {
            let place = RulesSource {
                file,
                defaults: &defaults,
            };
            place.find_key(key)
        }))
    }

    /// Parses files, given by name and text.
    pub fn parse(files: &[(String, String)], connections: &ConfiguredInstances) -> Self {
        Self::parse_beside(&[], files, connections)
    }

    /// Rules in files given by name and text, with the problems of files that are not UTF-8.
    fn parse_beside(
        unreadable: &[(String, FromUtf8Error)],
        files: &[(String, String)],
        connections: &ConfiguredInstances,
    ) -> Self {
        let mut book = Self::default();
        let mut broken_defaults = None;
        for (name, error) in unreadable {
            if file::may_be_defaults(&String::from_utf8_lossy(error.as_bytes())) {
                broken_defaults.get_or_insert_with(|| name.clone());
            }
            book.problems.push(FileProblem::not_utf8(name, error));
        }
        let (mut defaults, mut repositories) = (Vec::new(), Vec::new());
        for (name, text) in files {
            match RulesFile::parse(name, text) {
                Ok(file) if file.is_defaults() => defaults.push(file),
                Ok(file) => repositories.push(file),
                Err(problem) => {
                    if file::may_be_defaults(text) {
                        broken_defaults.get_or_insert_with(|| problem.file.clone());
                    }
                    book.problems.push(problem);
                }
            }
        }
        let mut inherited = Value::Object(serde_json::Map::new());
        for file in &defaults {
            merge_values(&mut inherited, file.value.clone());
        }
        for file in &repositories {
            if let Some(broken) = &broken_defaults {
                book.problems.push(file.inherits_from_broken(broken));
                continue;
            }
            let place = RulesSource {
                file,
                defaults: &defaults,
            };
            match check_merged_rules(place, inherited.clone(), &book.rules, connections) {
                Ok(rules) => book.rules.push(rules),
                Err(problem) => book.problems.push(problem),
            }
        }
        book
    }

    /// Rules with this author of commits where they name none.
    #[must_use]
    pub fn with_author(mut self, author: Option<&CommitAuthor>) -> Self {
        for rules in &mut self.rules {
            rules.commits.author = rules.commits.author.take().or_else(|| author.cloned());
        }
        self
    }

    /// Rules of one repository; `None` if it has none or a problem disables them.
    pub fn for_repository(&self, repository: &RepositoryName) -> Option<&RepositoryRules> {
        self.rules
            .iter()
            .find(|rules| rules.repository().is_ok_and(|name| name == *repository))
    }

    /// Issue that a Jira key means in a call about a repository: on the Jira of the repository's rules, or on the
    /// default one. Authorization and writes both use it, so that they concern the same issue.
    ///
    /// # Errors
    /// [`InvalidId`] when the text is not a Jira issue key.
    pub fn called_issue(&self, repository: &RepositoryName, key: &str) -> Result<TicketKey, InvalidId> {
        let rules = self.for_repository(repository);
        TicketKey::jira_on(rules.and_then(|rules| rules.jira.instance.clone()), key)
    }

    /// Rules of the first repository that a ticket may belong to, by its Jira project or its own repository.
    pub fn for_ticket(&self, ticket: &TicketKey) -> Option<&RepositoryRules> {
        self.rules.iter().find(|rules| rules.cover(ticket))
    }

    /// Names of the fields that assign a ticket to a repository.
    pub fn fields_of(&self, ticket: &TicketKey) -> Vec<String> {
        let covering = self.rules.iter().filter(|rules| rules.cover(ticket));
        let names = covering.filter_map(|rules| Some(rules.jira.field.as_ref()?.name.clone()));
        let names: std::collections::BTreeSet<String> = names.collect();
        names.into_iter().collect()
    }

    /// True when components, labels or fields assign a ticket to one of several repositories.
    pub fn is_shared(&self, ticket: &TicketKey) -> bool {
        let mut covering = self.rules.iter().filter(|rules| rules.cover(ticket));
        covering.any(|rules| rules.jira.is_selective())
    }

    /// Repository to which a ticket with these marks belongs.
    pub fn place(&self, ticket: &TicketKey, marks: TicketMarks<'_>) -> RepositoryMatch<'_> {
        let covering = self.rules.iter().filter(|rules| rules.cover(ticket));
        RepositoryMatch::among(covering.collect(), marks)
    }

    /// Rules of all usable repositories.
    pub fn repositories(&self) -> impl Iterator<Item = &RepositoryRules> {
        self.rules.iter()
    }

    /// Problems, in the order of files.
    pub fn problems(&self) -> &[FileProblem] {
        &self.problems
    }
}

/// File of a repository and the defaults that it inherits.
#[derive(Clone, Copy)]
struct RulesSource<'a> {
    file: &'a RulesFile,
    defaults: &'a [RulesFile],
}

impl RulesSource<'_> {
    /// Place of a key: this file, or one of the defaults.
    fn find_key(self, key: &str) -> Option<KeySource> {
        // Later defaults override earlier ones, so the last file with the key is the source of its value.
        let mut sources = std::iter::once(self.file).chain(self.defaults.iter().rev());
        sources.find_map(|source| {
            Some(KeySource {
                line: source.line(key)?,
                file: source.name.clone(),
            })
        })
    }

    /// Problem of an invalid value, at the file and line that contain it: a file of defaults, for instance.
    fn problem(self, key: &str, problem: String) -> FileProblem {
        let source = self.find_key(key).unwrap_or_else(|| KeySource {
            file: self.file.name.clone(),
            line: self.file.line("repo").unwrap_or_default(),
        });
        FileProblem {
            file: source.file,
            line: source.line,
            key: key.to_owned(),
            problem,
            repository: self.file.repository(),
        }
    }
}

/// Merges a repository's file over the defaults and checks the result.
fn check_merged_rules(
    place: RulesSource<'_>,
    mut merged: Value,
    known: &[RepositoryRules],
    connections: &ConfiguredInstances,
) -> Result<RepositoryRules, FileProblem> {
    merge_values(&mut merged, place.file.value.clone());
    let rules: RepositoryRules = serde_path_to_error::deserialize(merged)
        .map_err(|error| place.problem(&error.path().to_string(), error.inner().to_string()))?;
    rules
        .check()
        .map_err(|error| place.problem(error.key, error.problem))?;
    is_connected(&rules, connections).map_err(|(key, problem)| place.problem(key, problem))?;
    is_alone(&rules, known).map_err(|(key, problem)| place.problem(key, problem))?;
    Ok(rules)
}

/// Checks that the instances of a repository have a connection. Otherwise requests would reach the wrong
/// server.
fn is_connected(
    rules: &RepositoryRules,
    connections: &ConfiguredInstances,
) -> Result<(), (&'static str, String)> {
    for (key, service, instance, known) in [
        (
            "repo.instance",
            "github",
            &rules.repo.instance,
            &connections.github,
        ),
        ("jira.instance", "jira", &rules.jira.instance, &connections.jira),
        ("repo.folder", "folder", &rules.repo.folder, &connections.folders),
    ] {
        if let Some(instance) = instance.as_ref().filter(|instance| !known.contains(instance)) {
            let problem = format!(
                "there is no connection to the instance {instance}: the settings have no [{service}.{instance}]"
            );
            return Err((key, problem));
        }
    }
    Ok(())
}

/// Checks that no earlier file has rules for the same repository or for the same tickets of a Jira project.
fn is_alone(rules: &RepositoryRules, known: &[RepositoryRules]) -> Result<(), (&'static str, String)> {
    if known.iter().any(|other| other.repository() == rules.repository()) {
        return Err((
            "repo.name",
            "an earlier file has rules for the same repository".to_owned(),
        ));
    }
    let jira = &rules.jira;
    let of_project = |other: &&RepositoryRules| {
        !jira.project_key.is_empty()
            && other.jira.project_key == jira.project_key
            && other.jira.instance == jira.instance
    };
    for other in known.iter().filter(of_project) {
        if !jira.is_selective() && !other.jira.is_selective() {
            let problem = "an earlier file claims the same Jira project; `jira.components`, `jira.labels` or `jira.field` \
                           tell their tickets apart";
            return Err(("jira.project_key", problem.to_owned()));
        }
        let mut components = jira.components.iter();
        let is_claimed = |name: &&String| {
            other.jira.selects(TicketMarks {
                components: std::slice::from_ref(*name),
                ..TicketMarks::default()
            })
        };
        if let Some(both) = components.find(is_claimed) {
            let problem = format!("an earlier file claims the component {both:?} of the same Jira project");
            return Err(("jira.components", problem));
        }
        let mut labels = jira.labels.iter();
        if let Some(both) = labels.find(|label| other.jira.labels.contains(label)) {
            let problem = format!("an earlier file claims the label {both:?} of the same Jira project");
            return Err(("jira.labels", problem));
        }
        let claimed = |field: &JiraField| {
            let mut values = field.values.iter();
            values.any(|value| {
                other.jira.selects(TicketMarks {
                    fields: &[(field.name.clone(), value.clone())],
                    ..TicketMarks::default()
                })
            })
        };
        if jira.field.as_ref().is_some_and(claimed) {
            let problem = "an earlier file claims a value of this field for the same Jira project".to_owned();
            return Err(("jira.field", problem));
        }
    }
    Ok(())
}

/// Repositories that a ticket may belong to.
#[derive(Clone, Debug)]
pub struct RepositoryMatch<'a> {
    candidates: Vec<&'a RepositoryRules>,
    is_clear: bool,
}

impl<'a> RepositoryMatch<'a> {
    /// Chooses the one repository whose components, labels or field the ticket has. Without one, the
    /// repository without such selectors.
    fn among(covering: Vec<&'a RepositoryRules>, marks: TicketMarks<'_>) -> Self {
        let selecting = |rules: &&&RepositoryRules| rules.jira.selects(marks);
        let selected: Vec<&RepositoryRules> = covering.iter().filter(selecting).copied().collect();
        let rest = covering.iter().find(|rules| !rules.jira.is_selective());
        match (selected.as_slice(), rest) {
            ([one], _) | ([], Some(one)) => Self {
                candidates: vec![*one],
                is_clear: true,
            },
            ([], None) => Self {
                is_clear: covering.is_empty(),
                candidates: covering,
            },
            (_, _) => Self {
                candidates: selected,
                is_clear: false,
            },
        }
    }

    /// Rules of the repository that the ticket belongs to; `None` if there is no single one.
    pub fn rules(&self) -> Option<&'a RepositoryRules> {
        self.candidates.first().copied().filter(|_| self.is_clear)
    }

    /// Rules of all repositories that the ticket may belong to.
    pub fn candidates(&self) -> impl Iterator<Item = &'a RepositoryRules> {
        self.candidates.iter().copied()
    }

    /// Reason to skip the ticket and the possible choices, if several repositories fit.
    pub fn problem(&self) -> Option<SkipReason> {
        let choice = |rules: &&RepositoryRules| {
            Some(RepositoryChoice {
                repository: rules.repository().ok()?.to_string(),
                components: rules.jira.components.clone(),
                labels: rules.jira.labels.clone(),
                field: rules.jira.field.clone(),
            })
        };
        (!self.is_clear).then(|| SkipReason::UnclearRepository {
            choices: self.candidates.iter().filter_map(choice).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
