//! `journeyman repo add --org`: rules files of many repositories of an organization.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use bootstrap::{
    rules::{ConfiguredInstances, RulesBook},
    settings::load_process_settings,
};
use github::{GitHubReader, OwnerRepository};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use tempfile::TempDir;

use super::{
    super::{one_shot::read_connections, print_result, rules_files::read_rules_files},
    AddArguments, build_rules_path, create_rules_file, fold_repository_name,
    template::RulesTemplate,
};

// Problems of new files that an error lists.
const MAX_PROBLEMS: usize = 5;

/// Settings that the command reads.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OrganizationSettings {
    rules: bootstrap::rules::Settings,
    github_reader: ::github::Settings,
}

/// Writes the rules of the selected repositories, or nothing with `--preview`. Returns a folder with the rules of these
/// repositories alone.
pub(super) async fn add_repositories(
    asked: &AddArguments,
    org: &str,
    file: Option<&Path>,
) -> anyhow::Result<TempDir> {
    let settings: OrganizationSettings = load_process_settings(file)?;
    bootstrap::install_process_proxy(file)?;
    let connections = read_connections(file)?;
    let template = match &asked.template {
        Some(path) => RulesTemplate::read(path)?,
        None => RulesTemplate::usual(
            asked.project.as_deref(),
            asked.issue_label.as_deref(),
            asked.assign_by,
        )?,
    };
    let filter = RepositoryFilter::compile(&asked.filter)?;
    let reader = GitHubReader::new(&settings.github_reader)?;
    let all = reader.repositories_of(org).await.with_context(|| {
        format!("the repositories of {org} cannot be listed by the account of [github_reader]")
    })?;
    let selected = select_repositories(all, &filter, asked.forks);
    print_result(&selected.describe(org));
    ensure!(
        !selected.repositories.is_empty(),
        "no repository of {org} is selected: install the reader App on them, or change --filter"
    );
    let known = read_rules_files(&settings.rules.dir)?;
    let new = render_missing_rules(
        &selected.repositories,
        &template,
        &known,
        &connections,
        &settings.rules.dir,
    )?;
    check_together(&known, &new, &connections)?;
    for (path, text) in &new {
        if asked.preview {
            print_result(&format!("would write {}", path.display()));
        } else {
            create_rules_file(path, text)?;
            print_result(&format!("rules    {}", path.display()));
        }
    }
    collect_preview_rules(&selected.repositories, &known, &new, &connections)
}

/// Patterns of names; one that begins with `!` excludes.
struct RepositoryFilter {
    included: GlobSet,
    excluded: GlobSet,
}

impl RepositoryFilter {
    fn compile(patterns: &[String]) -> anyhow::Result<Self> {
        let compile = |patterns: Vec<&str>| -> anyhow::Result<GlobSet> {
            let mut set = GlobSetBuilder::new();
            for pattern in patterns {
                // GitHub ignores the case of names.
                let glob = GlobBuilder::new(pattern).case_insensitive(true).build();
                set.add(glob.with_context(|| format!("--filter {pattern}"))?);
            }
            Ok(set.build()?)
        };
        let mut included: Vec<&str> = Vec::new();
        let mut excluded: Vec<&str> = Vec::new();
        for pattern in patterns {
            match pattern.strip_prefix('!') {
                Some(pattern) => excluded.push(pattern),
                None => included.push(pattern),
            }
        }
        if included.is_empty() {
            included.push("*");
        }
        Ok(Self {
            included: compile(included)?,
            excluded: compile(excluded)?,
        })
    }

    fn matches(&self, name: &str) -> bool {
        self.included.is_match(name) && !self.excluded.is_match(name)
    }
}

/// Selected repositories, with the number of the others.
struct SelectedRepositories {
    repositories: Vec<OwnerRepository>,
    unmatched: usize,
    archived: usize,
    forks: usize,
}

impl SelectedRepositories {
    fn describe(&self, org: &str) -> String {
        let mut left = Vec::new();
        for (count, why) in [
            (self.unmatched, "do not match"),
            (self.archived, "archived"),
            (self.forks, "forks"),
        ] {
            if count > 0 {
                left.push(format!("{count} {why}"));
            }
        }
        let left = if left.is_empty() {
            String::new()
        } else {
            format!("; left out: {}", left.join(", "))
        };
        format!(
            "found    {} of {org}{left}",
            count_repositories(self.repositories.len())
        )
    }
}

fn count_repositories(count: usize) -> String {
    match count {
        1 => "1 repository".to_owned(),
        count => format!("{count} repositories"),
    }
}

fn select_repositories(
    all: Vec<OwnerRepository>,
    filter: &RepositoryFilter,
    takes_forks: bool,
) -> SelectedRepositories {
    let mut selected = SelectedRepositories {
        repositories: Vec::new(),
        unmatched: 0,
        archived: 0,
        forks: 0,
    };
    for repository in all {
        if !filter.matches(repository.name.name()) {
            selected.unmatched += 1;
        } else if repository.is_archived {
            selected.archived += 1;
        } else if repository.is_fork && !takes_forks {
            selected.forks += 1;
        } else {
            selected.repositories.push(repository);
        }
    }
    selected
}

/// Paths and texts of the rules of repositories that have none.
fn render_missing_rules(
    selected: &[OwnerRepository],
    template: &RulesTemplate,
    known: &[(String, String)],
    connections: &ConfiguredInstances,
    folder: &Path,
) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let book = RulesBook::parse(known, connections);
    let with_rules: BTreeSet<String> = book
        .repositories()
        .filter_map(|rules| rules.repository().ok())
        .map(|name| fold_repository_name(&name))
        .collect();
    let mut new = Vec::new();
    let mut kept = 0;
    for repository in selected {
        if with_rules.contains(&fold_repository_name(&repository.name)) {
            kept += 1;
            continue;
        }
        let path = build_rules_path(folder, &repository.name);
        ensure!(
            !path.exists(),
            "{} is there already and has no valid rules of {}: repair or remove it",
            path.display(),
            repository.name
        );
        new.push((path, template.render(repository, connections)?));
    }
    if kept > 0 {
        print_result(&format!("kept     the rules of {}", count_repositories(kept)));
    }
    Ok(new)
}

/// Refuses new rules that do not fit each other or the existing ones, such as two repositories with the same tickets.
fn check_together(
    known: &[(String, String)],
    new: &[(PathBuf, String)],
    connections: &ConfiguredInstances,
) -> anyhow::Result<()> {
    let named = new.iter().map(|(path, text)| (name_file(path), text.clone()));
    let mut files: Vec<(String, String)> = known.iter().cloned().chain(named).collect();
    files.sort();
    let before = RulesBook::parse(known, connections);
    let after = RulesBook::parse(&files, connections);
    let problems: Vec<String> = after
        .problems()
        .iter()
        .filter(|problem| !before.problems().contains(problem))
        .map(ToString::to_string)
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    let shown = problems.iter().take(MAX_PROBLEMS).cloned().collect::<Vec<_>>();
    bail!(
        "the new rules do not fit the existing ones, so nothing was written ({} problems): {}",
        problems.len(),
        shown.join("; ")
    );
}

fn name_file(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Folder with the defaults and the rules of the selected repositories, so that the preview concerns no other repository.
fn collect_preview_rules(
    selected: &[OwnerRepository],
    known: &[(String, String)],
    new: &[(PathBuf, String)],
    connections: &ConfiguredInstances,
) -> anyhow::Result<TempDir> {
    let names: BTreeSet<String> = selected
        .iter()
        .map(|repository| fold_repository_name(&repository.name))
        .collect();
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).context("cannot write the rules for the preview")
    };
    for (name, text) in known {
        let file = (name.clone(), text.clone());
        let alone = RulesBook::parse(std::slice::from_ref(&file), connections);
        let mut repositories = alone.repositories().filter_map(|rules| rules.repository().ok());
        let is_defaults = alone.repositories().next().is_none() && alone.problems().is_empty();
        if is_defaults || repositories.any(|name| names.contains(&fold_repository_name(&name))) {
            write(name, text)?;
        }
    }
    for (path, text) in new {
        write(&name_file(path), text)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::{super::template::TicketMark, *};

    fn build_repository(name: &str, is_archived: bool, is_fork: bool) -> OwnerRepository {
        OwnerRepository {
            name: name.parse().unwrap(),
            default_branch: "main".to_owned(),
            is_archived,
            is_fork,
        }
    }

    fn select(patterns: &[&str], takes_forks: bool) -> (Vec<String>, String) {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let filter = RepositoryFilter::compile(&patterns).unwrap();
        let all = vec![
            build_repository("acme/shop-api", false, false),
            build_repository("acme/Shop-Web", false, false),
            build_repository("acme/shop-old", true, false),
            build_repository("acme/shop-fork", false, true),
            build_repository("acme/docs", false, false),
        ];
        let selected = select_repositories(all, &filter, takes_forks);
        let names = selected
            .repositories
            .iter()
            .map(|found| found.name.name().to_owned());
        (names.collect(), selected.describe("acme"))
    }

    #[test]
    fn filter_selects_active_repositories_by_name() {
        let (names, line) = select(&["shop-*"], false);
        assert_eq!(names, ["shop-api", "Shop-Web"]);
        assert_eq!(
            line,
            "found    2 repositories of acme; left out: 1 do not match, 1 archived, 1 forks"
        );
        assert_eq!(select(&["shop-*", "!*-api"], true).0, ["Shop-Web", "shop-fork"]);
        assert_eq!(select(&[], false).0, ["shop-api", "Shop-Web", "docs"]);
        assert!(RepositoryFilter::compile(&["[".to_owned()]).is_err());
    }

    #[test]
    fn rules_that_claim_same_tickets_are_refused() {
        let rules = |name: &str| {
            let text = format!("repo: {{owner: acme, name: {name}}}\njira: {{project_key: ENG}}\n");
            (PathBuf::from(format!("configs/acme-{name}.yaml")), text)
        };
        let connections = ConfiguredInstances::default();
        assert!(check_together(&[], &[rules("shop")], &connections).is_ok());
        let problem = check_together(&[], &[rules("docs"), rules("shop")], &connections).unwrap_err();
        let problem = problem.to_string();
        assert!(
            problem.contains("nothing was written (1 problems): acme-shop.yaml:2 jira.project_key: "),
            "{problem}"
        );
    }

    #[test]
    fn rules_of_other_case_are_kept() {
        let known = [(
            "shop.yaml".to_owned(),
            "repo: {owner: Acme, name: shop}\n".to_owned(),
        )];
        let selected = [
            build_repository("acme/Shop", false, false),
            build_repository("acme/api", false, false),
        ];
        let template = RulesTemplate::usual(Some("ENG"), None, TicketMark::Component).unwrap();
        let nothing = ConfiguredInstances::default();
        let folder = Path::new("/no/such/folder");
        let new = render_missing_rules(&selected, &template, &known, &nothing, folder).unwrap();
        let paths: Vec<&PathBuf> = new.iter().map(|(path, _)| path).collect();
        assert_eq!(paths, [&folder.join("acme-api.yaml")]);
    }

    #[test]
    fn preview_concerns_selected_repositories_alone() {
        let known = [
            ("defaults.yaml", "agent: {status: Go}\n"),
            ("docs.yaml", "repo: {owner: acme, name: docs}\n"),
            ("shop.yaml", "repo: {owner: Acme, name: Shop}\n"),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()));
        let new = [(
            PathBuf::from("configs/acme-api.yaml"),
            "repo: {owner: acme, name: api}\n".to_owned(),
        )];
        let selected = [
            build_repository("acme/shop", false, false),
            build_repository("acme/api", false, false),
        ];
        let folder = collect_preview_rules(&selected, &known, &new, &ConfiguredInstances::default()).unwrap();
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["acme-api.yaml", "defaults.yaml", "shop.yaml"]);
    }
}
