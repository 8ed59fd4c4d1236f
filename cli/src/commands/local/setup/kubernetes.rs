//! Secrets of the services for Kubernetes, from the setup and from new keys.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use bootstrap::settings;
use clap::Args;
use queue::NatsRole;
use secrecy::{ExposeSecret, SecretString};

use super::{
    super::{folder::ModelSection, print_error, print_line, service_keys::NewKeys},
    KnownSettings, print_result,
    store::SetupStore,
};
use crate::{secrets::generate_token, user_files::replace_file};

// File of the operator's token among the secrets.
const OPERATOR: &str = "operator.token";
// File of the key for `journeyman backup`.
const BACKUP: &str = "nats_backup.seed";

/// Write the Secrets of the services for Kubernetes, from the setup and with new keys between
/// services
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// File to write, readable by you alone; - prints the secrets
    #[arg(long, short, value_name = "FILE", default_value = "journeyman-secrets.yaml")]
    output: PathBuf,
    /// Namespace of the Secrets
    #[arg(long, value_name = "NAME", default_value = "journeyman", value_parser = parse_namespace)]
    namespace: String,
}

/// Parses a DNS label, the form that Kubernetes requires for a namespace.
fn parse_namespace(text: &str) -> Result<String, String> {
    let is_label = (1..=63).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-');
    match is_label {
        true => Ok(text.to_owned()),
        false => Err("must be lower-case letters, digits and dashes".to_owned()),
    }
}

/// Secret with its name and entries.
type SecretManifest = (&'static str, Vec<(&'static str, String)>);

pub(super) async fn write_secrets(asked: Arguments, store: &SetupStore) -> anyhow::Result<()> {
    let output = asked.output.as_path();
    let is_printed = output == Path::new("-");
    ensure!(
        is_printed || !output.exists(),
        "{} is there already, and new keys would shut out the services that have its keys: remove it first",
        output.display()
    );
    check_no_stored_keys(store)?;
    let known = KnownSettings::read(store)?;
    let ModelSection { model } = settings::load_process_settings(store.existing())?;
    let made = GeneratedKeys::new();
    let model_key = model.api_key.as_ref().map(|key| key.expose_secret().to_owned());
    let text = render_secrets_yaml(
        &asked.namespace,
        &build_secrets(&known, model_key.unwrap_or_default(), &made),
    );
    // The token is stored first, because the Secrets contain only its hash.
    let token = store.keep(OPERATOR, &made.token)?;
    if let Some(backup) = made
        .keys
        .services
        .iter()
        .find(|service| service.role == NatsRole::Backup)
    {
        store.keep(BACKUP, &backup.nkey_seed)?;
    }
    if is_printed {
        print_line(text.trim_end());
    } else {
        replace_file(output, text.as_bytes(), 0o600)
            .with_context(|| format!("cannot write {}", output.display()))?;
        print_result(&format!("secrets  {}: kubectl apply -f it", output.display()));
    }
    // With `-` the standard output contains the Secrets only, so that it can be piped to kubectl.
    let report = |line: &str| match is_printed {
        true => print_error(line),
        false => print_result(line),
    };
    report(&format!(
        "token    {}: the operator's, for `journeyman login URL --token-file`",
        token.display()
    ));
    made.public().iter().for_each(|line| report(line));
    Ok(())
}

/// Refuses a second set of keys: the stored ones belong to a cluster whose Secrets may be in use, and exist
/// nowhere else.
fn check_no_stored_keys(store: &SetupStore) -> anyhow::Result<()> {
    let stored = store.kept()?;
    let found = [OPERATOR, BACKUP]
        .into_iter()
        .find(|name| stored.iter().any(|stored| stored == name));
    if let Some(name) = found {
        bail!(
            "{} is there already, from the last `journeyman setup kubernetes`, and new keys would replace it: move \
             {OPERATOR} and {BACKUP} away first, or name another folder with --data",
            store.place(name).display()
        );
    }
    Ok(())
}

/// Values that are new in each call.
struct GeneratedKeys {
    keys: NewKeys,
    grant: grant::KeyPair,
    token: SecretString,
    token_sha256: String,
}

impl GeneratedKeys {
    fn new() -> Self {
        let (token, token_sha256) = generate_token();
        Self {
            keys: NewKeys::generate(),
            grant: grant::generate_key_pair(),
            token,
            token_sha256,
        }
    }

    /// Lines with public values for the settings.
    fn public(&self) -> Vec<String> {
        let (id, key) = (&self.grant.id, &self.grant.public_key);
        let mut lines = vec![
            format!(
                "public   settings: planner.grant_key_id = {id:?}; in executor.grant_keys, reporter.grant_keys"
            ),
            format!("         and egress.grant_keys: {id} = {key:?}"),
        ];
        let users = self.keys.public.iter();
        lines.extend(users.map(|user| format!("public   ConfigMap nats-users: {user}")));
        lines
    }

    /// Entries of one service for NATS and Redis.
    fn of(&self, name: &str) -> Vec<(&'static str, String)> {
        let services = self.keys.services.iter();
        let mut entries = Vec::new();
        for service in services.filter(|service| service.role.name() == name) {
            entries.push(("nats-nkey-seed", service.nkey_seed.expose_secret().to_owned()));
            let password = service.redis_password.as_ref();
            entries.extend(password.map(|password| ("redis-password", password.expose_secret().to_owned())));
        }
        entries
    }
}

/// Secrets of `k8s/secrets.example.yaml`; entries that are not set up are empty.
fn build_secrets(known: &KnownSettings, model_key: String, made: &GeneratedKeys) -> Vec<SecretManifest> {
    let github = |settings: &::github::Settings| {
        let account = settings.private_key.as_ref().or(settings.token.as_ref());
        account
            .map(|secret| secret.expose_secret().to_owned())
            .unwrap_or_default()
    };
    let jira = |settings: &::jira::Settings| settings.api_token.expose_secret().to_owned();
    let mut ingest = vec![
        (
            "github-webhook-secrets",
            known.ingest.github_webhook_secrets.join(","),
        ),
        (
            "jira-webhook-secrets",
            known.ingest.jira_webhook_secrets.join(","),
        ),
        ("api-token-operator-sha256", made.token_sha256.clone()),
        ("github-reader-private-key", github(&known.github_reader)),
        ("jira-reader-api-token", jira(&known.jira_reader)),
    ];
    ingest.extend(made.of("ingest"));
    let mut planner = vec![
        ("model-api-key", model_key),
        ("grant-key", made.grant.private_key.expose_secret().to_owned()),
    ];
    planner.extend(made.of("planner"));
    let mut reporter = vec![
        ("github-writer-private-key", github(&known.github_writer)),
        ("jira-writer-api-token", jira(&known.jira_writer)),
    ];
    reporter.extend(made.of("reporter"));
    vec![
        ("ingest-secrets", ingest),
        ("planner-secrets", planner),
        ("reporter-secrets", reporter),
        ("redis-acl", vec![("users.acl", made.keys.acl.clone())]),
        ("egress-secrets", Vec::new()),
    ]
}

/// YAML text. A JSON string is a valid double-quoted YAML string.
fn render_secrets_yaml(namespace: &str, secrets: &[SecretManifest]) -> String {
    let one = |(name, entries): &SecretManifest| {
        let mut text = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: {namespace}}}\nstringData:"
        );
        if entries.is_empty() {
            text.push_str(" {}");
        }
        for (key, value) in entries {
            // Writing to a `String` does not fail.
            let _ = write!(text, "\n  {key}: {}", serde_json::Value::from(value.trim_end()));
        }
        text + "\n"
    };
    secrets.iter().map(one).collect::<Vec<_>>().join("---\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of Secrets, each with the names of its entries.
    fn list_secret_names(text: &str) -> Vec<String> {
        let mut names = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("metadata: {name: ") {
                names.extend(rest.split(',').next().map(str::to_owned));
            } else if let Some(entry) = line.strip_prefix("  ") {
                names.extend(entry.split(':').next().map(|key| format!("  {key}")));
            }
        }
        names
    }

    #[test]
    fn secrets_match_example_with_setup_values() {
        let mut known = KnownSettings::default();
        known.github_reader.private_key = Some("-----BEGIN-----\nkey\n-----END-----\n".to_owned().into());
        known.jira_writer.api_token = "a \"token\"".to_owned().into();
        let made = GeneratedKeys::new();
        let text = render_secrets_yaml("journeyman", &build_secrets(&known, "model".to_owned(), &made));
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../k8s/secrets.example.yaml");
        let example = std::fs::read_to_string(example).unwrap();
        assert_eq!(list_secret_names(&text), list_secret_names(&example));
        for line in [
            r#"  github-reader-private-key: "-----BEGIN-----\nkey\n-----END-----""#,
            r#"  jira-writer-api-token: "a \"token\"""#,
            r#"  model-api-key: "model""#,
            r#"  github-writer-private-key: """#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(!text.contains(made.token.expose_secret()), "the API keeps a hash");
        for public in made.public() {
            assert!(
                !public.contains(made.grant.private_key.expose_secret()),
                "{public}"
            );
        }
    }

    #[tokio::test]
    async fn stored_keys_are_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for name in [OPERATOR, BACKUP] {
            let store = SetupStore::new(folder.path().join("journeyman.toml"), &folder.path().join(name));
            let path = store.keep(name, &"in use".to_owned().into()).unwrap();
            for output in [PathBuf::from("-"), folder.path().join("secrets.yaml")] {
                let asked = Arguments {
                    output: output.clone(),
                    namespace: "journeyman".to_owned(),
                };
                let refused = write_secrets(asked, &store).await.unwrap_err().to_string();
                assert!(refused.contains("is there already"), "{refused}");
                assert!(refused.contains(&path.display().to_string()), "{refused}");
                assert_eq!(std::fs::read_to_string(&path).unwrap(), "in use\n");
                assert!(!output.exists(), "{}", output.display());
            }
        }
    }

    #[test]
    fn a_namespace_is_a_label() {
        assert!(parse_namespace("journeyman-2").is_ok());
        for wrong in ["", "-a", "a-", "A", "a}", &"a".repeat(64)] {
            assert!(parse_namespace(wrong).is_err(), "{wrong}");
        }
    }
}
