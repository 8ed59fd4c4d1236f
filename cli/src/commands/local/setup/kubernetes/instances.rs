//! Named Jira sites of the setup, as the services of a cluster get them.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use bootstrap::{
    rules::ConfiguredInstances,
    settings::{self, TextList, load_process_settings},
};
use domain::InstanceName;
use secrecy::SecretString;
use serde::Deserialize;

use super::super::store::SetupStore;

/// Services that get secrets of named sites.
pub(super) const SERVICES_OF_SITES: [&str; 2] = ["ingest", "reporter"];
// Folder of the Secrets in a container.
const MOUNTED: &str = "/run/secrets/journeyman";

/// Variable that names the file with the value of a setting, by its dotted key.
pub(super) fn build_file_variable(setting: &str) -> String {
    format!("JOURNEYMAN__{}__FILE", setting.replace('.', "__")).to_uppercase()
}

/// Path of an entry of a Secret in a container.
pub(super) fn build_mounted_path(entry: &str) -> String {
    format!("{MOUNTED}/{entry}")
}

/// Sites as ingest reads them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReaderSections {
    #[serde(deserialize_with = "jira::deserialize_readers")]
    jira: BTreeMap<InstanceName, jira::Settings>,
    ingest: WebhookSection,
}

/// Sites as the reporter reads them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WriterSections {
    #[serde(deserialize_with = "jira::deserialize_writers")]
    jira: BTreeMap<InstanceName, jira::Settings>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WebhookSection {
    webhook_secrets: SiteSecrets,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SiteSecrets {
    jira: BTreeMap<InstanceName, TextList>,
}

/// Named Jira site with both accounts and the secret of its webhook.
pub(super) struct JiraInstance {
    pub(super) name: InstanceName,
    pub(super) reader: jira::Settings,
    pub(super) writer: jira::Settings,
    /// Secrets of the webhook, separated by commas.
    webhook_secrets: SecretString,
}

/// Secret of a site, which one service alone gets.
pub(super) struct InstanceSecret {
    pub(super) deployment: &'static str,
    /// Dotted key of the setting.
    setting: String,
    /// Entry of the service's Secret.
    pub(super) entry: String,
    pub(super) value: SecretString,
}

impl InstanceSecret {
    /// Variable that names the mounted file.
    pub(super) fn variable(&self) -> String {
        build_file_variable(&self.setting)
    }

    /// Path of the mounted file.
    pub(super) fn path(&self) -> String {
        build_mounted_path(&self.entry)
    }
}

impl JiraInstance {
    /// Secrets of the site. The names of their entries have dots, which no other entry and no name of an instance has.
    pub(super) fn secrets(&self) -> [InstanceSecret; 3] {
        let name = &self.name;
        let build = |deployment, setting: String, entry: &str, value: &SecretString| InstanceSecret {
            deployment,
            setting,
            entry: format!("jira.{name}.{entry}"),
            value: value.clone(),
        };
        [
            build(
                "ingest",
                format!("ingest.webhook_secrets.jira.{name}"),
                "webhook-secrets",
                &self.webhook_secrets,
            ),
            build(
                "ingest",
                format!("jira.{name}.reader.api_token"),
                "reader-api-token",
                &self.reader.api_token,
            ),
            build(
                "reporter",
                format!("jira.{name}.writer.api_token"),
                "writer-api-token",
                &self.writer.api_token,
            ),
        ]
    }
}

/// Secrets of all sites that one service gets.
pub(super) fn list_secrets(instances: &[JiraInstance], deployment: &str) -> Vec<InstanceSecret> {
    let all = instances.iter().flat_map(JiraInstance::secrets);
    all.filter(|secret| secret.deployment == deployment).collect()
}

/// Names that rules of the cluster may use.
pub(super) fn list_connections(instances: &[JiraInstance]) -> ConfiguredInstances {
    ConfiguredInstances {
        jira: instances.iter().map(|site| site.name.clone()).collect(),
        ..ConfiguredInstances::default()
    }
}

/// Reads the named sites.
///
/// # Errors
/// A site with which the services would not start: an account or the secret of its webhook is missing or wrong.
pub(super) fn read_jira_instances(store: &SetupStore) -> anyhow::Result<Vec<JiraInstance>> {
    // Both accounts share a section. Each read skips the settings of the other account.
    let ReaderSections {
        jira: readers,
        ingest,
    } = load_process_settings(store.existing())?;
    let WriterSections { jira: mut writers } = load_process_settings(store.existing())?;
    let mut secrets = ingest.webhook_secrets.jira;
    let mut instances = Vec::new();
    for (name, reader) in readers {
        let section = format!("jira.{name}");
        let writer = writers
            .remove(&name)
            .with_context(|| format!("{section}.writer is missing"))?;
        for (role, account) in [("reader", &reader), ("writer", &writer)] {
            account
                .check(&section)
                .map_err(|(key, problem)| settings::Error::new(key, problem))
                .with_context(|| format!("the {role} of {section} is not complete"))?;
        }
        let webhook_secrets = secrets.remove(&name).unwrap_or_default().join(",");
        ensure!(
            !webhook_secrets.is_empty(),
            "ingest.webhook_secrets.jira.{name} is missing: it must hold the secret of this instance's webhook"
        );
        instances.push(JiraInstance {
            name,
            reader,
            writer,
            webhook_secrets: webhook_secrets.into(),
        });
    }
    Ok(instances)
}

#[cfg(test)]
pub(super) mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    pub(in super::super) fn build_instance(name: &str) -> JiraInstance {
        let account = |email: &str, token: &str| jira::Settings {
            base_url: "https://jira.corp.example".to_owned(),
            deployment: jira::JiraDialect::DataCenter,
            email: email.to_owned(),
            api_token: token.to_owned().into(),
            ..jira::Settings::default()
        };
        JiraInstance {
            name: name.parse().unwrap(),
            reader: account("", "reading token"),
            writer: account("", "writing token"),
            webhook_secrets: "signing secret".to_owned().into(),
        }
    }

    fn read_instances(text: &str) -> anyhow::Result<Vec<JiraInstance>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journeyman.toml");
        std::fs::write(&file, text).unwrap();
        read_jira_instances(&SetupStore::new(file, folder.path()))
    }

    const SITE: &str = "[jira.dc]\nbase_url = \"https://jira.corp.example\"\ndeployment = \"data-center\"\nreader = \
                        { api_token = \"r\" }\n";

    #[test]
    fn named_site_has_both_accounts_and_secret() {
        let text = format!(
            "{SITE}writer = {{ api_token = \"w\" }}\n[ingest.webhook_secrets.jira]\ndc = [\"one\", \"two\"]\n"
        );
        let found = read_instances(&text).unwrap();
        let secrets: Vec<(String, String, String)> = found[0]
            .secrets()
            .iter()
            .map(|secret| {
                let value = secret.value.expose_secret().to_owned();
                (secret.variable(), secret.path(), value)
            })
            .collect();
        let expected = [
            ("INGEST__WEBHOOK_SECRETS__JIRA__DC", "webhook-secrets", "one,two"),
            ("JIRA__DC__READER__API_TOKEN", "reader-api-token", "r"),
            ("JIRA__DC__WRITER__API_TOKEN", "writer-api-token", "w"),
        ]
        .map(|(variable, entry, value)| {
            (
                format!("JOURNEYMAN__{variable}__FILE"),
                format!("/run/secrets/journeyman/jira.dc.{entry}"),
                value.to_owned(),
            )
        });
        assert_eq!(secrets, expected);
        let names = |deployment| {
            let listed = list_secrets(&found, deployment);
            listed.into_iter().map(|secret| secret.entry).collect::<Vec<_>>()
        };
        assert_eq!(names("reporter"), ["jira.dc.writer-api-token"]);
        assert_eq!(names("ingest").len(), 2);
    }

    #[test]
    fn incomplete_site_is_refused() {
        let writer = "writer = { api_token = \"w\" }\n";
        for (more, part) in [
            ("", "writer"),
            (writer, "ingest.webhook_secrets.jira.dc is missing"),
            (
                "writer = { api_token = \"\" }\n",
                "the writer of jira.dc is not complete",
            ),
        ] {
            let problem = read_instances(&format!("{SITE}{more}")).err().unwrap();
            let problem = format!("{problem:#}");
            assert!(problem.contains(part), "{part}: {problem}");
        }
        assert!(read_instances("").unwrap().is_empty());
    }
}
