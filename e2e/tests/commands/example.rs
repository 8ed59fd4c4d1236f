//! `journeyman.example.toml` names every setting.

use std::fs;

use crate::find_repository_root;

/// Source files that declare settings.
const SOURCES: &[&str] = &[
    "services/console/src/config.rs",
    "services/ingest/src/api/auth.rs",
    "services/ingest/src/config.rs",
    "services/planner/src/config.rs",
    "services/planner/src/config/model.rs",
    "services/executor/src/config.rs",
    "services/reporter/src/config.rs",
    "services/reporter/src/signing/key.rs",
    "services/reporter/src/pull_request_command/mod.rs",
    "services/egress/src/config.rs",
    "crates/bootstrap/src/telemetry.rs",
    "crates/bootstrap/src/tls/mod.rs",
    "crates/bootstrap/src/rules/mod.rs",
    "crates/github/src/settings.rs",
    "crates/lease/src/settings.rs",
    "crates/mcp/src/settings.rs",
    "crates/queue/src/settings.rs",
    "crates/webproxy/src/settings.rs",
];

/// Returns the fields of the structs that are read from settings.
fn list_settings_fields(source: &str) -> Vec<&str> {
    let derived = source.split("#[derive(").skip(1);
    let is_read = |text: &&str| {
        let (traits, rest) = text.split_once(')').unwrap_or_default();
        traits.contains("Deserialize") && rest.split('{').next().unwrap_or_default().contains("struct ")
    };
    derived.filter(is_read).flat_map(list_struct_fields).collect()
}

/// Returns the public fields of a struct without those that are never read.
fn list_struct_fields(text: &str) -> Vec<&str> {
    let (_, body) = text.split_once('{').unwrap_or_default();
    let body = body.split("\n}").next().unwrap_or_default();
    let (mut fields, mut is_skipped) = (Vec::new(), false);
    for line in body.lines().map(str::trim_start) {
        let field = line
            .strip_prefix("pub(crate) ")
            .or_else(|| line.strip_prefix("pub "));
        if let Some((name, _)) = field.and_then(|field| field.split_once(':')) {
            fields.extend(Some(name).filter(|_| !is_skipped));
            is_skipped = false;
        }
        is_skipped |= line.starts_with("#[serde(skip");
    }
    fields
}

#[test]
fn the_example_names_every_setting() {
    let root = find_repository_root();
    let example = fs::read_to_string(root.join("journeyman.example.toml")).unwrap();
    let words: Vec<&str> = example
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .collect();
    let mut missing = Vec::new();
    for source in SOURCES {
        let text = fs::read_to_string(root.join(source)).unwrap();
        let keys = list_settings_fields(&text);
        assert!(!keys.is_empty(), "{source} declares no setting");
        missing.extend(
            keys.into_iter()
                .filter(|key| !words.contains(key))
                .map(|key| format!("{source}: {key}")),
        );
    }
    assert!(missing.is_empty(), "journeyman.example.toml lacks {missing:#?}");
}
