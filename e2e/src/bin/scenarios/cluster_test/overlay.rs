//! Overlay as an operator writes it: settings, rules, keys and secrets for the stand-ins.

use std::path::{Component, Path};

use anyhow::Context;
use data_encoding::HEXLOWER;
use e2e::{VendorAddresses, WEBHOOK_SECRET};
use journeyman::secrets;
use queue::{NatsIdentity, NatsRole};
use ring::digest::{SHA256, digest};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use testkit::{fixture, github, jira, model, tls::TestAuthority};

use crate::cluster_test::names::{INSIDE, OUTSIDE, POD, build_vendor_addresses, list_vendor_hosts};

/// Settings and Secrets of one cluster.
pub(crate) struct ClusterOverlay {
    authority: String,
    journeyman: String,
    executor: String,
    nats_users: Vec<String>,
    secrets: Vec<Value>,
}

impl ClusterOverlay {
    /// Generates keys and settings for the stand-ins.
    ///
    /// # Errors
    /// When a certificate cannot be made.
    pub(crate) fn new(authority: &TestAuthority) -> anyhow::Result<Self> {
        let outside = &build_vendor_addresses();
        let grant = grant::generate_key_pair();
        let token = SecretString::from(secrets::generate_password().0);
        let identities = NatsRole::ALL.map(|role| (role, NatsIdentity::generate()));
        let nats_users = identities.iter().map(|(role, identity)| {
            let name = role.name().to_uppercase();
            format!("NATS_{name}={}", identity.public_key)
        });
        let users = lease::RedisUser::ALL.map(|user| (user, secrets::generate_password()));
        let password = |wanted: lease::RedisUser| {
            let found = users.iter().find(|(user, _)| *user == wanted);
            found.map_or("", |(_, (password, _))| password.as_str())
        };
        let seed = |wanted| {
            let found = identities.iter().find(|(role, _)| *role == wanted);
            found.map_or("", |(_, identity)| identity.seed.expose_secret())
        };
        let secrets = vec![
            render_service_secret(
                "ingest",
                &json!({
                    "github-webhook-secrets": WEBHOOK_SECRET,
                    "jira-webhook-secrets": WEBHOOK_SECRET,
                    "api-token-operator-sha256": hash_sha256(token.expose_secret()),
                    "github-reader-private-key": github::APP_PRIVATE_KEY,
                    "jira-reader-api-token": jira::READER_API_TOKEN,
                    "nats-nkey-seed": seed(NatsRole::Ingest),
                    "redis-password": password(lease::RedisUser::Ingest),
                }),
            ),
            render_service_secret(
                "planner",
                &json!({
                    "model-api-key": model::MODEL_API_KEY,
                    "grant-key": grant.private_key.expose_secret(),
                    "nats-nkey-seed": seed(NatsRole::Planner),
                    "redis-password": password(lease::RedisUser::Planner),
                }),
            ),
            render_service_secret(
                "reporter",
                &json!({
                    "github-writer-private-key": github::APP_PRIVATE_KEY,
                    "jira-writer-api-token": jira::WRITER_API_TOKEN,
                    "nats-nkey-seed": seed(NatsRole::Reporter),
                    "redis-password": password(lease::RedisUser::Reporter),
                }),
            ),
            render_named_secret(
                INSIDE,
                "redis-acl",
                &json!({"users.acl": lease::render_acl(users.iter().map(|(user, (_, sha256))| (*user, sha256.as_str())))}),
            ),
            stand_ins(authority, &token)?,
        ];
        Ok(Self {
            authority: authority.pem(),
            journeyman: journeyman_settings(outside, &grant.id, &grant.public_key),
            executor: executor_settings(&grant.id, &grant.public_key),
            nats_users: nats_users.collect(),
            secrets,
        })
    }

    /// Writes the overlay into a folder: the patch of the kustomization, the stand-ins, namespaces and
    /// Secrets.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn write(&self, over: &Path, stand_ins_image: &str, folder: &Path) -> anyhow::Result<()> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(folder))
                .and_then(|()| std::fs::write(&path, text))
                .with_context(|| format!("cannot write {}", path.display()))
        };
        let spaces = [INSIDE, OUTSIDE]
            .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        write("namespaces.json", &list_object(&spaces))?;
        write("secrets.json", &list_object(&self.secrets))?;
        write("outside/outside.yaml", include_str!("outside.yaml"))?;
        write(
            "outside/kustomization.yaml",
            &outside_kustomization(stand_ins_image).to_string(),
        )?;
        let (owner, name) = fixture::REPOSITORY.split_once('/').context("owner/name")?;
        let project = fixture::PROJECT;
        write("inside/journeyman.toml", &self.journeyman)?;
        write("inside/executor.toml", &self.executor)?;
        write("inside/authorities.pem", &self.authority)?;
        write("inside/way-out.yaml", include_str!("way_out.yaml"))?;
        write(
            "inside/shop.yaml",
            &format!(
                "repo: {{owner: {owner}, name: {name}}}\njira: {{project_key: {project}}}\nagent: {{review_status: In Review}}\n"
            ),
        )?;
        // Kustomize needs paths relative to the overlay's folder.
        let up = folder
            .components()
            .filter(|part| matches!(part, Component::Normal(_)));
        let root = "../".repeat(up.count() + 1);
        write(
            "inside/kustomization.yaml",
            &self.inside_kustomization(&root, over).to_string(),
        )
    }

    fn inside_kustomization(&self, root: &str, over: &Path) -> Value {
        // The stand-ins for GitHub, Jira and the model are pods with private addresses and certificates.
        let components = ["private-authority", "private-servers"];
        let components = components.map(|name| format!("{root}k8s/components/{name}"));
        json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": INSIDE,
            "labels": [{"pairs": {"app.kubernetes.io/instance": "cluster-test"}, "includeTemplates": true}],
            "resources": [format!("{root}{}", over.display()), "way-out.yaml"],
            "components": components,
            "configMapGenerator": [
                {"name": "journeyman-settings", "behavior": "replace", "files": ["journeyman.toml"]},
                {"name": "executor-settings", "behavior": "replace", "files": ["journeyman.toml=executor.toml"]},
                {"name": "nats-users", "behavior": "merge", "literals": self.nats_users},
                {"name": "journeyman-rules", "behavior": "replace", "files": ["shop.yaml"], "options": {"disableNameSuffixHash": true}},
                {"name": "authorities", "files": ["authorities.pem"]},
            ],
        })
    }
}

fn outside_kustomization(image: &str) -> Value {
    let (name, tag) = image.rsplit_once(':').unwrap_or((image, "latest"));
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": OUTSIDE,
        "resources": ["outside.yaml"],
        "images": [{"name": "journeyman/stand-ins", "newName": name, "newTag": tag}],
    })
}

fn list_object(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// Builds the Secret of the stand-ins: a certificate for each name, and the token for the API.
fn stand_ins(authority: &TestAuthority, token: &SecretString) -> anyhow::Result<Value> {
    let mut files = json!({"token": token.expose_secret()});
    for name in list_vendor_hosts() {
        let issued = authority.issue(&name)?;
        files[format!("{name}.pem")] = issued.certificate.into();
        files[format!("{name}.key")] = issued.key.into();
    }
    Ok(render_named_secret(OUTSIDE, POD, &files))
}

fn render_service_secret(service: &str, data: &Value) -> Value {
    render_named_secret(INSIDE, &format!("{service}-secrets"), data)
}

fn render_named_secret(namespace: &str, name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": data,
    })
}

fn hash_sha256(text: &str) -> String {
    HEXLOWER.encode(digest(&SHA256, text.as_bytes()).as_ref())
}

/// Renders the base's settings with all marked values replaced.
fn journeyman_settings(outside: &VendorAddresses, key_id: &str, public_key: &str) -> String {
    let base = include_str!("../../../../../k8s/base/settings/journeyman.toml");
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
    include_str!("../../../../../k8s/base/settings/executor.toml")
        .replace("replace with the public key", public_key)
        .replace("grant-1", key_id)
}

/// Replaces a section from its header to the next one, or appends it.
fn with_section(text: &str, name: &str, section: &str) -> String {
    let header = format!("[{name}]\n");
    let Some((before, rest)) = text.split_once(&header) else {
        return format!("{text}\n{section}");
    };
    let after = rest.find("\n[").map_or("", |at| &rest[at..]);
    format!("{before}{section}{after}")
}
