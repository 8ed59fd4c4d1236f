//! Secrets that a settings file leaves in files of their own: `private_key = { file = "secrets/reader.pem" }`.

use std::{collections::BTreeMap, path::PathBuf};

use config::{Value, ValueKind};

/// The keys that may name a file. Others may hold a table of any shape.
const SECRETS: [&str; 8] = [
    "private_key",
    "token",
    "api_token",
    "api_key",
    "auth_token",
    "client_secret",
    "github_webhook_secrets",
    "jira_webhook_secrets",
];

/// Puts the trimmed content of each file in its place. A service that reads one file with others need not be allowed to read
/// their secrets, so why one cannot be read is given back by its key and matters to whoever asks for it.
pub(crate) fn resolve(root: &mut Value) -> BTreeMap<String, String> {
    let mut unread = BTreeMap::new();
    visit(
        root,
        String::new(),
        &mut |key, path, value| match std::fs::read_to_string(path) {
            Ok(text) => value.kind = ValueKind::String(text.trim().to_owned()),
            Err(error) => {
                unread.insert(key, format!("cannot read {path}: {error}"));
            }
        },
    );
    unread
}

/// The files that are named.
pub(crate) fn named(root: &mut Value) -> Vec<PathBuf> {
    let mut found = Vec::new();
    visit(root, String::new(), &mut |_, path, _| {
        found.push(PathBuf::from(path));
    });
    found
}

fn visit(value: &mut Value, key: String, found: &mut impl FnMut(String, &str, &mut Value)) {
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
            visit(inner, key, found);
        }
    }
}

fn file_of(value: &Value) -> Option<String> {
    let ValueKind::Table(table) = &value.kind else {
        return None;
    };
    match (table.len(), &table.get("file")?.kind) {
        (1, ValueKind::String(path)) => Some(path.clone()),
        _ => None,
    }
}
