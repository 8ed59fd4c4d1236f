//! Secrets of the services, from the setup and from new keys.

use std::fmt::Write as _;

use queue::NatsRole;
use secrecy::{ExposeSecret, SecretString};

use super::{
    super::{
        super::service_keys::{NewKeys, ServiceKeys},
        KnownSettings,
    },
    instances::{JiraInstance, list_secrets},
    quote_for_yaml,
};
use crate::secrets::generate_token;

/// Secret with its name and entries.
pub(super) type SecretManifest = (&'static str, Vec<(String, String)>);

/// Values that are new in each call.
pub(super) struct GeneratedKeys {
    keys: NewKeys,
    pub(super) grant: grant::KeyPair,
    /// API token of the operator.
    pub(super) token: SecretString,
    token_sha256: String,
}

impl GeneratedKeys {
    pub(super) fn new() -> Self {
        let (token, token_sha256) = generate_token();
        Self {
            keys: NewKeys::generate(),
            grant: grant::generate_key_pair(),
            token,
            token_sha256,
        }
    }

    /// Key for `journeyman backup`.
    pub(super) fn backup(&self) -> Option<&ServiceKeys> {
        self.keys
            .services
            .iter()
            .find(|service| service.role == NatsRole::Backup)
    }

    /// Public keys of the users of NATS, as `NAME=VALUE`.
    pub(super) fn nats_users(&self) -> &[String] {
        &self.keys.public
    }

    /// Lines with public values for the settings.
    pub(super) fn public(&self) -> Vec<String> {
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

/// Secrets of `k8s/secrets.example.yaml`, and those of named Jira sites; entries that are not set up are empty.
pub(super) fn build_secrets(
    known: &KnownSettings,
    model_key: String,
    made: &GeneratedKeys,
    instances: &[JiraInstance],
) -> Vec<SecretManifest> {
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
    let complete = |service: &str, entries: Vec<(&'static str, String)>| {
        let own = entries.into_iter().map(|(name, value)| (name.to_owned(), value));
        let of_sites = list_secrets(instances, service).into_iter();
        let of_sites = of_sites.map(|secret| (secret.entry, secret.value.expose_secret().to_owned()));
        own.chain(of_sites).collect()
    };
    vec![
        ("ingest-secrets", complete("ingest", ingest)),
        ("planner-secrets", complete("planner", planner)),
        ("reporter-secrets", complete("reporter", reporter)),
        ("redis-acl", vec![("users.acl".to_owned(), made.keys.acl.clone())]),
        ("egress-secrets", Vec::new()),
    ]
}

/// YAML text.
pub(super) fn render_secrets_yaml(namespace: &str, secrets: &[SecretManifest]) -> String {
    let one = |(name, entries): &SecretManifest| {
        let mut text = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: {namespace}}}\nstringData:"
        );
        if entries.is_empty() {
            text.push_str(" {}");
        }
        for (key, value) in entries {
            // Writing to a `String` does not fail.
            let _ = write!(text, "\n  {key}: {}", quote_for_yaml(value.trim_end()));
        }
        text + "\n"
    };
    secrets.iter().map(one).collect::<Vec<_>>().join("---\n")
}

#[cfg(test)]
mod tests {
    use super::{super::instances::tests::build_instance, *};

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
    fn named_site_adds_entries_of_its_services() {
        let sites = [build_instance("dc")];
        let made = GeneratedKeys::new();
        let secrets = build_secrets(&KnownSettings::default(), String::new(), &made, &sites);
        for (service, value, held) in [
            ("ingest-secrets", "reading token", true),
            ("ingest-secrets", "signing secret", true),
            ("ingest-secrets", "writing token", false),
            ("reporter-secrets", "writing token", true),
            ("reporter-secrets", "reading token", false),
            ("planner-secrets", "reading token", false),
        ] {
            let (_, entries) = secrets.iter().find(|(name, _)| *name == service).unwrap();
            let found = entries.iter().any(|(_, entry)| entry == value);
            assert_eq!(found, held, "{service}: {value}");
        }
    }

    #[test]
    fn secrets_match_example_with_setup_values() {
        let mut known = KnownSettings::default();
        known.github_reader.private_key = Some("-----BEGIN-----\nkey\n-----END-----\n".to_owned().into());
        known.jira_writer.api_token = "a \"token\"".to_owned().into();
        let made = GeneratedKeys::new();
        let secrets = build_secrets(&known, "model".to_owned(), &made, &[]);
        let text = render_secrets_yaml("journeyman", &secrets);
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
}
