//! GitHub, Jira and the model's provider as stand-ins in this process, with what people do there.

use std::{collections::BTreeMap, net::SocketAddr};

use testkit::{
    FakeGitHub, FakeJira, GitHubOptions, JiraOptions, NamedFront, ScriptedModel, Step, fixture,
    tls::{Authority, Front, ServedFront},
};

use crate::{Outside, outside::WEBHOOK_SECRET};

/// The three stand-ins.
pub struct Vendors {
    /// The forge.
    pub github: FakeGitHub,
    /// The tracker.
    pub jira: FakeJira,
    /// The model.
    pub model: ScriptedModel,
    outside: Outside,
    fronts: Vec<ServedFront>,
}

impl Vendors {
    /// Starts them on loopback, with the fixture's repository.
    ///
    /// # Errors
    /// When one cannot be started.
    pub async fn start(jira: JiraOptions, script: Vec<Step>) -> anyhow::Result<Self> {
        Self::start_behind(Vec::new(), &fixture::files(), jira, script).await
    }

    /// The same with other files in the repository, and every other choice as it is usual.
    ///
    /// # Errors
    /// When one cannot be started.
    pub async fn start_with(files: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::start_behind(Vec::new(), files, JiraOptions::default(), fixture::script()).await
    }

    /// The same behind TLS with certificates of a private authority: GitHub, Jira and the model at these addresses.
    ///
    /// # Errors
    /// When one cannot be started, or an address cannot be bound.
    pub async fn start_private(
        authority: &Authority,
        addresses: [SocketAddr; 3],
        jira: JiraOptions,
        script: Vec<Step>,
    ) -> anyhow::Result<Self> {
        let mut fronts = Vec::new();
        for address in addresses {
            fronts.push(Front::bind(authority, address).await?);
        }
        Self::start_behind(fronts, &fixture::files(), jira, script).await
    }

    /// The same at one address, with a name for each of GitHub, Jira and the model.
    ///
    /// # Errors
    /// When one cannot be started.
    pub async fn start_named(
        front: NamedFront,
        names: &[String; 3],
        jira: JiraOptions,
        script: Vec<Step>,
    ) -> anyhow::Result<Self> {
        let urls = names.iter().map(|name| format!("https://{name}")).collect();
        let mut vendors = Self::start_at(urls, &fixture::files(), jira, script).await?;
        let behind: BTreeMap<_, _> = names.iter().cloned().zip(vendors.addresses()).collect();
        vendors.fronts.push(front.serve(behind));
        Ok(vendors)
    }

    async fn start_behind(
        fronts: Vec<Front>,
        files: &[(&str, &str)],
        jira: JiraOptions,
        script: Vec<Step>,
    ) -> anyhow::Result<Self> {
        let urls = fronts.iter().map(Front::url).collect();
        let mut vendors = Self::start_at(urls, files, jira, script).await?;
        let served = fronts.into_iter().zip(vendors.addresses());
        vendors.fronts = served.map(|(front, behind)| front.serve(behind)).collect();
        Ok(vendors)
    }

    /// `urls`: how GitHub, Jira and the model call themselves; none: by their addresses.
    async fn start_at(
        urls: Vec<String>,
        files: &[(&str, &str)],
        jira: JiraOptions,
        script: Vec<Step>,
    ) -> anyhow::Result<Self> {
        let public = |index: usize| urls.get(index).cloned();
        let github = FakeGitHub::start(GitHubOptions {
            public_url: public(0),
            ..GitHubOptions::default()
        });
        let github = github.await?;
        github.create_repository(fixture::REPOSITORY, files)?;
        let jira = FakeJira::start(JiraOptions {
            public_url: public(1),
            ..jira
        });
        let jira = jira.await?;
        let model = ScriptedModel::start(script).await?;
        let outside = Outside {
            github_api: github.api_url(),
            github_git: github.git_url(),
            jira: jira.url(),
            model: public(2).unwrap_or_else(|| model.url()),
        };
        Ok(Self {
            github,
            jira,
            model,
            outside,
            fronts: Vec::new(),
        })
    }

    fn addresses(&self) -> [SocketAddr; 3] {
        [self.github.address(), self.jira.address(), self.model.address()]
    }

    /// Where they are.
    pub fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Sends webhooks to ingest at this base URL.
    pub fn send_webhooks(&self, url: &str) {
        self.github
            .set_webhook(&format!("{url}/webhooks/github"), WEBHOOK_SECRET);
        self.jira
            .set_webhook(&format!("{url}/webhooks/jira"), WEBHOOK_SECRET);
    }

    /// A person moves the ticket to the status that asks for work.
    ///
    /// # Errors
    /// When the workflow forbids it.
    pub fn ask_for_work(&self, key: &str) -> anyhow::Result<()> {
        self.jira.move_issue(key, "Ready for Agent", "ada").map(drop)
    }

    /// Files one of many tickets, each for a note of its own, and asks for work; gives its key.
    ///
    /// # Errors
    /// When the workflow forbids it.
    pub fn ask_for_note(&self, number: usize) -> anyhow::Result<String> {
        let marker = note_marker(number);
        // Not in the title: other tickets are shown the titles of similar ones.
        let description = format!("One line {marker}.");
        let key = self
            .jira
            .create_issue(fixture::PROJECT, "Write a note", &description, "Task", &[]);
        self.model.set_script(&marker, fixture::note_script(&key));
        self.ask_for_work(&key)?;
        Ok(key)
    }

    /// What the stand-ins refused: empty when Journeyman kept every protocol.
    pub fn violations(&self) -> Vec<String> {
        [
            self.github.violations(),
            self.jira.violations(),
            self.model.violations(),
        ]
        .concat()
    }
}

/// What the model's script for a note is found by.
pub fn note_marker(number: usize) -> String {
    format!("(part {number})")
}
