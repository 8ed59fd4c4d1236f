//! Repositories that cannot be used here, with the way to make them usable.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use git2::{ErrorCode, Repository};
use parking_lot::Mutex;

use crate::{Error, error::UnusableRepository};

/// Beginning of the error text, by which other services recognize it.
const UNUSABLE: &str = "the repository cannot be used";

/// True for the text of [`Error::Unusable`], also behind other words.
pub fn is_about_unusable_repository(text: &str) -> bool {
    text.contains(UNUSABLE)
}

/// Finds the property in the error of a `git` command, e.g. of a fetch.
pub(crate) fn classify_unusable_remote(stderr: &str) -> Option<Error> {
    stderr
        .contains("mismatched algorithms")
        .then_some(Error::Unusable(UnusableRepository::Sha256))
}

/// Opens the repository that contains a path. A folder of another user is opened if the settings of the user's git
/// trust it.
///
/// # Errors
/// [`Error::NotFound`] without a repository, [`Error::Unusable`].
pub(crate) fn discover_repository(path: &Path) -> Result<Repository, Error> {
    // The check of the owner is a setting of the whole process, so only one folder is opened at a time.
    static OPENING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = OPENING.lock();
    match Repository::discover(path) {
        Ok(found) => Ok(found),
        Err(error) if error.code() == ErrorCode::Owner => open_trusted(path),
        Err(error) => Err(explain_open_error(path, &error)),
    }
}

fn open_trusted(path: &Path) -> Result<Repository, Error> {
    // The library does not read the settings of the user in this process.
    let is_trusted = query_git(path, &["rev-parse", "--git-dir"]).is_some();
    if !is_trusted {
        let place = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        return Err(Error::Unusable(UnusableRepository::ForeignOwner(place)));
    }
    check_owners(false)?;
    let found = Repository::discover(path);
    check_owners(true)?;
    found.map_err(|error| explain_open_error(path, &error))
}

#[expect(
    unsafe_code,
    reason = "a setting of the library without a guard; its only caller holds a lock"
)]
fn check_owners(is_checked: bool) -> Result<(), Error> {
    // SAFETY: it sets one integer of the library.
    Ok(unsafe { git2::opts::set_verify_owner_validation(is_checked) }?)
}

fn explain_open_error(path: &Path, error: &git2::Error) -> Error {
    let message = error.message();
    if message.contains("unknown object format") || message.contains("objectformat") {
        return Error::Unusable(UnusableRepository::Sha256);
    }
    if !message.contains("unsupported extension") && !message.contains("unknown reference storage") {
        return Error::NotFound(message.to_owned());
    }
    let read = |name: &str| query_git(path, &["config", "--local", "--get", name]).unwrap_or_default();
    let property = if read("extensions.refStorage") == "reftable" {
        UnusableRepository::Reftable
    } else if read("extensions.objectFormat") == "sha256" {
        UnusableRepository::Sha256
    } else {
        UnusableRepository::Extension(message.to_owned())
    };
    Error::Unusable(property)
}

/// Returns what `git` prints in a folder; `None` after a failure.
fn query_git(path: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(path).args(arguments).stdin(Stdio::null());
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_with_other_object_names_is_recognized() {
        let stderr = "fatal: mismatched algorithms: client sha1; server sha256\n";
        let error = classify_unusable_remote(stderr).unwrap();
        assert!(is_about_unusable_repository(&error.to_string()), "{error}");
        assert!(error.to_string().contains("SHA-256"), "{error}");
        assert!(classify_unusable_remote("fatal: early EOF").is_none());
    }
}
