//! One story's outside: real NATS and Redis, and the stand-ins.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Context;
use domain::TicketKey;
use e2e::{Dialect, Outside, WEBHOOK_SECRET};
use tempfile::TempDir;
use testkit::{
    FakeGitHub, FakeJira, Fault, GitHubOptions, JiraOptions, NatsCluster, NatsOptions, NatsServer,
    RedisServer, ScriptedModel, fixture,
    github::{PROJECT_TOKEN, PullRequestState},
    jira,
};

use crate::crash_matrix::people::{self, People, asked, issue, talk};

/// Short waits, so that a story with a crash takes seconds.
const SETTINGS: [(&str, &str); 6] = [
    ("NATS__ACK_WAIT_MS", "1000"),
    ("REDIS__TTL_MS", "700"),
    ("INGEST__POLL_INTERVAL_S", "1"),
    ("INGEST__SWEEP_INTERVAL_S", "1"),
    ("REPORTER__UNKNOWN_WINDOW_S", "1"),
    ("REPORTER__LIST_LAG_S", "0"),
];

/// The branch of a pull request that was refused before the story begins.
pub(crate) const REFUSED: &str = "cart-total";

/// Where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:1/nowhere";

/// What is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Story {
    /// From a move on Jira to a merged pull request, nothing else.
    Straight,
    /// The same with trouble on the way: webhooks that do not come, a model that stays down until a person says `/retry`,
    /// a limit, an answer that is lost, a delivery that cannot be read.
    Detours,
    /// The same with red checks that are repaired, and a review that is addressed, before the merge.
    Rounds,
    /// An issue of GitHub: triaged, given back when the model stays down, approved by a comment, with jobs that run again and
    /// a commit without checks before the merge into a branch that is not the default one.
    Issue,
    /// Two tickets of Jira that are triaged, the second as a duplicate of the first; then a comment asks for the work, and a
    /// person is called for checks that its repair does not mend.
    Asked,
    /// A discussion that is researched, summed up, planned in issues and closed with its answer, and a review of a person's pull request.
    Talk,
}

impl Story {
    /// Whether its ticket is Jira's.
    pub(crate) fn is_at_jira(self) -> bool {
        matches!(self, Self::Straight | Self::Detours | Self::Rounds)
    }

    /// Rules beside those that every story has.
    fn rules(self) -> &'static str {
        match self {
            Self::Straight | Self::Detours | Self::Rounds => "",
            Self::Issue => issue::RULES,
            Self::Asked => asked::RULES,
            Self::Talk => talk::RULES,
        }
    }

    /// Where pull requests of ours go to.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::Issue => "next",
            Self::Straight | Self::Detours | Self::Rounds | Self::Asked | Self::Talk => "main",
        }
    }

    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Straight | Self::Rounds | Self::Asked | Self::Talk => &[],
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
    /// One, as on a laptop.
    #[value(name = "1")]
    One,
    /// Three, each with a copy of every stream, as in a cluster: what one acknowledges is not yet true of the others.
    #[value(name = "3")]
    Three,
}

/// The running servers.
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

/// The outside of one story.
pub(crate) struct Stage {
    pub(crate) github: FakeGitHub,
    pub(crate) jira: FakeJira,
    pub(crate) model: ScriptedModel,
    /// The services' settings.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) nats: RunningServers,
    _redis: RedisServer,
    folder: TempDir,
    /// The ticket at Jira; only the stories there ask for work on it.
    pub(crate) key: String,
    /// The tickets that the story is about, once they are there.
    pub(crate) tickets: Vec<TicketKey>,
    /// Where ingest takes webhooks.
    pub(crate) webhooks: String,
    pub(crate) story: Story,
    pub(crate) people: People,
}

impl Stage {
    /// Starts everything but the services, with the ticket filed.
    ///
    /// # Errors
    /// When something cannot be started.
    pub(crate) async fn start(story: Story, servers: NatsServers) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let data = folder.path().join("data");
        std::fs::create_dir_all(&data)?;
        let nats = RunningServers::start(servers, &data.join("nats")).await?;
        let redis = RedisServer::start_in(&data.join("redis")).await?;
        let github = FakeGitHub::start(GitHubOptions::default()).await?;
        github.create_repository(fixture::REPOSITORY, &fixture::files())?;
        let jira = FakeJira::start(JiraOptions::default()).await?;
        let model = ScriptedModel::start(fixture::script()).await?;
        let rules = folder.path().join("rules");
        std::fs::create_dir_all(&rules)?;
        std::fs::write(rules.join("shop.yaml"), rules_text(story)?)?;
        let outside = Outside {
            github_api: github.api_url(),
            github_git: github.git_url(),
            jira: jira.url(),
            model: model.url(),
        };
        let mut environment = outside.environment(Dialect::Anthropic, &rules);
        let mut set = |key: &str, value: String| environment.push((format!("JOURNEYMAN__{key}"), value));
        for (key, value) in SETTINGS.iter().chain(story.settings()) {
            set(key, (*value).to_owned());
        }
        set("NATS__URL", nats.url());
        set("NATS__REPLICAS", nats.replicas().to_string());
        set("REDIS__URL", redis.url());
        let ingest = e2e::free_port()?;
        set("INGEST__LISTEN", format!("127.0.0.1:{ingest}"));
        for section in ["PLANNER", "EXECUTOR", "REPORTER", "EGRESS"] {
            let port = e2e::free_port()?;
            set(&format!("{section}__LISTEN"), format!("127.0.0.1:{port}"));
        }
        let webhooks = format!("http://127.0.0.1:{ingest}/webhooks");
        let (summary, description) = fixture::ticket();
        // A story of triage files its tickets when somebody listens.
        let key = match story {
            Story::Asked => String::new(),
            _ => jira.create_issue(fixture::PROJECT, summary, description, "Bug", &[]),
        };
        let stage = Self {
            github,
            jira,
            model,
            environment,
            nats,
            _redis: redis,
            folder,
            tickets: match story.is_at_jira() {
                true => vec![TicketKey::jira(&key)?],
                false => Vec::new(),
            },
            key,
            webhooks,
            story,
            people: People::default(),
        };
        stage
            .model
            .set_script_of("Checks failed on the pull request", "", people::repair());
        stage.set_up()?;
        Ok(stage)
    }

    /// What is so before the services start.
    fn set_up(&self) -> anyhow::Result<()> {
        match self.story {
            Story::Straight | Story::Detours | Story::Rounds => self.set_up_background()?,
            Story::Issue => self.set_up_issue()?,
            Story::Asked => self.set_up_asked(),
            Story::Talk => self.set_up_talk(),
        }
        let jira = format!("{}/jira", self.webhooks);
        match self.story {
            Story::Straight | Story::Rounds | Story::Issue | Story::Asked | Story::Talk => {
                self.jira.set_webhook(&jira, WEBHOOK_SECRET);
                self.github
                    .set_webhook(&format!("{}/github", self.webhooks), WEBHOOK_SECRET);
            }
            Story::Detours => {
                self.jira.move_issue(&self.key, "Ready for Agent", "ada")?;
                self.jira.set_webhook(&jira, WEBHOOK_SECRET);
                self.github.set_webhook(NOWHERE, WEBHOOK_SECRET);
                self.jira.set_groups("ada", &["agents"]);
                self.model.garble_next(u32::MAX);
                let limited = Fault::new("/transitions", 1, 429).on("POST").retry_after(6);
                self.jira.fail_next(limited);
                let lost = Fault::new("/comment", 1, 502).on("POST").after_effect();
                self.jira.fail_next(lost);
            }
        }
        Ok(())
    }

    /// What the trackers know of the ticket: another one that it is linked with, and a pull request that was refused.
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

    /// The services' data folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The services' log.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("services.log")
    }

    /// What Journeyman says on the ticket at Jira.
    pub(crate) fn said(&self) -> String {
        let comments = self.jira.comments(&self.key).into_iter();
        let ours = comments.filter(|comment| comment.author == jira::WRITER_NAME);
        ours.map(|comment| comment.text).collect()
    }

    /// Every pull request but the refused one.
    pub(crate) fn pull_requests(&self) -> Vec<PullRequestState> {
        let mut pulls = self.github.pull_requests(fixture::REPOSITORY);
        pulls.retain(|pull| pull.head != REFUSED);
        pulls
    }

    /// The files of the branch that pull requests go to.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) fn merged_files(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let target = self.story.target();
        self.github.branch_files(fixture::REPOSITORY, target)
    }
}

fn rules_text(story: Story) -> anyhow::Result<String> {
    let (owner, name) = fixture::REPOSITORY.split_once('/').context("owner/name")?;
    let (project, target, more) = (fixture::PROJECT, story.target(), story.rules());
    Ok(format!(
        "repo:\n  owner: {owner}\n  name: {name}\n  pr_target_branch: {target}\njira:\n  project_key: {project}\n\
         executor:\n  setup: [\"true\"]\n{more}"
    ))
}
