//! Secrets in separate files, which a settings file names: `private_key = { file = "secrets/reader.pem" }`.

use std::{collections::BTreeMap, path::PathBuf};

use config::{Value, ValueKind};

/// Keys that may name a file. Other keys may hold a table of any shape.
const SECRETS: &[&str] = &[
    "private_key",
    "token",
    "api_token",
    "api_key",
    "auth_token",
    "client_secret",
    "password",
    "github_webhook_secrets",
    "jira_webhook_secrets",
    "jira_automation_secrets",
];

/// Replaces each reference by the trimmed content of its file. Returns the problems of unreadable files by
/// key.
///
/// Services may share a settings file without the right to read each other's secrets. So a problem matters
/// only to the service that uses the key.
pub(crate) fn resolve_secret_files(root: &mut Value) -> BTreeMap<String, String> {
    let mut unread = BTreeMap::new();
    visit_secret_references(
        root,
        String::new(),
        &mut |key, path, value| match std::fs::read_to_string(path) {
            // Editors end a file with a line feed, which is not a part of the secret.
            Ok(text) => value.kind = ValueKind::String(text.trim().to_owned()),
            Err(error) => {
                unread.insert(key, format!("cannot read {path}: {error}"));
            }
        },
    );
    unread
}

/// Files that the settings name.
pub(crate) fn list_secret_files(root: &mut Value) -> Vec<PathBuf> {
    let mut found = Vec::new();
    visit_secret_references(root, String::new(), &mut |_, path, _| {
        found.push(PathBuf::from(path));
    });
    found
}

fn visit_secret_references(value: &mut Value, key: String, found: &mut impl FnMut(String, &str, &mut Value)) {
    let name = key.rsplit('.').next().unwrap_or_default();
    if SECRETS.contains(&name)
        && let Some(path) = file_of(value)
    {
        return found(key, &path, value);
    }
    if let ValueKind::Table(table) = &mut value.kind {
        for (name, inner) in table.iter_mut() {
            let key = if key.is_empty() {
                name.clone()
            } else {
                format!("{key}.{name}")
            };
            visit_secret_references(inner, key, found);
        }
    }
}

fn file_of(value: &Value) -> Option<String> {
    let ValueKind::Table(table) = &value.kind else {
        return None;
    };
    match (table.len(), &table.get("file")?.kind) {
        // Another key in the table makes it a table of some other shape.
        (1, ValueKind::String(path)) => Some(path.clone()),
        _ => None,
    }
}
