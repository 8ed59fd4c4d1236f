//! Setup that repositories on this machine declare for other tools, and that their rules do not name.

use std::path::{Path, PathBuf};

use bootstrap::rules::RulesBook;
use domain::RepositoryName;
use git::FolderRepository;

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
    current: Option<PathBuf>,
) {
    // Another check reports unreadable rules.
    let Ok(book) = RulesBook::read(&sections.rules.dir, &instances.connections()) else {
        return;
    };
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
            remote
                .as_deref()
                .is_some_and(|remote| names_repository(remote, &url, &repository))
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

/// True for a URL of git that names the repository at the server with the base URL.
fn names_repository(remote: &str, server: &str, repository: &RepositoryName) -> bool {
    let is_host = |host: &str, wanted: &str| {
        // GitHub offers SSH at the port of HTTPS under another name.
        let plain = host.strip_prefix("ssh.").unwrap_or(host);
        [host, plain].iter().any(|host| host.eq_ignore_ascii_case(wanted))
    };
    let is_there = match (find_host(remote), find_host(server)) {
        (Some(host), Some(wanted)) => is_host(host, wanted),
        (None, _) | (_, None) => false,
    };
    let path = remote.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let mut parts = path.rsplit(['/', ':']);
    let is_part =
        |part: Option<&str>, wanted: &str| part.is_some_and(|part| part.eq_ignore_ascii_case(wanted));
    is_there && is_part(parts.next(), repository.name()) && is_part(parts.next(), repository.owner())
}

/// Host of a URL of git without user and port; `None` for a path.
fn find_host(remote: &str) -> Option<&str> {
    let authority = match remote.split_once("://") {
        Some((_, rest)) => rest.split('/').next()?,
        // The short form of SSH: `git@github.com:acme/shop.git`.
        None => remote.split_once(':').map(|(authority, _)| authority)?,
    };
    let host = authority.rsplit('@').next()?.split(':').next()?;
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_names_repository_in_each_form() {
        let shop: RepositoryName = "acme/shop".parse().unwrap();
        let server = "https://github.com";
        for remote in [
            "https://github.com/acme/shop.git",
            "https://GitHub.com/Acme/Shop/",
            "https://x-access-token:abc@github.com/acme/shop",
            "git@github.com:acme/shop.git",
            "ssh://git@github.com/acme/shop",
            "ssh://git@ssh.github.com:443/acme/shop.git",
        ] {
            assert!(names_repository(remote, server, &shop), "{remote}");
        }
        for remote in [
            "https://github.com/acme/shop-two.git",
            "https://github.com/other/shop",
            "https://github.example/acme/shop",
            "git@gitlab.com:acme/shop.git",
            "https://github.com.example/acme/shop",
            "https://gitlab.com/github.com/acme/shop",
            "/srv/acme/shop",
            "file:///srv/acme/shop",
            "",
        ] {
            assert!(!names_repository(remote, server, &shop), "{remote}");
        }
    }

    #[test]
    fn named_server_has_own_host() {
        let shop: RepositoryName = "acme/shop".parse().unwrap();
        let server = "https://ghe.example:8443";
        assert!(names_repository("git@ghe.example:acme/shop.git", server, &shop));
        assert!(names_repository(
            "https://ghe.example:8443/acme/shop",
            server,
            &shop
        ));
        assert!(!names_repository("https://github.com/acme/shop", server, &shop));
    }
}
