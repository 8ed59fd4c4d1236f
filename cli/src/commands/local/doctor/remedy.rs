//! Remedies of failed checks: a command, or a page of the documentation of this version.

use std::fmt::{Display, Formatter, Result};

use domain::InstanceName;

use super::super::documentation::describe_page;

/// Remedy of a failed check. A failure cannot be constructed without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    SetUpGithub,
    SetUpJira,
    JiraReaderToken,
    JiraWriterToken,
    Requesters,
    SetUpModel,
    AddRules,
    GithubApps,
    ReaderApp,
    WriterApp,
    GithubProjects,
    Signatures,
    JiraAccounts,
    Instances,
    Install,
    Settings,
    Rules,
    Nats,
    Redis,
    Network,
    Proxy,
    Clock,
    OtherRelease,
    Pools,
    McpServers,
    RenewCertificates,
    NewAuthority,
    Certificates,
    Folders,
}

/// Form of a remedy.
enum RemedyTarget {
    Run(&'static str),
    Read(&'static str),
}

impl Remedy {
    fn target(self) -> RemedyTarget {
        use RemedyTarget::{Read, Run};
        match self {
            Self::SetUpGithub => Run("journeyman setup github"),
            Self::SetUpJira => Run("journeyman setup jira"),
            Self::JiraReaderToken => Run("journeyman setup jira --reader-email EMAIL"),
            Self::JiraWriterToken => Run("journeyman setup jira --writer-email EMAIL"),
            Self::Requesters => Run("journeyman setup jira --requesters GROUP"),
            Self::SetUpModel => Run("journeyman setup model"),
            Self::AddRules => Run("journeyman repo add OWNER/NAME"),
            Self::GithubApps => Read("start/setup-github"),
            Self::ReaderApp => Read("permissions#reader-github-app"),
            Self::WriterApp => Read("permissions#writer-github-app"),
            Self::GithubProjects => Read("permissions#projects-of-github"),
            Self::Signatures => Read("signed-commits#how-do-you-set-a-key"),
            Self::JiraAccounts => Read("permissions#jira"),
            Self::Instances => Read("instances"),
            Self::Install => Read("install"),
            Self::Settings => Read("settings#what-must-be-set"),
            Self::Rules => Read("rules#when-a-file-is-wrong"),
            Self::Nats => Read("runbook#nats-does-not-answer"),
            Self::Redis => Read("runbook#redis-does-not-answer"),
            Self::Network => Read("runbook#a-server-does-not-answer"),
            Self::Proxy => Read("operate/proxy#what-do-failures-look-like"),
            Self::Clock => Read("runbook#the-clocks-differ"),
            Self::OtherRelease => Read("reliability#records-of-another-release"),
            Self::Pools => Read("runbook#an-executor-does-not-become-ready"),
            Self::McpServers => Read("mcp#when-a-server-does-not-work"),
            Self::RenewCertificates => Run("journeyman certs renew DIR"),
            Self::NewAuthority => Read("tls#take-up-new-ones"),
            Self::Certificates => Read("tls#when-it-does-not-work"),
            Self::Folders => Read("folder#what-can-it-not-do"),
        }
    }

    /// Remedy for an account of a GitHub. The setup command only configures the default one.
    pub(super) fn github(instance: Option<&InstanceName>) -> Self {
        match instance {
            None => Self::SetUpGithub,
            Some(_) => Self::Instances,
        }
    }

    /// Remedy for the accounts of a Jira.
    pub(super) fn jira(instance: Option<&InstanceName>) -> Self {
        match instance {
            None => Self::SetUpJira,
            Some(_) => Self::Instances,
        }
    }

    /// Remedy when the server of a check gives no answer in time, which says nothing about its accounts.
    pub(super) fn of_silence(self) -> Self {
        if matches!(self, Self::Nats | Self::Redis) {
            self
        } else {
            Self::Network
        }
    }

    /// Remedy for an invalid or missing setting. The message starts with its key.
    pub(super) fn of_setting(problem: &str) -> Self {
        if problem.starts_with("reporter.signing.") {
            return Self::Signatures;
        }
        let sections = [
            ("github_", Self::SetUpGithub),
            ("jira_", Self::SetUpJira),
            ("model.", Self::SetUpModel),
        ];
        // The setup command adds missing settings. It does not repair invalid ones.
        let is_missing = problem.contains("is missing");
        let found = sections
            .into_iter()
            .find(|(section, _)| problem.starts_with(section));
        found
            .filter(|_| is_missing)
            .map_or(Self::Settings, |(_, remedy)| remedy)
    }
}

impl Display for Remedy {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self.target() {
            RemedyTarget::Run(command) => write!(out, "-> `{command}`"),
            RemedyTarget::Read(page) => write!(out, "-> {}", describe_page(page)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::local::documentation::has_page;

    const ALL: &[Remedy] = &[
        Remedy::SetUpGithub,
        Remedy::SetUpJira,
        Remedy::JiraReaderToken,
        Remedy::JiraWriterToken,
        Remedy::Requesters,
        Remedy::SetUpModel,
        Remedy::AddRules,
        Remedy::GithubApps,
        Remedy::ReaderApp,
        Remedy::WriterApp,
        Remedy::GithubProjects,
        Remedy::Signatures,
        Remedy::JiraAccounts,
        Remedy::Instances,
        Remedy::Install,
        Remedy::Settings,
        Remedy::Rules,
        Remedy::Nats,
        Remedy::Redis,
        Remedy::Network,
        Remedy::Proxy,
        Remedy::Clock,
        Remedy::OtherRelease,
        Remedy::Pools,
        Remedy::McpServers,
        Remedy::RenewCertificates,
        Remedy::NewAuthority,
        Remedy::Certificates,
        Remedy::Folders,
    ];

    #[test]
    fn remedies_name_existing_commands_or_headings() {
        for (place, remedy) in ALL.iter().copied().enumerate() {
            assert_eq!(remedy as usize, place, "all of them are here, in their order");
            match remedy.target() {
                RemedyTarget::Read(page) => assert!(has_page(page), "{page}"),
                RemedyTarget::Run(command) => {
                    let command = command.replace("OWNER/NAME", "acme/shop");
                    let line = crate::Arguments::command().try_get_matches_from(command.split(' '));
                    assert!(line.is_ok(), "{command}: {:?}", line.err());
                }
            }
        }
        assert_eq!(
            Remedy::Folders as usize + 1,
            ALL.len(),
            "the last one is the last"
        );
    }

    #[test]
    fn signing_key_leads_to_its_page() {
        let gpg = "reporter.signing.private_key is a GPG key, which is not supported";
        assert_eq!(Remedy::of_setting(gpg), Remedy::Signatures);
    }

    #[test]
    fn silent_server_is_network_problem() {
        for remedy in [Remedy::GithubApps, Remedy::GithubProjects, Remedy::Requesters] {
            assert_eq!(remedy.of_silence(), Remedy::Network);
        }
        assert_eq!(Remedy::Nats.of_silence(), Remedy::Nats);
    }

    #[test]
    fn missing_setting_gets_setup_remedy() {
        for (problem, remedy) in [
            ("model.api_key: is missing", Remedy::SetUpModel),
            ("jira_reader.base_url: is missing", Remedy::SetUpJira),
            ("github_writer.app_id: is missing", Remedy::SetUpGithub),
            ("ingest.router_slots: must be 1 at least", Remedy::Settings),
            ("model.base_url: is not a URL", Remedy::Settings),
        ] {
            assert_eq!(Remedy::of_setting(problem), remedy, "{problem}");
        }
    }
}
