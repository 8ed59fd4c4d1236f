//! Check of the repositories in the rules: visibility to both GitHub accounts.

use std::collections::BTreeSet;

use bootstrap::rules::RulesBook;
use domain::{RepositoryName, cause::chain};
use github::{Error, Reader, Writer};

use super::{
    super::branch_folders::{branch_folders, describe_obstacle},
    CHECK_LIMIT, Finding, Findings, Remedy, Sections, found_within,
    instances::Instances,
};

pub(super) async fn check(findings: &mut Findings, sections: &Sections, instances: &Instances) {
    // Another check reports unreadable rules.
    let Ok(book) = RulesBook::read(&sections.rules.dir, &instances.connections()) else {
        return;
    };
    for rules in book.repositories().filter(|rules| rules.repo.folder.is_none()) {
        let accounts = match &rules.repo.instance {
            None => (sections.github_reader.as_ref(), sections.github_writer.as_ref()),
            Some(name) => instances.github(name),
        };
        // Another check reports a missing account.
        let (Ok(repository), (Some(reader), Some(writer))) = (rules.repository(), accounts) else {
            continue;
        };
        let finding = found_within(Remedy::GithubApps, async {
            // The check has a client per account, in which the account is the default instance.
            let name = repository.clone().on(None);
            let seen = (reads(reader, &name).await, writes(writer, &name).await);
            Ok(seen_by(&repository, seen.0, seen.1))
        });
        let finding = finding.await;
        let is_seen = matches!(finding, Finding::Ok(_));
        findings.add("repository", finding);
        if is_seen {
            let name = repository.clone().on(None);
            for branch in obstacles(writer, &name, &branch_folders(rules)).await {
                let problem = format!("{repository}: {}", describe_obstacle(&branch));
                findings.add("branches", Finding::Warn(problem));
            }
        }
    }
}

/// Branches with the name of a folder of ours; empty when they are unreadable.
async fn obstacles(
    settings: &github::Settings,
    repository: &RepositoryName,
    folders: &BTreeSet<String>,
) -> Vec<String> {
    let Ok(writer) = Writer::new(settings) else {
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

async fn reads(settings: &github::Settings, name: &RepositoryName) -> Result<bool, String> {
    let reader = Reader::new(settings).map_err(|error| chain(&error))?;
    is_seen(reader.repository(name).await)
}

async fn writes(settings: &github::Settings, name: &RepositoryName) -> Result<bool, String> {
    let writer = Writer::new(settings).map_err(|error| chain(&error))?;
    is_seen(writer.repository(name).await)
}

fn is_seen<T>(answer: Result<T, Error>) -> Result<bool, String> {
    match answer {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(chain(&error)),
    }
}

/// Finding about the visibility of a repository. The check of the account reports problems of the
/// account.
fn seen_by(
    repository: &RepositoryName,
    reader: Result<bool, String>,
    writer: Result<bool, String>,
) -> Finding {
    let problem = match (reader, writer) {
        (Ok(true), Ok(true)) => return Finding::Ok(format!("{repository}: both accounts of GitHub see it")),
        (Err(_), _) | (_, Err(_)) => {
            return Finding::Skipped(format!("{repository}: not both accounts of GitHub answered"));
        }
        (Ok(true), Ok(false)) => "the reader sees it, the writer does not: work on it would end at the push",
        (Ok(false), Ok(true)) => {
            "the writer sees it, the reader does not: nothing that happens there is found"
        }
        (Ok(false), Ok(false)) => {
            "no account of GitHub sees it: it does not exist, or no App is installed there"
        }
    };
    Finding::Failed(format!("{repository}: {problem}"), Remedy::GithubApps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_needs_visibility_to_both_accounts() {
        let name: RepositoryName = "acme/shop".parse().unwrap();
        let told = |reader, writer| match seen_by(&name, reader, writer) {
            Finding::Failed(told, Remedy::GithubApps) => Some(told),
            Finding::Ok(_) => None,
            _ => Some("not looked at".to_owned()),
        };
        assert_eq!(told(Ok(true), Ok(true)), None);
        for (reader, writer, part) in [
            (Ok(true), Ok(false), "the writer does not"),
            (Ok(false), Ok(true), "the reader does not"),
            (Ok(false), Ok(false), "no account"),
            (Err("x".to_owned()), Ok(false), "not looked at"),
        ] {
            let told = told(reader, writer).unwrap();
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
