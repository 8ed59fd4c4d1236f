//! Checks of the repositories in the rules: visibility to both GitHub accounts, the projects that triages fill, and the
//! local folders in the settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use bootstrap::{rules::RulesBook, suggestion::find_nearest};
use domain::{InstanceName, RepositoryName, RepositoryRules, cause::format_error_chain};
use git::FolderRepository;
use github::{Error, GitHubProject, GitHubReader, GitHubWriter};
use serde::Deserialize;

use super::{
    super::branch_folders::{describe_obstacle, list_branch_folders},
    super::commit_signing::{SigningSupport, find_signing_support},
    super::writer_rights::{WriterRights, find_writer_rights},
    CHECK_LIMIT, DoctorFinding, DoctorReport, DoctorSections, Remedy,
    accounts::AccountFailure,
    find_within_limit,
    instances::InstanceSections,
};

// A long list must not take the time of the check, whose result is known before the suggestion.
const SUGGESTION_LIMIT: Duration = Duration::from_secs(5);

pub(super) async fn check_repositories(
    findings: &mut DoctorReport,
    sections: &DoctorSections,
    instances: &InstanceSections,
    book: &RulesBook,
) {
    for rules in book.repositories().filter(|rules| rules.repo.folder.is_none()) {
        let accounts = match &rules.repo.instance {
            None => (sections.github_reader.as_ref(), sections.github_writer.as_ref()),
            Some(name) => instances.github(name),
        };
        // Another check reports a missing account.
        let (Ok(repository), (Some(reader), Some(writer))) = (rules.repository(), accounts) else {
            continue;
        };
        let finding = find_within_limit(Remedy::GithubApps, async {
            // The check has a client per account, in which the account is the default instance.
            let name = repository.clone().on(None);
            let seen = (can_read(reader, &name).await, can_write(writer, &name).await);
            let meant = match &seen {
                (Ok(false), Ok(false)) => suggest_repository(reader, &name).await,
                (Ok(_) | Err(_), Ok(_) | Err(_)) => None,
            };
            Ok(judge_visibility(&repository, seen.0, seen.1, meant))
        });
        let finding = finding.await;
        let is_seen = matches!(finding, DoctorFinding::Ok(_));
        findings.add("repository", finding);
        if is_seen {
            let name = repository.clone().on(None);
            for branch in list_blocking_branches(writer, &name, &list_branch_folders(rules)).await {
                let problem = format!("{repository}: {}", describe_obstacle(&branch));
                findings.add("branches", DoctorFinding::Warn(problem));
            }
            let has_issues = !rules.issues.is_empty();
            let rights = find_writer_rights(writer, &name, has_issues).await;
            findings.add("rights", judge_rights(&repository, &rights));
            let has_key = sections.reporter.has_key();
            let support = find_signing_support(writer, &name, Some(rules.target_branch()), has_key).await;
            findings.add("signatures", judge_signatures(&repository, &support));
        }
    }
}

/// Finding about the rights of the writing account.
fn judge_rights(repository: &RepositoryName, rights: &WriterRights) -> DoctorFinding {
    let words = format!("{repository}: {}", rights.describe());
    match rights {
        WriterRights::Complete => DoctorFinding::Ok(words),
        WriterRights::Missing(_) => DoctorFinding::Failed(words, Remedy::WriterApp),
        // The check of the account reports the App.
        WriterRights::MissingInApp(_) | WriterRights::Unknown { .. } => DoctorFinding::Skipped(words),
    }
}

/// Finding about the signatures that a repository requires.
fn judge_signatures(repository: &RepositoryName, support: &SigningSupport) -> DoctorFinding {
    let words = format!("{repository}: {}", support.describe());
    match support {
        SigningSupport::Missing => DoctorFinding::Failed(words, Remedy::Signatures),
        SigningSupport::NotRequired | SigningSupport::ByKey | SigningSupport::ByGitHub => {
            DoctorFinding::Ok(words)
        }
        SigningSupport::Unknown { .. } => DoctorFinding::Skipped(words),
    }
}

/// Branches with the name of a folder of ours; empty when they are unreadable.
async fn list_blocking_branches(
    settings: &github::Settings,
    repository: &RepositoryName,
    folders: &BTreeSet<String>,
) -> Vec<String> {
    let Ok(writer) = GitHubWriter::new(settings) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for folder in folders {
        let head = tokio::time::timeout(CHECK_LIMIT, writer.branch_head(repository, folder)).await;
        if let Ok(Ok(Some(_))) = head {
            found.push(folder.clone());
        }
    }
    found
}

/// Repository of the same owner with a similar name; `None` when the list is unreadable or takes too long.
async fn suggest_repository(settings: &github::Settings, name: &RepositoryName) -> Option<RepositoryName> {
    let reader = GitHubReader::new(settings).ok()?;
    let listing = Box::pin(reader.repositories_of(name.owner()));
    let listed = tokio::time::timeout(SUGGESTION_LIMIT, listing).await.ok()?.ok()?;
    let known = listed.iter().map(|found| found.name.name());
    let nearest = find_nearest(name.name(), known)?;
    let found = listed.iter().find(|found| found.name.name() == nearest)?;
    Some(found.name.clone())
}

async fn can_read(settings: &github::Settings, name: &RepositoryName) -> Result<bool, AccountFailure> {
    let failed = |error| AccountFailure::of_github(settings, &error);
    let reader = GitHubReader::new(settings).map_err(failed)?;
    is_seen(settings, reader.repository(name).await)
}

async fn can_write(settings: &github::Settings, name: &RepositoryName) -> Result<bool, AccountFailure> {
    let failed = |error| AccountFailure::of_github(settings, &error);
    let writer = GitHubWriter::new(settings).map_err(failed)?;
    is_seen(settings, writer.repository(name).await)
}

fn is_seen<T>(settings: &github::Settings, answer: Result<T, Error>) -> Result<bool, AccountFailure> {
    match answer {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(AccountFailure::of_github(settings, &error)),
    }
}

/// Finding about the visibility of a repository. The check of the account reports problems of the
/// account.
fn judge_visibility(
    repository: &RepositoryName,
    reader: Result<bool, AccountFailure>,
    writer: Result<bool, AccountFailure>,
    meant: Option<RepositoryName>,
) -> DoctorFinding {
    let problem = match (reader, writer) {
        (Ok(true), Ok(true)) => {
            return DoctorFinding::Ok(format!("{repository}: both accounts of GitHub see it"));
        }
        (Err(failure), _) | (_, Err(failure)) => {
            let reason = match failure {
                AccountFailure::Unreachable(problem) => format!("GitHub was not reached: {problem}"),
                AccountFailure::Refused(problem) => format!("GitHub refused the account: {problem}"),
            };
            return DoctorFinding::Skipped(format!("{repository}: {reason}"));
        }
        (Ok(true), Ok(false)) => "the reader sees it, the writer does not: work on it would end at the push",
        (Ok(false), Ok(true)) => {
            "the writer sees it, the reader does not: nothing that happens there is found"
        }
        (Ok(false), Ok(false)) => {
            "no account of GitHub sees it: it does not exist, or no App is installed there"
        }
    };
    let meant = meant.map(|meant| format!("; did you mean {meant}?"));
    let problem = format!("{repository}: {problem}{}", meant.unwrap_or_default());
    DoctorFinding::Failed(problem, Remedy::GithubApps)
}

/// Checks the GitHub projects that triages fill: visibility to the token, fields and values of the rules.
pub(super) async fn check_github_projects(
    findings: &mut DoctorReport,
    sections: &DoctorSections,
    instances: &InstanceSections,
    book: &RulesBook,
) {
    for rules in book.repositories() {
        if rules.triage.project.is_none() {
            continue;
        }
        let account = match &rules.repo.instance {
            None => sections.github_writer.as_ref(),
            Some(name) => instances.github_writer(name),
        };
        let finding = match account {
            Some(settings) if settings.project_token.is_some() => {
                find_within_limit(Remedy::GithubProjects, async {
                    let inspected = inspect_project(settings, rules).await;
                    Ok(inspected.map_or_else(
                        |failure| failure.into_finding(Remedy::GithubProjects),
                        DoctorFinding::Ok,
                    ))
                })
                .await
            }
            Some(_) | None => {
                let left = "the fields of projects are left alone: project_token is not set";
                DoctorFinding::Skipped(left.to_owned())
            }
        };
        findings.add("project", finding);
    }
}

async fn inspect_project(
    settings: &github::Settings,
    rules: &RepositoryRules,
) -> Result<String, AccountFailure> {
    let failed = |error| AccountFailure::of_github_object(settings, &error);
    let repository = rules
        .repository()
        .map_err(|error| AccountFailure::Refused(format_error_chain(&error)))?;
    // The check has a client per account, in which the account is the default instance.
    let repository = repository.on(None);
    let Some(wanted) = &rules.triage.project else {
        return Err(AccountFailure::Refused("the rules name none".to_owned()));
    };
    let writer = GitHubWriter::new(settings).map_err(failed)?;
    let found = writer
        .projects()
        .project(&repository, &wanted.owner, wanted.number)
        .await
        .map_err(failed)?;
    let place = format!("{} ({}/{})", found.title, wanted.owner, wanted.number);
    let lacking = list_missing_fields(&found, rules);
    if lacking.is_empty() {
        Ok(format!("{place}, for {repository}"))
    } else {
        Err(AccountFailure::Refused(format!(
            "{place} has no {}",
            lacking.join(", ")
        )))
    }
}

/// Fields and values that the rules name and the project lacks.
fn list_missing_fields(project: &GitHubProject, rules: &RepositoryRules) -> Vec<String> {
    let triage = &rules.triage;
    let named = triage.project.iter();
    let of_fields = named.clone().flat_map(|wanted| &wanted.fields);
    let of_priority = named.filter(|wanted| !wanted.priority_field.is_empty());
    let of_priority = of_priority.map(|wanted| (&wanted.priority_field, &triage.priorities));
    let mut lacking = Vec::new();
    for (name, values) in of_fields.chain(of_priority) {
        match project.field(name) {
            None => lacking.push(format!("field {name:?}")),
            Some(field) => {
                let unknown = values.iter().filter(|value| field.value(value).is_none());
                lacking.extend(unknown.map(|value| format!("{value:?} in {name:?}")));
            }
        }
    }
    lacking
}

/// Key of a section `[folder.<name>]` that the check reads.
#[derive(Deserialize)]
pub(super) struct FolderSection {
    /// The reporter refuses a section without it.
    pub(super) path: Option<PathBuf>,
}

/// Checks that the folders on this machine are repositories that Journeyman can use. Blocks.
pub(super) fn check_folders(findings: &mut DoctorReport, folders: &BTreeMap<InstanceName, FolderSection>) {
    for (name, section) in folders {
        let Some(path) = &section.path else { continue };
        let place = path.display();
        let finding = if path.exists() {
            match FolderRepository::open(path).and_then(|folder| folder.head()) {
                Ok(head) => DoctorFinding::Ok(format!("{name}: {place}, at {}", head.branch)),
                Err(error) => {
                    let problem = format!("{name}: {place}: {}", format_error_chain(&error));
                    DoctorFinding::Failed(problem, Remedy::Folders)
                }
            }
        } else {
            DoctorFinding::Skipped(format!("{name}: {place} is not on this machine"))
        };
        findings.add("folder", finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_needs_visibility_to_both_accounts() {
        let name: RepositoryName = "acme/shop".parse().unwrap();
        let find_problem = |reader, writer| match judge_visibility(&name, reader, writer, None) {
            DoctorFinding::Failed(problem, Remedy::GithubApps) => Some(problem),
            DoctorFinding::Ok(_) => None,
            _ => Some("not checked".to_owned()),
        };
        assert_eq!(find_problem(Ok(true), Ok(true)), None);
        for (reader, writer, part) in [
            (Ok(true), Ok(false), "the writer does not"),
            (Ok(false), Ok(true), "the reader does not"),
            (Ok(false), Ok(false), "no account"),
            (
                Err(AccountFailure::Refused("x".to_owned())),
                Ok(false),
                "not checked",
            ),
        ] {
            let problem = find_problem(reader, writer).unwrap();
            assert!(problem.contains(part), "{part}: {problem}");
        }
        for (failure, part) in [
            (
                AccountFailure::Unreachable("no route".to_owned()),
                "acme/shop: GitHub was not reached: no route",
            ),
            (
                AccountFailure::Refused("expired".to_owned()),
                "acme/shop: GitHub refused the account: expired",
            ),
        ] {
            let DoctorFinding::Skipped(reason) = judge_visibility(&name, Ok(true), Err(failure), None) else {
                panic!("the account's check reports it")
            };
            assert_eq!(reason, part);
        }
    }
}
