//! Servers and sites in addition to the default ones.

use std::{collections::BTreeMap, path::Path};

use bootstrap::{rules::Connections, settings};
use domain::{Instance, cause::chain};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use super::{Finding, Findings, Projects, Remedy, accounts};

/// Instances as ingest reads them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Readers {
    #[serde(deserialize_with = "github::readers")]
    github: BTreeMap<Instance, github::Settings>,
    #[serde(deserialize_with = "jira::readers")]
    jira: BTreeMap<Instance, jira::Settings>,
    folder: BTreeMap<Instance, IgnoredAny>,
}

/// Instances as the reporter reads them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Writers {
    #[serde(deserialize_with = "github::writers")]
    github: BTreeMap<Instance, github::Settings>,
    #[serde(deserialize_with = "jira::writers")]
    jira: BTreeMap<Instance, jira::Settings>,
}

/// Settings of all instances.
pub(super) struct Instances {
    readers: Readers,
    writers: Writers,
}

/// Reads the settings of the instances. An unreadable one becomes a finding.
pub(super) fn load(findings: &mut Findings, file: Option<&Path>) -> Instances {
    // Both accounts share a section. Each read skips the settings of the other account.
    Instances {
        readers: sections(findings, file),
        writers: sections(findings, file),
    }
}

fn sections<S: DeserializeOwned + Default>(findings: &mut Findings, file: Option<&Path>) -> S {
    settings::load(file, std::env::vars()).unwrap_or_else(|error| {
        findings.add("instances", Finding::Failed(chain(&error), Remedy::Instances));
        S::default()
    })
}

impl Instances {
    /// Instances that rules may name.
    pub(super) fn connections(&self) -> Connections {
        Connections::of(&self.readers.github, &self.readers.jira, &self.readers.folder)
    }

    /// Reader and writer of a GitHub.
    pub(super) fn github(&self, name: &Instance) -> (Option<&github::Settings>, Option<&github::Settings>) {
        (self.readers.github.get(name), self.writers.github.get(name))
    }

    /// Writer of a GitHub.
    pub(super) fn github_writer(&self, name: &Instance) -> Option<&github::Settings> {
        self.writers.github.get(name)
    }

    /// Readers of GitHub servers.
    pub(super) fn github_readers(&self) -> impl Iterator<Item = (&Instance, &github::Settings)> {
        self.readers.github.iter()
    }

    /// Readers of Jira sites.
    pub(super) fn jira_readers(&self) -> impl Iterator<Item = (&Instance, &jira::Settings)> {
        self.readers.jira.iter()
    }

    /// Checks both accounts of each instance.
    pub(super) async fn check(&self, findings: &mut Findings, projects: &Projects) {
        for (name, server) in &self.readers.github {
            let writer = self.writers.github.get(name);
            accounts::github(findings, Some(name), Some(server), writer).await;
        }
        for (name, site) in &self.readers.jira {
            let writer = self.writers.jira.get(name);
            let projects = projects.of(Some(name));
            accounts::jira(findings, Some(name), Some(site), writer, &projects).await;
        }
    }
}
