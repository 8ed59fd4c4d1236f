//! External services of one story: real NATS and Redis, and the stand-ins.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Context;
use domain::TicketKey;
use e2e::{ProviderDialect, StandInVendors, WEBHOOK_SECRET};
use tempfile::TempDir;
use testkit::{
    FakeGitHub, FakeJira, JiraOptions, NatsCluster, NatsOptions, NatsServer, RedisServer, ScriptedModel,
    ServiceFault, fixture,
    github::{PROJECT_TOKEN, StandInPullRequest},
    jira,
};

use crate::crash_matrix::people::{self, StoryPeople, discussion, issue, triaged_tickets};

// Short timeouts, so that a story with a crash takes seconds.
const SETTINGS: [(&str, &str); 6] = [
    ("NATS__ACK_WAIT_MS", "1000"),
    ("REDIS__TTL_MS", "700"),
    ("INGEST__POLL_INTERVAL_S", "1"),
    ("INGEST__SWEEP_INTERVAL_S", "1"),
    ("REPORTER__UNKNOWN_WINDOW_S", "1"),
    ("REPORTER__LIST_LAG_S", "0"),
];

/// Branch of a pull request that was closed unmerged before the story.
pub(crate) const REFUSED: &str = "cart-total";

// URL without a listener.
const NOWHERE: &str = "http://127.0.0.1:1/nowhere";

/// Story of the crash matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum MatrixStory {
    /// From a status change in Jira to a merged pull request, without detours
    Straight,
    /// As `straight` with detours: missing webhooks, a failing model until a user orders `/retry`, a rate
    /// limit, a lost answer, an unreadable delivery
    Detours,
    /// As `straight` with failing checks that are repaired, and a review that is addressed, before the merge
    Rounds,
    /// A GitHub issue: triaged, returned when the model fails, approved by a comment, with rerun jobs and a
    /// commit without checks, merged into another branch than the default one
    Issue,
    /// Two triaged Jira tickets, the second a duplicate of the first. A comment requests the work, and a user
    /// is called because its repair does not fix the checks
    Asked,
    /// A discussion that is researched, summarized, planned in issues and closed with its answer, and a
    /// review of a user's pull request
    Talk,
    /// As `straight` with signed commits. The pull request is closed and opened again, updated with its base, and
    /// thrown out of the merge queue for a conflict and for a failed check, before the merge
    Mergeable,
}

impl MatrixStory {
    /// True if the ticket is a Jira ticket with requested work.
    pub(crate) fn is_at_jira(self) -> bool {
        matches!(
            self,
            Self::Straight | Self::Detours | Self::Rounds | Self::Mergeable
        )
    }

    /// Returns the rules of the story, in addition to the default ones.
    fn rules(self) -> &'static str {
        match self {
            Self::Straight | Self::Detours | Self::Rounds | Self::Mergeable => "",
            Self::Issue => issue::RULES,
            Self::Asked => triaged_tickets::RULES,
            Self::Talk => discussion::RULES,
        }
    }

    /// Returns the target branch of our pull requests.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::Issue => "next",
            Self::Straight | Self::Detours | Self::Rounds | Self::Asked | Self::Talk | Self::Mergeable => {
                "main"
            }
        }
    }

    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Straight | Self::Rounds | Self::Asked | Self::Talk | Self::Mergeable => &[],
            Self::Issue => &[
                ("INGEST__CHECKS_ABSENT_S", "3"),
                ("GITHUB_WRITER__PROJECT_TOKEN", PROJECT_TOKEN),
            ],
            Self::Detours => &[
                ("INGEST__JIRA_TRIGGER_GROUP", "agents"),
                ("PLANNER__RETRY_BASE_MS", "600000"),
            ],
        }
    }
}

/// Number of NATS servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum NatsServers {
    /// One, as on a laptop
    #[value(name = "1")]
    One,
    /// Three, each with a copy of every stream, as in a cluster. An acknowledged write may not yet be visible
    /// on the others
    #[value(name = "3")]
    Three,
}

/// NATS servers of one story.
#[expect(clippy::large_enum_variant, reason = "one exists at a time")]
pub(crate) enum RunningServers {
    One(NatsServer),
    Three(NatsCluster),
}

impl RunningServers {
    async fn start(servers: NatsServers, folder: &Path) -> anyhow::Result<Self> {
        Ok(match servers {
            NatsServers::One => Self::One(NatsServer::start_in(folder).await?),
            NatsServers::Three => Self::Three(NatsCluster::start(NatsOptions::default()).await?),
        })
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::One(server) => server.url(),
            Self::Three(cluster) => cluster.url(),
        }
    }

    const fn replicas(&self) -> u8 {
        match self {
            Self::One(_) => 1,
            Self::Three(_) => 3,
        }
    }
}

/// External services of one story.
pub(crate) struct MatrixStage {
    pub(crate) github: FakeGitHub,
    pub(crate) jira: FakeJira,
    pub(crate) model: ScriptedModel,
    /// Settings of the services.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) nats: RunningServers,
    _redis: RedisServer,
    folder: TempDir,
    /// Key of the Jira ticket. Only the stories in Jira request work on it.
    pub(crate) key: String,
    /// Tickets of the story, after their creation.
    pub(crate) tickets: Vec<TicketKey>,
    /// Base URL of ingest's webhooks.
    pub(crate) webhooks: String,
    pub(crate) story: MatrixStory,
    pub(crate) people: StoryPeople,
}

impl MatrixStage {
    /// Starts everything except the services and creates the ticket.
    ///
    /// # Errors
    /// When a server or stand-in cannot start.
    pub(crate) async fn start(story: MatrixStory, servers: NatsServers) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let data = folder.path().join("data");
        std::fs::create_dir_all(&data)?;
        let nats = RunningServers::start(servers, &data.join("nats")).await?;
        let redis = RedisServer::start_in(&data.join("redis")).await?;
        let script = fixture::build_shop_script();
        let vendors = Box::pin(StandInVendors::start(JiraOptions::default(), script)).await?;
        let rules = folder.path().join("rules");
        std::fs::create_dir_all(&rules)?;
        std::fs::write(rules.join("shop.yaml"), rules_text(story)?)?;
        let mut environment = vendors.outside().environment(ProviderDialect::Anthropic, &rules);
        let mut set = |key: &str, value: String| environment.push((format!("JOURNEYMAN__{key}"), value));
        for (key, value) in SETTINGS.iter().chain(story.settings()) {
            set(key, (*value).to_owned());
        }
        set("NATS__URL", nats.url());
        set("NATS__REPLICAS", nats.replicas().to_string());
        set("REDIS__URL", redis.url());
        let ingest = servers::free_port()?;
        set("INGEST__LISTEN", format!("127.0.0.1:{ingest}"));
        for section in ["PLANNER", "EXECUTOR", "REPORTER", "EGRESS"] {
            let port = servers::free_port()?;
            set(&format!("{section}__LISTEN"), format!("127.0.0.1:{port}"));
        }
        let webhooks = format!("http://127.0.0.1:{ingest}/webhooks");
        // This story creates its tickets after ingest has started, so that triage sees their webhooks.
        let key = match story {
            MatrixStory::Asked => String::new(),
            _ => vendors.file_ticket(),
        };
        let StandInVendors {
            github, jira, model, ..
        } = vendors;
        let stage = Self {
            github,
            jira,
            model,
            environment,
            nats,
            _redis: redis,
            folder,
            tickets: if story.is_at_jira() {
                vec![TicketKey::jira(&key)?]
            } else {
                Vec::new()
            },
            key,
            webhooks,
            story,
            people: StoryPeople::default(),
        };
        stage.model.set_script_of(
            "Checks failed on the pull request",
            "",
            people::build_repair_script(),
        );
        stage.set_up()?;
        Ok(stage)
    }

    /// Prepares the state before the services start.
    fn set_up(&self) -> anyhow::Result<()> {
        match self.story {
            MatrixStory::Straight | MatrixStory::Detours | MatrixStory::Rounds => self.set_up_background()?,
            MatrixStory::Issue => self.set_up_issue()?,
            MatrixStory::Asked => self.set_up_asked(),
            MatrixStory::Talk => self.set_up_talk(),
            MatrixStory::Mergeable => self.set_up_mergeable()?,
        }
        let jira = format!("{}/jira", self.webhooks);
        match self.story {
            MatrixStory::Straight
            | MatrixStory::Rounds
            | MatrixStory::Issue
            | MatrixStory::Asked
            | MatrixStory::Talk
            | MatrixStory::Mergeable => {
                self.jira.set_webhook(&jira, WEBHOOK_SECRET);
                self.github
                    .set_webhook(&format!("{}/github", self.webhooks), WEBHOOK_SECRET);
            }
            MatrixStory::Detours => {
                // The status changes before the webhook is set, so only a poll can find the request.
                self.jira.move_issue(&self.key, "Ready for Agent", "ada")?;
                self.jira.set_webhook(&jira, WEBHOOK_SECRET);
                self.github.set_webhook(NOWHERE, WEBHOOK_SECRET);
                self.jira.set_groups("ada", &["agents"]);
                // The model fails until a user's `/retry` repairs it, see `order_a_retry`.
                self.model.garble_next(u32::MAX);
                // One rate-limited transition, and one comment whose answer is lost after its effect.
                let limited = ServiceFault::new("/transitions", 1, 429)
                    .on("POST")
                    .retry_after(6);
                self.jira.fail_next(limited);
                let lost = ServiceFault::new("/comment", 1, 502).on("POST").after_effect();
                self.jira.fail_next(lost);
            }
        }
        Ok(())
    }

    /// Adds background to the trackers: a linked ticket, and a pull request that was closed unmerged.
    fn set_up_background(&self) -> anyhow::Result<()> {
        let other =
            self.jira
                .create_issue(fixture::PROJECT, "Correct invoices", "To the cent.", "Story", &[]);
        self.jira.relate(&other, "Parent", &self.key)?;
        let (shop, title) = (fixture::REPOSITORY, format!("{}: Total by quantity", self.key));
        self.github
            .commit(shop, REFUSED, "Try", &[("shop/cart.py", "raise SystemExit\n")])?;
        let number = self
            .github
            .open_pull_request_as(shop, "rita", REFUSED, &title, "")?;
        self.github
            .comment_as(shop, number, "ada", "This removes the cart.")?;
        self.github.close(shop, number, "ada")
    }

    /// Data folder of the services.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Log file of the services.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("services.log")
    }

    /// Returns our comments on the Jira ticket.
    pub(crate) fn said(&self) -> String {
        let comments = self.jira.comments(&self.key).into_iter();
        let ours = comments.filter(|comment| comment.author == jira::WRITER_NAME);
        ours.map(|comment| comment.text).collect()
    }

    /// Lists the pull requests without the refused one.
    pub(crate) fn pull_requests(&self) -> Vec<StandInPullRequest> {
        let mut pulls = self.github.pull_requests(fixture::REPOSITORY);
        pulls.retain(|pull| pull.head != REFUSED);
        pulls
    }

    /// Returns the files of the target branch.
    ///
    /// # Errors
    /// When the branch cannot be read.
    pub(crate) fn merged_files(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let target = self.story.target();
        self.github.branch_files(fixture::REPOSITORY, target)
    }
}

fn rules_text(story: MatrixStory) -> anyhow::Result<String> {
    let (owner, name) = fixture::REPOSITORY.split_once('/').context("owner/name")?;
    let (project, target, more) = (fixture::PROJECT, story.target(), story.rules());
    Ok(format!(
        "repo:\n  owner: {owner}\n  name: {name}\n  pr_target_branch: {target}\njira:\n  project_key: {project}\n\
         executor:\n  setup: [\"true\"]\n{more}"
    ))
}
