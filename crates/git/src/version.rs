//! Version check of the `git` program, which executor and reporter run at their start.

use std::{path::Path, process::Command};

use semver::Version;

/// Oldest supported version: it can refuse bare repositories within worktrees, reads refspecs from its
/// standard input, and still receives fixes from distributions.
pub const OLDEST_GIT: Version = Version::new(2, 39, 0);

/// Reason to refuse the `git` program.
#[derive(Debug, thiserror::Error)]
pub enum UnusableGit {
    /// The program does not start.
    #[error("there is no git program that starts; install git {OLDEST_GIT} or newer")]
    Missing(#[source] std::io::Error),
    /// The program does not print a version.
    #[error("`git --version` does not say a version; install git {OLDEST_GIT} or newer")]
    Unreadable,
    /// The program is too old.
    #[error("git {0} is too old; install git {OLDEST_GIT} or newer")]
    TooOld(Version),
}

/// Checks the version of the `git` program on the path. Blocks for a moment.
///
/// # Errors
/// [`UnusableGit`], with the version to install.
pub fn check_git_version() -> Result<Version, UnusableGit> {
    check_program_version(Path::new("git"))
}

fn check_program_version(program: &Path) -> Result<Version, UnusableGit> {
    let output = Command::new(program).arg("--version").output();
    let output = output.map_err(UnusableGit::Missing)?;
    let version = parse_version(&String::from_utf8_lossy(&output.stdout)).ok_or(UnusableGit::Unreadable)?;
    if version < OLDEST_GIT {
        return Err(UnusableGit::TooOld(version));
    }
    Ok(version)
}

/// Parses the output of `git --version` and ignores a vendor's additions.
fn parse_version(printed: &str) -> Option<Version> {
    let word = printed.strip_prefix("git version ")?.split_whitespace().next()?;
    let mut numbers = word.split('.').map_while(|part| part.parse().ok());
    Some(Version::new(
        numbers.next()?,
        numbers.next()?,
        numbers.next().unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn version_is_read_from_what_vendors_print() {
        let version = |major, minor, patch| Some(Version::new(major, minor, patch));
        for (printed, read) in [
            ("git version 2.39.5\n", version(2, 39, 5)),
            ("git version 2.50.1 (Apple Git-155)\n", version(2, 50, 1)),
            ("git version 2.45.1.windows.1", version(2, 45, 1)),
            ("git version 2.48.0-rc1", version(2, 48, 0)),
            ("git version 3.0.GIT", version(3, 0, 0)),
            ("something else 2.50.1", None),
            ("git version unknown", None),
            ("", None),
        ] {
            assert_eq!(parse_version(printed), read, "{printed}");
        }
    }

    #[test]
    fn unusable_git_is_refused_with_required_version() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |program: &Path| check_program_version(program).unwrap_err().to_string();
        assert!(refused(&folder.path().join("absent")).contains("install git 2.39.0"));
        for (printed, words) in [
            ("git version 2.34.1", "git 2.34.1 is too old; install git 2.39.0"),
            ("not git", "does not say a version"),
        ] {
            let program = folder.path().join(printed.replace(' ', "-"));
            fs::write(&program, format!("#!/bin/sh\necho '{printed}'\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            assert!(refused(&program).contains(words), "{}", refused(&program));
        }
        check_git_version().unwrap();
    }
}
