//! An overlay as an operator writes it: settings, rules, keys and secrets for the stand-ins.

use std::path::{Component, Path};

use anyhow::Context;
use e2e::{Outside, WEBHOOK_SECRET};
use journeyman::credentials;
use queue::{Identity, Role};
use ring::digest::{SHA256, digest};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use testkit::{fixture, github, jira, model, tls::Authority};

/// The settings and Secrets of one cluster.
pub(crate) struct Overlay {
    /// The operator's token for the API.
    pub(crate) token: SecretString,
    authority: String,
    journeyman: String,
    executor: String,
    nats_users: Vec<String>,
    secrets: Vec<Value>,
}

impl Overlay {
    /// Makes keys and settings for the stand-ins.
    pub(crate) fn new(outside: &Outside, authority: &Authority) -> Self {
        let grant = grant::generate();
        let token = SecretString::from(credentials::new_password().0);
        let identities = Role::ALL.map(|role| (role, Identity::generate()));
        let nats_users = identities.iter().map(|(role, identity)| {
            let name = role.name().to_uppercase();
            format!("NATS_{name}={}", identity.public_key)
        });
        let users = lease::User::ALL.map(|user| (user, credentials::new_password()));
        let password = |wanted: lease::User| {
            let found = users.iter().find(|(user, _)| *user == wanted);
            found.map_or("", |(_, (password, _))| password.as_str())
        };
        let seed = |wanted| {
            let found = identities.iter().find(|(role, _)| *role == wanted);
            found.map_or("", |(_, identity)| identity.seed.expose_secret())
        };
        let secrets = vec![
            secret(
                "ingest",
                &json!({
                    "github-webhook-secrets": WEBHOOK_SECRET,
                    "jira-webhook-secrets": WEBHOOK_SECRET,
                    "api-token-operator-sha256": sha256(token.expose_secret()),
                    "github-reader-private-key": github::APP_PRIVATE_KEY,
                    "jira-reader-api-token": jira::READER_API_TOKEN,
                    "nats-nkey-seed": seed(Role::Ingest),
                    "redis-password": password(lease::User::Ingest),
                }),
            ),
            secret(
                "planner",
                &json!({
                    "model-api-key": model::MODEL_API_KEY,
                    "grant-key": grant.private_key.expose_secret(),
                    "nats-nkey-seed": seed(Role::Planner),
                    "redis-password": password(lease::User::Planner),
                }),
            ),
            secret(
                "reporter",
                &json!({
                    "github-writer-private-key": github::APP_PRIVATE_KEY,
                    "jira-writer-api-token": jira::WRITER_API_TOKEN,
                    "nats-nkey-seed": seed(Role::Reporter),
                    "redis-password": password(lease::User::Reporter),
                }),
            ),
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "redis-acl", "namespace": "journeyman"},
                "stringData": {"users.acl": lease::acl(users.iter().map(|(user, (_, sha256))| (*user, sha256.as_str())))},
            }),
        ];
        Self {
            token,
            authority: authority.pem(),
            journeyman: journeyman_settings(outside, &grant.id, &grant.public_key),
            executor: executor_settings(&grant.id, &grant.public_key),
            nats_users: nats_users.collect(),
            secrets,
        }
    }

    /// Writes it to a folder over a kustomization.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn write(&self, over: &Path, folder: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(folder)?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        let up = folder
            .components()
            .filter(|part| matches!(part, Component::Normal(_)));
        let root = "../".repeat(up.count());
        let (owner, name) = fixture::REPOSITORY.split_once('/').context("owner/name")?;
        let project = fixture::PROJECT;
        write("journeyman.toml", &self.journeyman)?;
        write("executor.toml", &self.executor)?;
        write("authorities.pem", &self.authority)?;
        write(
            "shop.yaml",
            &format!(
                "repo: {{owner: {owner}, name: {name}}}\njira: {{project_key: {project}}}\nagent: {{review_status: In Review}}\n"
            ),
        )?;
        write(
            "secrets.json",
            &json!({"apiVersion": "v1", "kind": "List", "items": self.secrets}).to_string(),
        )?;
        let kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": "journeyman",
            "resources": [format!("{root}{}", over.display())],
            "components": [format!("{root}k8s/components/private-authority")],
            "configMapGenerator": [
                {"name": "journeyman-settings", "behavior": "replace", "files": ["journeyman.toml"]},
                {"name": "executor-settings", "behavior": "replace", "files": ["journeyman.toml=executor.toml"]},
                {"name": "nats-users", "behavior": "merge", "literals": self.nats_users},
                {"name": "journeyman-rules", "behavior": "replace", "files": ["shop.yaml"], "options": {"disableNameSuffixHash": true}},
                {"name": "authorities", "files": ["authorities.pem"]},
            ],
        });
        write("kustomization.yaml", &kustomization.to_string())
    }
}

fn secret(service: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("{service}-secrets"), "namespace": "journeyman"},
        "stringData": data,
    })
}

fn sha256(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The base's settings with everything that it marks for replacement replaced.
fn journeyman_settings(outside: &Outside, key_id: &str, public_key: &str) -> String {
    let base = include_str!("../../../../k8s/base/settings/journeyman.toml");
    let github = |section: &str, app: u64| {
        format!(
            "[{section}]\napi_url = \"{}\"\ngit_url = \"{}\"\napp_id = {app}\n",
            outside.github_api, outside.github_git
        )
    };
    let jira = |section: &str, email: &str| {
        format!(
            "[{section}]\nbase_url = \"{}\"\nemail = \"{email}\"\n",
            outside.jira
        )
    };
    let own = format!(
        "own_accounts = [\"{}\", \"{}\"]\n",
        jira::WRITER_NAME,
        github::WRITER_LOGIN
    );
    let sections = [
        ("github_reader", github("github_reader", github::READER_APP_ID)),
        ("github_writer", github("github_writer", github::WRITER_APP_ID)),
        ("jira_reader", jira("jira_reader", jira::READER_EMAIL)),
        ("jira_writer", jira("jira_writer", jira::WRITER_EMAIL)),
        (
            "model",
            format!(
                "[model]\ndialect = \"anthropic\"\nname = \"scripted-model\"\nbase_url = \"{}\"\n",
                outside.model
            ),
        ),
    ];
    let mut text = base
        .replace(
            "jira_trigger_group = \"journeyman-users\"",
            "jira_trigger_group = \"*\"",
        )
        .replace("[ingest]\n", &format!("[ingest]\nchecks_settle_s = 0\n{own}"))
        .replace("replace with the public key", public_key)
        .replace("grant-1", key_id);
    for (name, section) in sections {
        text = with_section(&text, name, &section);
    }
    text
}

fn executor_settings(key_id: &str, public_key: &str) -> String {
    include_str!("../../../../k8s/base/settings/executor.toml")
        .replace("replace with the public key", public_key)
        .replace("grant-1", key_id)
}

/// The text with a section, from its header to the next one, replaced.
fn with_section(text: &str, name: &str, section: &str) -> String {
    let header = format!("[{name}]\n");
    let Some((before, rest)) = text.split_once(&header) else {
        return format!("{text}\n{section}");
    };
    let after = rest.find("\n[").map_or("", |at| &rest[at..]);
    format!("{before}{section}{after}")
}
