//! Files of the setup: the settings file, whose comments and order stay, and one file per secret.

use std::{
    fs,
    io::{ErrorKind, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};
use tempfile::NamedTempFile;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TomlError, Value};

use crate::{
    account_settings::{AccountSetting, SettingValue},
    user_files::replace_file,
};

// Folder of secrets in the data folder.
const SECRETS: &str = "secrets";

/// Paths of settings and secrets.
pub(super) struct SetupStore {
    pub(super) file: PathBuf,
    secrets: PathBuf,
}

impl SetupStore {
    pub(super) fn new(file: PathBuf, data: &Path) -> Self {
        Self {
            file,
            secrets: data.join(SECRETS),
        }
    }

    /// Settings file, when it exists.
    pub(super) fn existing(&self) -> Option<&Path> {
        Some(self.file.as_path()).filter(|file| file.exists())
    }

    /// Stores a secret in a file that this user alone can read, and syncs it to disk.
    pub(super) fn keep(&self, name: &str, secret: &SecretString) -> anyhow::Result<PathBuf> {
        fs::create_dir_all(&self.secrets)
            .and_then(|()| fs::set_permissions(&self.secrets, fs::Permissions::from_mode(0o700)))
            .with_context(|| format!("cannot create {}", self.secrets.display()))?;
        let path = self.secrets.join(name);
        let text = format!("{}\n", secret.expose_secret().trim());
        replace_file(&path, text.as_bytes(), 0o600)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// Writes a file for this user alone into the data folder. It must not contain a lasting secret.
    pub(super) fn leave(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let folder = self.secrets.parent().unwrap_or(Path::new("."));
        let path = folder.join(name);
        fs::create_dir_all(folder)
            .and_then(|()| replace_file(&path, text.as_bytes(), 0o600))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// Names of the stored secrets.
    pub(super) fn kept(&self) -> anyhow::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.secrets) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", self.secrets.display()));
            }
        };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<std::io::Result<Vec<_>>>()?;
        // A directory has no defined order.
        names.sort();
        Ok(names)
    }

    /// Path of a stored secret.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.secrets.join(name)
    }

    /// Stores the secrets among the settings, then writes all settings. The rest of the file stays
    /// unchanged.
    // Secrets first: a settings file that names a missing secret file would not load.
    pub(super) fn set(&self, settings: &[AccountSetting]) -> anyhow::Result<()> {
        for setting in settings {
            if let SettingValue::Secret(name, secret) = &setting.value {
                self.keep(name, secret)?;
            }
        }
        self.change(|document| {
            for setting in settings {
                let AccountSetting { section, key, value } = setting;
                let value = match value {
                    SettingValue::Removed => {
                        remove_value(document, section, key);
                        continue;
                    }
                    SettingValue::Text(text) => text.as_str().into(),
                    SettingValue::Number(number) => i64::try_from(*number)
                        .with_context(|| format!("{section}.{key}: {number} is too large"))?
                        .into(),
                    SettingValue::Names(names) => join_names(document, section, key, names).into(),
                    SettingValue::Secret(name, _) | SettingValue::KeptSecret(name) => {
                        build_file_reference(&self.place(name))
                    }
                };
                put_value(document, section, key, value)?;
            }
            Ok(())
        })
    }

    /// Temporary copy of the settings file without these keys of a section, readable by this user alone.
    pub(super) fn copy_without(&self, section: &str, keys: &[&str]) -> anyhow::Result<NamedTempFile> {
        let (_, mut document) = self.read_document()?;
        for key in keys {
            remove_value(&mut document, section, key);
        }
        // `NamedTempFile` creates its file with mode 0600.
        let mut copy = NamedTempFile::with_suffix(".toml")?;
        copy.write_all(document.to_string().as_bytes())
            .context("cannot write a copy of the settings")?;
        Ok(copy)
    }

    /// Text of the settings file and its parsed form; a missing file is empty.
    fn read_document(&self) -> anyhow::Result<(String, DocumentMut)> {
        let name = self.file.display();
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
        };
        let document: DocumentMut = text.parse().map_err(|error: TomlError| {
            let problem = describe_parse_error(&text, &error);
            anyhow::anyhow!("{name} is not TOML ({problem}); nothing was changed")
        })?;
        Ok((text, document))
    }

    fn change(&self, edit: impl FnOnce(&mut DocumentMut) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let name = self.file.display();
        let (before, mut document) = self.read_document()?;
        edit(&mut document)?;
        let after = document.to_string();
        if after == before {
            return Ok(());
        }
        // A symbolic link stays a link, because its target is replaced.
        let file = fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        // The settings may contain secrets: an existing file keeps its mode, and a new one is private.
        let mode = fs::metadata(&file).map_or(0o600, |metadata| metadata.permissions().mode());
        replace_file(&file, after.as_bytes(), mode).with_context(|| format!("cannot write {name}"))
    }
}

/// Line and problem of a text that is not TOML. The parser's own display is left out: it shows the line, which may
/// contain a secret.
fn describe_parse_error(text: &str, error: &TomlError) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {}", before.matches('\n').count() + 1, error.message()),
        None => error.message().to_owned(),
    }
}

/// Union of the existing names of a setting and these names.
fn join_names(document: &DocumentMut, section: &str, key: &str, names: &[String]) -> Array {
    let known = document.get(section).and_then(|section| section.get(key));
    let mut list: Array = known.and_then(Item::as_array).cloned().unwrap_or_default();
    for name in names {
        if !list.iter().any(|known| known.as_str() == Some(name)) {
            list.push(name.as_str());
        }
    }
    list
}

/// Reference to the file of a secret: `{ file = "…" }`.
fn build_file_reference(path: &Path) -> Value {
    let mut table = InlineTable::new();
    table.insert("file", path.display().to_string().into());
    table.into()
}

/// Sets a value and keeps the comment on its line.
fn put_value(document: &mut DocumentMut, section: &str, key: &str, mut value: Value) -> anyhow::Result<()> {
    let table = document
        .entry(section)
        .or_insert_with(|| Item::Table(Table::new()));
    let table = table
        .as_table_like_mut()
        .with_context(|| format!("{section} is not a section"))?;
    if let Some(known) = table.get(key).and_then(Item::as_value) {
        *value.decor_mut() = known.decor().clone();
    }
    table.insert(key, Item::Value(value));
    Ok(())
}

/// Removes a value together with its comment; a missing one stays missing.
fn remove_value(document: &mut DocumentMut, section: &str, key: &str) {
    if let Some(table) = document.get_mut(section).and_then(Item::as_table_like_mut) {
        table.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account_settings::build_own_accounts_setting;

    fn create_setup_store() -> (tempfile::TempDir, SetupStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = SetupStore::new(folder.path().join("journeyman.toml"), &folder.path().join("data"));
        (folder, store)
    }

    #[test]
    fn setting_change_keeps_comments_and_keys() {
        let (_folder, store) = create_setup_store();
        let text = "# ours\n[ingest] # polls\npoll_interval_s = 30 # often\n\n[github_reader]\napp_id = 1 # the first\n";
        fs::write(&store.file, text).unwrap();
        let setting = |section, key, value| AccountSetting { section, key, value };
        let settings = [
            setting("github_reader", "app_id", SettingValue::Number(7)),
            setting("model", "name", SettingValue::Text("m".to_owned())),
        ];
        store.set(&settings).unwrap();
        let after = fs::read_to_string(&store.file).unwrap();
        let expected = text.replace("app_id = 1", "app_id = 7") + "\n[model]\nname = \"m\"\n";
        assert_eq!(after, expected);
        store.set(&settings).unwrap();
        assert_eq!(
            fs::read_to_string(&store.file).unwrap(),
            after,
            "once more changes nothing"
        );
    }

    #[test]
    fn removed_setting_leaves_file_and_copy() {
        let (_folder, store) = create_setup_store();
        let text = "[model]\nname = \"m\" # ours\nheaders = { x = \"1\" }\n\n[model.prices.m]\ninput = 1\n";
        fs::write(&store.file, text).unwrap();
        let copy = store.copy_without("model", &["name", "region"]).unwrap();
        let copied = fs::read_to_string(copy.path()).unwrap();
        assert!(!copied.contains("name") && copied.contains("headers"), "{copied}");
        assert_eq!(
            fs::read_to_string(&store.file).unwrap(),
            text,
            "the copy changes nothing"
        );
        let removed = |section, key| AccountSetting {
            section,
            key,
            value: SettingValue::Removed,
        };
        let gone = [
            removed("model", "name"),
            removed("model", "headers"),
            removed("jira", "x"),
        ];
        store.set(&gone).unwrap();
        let after = fs::read_to_string(&store.file).unwrap();
        assert_eq!(after, "[model]\n\n[model.prices.m]\ninput = 1\n");
    }

    #[test]
    fn own_accounts_are_added_once() {
        let (_folder, store) = create_setup_store();
        fs::write(&store.file, "[ingest]\nown_accounts = [\"rita\"]\n").unwrap();
        for _ in 0..2 {
            let names = ["a[bot]".to_owned(), "rita".to_owned()];
            store.set(&[build_own_accounts_setting(&names)]).unwrap();
        }
        let text = fs::read_to_string(&store.file).unwrap();
        assert_eq!(text, "[ingest]\nown_accounts = [\"rita\", \"a[bot]\"]\n");
    }

    #[test]
    fn a_secret_is_for_this_user_alone() {
        let (_folder, store) = create_setup_store();
        let path = store.keep("key", &" k \n".to_owned().into()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "k\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(store.kept().unwrap(), ["key"]);
    }

    #[test]
    fn invalid_toml_file_stays_unchanged() {
        let (_folder, store) = create_setup_store();
        for (text, line) in [
            ("[jira_reader]\napi_token = \"wonderland\n", 2),
            ("[jira_reader]\napi_token = wonderland\n", 2),
            (
                "[jira_reader]\napi_token = \"a\"\napi_token = \"wonderland\"\n",
                3,
            ),
        ] {
            fs::write(&store.file, text).unwrap();
            let changed = store.set(&[build_own_accounts_setting(&["rita".to_owned()])]);
            let copied = store.copy_without("jira_reader", &["email"]).map(drop);
            for error in [changed.unwrap_err(), copied.unwrap_err()] {
                // With all causes, as the command prints it.
                let error = format!("{error:#}");
                assert!(error.contains(&format!("(line {line}: ")), "{error}");
                assert!(!error.contains("wonderland"), "{error}");
            }
            assert_eq!(fs::read_to_string(&store.file).unwrap(), text);
        }
    }
}
