//! Servers and sites in addition to the default ones.

use std::{collections::BTreeMap, path::Path};

use bootstrap::{rules::ConfiguredInstances, settings};
use domain::{InstanceName, cause::format_error_chain};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use super::{DoctorFinding, DoctorReport, Remedy, RulesProjects, accounts};

/// Instances as ingest reads them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReaderSections {
    #[serde(deserialize_with = "github::deserialize_readers")]
    github: BTreeMap<InstanceName, github::Settings>,
    #[serde(deserialize_with = "jira::deserialize_readers")]
    jira: BTreeMap<InstanceName, jira::Settings>,
    folder: BTreeMap<InstanceName, IgnoredAny>,
}

/// Instances as the reporter reads them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WriterSections {
    #[serde(deserialize_with = "github::deserialize_writers")]
    github: BTreeMap<InstanceName, github::Settings>,
    #[serde(deserialize_with = "jira::deserialize_writers")]
    jira: BTreeMap<InstanceName, jira::Settings>,
}

/// Settings of all instances.
pub(super) struct InstanceSections {
    readers: ReaderSections,
    writers: WriterSections,
}

/// Reads the settings of the instances. An unreadable one becomes a finding.
pub(super) fn load_instances(findings: &mut DoctorReport, file: Option<&Path>) -> InstanceSections {
    // Both accounts share a section. Each read skips the settings of the other account.
    InstanceSections {
        readers: load_sections(findings, file),
        writers: load_sections(findings, file),
    }
}

fn load_sections<S: DeserializeOwned + Default>(findings: &mut DoctorReport, file: Option<&Path>) -> S {
    settings::load_process_settings(file).unwrap_or_else(|error| {
        findings.add(
            "instances",
            DoctorFinding::Failed(format_error_chain(&error), Remedy::Instances),
        );
        S::default()
    })
}

impl InstanceSections {
    /// Instances that rules may name.
    pub(super) fn connections(&self) -> ConfiguredInstances {
        ConfiguredInstances::of(&self.readers.github, &self.readers.jira, &self.readers.folder)
    }

    /// Reader and writer of a GitHub.
    pub(super) fn github(
        &self,
        name: &InstanceName,
    ) -> (Option<&github::Settings>, Option<&github::Settings>) {
        (self.readers.github.get(name), self.writers.github.get(name))
    }

    /// Writer of a GitHub.
    pub(super) fn github_writer(&self, name: &InstanceName) -> Option<&github::Settings> {
        self.writers.github.get(name)
    }

    /// Readers of GitHub servers.
    pub(super) fn github_readers(&self) -> impl Iterator<Item = (&InstanceName, &github::Settings)> {
        self.readers.github.iter()
    }

    /// Readers of Jira sites.
    pub(super) fn jira_readers(&self) -> impl Iterator<Item = (&InstanceName, &jira::Settings)> {
        self.readers.jira.iter()
    }

    /// Checks both accounts of each instance.
    pub(super) async fn check(&self, findings: &mut DoctorReport, projects: &RulesProjects) {
        for (name, server) in &self.readers.github {
            let writer = self.writers.github.get(name);
            accounts::check_github_accounts(findings, Some(name), Some(server), writer).await;
        }
        for (name, site) in &self.readers.jira {
            let writer = self.writers.jira.get(name);
            let projects = projects.of(Some(name));
            accounts::check_jira_accounts(findings, Some(name), Some(site), writer, &projects).await;
        }
    }
}
