//! The servers and sites besides the default ones.

use std::{collections::BTreeMap, path::Path};

use bootstrap::{rules::Connections, settings};
use domain::{Instance, cause::chain};
use serde::{Deserialize, de::DeserializeOwned};

use super::{Finding, Findings, Projects, accounts};

/// As ingest reads them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Readers {
    github: BTreeMap<Instance, github::ReaderServer>,
    jira: BTreeMap<Instance, jira::ReaderSite>,
}

/// As the reporter reads them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Writers {
    github: BTreeMap<Instance, github::WriterServer>,
    jira: BTreeMap<Instance, jira::WriterSite>,
}

/// What the settings have of them.
pub(super) struct Instances {
    readers: Readers,
    writers: Writers,
}

/// Reads them; what cannot be read is a finding.
pub(super) fn load(findings: &mut Findings, file: Option<&Path>) -> Instances {
    Instances {
        readers: sections(findings, file),
        writers: sections(findings, file),
    }
}

fn sections<S: DeserializeOwned + Default>(findings: &mut Findings, file: Option<&Path>) -> S {
    settings::load(file, std::env::vars()).unwrap_or_else(|error| {
        findings.add("instances", Finding::Failed(chain(&error)));
        S::default()
    })
}

impl Instances {
    /// The instances that rules may name.
    pub(super) fn connections(&self) -> Connections {
        Connections {
            github: self.readers.github.keys().cloned().collect(),
            jira: self.readers.jira.keys().cloned().collect(),
        }
    }

    /// Asks each account of each of them.
    pub(super) async fn check(&self, findings: &mut Findings, projects: &Projects) {
        for (name, server) in &self.readers.github {
            let writer = self.writers.github.get(name).map(github::WriterServer::settings);
            accounts::github(findings, Some(name), Some(&server.settings()), writer.as_ref()).await;
        }
        for (name, site) in &self.readers.jira {
            let writer = self.writers.jira.get(name).map(jira::WriterSite::settings);
            let projects = projects.of(Some(name));
            accounts::jira(
                findings,
                Some(name),
                Some(&site.settings()),
                writer.as_ref(),
                &projects,
            )
            .await;
        }
    }
}
