//! GitHub, Jira and the model provider as stand-ins in this process, with the users' actions there.

use std::{collections::BTreeMap, net::SocketAddr};

use testkit::{
    FakeGitHub, FakeJira, GitHubOptions, JiraOptions, NamedFront, ScriptStep, ScriptedModel, fixture,
    github::RunConclusion,
    tls::{ServedFront, TestAuthority, TlsFront},
};

use super::vendor_addresses::{VendorAddresses, WEBHOOK_SECRET};

/// The three stand-ins of one world.
pub struct StandInVendors {
    /// Stand-in of the forge.
    pub github: FakeGitHub,
    /// Stand-in of the tracker.
    pub jira: FakeJira,
    /// Stand-in of the model.
    pub model: ScriptedModel,
    outside: VendorAddresses,
    fronts: Vec<ServedFront>,
}

impl StandInVendors {
    /// Starts the stand-ins on loopback with the fixture's repository.
    ///
    /// # Errors
    /// When a stand-in cannot start.
    pub async fn start(jira: JiraOptions, script: Vec<ScriptStep>) -> anyhow::Result<Self> {
        Self::start_behind(Vec::new(), &fixture::list_shop_files(), jira, script).await
    }

    /// Starts the stand-ins with other files in the repository and default options.
    ///
    /// # Errors
    /// When a stand-in cannot start.
    pub async fn start_with(files: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::start_behind(
            Vec::new(),
            files,
            JiraOptions::default(),
            fixture::build_shop_script(),
        )
        .await
    }

    /// Starts the stand-ins behind TLS with certificates of a private authority. `addresses` are those of
    /// GitHub, Jira and the model.
    ///
    /// # Errors
    /// When a stand-in cannot start, or an address cannot be bound.
    pub async fn start_private(
        authority: &TestAuthority,
        addresses: [SocketAddr; 3],
        jira: JiraOptions,
        script: Vec<ScriptStep>,
    ) -> anyhow::Result<Self> {
        let mut fronts = Vec::new();
        for address in addresses {
            fronts.push(TlsFront::bind(authority, address).await?);
        }
        Self::start_behind(fronts, &fixture::list_shop_files(), jira, script).await
    }

    /// Starts the stand-ins behind one TLS address with a server name for each of GitHub, Jira and the model.
    ///
    /// # Errors
    /// When a stand-in cannot start.
    pub async fn start_named(
        front: NamedFront,
        names: &[String; 3],
        jira: JiraOptions,
        script: Vec<ScriptStep>,
    ) -> anyhow::Result<Self> {
        // The stand-ins learn their public names before the front serves them.
        let urls = names.iter().map(|name| format!("https://{name}")).collect();
        let mut vendors = Self::start_at(urls, &fixture::list_shop_files(), jira, script).await?;
        let behind: BTreeMap<_, _> = names.iter().cloned().zip(vendors.addresses()).collect();
        vendors.fronts.push(front.serve(behind));
        Ok(vendors)
    }

    async fn start_behind(
        fronts: Vec<TlsFront>,
        files: &[(&str, &str)],
        jira: JiraOptions,
        script: Vec<ScriptStep>,
    ) -> anyhow::Result<Self> {
        let urls = fronts.iter().map(TlsFront::url).collect();
        let mut vendors = Self::start_at(urls, files, jira, script).await?;
        let served = fronts.into_iter().zip(vendors.addresses());
        vendors.fronts = served.map(|(front, behind)| front.serve(behind)).collect();
        Ok(vendors)
    }

    /// Starts the stand-ins with these public URLs of GitHub, Jira and the model. Without URLs each uses its
    /// address.
    async fn start_at(
        urls: Vec<String>,
        files: &[(&str, &str)],
        jira: JiraOptions,
        script: Vec<ScriptStep>,
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
        let outside = VendorAddresses {
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

    /// Addresses of the stand-ins, as settings.
    pub fn outside(&self) -> &VendorAddresses {
        &self.outside
    }

    /// Sends webhooks to the ingest with this base URL.
    pub fn send_webhooks(&self, url: &str) {
        self.github
            .set_webhook(&format!("{url}/webhooks/github"), WEBHOOK_SECRET);
        self.jira
            .set_webhook(&format!("{url}/webhooks/jira"), WEBHOOK_SECRET);
    }

    /// Creates the fixture's ticket without a request for work and returns its key, such as `ENG-1`.
    pub fn file_ticket(&self) -> String {
        let (summary, description) = fixture::describe_shop_ticket();
        self.jira
            .create_issue(fixture::PROJECT, summary, description, "Bug", &[])
    }

    /// Moves a ticket to the status that requests work, as a user.
    ///
    /// # Errors
    /// When the workflow forbids it.
    pub fn ask_for_work(&self, key: &str) -> anyhow::Result<()> {
        self.jira.move_issue(key, "Ready for Agent", "ada").map(drop)
    }

    /// Creates one of many tickets that each request a note, requests work on it and returns its key.
    ///
    /// # Errors
    /// When the workflow forbids it.
    pub fn ask_for_note(&self, number: usize) -> anyhow::Result<String> {
        let marker = note_marker(number);
        // The marker is not in the title, because prompts of other tickets contain titles of similar ones.
        let description = format!("One line {marker}.");
        let key = self
            .jira
            .create_issue(fixture::PROJECT, "Write a note", &description, "Task", &[]);
        self.model.set_script(&marker, fixture::note_script(&key));
        self.ask_for_work(&key)?;
        Ok(key)
    }

    /// Reports the result of the repository's tests at a commit, as CI does.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn report_tests(&self, sha: &str, passed: bool, output: &str) -> anyhow::Result<()> {
        let conclusion = if passed {
            RunConclusion::Success
        } else {
            RunConclusion::Failure
        };
        self.github
            .run_checks(fixture::REPOSITORY, sha, &[("test", conclusion, output)])
    }

    /// Requests that a stand-in refused as a violation; empty if Journeyman kept all protocols.
    pub fn violations(&self) -> Vec<String> {
        [
            self.github.violations(),
            self.jira.violations(),
            self.model.violations(),
        ]
        .concat()
    }
}

/// Returns the marker that selects the model's script for a note.
pub fn note_marker(number: usize) -> String {
    format!("(part {number})")
}
