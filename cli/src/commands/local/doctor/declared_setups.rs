//! Setup that repositories on this machine declare for other tools, and that their rules do not name.

use std::path::{Path, PathBuf};

use bootstrap::rules::RulesBook;
use domain::RepositoryName;
use git::{FolderRepository, find_remote_repository};

use super::{
    super::repo::list_declared_setup, DoctorFinding, DoctorReport, DoctorSections,
    instances::InstanceSections,
};

/// Names the declared setup of each repository without setup commands in its rules. `current` is the folder of the
/// command; it counts for the repository that its remote names.
pub(super) async fn check_declared_setups(
    findings: &mut DoctorReport,
    sections: &DoctorSections,
    instances: &InstanceSections,
    book: &RulesBook,
    current: Option<PathBuf>,
) {
    let remote = current.as_deref().and_then(read_remote);
    for rules in book
        .repositories()
        .filter(|rules| rules.executor.setup.is_empty())
    {
        let Ok(repository) = rules.repository() else {
            continue;
        };
        let is_current = || {
            let url = find_git_url(&repository, sections, instances);
            let path = remote
                .as_deref()
                .and_then(|remote| find_remote_repository(remote, &url));
            path.is_some_and(|path| path.eq_ignore_ascii_case(&repository.path()))
        };
        let folder = match &rules.repo.folder {
            Some(name) => sections
                .folder
                .get(name)
                .and_then(|folder| folder.path.as_deref()),
            None => current.as_deref().filter(|_| is_current()),
        };
        let Some(folder) = folder else {
            continue;
        };
        // Another check reports unusable folders.
        let Ok(Some(declared)) = list_declared_setup(folder).await else {
            continue;
        };
        let hint = format!(
            "{repository}: its rules name no setup, and {} declares one: add `{}` to executor.setup if its checks need it",
            declared.source,
            declared.commands.join("`, `").replace('\n', "; "),
        );
        findings.add("setup", DoctorFinding::Warn(hint));
    }
}

/// Base URL of the server's repositories for git.
fn find_git_url(
    repository: &RepositoryName,
    sections: &DoctorSections,
    instances: &InstanceSections,
) -> String {
    let (reader, writer) = match repository.instance() {
        Some(name) => instances.github(name),
        None => (sections.github_reader.as_ref(), sections.github_writer.as_ref()),
    };
    match reader.or(writer) {
        Some(settings) => settings.git_url.clone(),
        None => github::Settings::default().git_url,
    }
}

fn read_remote(folder: &Path) -> Option<String> {
    FolderRepository::open(folder).ok()?.origin()
}
