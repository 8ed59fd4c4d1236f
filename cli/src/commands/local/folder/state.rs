//! State of a folder, stored outside of it: mirrors, workspaces, and each ticket's queue and results.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use data_encoding::HEXLOWER;
use domain::{InstanceName, TicketKey};
use ring::digest::{SHA256, digest};

use crate::user_files;

// Length of the digest that distinguishes folders with the same name, in bytes.
const DIGEST: usize = 4;

/// State of one folder, with a number for the next ticket. Only one process uses it at a time.
pub(super) struct FolderState {
    /// Name of the folder in keys and settings.
    pub(super) name: InstanceName,
    /// Ticket of this work.
    pub(super) ticket: TicketKey,
    path: PathBuf,
    root: PathBuf,
    data: PathBuf,
    _lock: File,
}

impl FolderState {
    /// Opens the state of the folder at `path` and reserves the next number.
    pub(super) fn open(path: &Path, chosen: Option<&Path>) -> anyhow::Result<Self> {
        let name = build_folder_name(path);
        let base = find_state_base(chosen)?;
        let root = base.join(format!("{name}-{}", short_digest(path)));
        if root.starts_with(path) {
            bail!("the state cannot be in the folder itself: name another place with --data");
        }
        std::fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
        let lock = lock_state(&root)?;
        let (number, data) = create_ticket_folder(&root.join("tickets"))?;
        let ticket = TicketKey::Folder {
            folder: name.clone(),
            number,
        };
        Ok(Self {
            name,
            ticket,
            path: path.to_owned(),
            root,
            data,
            _lock: lock,
        })
    }

    /// Data folder of this ticket alone. With a shared queue, an interrupted run would continue and cost money when the
    /// next ticket starts.
    pub(super) fn data(&self) -> PathBuf {
        self.data.clone()
    }

    /// Settings of the services that follow from the folder. Mirrors and setup results are shared by all its tickets, so
    /// that the next one starts faster. `hidden` are the paths to hide beside the state.
    pub(super) fn environment(
        &self,
        mut environment: Vec<(String, String)>,
        hidden: &[String],
        rules: &Path,
        write_branch: bool,
    ) -> Vec<(String, String)> {
        let text = |path: &Path| path.display().to_string();
        let folder = format!("FOLDER__{}", self.name);
        // The variable replaces the setting of the file, so it repeats the paths of both.
        let hidden = [hidden, &[text(&self.root)][..]].concat().join(",");
        environment.retain(|(name, _)| name != "JOURNEYMAN__EXECUTOR__HIDDEN");
        for (key, value) in [
            ("RULES__DIR".to_owned(), text(rules)),
            (format!("{folder}__PATH"), text(&self.path)),
            (format!("{folder}__RESULTS"), text(&self.root.join("results"))),
            (format!("{folder}__WRITE_BRANCH"), write_branch.to_string()),
            ("REPORTER__DATA_DIR".to_owned(), text(&self.root.join("reporter"))),
            ("EXECUTOR__DATA_DIR".to_owned(), text(&self.root.join("executor"))),
            ("EXECUTOR__HIDDEN".to_owned(), hidden),
        ] {
            environment.push((format!("JOURNEYMAN__{key}"), value));
        }
        environment
    }
}

/// Folder with the states of all folders: the chosen one, or that of the user.
pub(super) fn find_state_base(chosen: Option<&Path>) -> anyhow::Result<PathBuf> {
    match chosen {
        Some(chosen) => Ok(std::path::absolute(chosen)?),
        None => user_files::find_state_folder(),
    }
}

fn lock_state(root: &Path) -> anyhow::Result<File> {
    let file =
        File::create(root.join("lock")).with_context(|| format!("cannot write in {}", root.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another journeyman works on this folder: wait for its end"),
        Err(TryLockError::Error(error)) => Err(error).context("cannot lock the state of the folder"),
    }
}

/// Creates the folder of the next ticket.
fn create_ticket_folder(tickets: &Path) -> anyhow::Result<(u64, PathBuf)> {
    let unwritable = || format!("cannot write in {}", tickets.display());
    std::fs::create_dir_all(tickets).with_context(unwritable)?;
    // Folders of earlier tickets stay, so that no number is used twice.
    let mut last = 0;
    let entries = std::fs::read_dir(tickets);
    for entry in entries.with_context(|| format!("cannot read {}", tickets.display()))? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        last = last.max(number.unwrap_or(0));
    }
    let path = tickets.join((last + 1).to_string());
    std::fs::create_dir(&path).with_context(unwritable)?;
    Ok((last + 1, path))
}

fn short_digest(path: &Path) -> String {
    let hash = digest(&SHA256, path.as_os_str().as_encoded_bytes());
    let mut digits = HEXLOWER.encode(hash.as_ref());
    digits.truncate(2 * DIGEST);
    digits
}

/// Name of the folder as a valid name in keys; `repository` when no part of it is valid.
fn build_folder_name(path: &Path) -> InstanceName {
    let own = path.file_name().unwrap_or_default().to_string_lossy();
    let kept: String = own
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let from = kept.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    let short: String = from.chars().take(24).collect();
    let short = short.trim_end_matches('-');
    let named = short.parse().or_else(|_| format!("{short}-folder").parse());
    named.unwrap_or_else(|_| build_fallback_name())
}

#[expect(clippy::expect_used, reason = "a constant that is a valid name")]
fn build_fallback_name() -> InstanceName {
    "repository".parse().expect("a valid name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_are_valid_in_keys() {
        for (path, name) in [
            ("/home/ada/shop", "shop"),
            ("/home/ada/My Shop_2.0", "my-shop-2-0"),
            ("/home/ada/.dotfiles", "dotfiles"),
            ("/home/ada/2048-game", "game"),
            ("/home/ada/github", "github-folder"),
            ("/home/ada/日本", "repository"),
            ("/", "repository"),
            (
                "/home/ada/a-very-long-name-of-a-repository-somewhere",
                "a-very-long-name-of-a-re",
            ),
        ] {
            assert_eq!(build_folder_name(Path::new(path)).as_str(), name, "{path}");
        }
    }

    #[test]
    fn tickets_are_numbered_per_locked_folder() {
        let base = tempfile::tempdir().unwrap();
        let numbered = |path: &str| {
            let state = FolderState::open(Path::new(path), Some(base.path())).unwrap();
            (state.ticket.to_string(), state.data())
        };
        let (first, data) = numbered("/home/ada/shop");
        let (second, other) = numbered("/home/ada/shop");
        assert_eq!(
            (first.as_str(), second.as_str()),
            ("folder:shop#1", "folder:shop#2")
        );
        assert!(data.is_dir() && other.is_dir() && data != other);
        assert_eq!(numbered("/elsewhere/shop").0, "folder:shop#1");
        let held = FolderState::open(Path::new("/home/ada/shop"), Some(base.path())).unwrap();
        let refused = FolderState::open(Path::new("/home/ada/shop"), Some(base.path()))
            .err()
            .unwrap();
        assert!(refused.to_string().contains("another journeyman"), "{refused}");
        assert_eq!(held.ticket.to_string(), "folder:shop#3");
    }

    #[test]
    fn state_is_hidden_with_configured_paths() {
        let base = tempfile::tempdir().unwrap();
        let state = FolderState::open(Path::new("/home/ada/shop"), Some(base.path())).unwrap();
        let given = ("JOURNEYMAN__EXECUTOR__HIDDEN".to_owned(), "/srv/keys".to_owned());
        let hidden = ["/srv/keys", "/opt/team.toml"].map(str::to_owned);
        let environment = state.environment(vec![given.clone()], &hidden, Path::new("/rules"), true);
        let values: Vec<&str> = environment
            .iter()
            .filter(|(name, _)| *name == given.0)
            .map(|(_, value)| value.as_str())
            .collect();
        let expected = format!("/srv/keys,/opt/team.toml,{}", state.root.display());
        assert_eq!(values, [expected.as_str()]);
    }

    #[test]
    fn state_inside_its_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("state");
        assert!(FolderState::open(folder.path(), Some(&inside)).is_err());
        assert!(!inside.exists());
    }
}
