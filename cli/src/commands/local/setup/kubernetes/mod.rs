//! Deployment on Kubernetes from the setup: Secrets with new keys, and a kustomize overlay or values for Helm.

mod instances;
mod overlay;
mod rules;
mod secrets;
mod settings;
mod values;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use bootstrap::settings::load_process_settings;
use clap::Args;
use secrecy::ExposeSecret;

use self::{
    instances::{JiraInstance, SERVICES_OF_SITES, list_connections, list_secrets, read_jira_instances},
    overlay::{ClusterImages, ClusterOverlay},
    rules::ClusterRules,
    secrets::{GeneratedKeys, build_secrets, render_secrets_yaml},
    settings::ClusterSettings,
};
use super::{
    super::{
        folder::{ConfiguredModel, ModelSection},
        print_error, print_line,
    },
    KnownSettings, is_web_address, print_result,
    store::SetupStore,
};
use crate::user_files::replace_file;

// File of the operator's token among the secrets.
const OPERATOR: &str = "operator.token";
// File of the key for `journeyman backup`.
const BACKUP: &str = "nats_backup.seed";
// Arguments with a place for a deployment. The other files contain keys alone.
const DEPLOYMENT: &str = "deployment";
// Mode of a file for this user alone, and of one with public values.
const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// Write the Secrets of the services for Kubernetes, from the setup and with new keys between
/// services; with --overlay or --values also everything else that kubectl or Helm applies
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// File to write, readable by you alone; - prints the secrets
    #[arg(
        long,
        short,
        value_name = "FILE",
        default_value = "journeyman-secrets.yaml",
        conflicts_with = "overlay"
    )]
    output: PathBuf,
    /// Namespace of the Secrets
    #[arg(long, value_name = "NAME", default_value = "journeyman", value_parser = parse_namespace)]
    namespace: String,
    /// Folder for a complete kustomize overlay with manifests, settings, rules and Secrets; then run kubectl apply -k
    #[arg(long, value_name = "DIR", group = DEPLOYMENT)]
    overlay: Option<PathBuf>,
    /// One replica of everything, for a cluster of one node
    #[arg(long, requires = "overlay")]
    one_node: bool,
    /// File for the values of the Helm chart, with images, settings, rules and public keys
    #[arg(long, value_name = "FILE", conflicts_with = "overlay", group = DEPLOYMENT)]
    values: Option<PathBuf>,
    /// Registry of the images, e.g. registry.acme.example [default: names without a registry]
    #[arg(long, value_name = "REGISTRY", requires = DEPLOYMENT, value_parser = parse_registry)]
    registry: Option<String>,
    /// Tag of the images
    #[arg(long, value_name = "TAG", default_value = env!("CARGO_PKG_VERSION"), requires = DEPLOYMENT)]
    tag: String,
    /// Address of the console, for the links on tickets and pull requests [default: that of the settings]
    #[arg(long, value_name = "URL", requires = DEPLOYMENT, value_parser = parse_console_url)]
    console_url: Option<String>,
}

impl Arguments {
    /// File of the Secrets; `None` when they are printed.
    fn secrets_file(&self) -> Option<PathBuf> {
        match &self.overlay {
            Some(folder) => Some(folder.join(overlay::SECRETS)),
            None => Some(self.output.clone()).filter(|output| output != Path::new("-")),
        }
    }
}

/// Parses a DNS label, the form that Kubernetes requires for a namespace.
fn parse_namespace(text: &str) -> Result<String, String> {
    let is_label = (1..=63).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-');
    if is_label {
        Ok(text.to_owned())
    } else {
        Err("must be lower-case letters, digits and dashes".to_owned())
    }
}

fn parse_console_url(text: &str) -> Result<String, String> {
    if is_web_address(text) {
        Ok(text.to_owned())
    } else {
        Err("must be an address such as https://journeyman.acme.example".to_owned())
    }
}

/// Parses the start of an image's name, which has no scheme.
fn parse_registry(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains("://") || text.contains(char::is_whitespace) {
        Err("must be a name such as registry.acme.example, without https://".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// File of a deployment, before it is written.
struct DeploymentFile {
    path: PathBuf,
    text: String,
    mode: u32,
}

pub(super) async fn set_up_kubernetes(asked: Arguments, store: &SetupStore) -> anyhow::Result<()> {
    let secrets_file = asked.secrets_file();
    if let Some(file) = &secrets_file {
        check_no_secrets(file)?;
    }
    check_no_stored_keys(store)?;
    let known = KnownSettings::read(store)?;
    let ModelSection { model } = load_process_settings(store.existing())?;
    let instances = read_jira_instances(store)?;
    let made = GeneratedKeys::new();
    let model_key = model.api_key.as_ref().or(model.auth_token.as_ref());
    let model_key = model_key.map(|key| key.expose_secret().to_owned());
    let secrets = render_secrets_yaml(
        &asked.namespace,
        &build_secrets(&known, model_key.unwrap_or_default(), &made, &instances),
    );
    // With `-` the standard output contains the Secrets only, so that it can be piped to kubectl.
    let report = |line: &str| match &secrets_file {
        Some(_) => print_result(line),
        None => print_error(line),
    };
    // Everything is rendered before the keys are stored, so that a problem leaves nothing behind.
    let deployment = match (&asked.overlay, &asked.values) {
        (None, None) => None,
        (..) => Some(ClusterDeployment::build(
            &asked, &known, &model, &instances, &made, store,
        )?),
    };
    let files = deployment.iter().flat_map(|deployment| &deployment.files);
    files
        .map(|file| &file.path)
        .try_for_each(|path| check_absence(path))?;
    // The token is stored first, because the Secrets contain only its hash.
    let token = store.keep(OPERATOR, &made.token)?;
    if let Some(backup) = made.backup() {
        store.keep(BACKUP, &backup.nkey_seed)?;
    }
    match &secrets_file {
        Some(file) => write_file(file, &secrets, PRIVATE)?,
        None => print_line(secrets.trim_end()),
    }
    if let (Some(file), None) = (&secrets_file, &asked.overlay) {
        report(&format!("secrets  {}: kubectl apply -f it", file.display()));
    }
    report(&format!(
        "token    {}: the operator's, for `journeyman login URL --token-file`",
        token.display()
    ));
    match deployment {
        Some(deployment) => {
            for file in &deployment.files {
                write_file(&file.path, &file.text, file.mode)?;
            }
            deployment.notes.iter().for_each(|line| report(line));
        }
        None => {
            made.public().iter().for_each(|line| report(line));
            for service in SERVICES_OF_SITES {
                for secret in list_secrets(&instances, service) {
                    let (name, path) = (secret.variable(), secret.path());
                    report(&format!("variable {service}: {name}={path}"));
                }
            }
        }
    }
    Ok(())
}

/// Writes a file below folders that are created if missing.
fn write_file(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| replace_file(path, text.as_bytes(), mode))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Text as a YAML string. Every JSON string is a valid double-quoted one.
fn quote_for_yaml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Refuses a file of Secrets that exists: services may use its keys.
fn check_no_secrets(file: &Path) -> anyhow::Result<()> {
    ensure!(
        !file.exists(),
        "{} is there already, and new keys would shut out the services that have its keys: remove it first",
        file.display()
    );
    Ok(())
}

/// Refuses a file that exists. The folder of an overlay may be that of the settings, or a repository of the user.
fn check_absence(path: &Path) -> anyhow::Result<()> {
    ensure!(
        !path.exists(),
        "{} is there already and may have changes of yours: name another place, or remove it first",
        path.display()
    );
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

/// Files of a deployment apart from the Secrets, with lines for the user.
struct ClusterDeployment {
    files: Vec<DeploymentFile>,
    notes: Vec<String>,
}

impl ClusterDeployment {
    fn build(
        asked: &Arguments,
        known: &KnownSettings,
        model: &ConfiguredModel,
        instances: &[JiraInstance],
        made: &GeneratedKeys,
        store: &SetupStore,
    ) -> anyhow::Result<Self> {
        check_completeness(known, model, instances)?;
        let console = asked.console_url.as_deref();
        let settings = ClusterSettings::build(known, model, &made.grant, console, instances)?;
        let rules = ClusterRules::read(&known.rules.dir, &list_connections(instances))?;
        let tokens = overlay::list_token_patches(known, model);
        let images = ClusterImages {
            registry: asked.registry.as_deref(),
            tag: &asked.tag,
        };
        let (files, mut notes) = match (&asked.overlay, &asked.values) {
            (Some(folder), _) => {
                let overlay = ClusterOverlay {
                    namespace: &asked.namespace,
                    is_one_node: asked.one_node,
                    images,
                    nats_users: made.nats_users(),
                    settings: &settings,
                    rules: &rules,
                    tokens: &tokens,
                    instances,
                };
                let shown = folder.display();
                let next = format!("overlay  {shown}: kubectl apply -k {shown}");
                (overlay.files(folder), vec![next])
            }
            (None, values) => {
                if let Some(token) = tokens.first() {
                    bail!(
                        "{}: the chart takes no such token; write an overlay with --overlay DIR",
                        token.setting()
                    );
                }
                let path = values.clone().unwrap_or_default();
                let text = values::render_values(images, made.nats_users(), &settings, &rules, instances);
                let next = format!(
                    "values   {}: helm install journeyman charts/journeyman --namespace {} --values {}",
                    path.display(),
                    asked.namespace,
                    path.display()
                );
                let mode = PUBLIC;
                (vec![DeploymentFile { path, text, mode }], vec![next])
            }
        };
        notes.push(format!("images   {}", images.describe()));
        let sites = instances.iter();
        notes.extend(sites.map(|site| format!("jira     {} at {}", site.name, site.reader.base_url)));
        notes.extend(rules.describe());
        let text = store.existing().map(std::fs::read_to_string).transpose();
        let left =
            settings::list_remaining_keys(&text.context("cannot read the settings")?.unwrap_or_default());
        if !left.is_empty() {
            notes.push(format!(
                "left     {}: add those that the cluster needs to its settings",
                left.join(", ")
            ));
        }
        if model.dialect.as_deref() == Some("bedrock") && model.api_key.is_none() {
            notes.push("model    the planner needs AWS credentials: see `journeyman docs models`".to_owned());
        }
        Ok(Self { files, notes })
    }
}

/// True for a model whose key the settings lack. Bedrock uses AWS credentials, and a private server may need no key.
fn is_without_needed_key(model: &ConfiguredModel) -> bool {
    let needs_key = match model.dialect.as_deref() {
        Some("bedrock") => false,
        Some("openai" | "openai-responses") => model.base_url.is_none(),
        Some(_) | None => true,
    };
    needs_key && model.api_key.is_none() && model.auth_token.is_none()
}

/// Refuses a setup with which the services would not start, or would refuse every request.
fn check_completeness(
    known: &KnownSettings,
    model: &ConfiguredModel,
    instances: &[JiraInstance],
) -> anyhow::Result<()> {
    let missing = if known.github_reader.is_without_account() || known.github_writer.is_without_account() {
        Some(("the accounts of GitHub are missing", "journeyman setup github"))
    } else if known.jira_reader.is_empty() != known.jira_writer.is_empty() {
        Some(("one of the accounts of Jira is missing", "journeyman setup jira"))
    } else if model.name.is_none() {
        Some(("the model is missing", "journeyman setup model"))
    } else if is_without_needed_key(model) {
        Some(("the key of the model is missing", "journeyman setup model"))
    } else if (!known.jira_reader.is_empty() || !instances.is_empty())
        && known.ingest.jira_trigger_group.trim().is_empty()
        && known.ingest.jira_trigger_role.trim().is_empty()
    {
        Some((
            "nobody may ask for work on Jira",
            "journeyman setup jira --requesters GROUP",
        ))
    } else {
        None
    };
    match missing {
        Some((problem, command)) => bail!("{problem}: run `{command}` first"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

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
                    overlay: None,
                    one_node: false,
                    values: None,
                    registry: None,
                    tag: "0.1.0".to_owned(),
                    console_url: None,
                };
                let refused = set_up_kubernetes(asked, &store).await.unwrap_err().to_string();
                assert!(refused.contains("is there already"), "{refused}");
                assert!(refused.contains(&path.display().to_string()), "{refused}");
                assert_eq!(std::fs::read_to_string(&path).unwrap(), "in use\n");
                assert!(!output.exists(), "{}", output.display());
            }
        }
    }

    #[test]
    fn image_flags_require_place_of_deployment() {
        let parse = |more: &[&str]| {
            let line = [&["journeyman", "setup", "kubernetes"][..], more].concat();
            crate::Arguments::command().try_get_matches_from(line)
        };
        for flag in [
            ["--registry", "registry.acme.example"],
            ["--tag", "1.2"],
            ["--console-url", "https://jm.acme.example"],
        ] {
            assert!(parse(&flag).is_err(), "{flag:?}");
            for place in ["--overlay", "--values"] {
                let line = [&flag[..], &[place, "x"]].concat();
                assert!(parse(&line).is_ok(), "{line:?}");
            }
        }
        assert!(parse(&[]).is_ok());
        assert!(parse(&["--overlay", "x", "--values", "y"]).is_err());
    }

    #[test]
    fn existing_file_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journeyman.toml");
        assert!(check_absence(&path).is_ok());
        std::fs::write(&path, "[planner]\nslots = 3\n").unwrap();
        let refused = check_absence(&path).unwrap_err().to_string();
        assert!(refused.contains("journeyman.toml is there already"), "{refused}");
    }

    #[test]
    fn missing_model_key_is_found() {
        let build_model = |dialect: Option<&str>, base_url: Option<&str>| ConfiguredModel {
            dialect: dialect.map(str::to_owned),
            base_url: base_url.map(str::to_owned),
            ..ConfiguredModel::default()
        };
        for (dialect, base_url, is_missing) in [
            (None, None, true),
            (Some("anthropic"), Some("https://models.acme.example"), true),
            (Some("openai"), None, true),
            (Some("openai"), Some("https://models.acme.example"), false),
            (Some("openai-responses"), None, true),
            (
                Some("openai-responses"),
                Some("https://models.acme.example"),
                false,
            ),
            (Some("bedrock"), None, false),
        ] {
            let mut model = build_model(dialect, base_url);
            assert_eq!(
                is_without_needed_key(&model),
                is_missing,
                "{dialect:?} {base_url:?}"
            );
            model.api_key = Some("k".to_owned().into());
            assert!(!is_without_needed_key(&model));
        }
    }

    #[test]
    fn cluster_addresses_have_their_form() {
        assert!(parse_console_url("https://jm.acme.example").is_ok());
        for wrong in ["", "jm.acme.example", "ftp://jm.acme.example"] {
            assert!(parse_console_url(wrong).is_err(), "{wrong}");
        }
        assert!(parse_registry("registry.acme.example:5000/team").is_ok());
        for wrong in ["", "https://registry.acme.example", "a b"] {
            assert!(parse_registry(wrong).is_err(), "{wrong}");
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
