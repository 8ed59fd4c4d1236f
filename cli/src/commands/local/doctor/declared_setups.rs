//! Setup that repositories on this machine declare for other tools, and that their rules do not name.

use std::path::{Path, PathBuf};

use bootstrap::rules::{ConfiguredInstances, RulesBook};
use domain::RepositoryRules;
use git::FolderRepository;

use super::{super::repo::list_declared_setup, DoctorFinding, DoctorReport, DoctorSections};

/// Names the declared setup of each repository without setup commands in its rules. `current` is the folder of the
/// command; it counts for the repository that its remote names.
pub(super) async fn check_declared_setups(
    findings: &mut DoctorReport,
    sections: &DoctorSections,
    connections: &ConfiguredInstances,
    current: Option<PathBuf>,
) {
    // Another check reports unreadable rules.
    let Ok(book) = RulesBook::read(&sections.rules.dir, connections) else {
        return;
    };
    let remote = current.as_deref().and_then(read_remote);
    for rules in book
        .repositories()
        .filter(|rules| rules.executor.setup.is_empty())
    {
        let (Some(folder), Ok(repository)) = (
            find_folder(rules, sections, current.as_deref(), remote.as_deref()),
            rules.repository(),
        ) else {
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

/// Folder on this machine with the files of a repository.
fn find_folder<'a>(
    rules: &RepositoryRules,
    sections: &'a DoctorSections,
    current: Option<&'a Path>,
    remote: Option<&str>,
) -> Option<&'a Path> {
    match &rules.repo.folder {
        Some(name) => sections.folder.get(name)?.path.as_deref(),
        None => current.filter(|_| {
            remote.is_some_and(|remote| names_repository(remote, &rules.repo.owner, &rules.repo.name))
        }),
    }
}

fn read_remote(folder: &Path) -> Option<String> {
    FolderRepository::open(folder).ok()?.origin()
}

/// True for a URL of git that ends in the name of the repository.
fn names_repository(remote: &str, owner: &str, name: &str) -> bool {
    let path = remote.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let mut parts = path.rsplit(['/', ':']);
    let is_part = |part: Option<&str>, wanted: &str| {
        !wanted.is_empty() && part.is_some_and(|part| part.eq_ignore_ascii_case(wanted))
    };
    is_part(parts.next(), name) && is_part(parts.next(), owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_names_repository_in_each_form() {
        for remote in [
            "https://github.com/acme/shop.git",
            "https://github.com/Acme/Shop/",
            "git@github.com:acme/shop.git",
            "ssh://git@github.example/acme/shop",
        ] {
            assert!(names_repository(remote, "acme", "shop"), "{remote}");
        }
        for remote in [
            "https://github.com/acme/shop-two.git",
            "https://github.com/other/shop",
            "/srv/shop",
            "",
        ] {
            assert!(!names_repository(remote, "acme", "shop"), "{remote}");
        }
        assert!(!names_repository("https://github.com//", "", ""));
    }
}
