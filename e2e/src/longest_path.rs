//! Longest path of a ticket: draft, failing checks, repair, a user's push, a review with three threads,
//! approval, merge. Stories check its end, and the bench counts its calls.

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::{
    ScriptStep, fixture,
    fixture::REPOSITORY,
    github::{RunConclusion, StandInPullRequest, WRITER_LOGIN},
};

use crate::TestWorld;

/// Account that issues are assigned to.
const AGENT: &str = "journeyman-agent";
/// CI output for the first head.
const RED: &str = "AssertionError: no note on rounding";
/// Reviewer, and the comments by file and line.
const REVIEWER: &str = "rita";
const THREADS: [(&str, u64, &str); 3] = [
    ("shop/cart.py", 3, "Please add a note on taxes."),
    ("shop/cart.py", 4, "Why is the discount last?"),
    ("shop/cart.py", 5, "Rename this to sum_of_all."),
];

/// Rules for both sources, for [`crate::Options::rules`].
pub const RULES: &str = "issues:\n  assignee: journeyman-agent\n";

/// Tracker of the ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoryTicketSource {
    /// Jira ticket that enters the status for work.
    Jira,
    /// GitHub issue that is assigned to the agent.
    GitHub,
}

/// Ticket on its longest path.
pub struct LongestPath<'a> {
    world: &'a TestWorld,
    source: StoryTicketSource,
    /// Jira key, or issue number.
    pub key: String,
    /// Subjects of the merged commits, oldest first.
    pub subjects: Vec<String>,
}

/// Plays the whole path in a world with [`RULES`], until the ticket is done.
///
/// # Errors
/// When a state is not reached within a minute; the error names the state.
pub async fn play_longest_path(
    world: &TestWorld,
    source: StoryTicketSource,
) -> anyhow::Result<LongestPath<'_>> {
    let key = ask_for_work(world, source)?;
    let mut whole = LongestPath {
        world,
        source,
        key,
        subjects: Vec::new(),
    };
    whole.repaired().await?;
    whole.built_upon().await?;
    whole.reviewed().await?;
    whole.subjects = world.github.subjects(REPOSITORY, whole.pull()?.number)?;
    whole.merged().await?;
    Ok(whole)
}

fn ask_for_work(world: &TestWorld, source: StoryTicketSource) -> anyhow::Result<String> {
    if source == StoryTicketSource::Jira {
        return world.ask();
    }
    let (title, body) = fixture::describe_shop_ticket();
    let number = world.github.open_issue_as(REPOSITORY, "ada", title, body)?;
    world.github.assign_issue(REPOSITORY, number, AGENT, REVIEWER)?;
    Ok(number.to_string())
}

impl LongestPath<'_> {
    /// Full ticket name with the tracker's prefix.
    #[must_use]
    pub fn ticket(&self) -> String {
        match self.source {
            StoryTicketSource::Jira => format!("jira:{}", self.key),
            StoryTicketSource::GitHub => format!("github:{REPOSITORY}#{}", self.key),
        }
    }

    /// Texts of our comments on the ticket.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        let (world, key) = (self.world, &self.key);
        match self.source {
            StoryTicketSource::Jira => world
                .jira
                .comments(key)
                .into_iter()
                .map(|said| said.text)
                .collect(),
            StoryTicketSource::GitHub => world
                .github
                .comments(REPOSITORY, key.parse().unwrap_or_default())
                .into_iter()
                .filter(|said| said.author == WRITER_LOGIN)
                .map(|said| said.body)
                .collect(),
        }
    }

    /// Returns the only pull request.
    ///
    /// # Errors
    /// When no pull request exists, or more than one.
    pub fn pull(&self) -> anyhow::Result<StandInPullRequest> {
        let pulls = self.world.github.pull_requests(REPOSITORY);
        ensure!(pulls.len() <= 1, "{} pull requests", pulls.len());
        pulls.into_iter().next().context("no pull request")
    }

    async fn until(
        &self,
        what: &str,
        holds: impl Fn(&StandInPullRequest) -> bool,
    ) -> anyhow::Result<StandInPullRequest> {
        let matching = async || self.pull().ok().filter(|pull| holds(pull));
        let found = self.world.until(what, matching).await;
        found.with_context(|| format!("the ticket says {:#?}", self.said()))
    }

    async fn green(&self) -> anyhow::Result<StandInPullRequest> {
        ensure!(self.world.run_ci().await?, "the change makes the tests pass");
        self.until("a ready pull request", |pull| !pull.draft).await
    }

    async fn repaired(&self) -> anyhow::Result<()> {
        let draft = self.until("a draft", |pull| pull.draft).await?;
        let script = fixture::build_repair_script("notes/rounding.md", RED);
        self.world
            .model
            .set_script_of("Checks failed on the pull request", "", script);
        let red = [("test", RunConclusion::Failure, RED)];
        self.world.github.run_checks(REPOSITORY, &draft.head_sha, &red)?;
        self.until("a repair", |pull| pull.head_sha != draft.head_sha)
            .await?;
        self.green().await?;
        Ok(())
    }

    /// Pushes as a user. The pull request is a draft until the checks of that commit pass.
    async fn built_upon(&self) -> anyhow::Result<()> {
        let files = [("notes/person.md", "By a person.\n")];
        let github = &self.world.github;
        github.commit(REPOSITORY, &self.pull()?.head, "Add a note of mine", &files)?;
        self.until("a draft after the push", |pull| pull.draft).await?;
        self.green().await?;
        Ok(())
    }

    async fn reviewed(&self) -> anyhow::Result<()> {
        let before = self.pull()?;
        let github = &self.world.github;
        // The review takes the next id, and its comments the following ones.
        let review = github.next_id();
        let reply = |nth: u64, disposition: &str, reply: &str| json!({"id": review + nth, "disposition": disposition, "reply": reply});
        let answered = ScriptStep::call(
            "finish",
            json!({"type": "docs", "scope": "cart", "title": "Add a note on taxes",
                    "summary": "Adds the note that the review asks for.", "replies": [
                        reply(1, "changed", "The note is in notes/taxes.md."),
                        reply(2, "answered", "A discount is a percentage of the sum."),
                        reply(3, "declined", "The name is part of the API.")]}),
        );
        let script = vec![
            ScriptStep::call(
                "write_file",
                json!({"path": "notes/taxes.md", "content": "Net.\n"}),
            )
            .expecting("Please add a note on taxes."),
            ScriptStep::call(
                "run_command",
                json!({"command": "sed -i '3s/$/  # See notes\\/taxes.md/' shop/cart.py"}),
            ),
            answered.clone(),
            // The planner questions a change of comments alone once, so the script finishes twice.
            answered,
        ];
        self.world
            .model
            .set_script_of("A review of the pull request", "", script);
        let verdict = ("changes_requested", "Nearly there.");
        github.review_lines(REPOSITORY, before.number, REVIEWER, verdict, &THREADS)?;
        self.until("the review addressed", |pull| {
            pull.draft && pull.head_sha != before.head_sha
        })
        .await?;
        let replied = async || {
            let mut threads = github.threads(REPOSITORY, before.number).ok()?.into_iter();
            threads
                .all(|thread| {
                    let replies = github.replies(REPOSITORY, before.number, thread);
                    replies.is_ok_and(|replies| replies.len() == 1)
                })
                .then_some(())
        };
        self.world.until("a reply in each thread", replied).await?;
        self.green().await?;
        self.until("the review asked for again", |pull| {
            pull.requested_reviewers == [REVIEWER]
        })
        .await?;
        Ok(())
    }

    async fn merged(&self) -> anyhow::Result<()> {
        let (github, number) = (&self.world.github, self.pull()?.number);
        github.review(REPOSITORY, number, REVIEWER, "approved", "Good.")?;
        github.merge(REPOSITORY, number, REVIEWER)?;
        self.world
            .until("the ticket done", async || self.is_done().then_some(()))
            .await
    }

    fn is_done(&self) -> bool {
        match self.source {
            StoryTicketSource::Jira => self.world.jira.status(&self.key).as_deref() == Some("Done"),
            StoryTicketSource::GitHub => {
                let number = self.key.parse().unwrap_or_default();
                let issue = self.world.github.issue(REPOSITORY, number);
                issue.is_some_and(|issue| !issue.open)
            }
        }
    }
}
