//! How a story ended: everything that people and operators see, without what may differ between two stories.

use std::collections::BTreeMap;

use anyhow::Context;
use domain::{ReportRequest, Row, RunStatus, TicketKey};
use queue::{Bucket, Queue};
use testkit::{fixture, github, jira};

use crate::stage::{REFUSED, Stage, Story};

/// The final state of everything outside, and of the runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    branches: Vec<String>,
    pull_requests: Vec<BTreeMap<&'static str, String>>,
    files: BTreeMap<String, String>,
    statuses: Vec<String>,
    comments: Vec<String>,
    links: Vec<String>,
    labels: Vec<String>,
    runs: Vec<String>,
    dead_letters: Vec<String>,
    violations: Vec<String>,
    /// Not compared as it is: a reply that was lost is paid again.
    model_calls: usize,
}

impl Ending {
    /// Reads it.
    ///
    /// # Errors
    /// When the queue or a repository cannot be read.
    pub(crate) async fn of(stage: &Stage, queue: &Queue) -> anyhow::Result<Self> {
        let said = stage.jira.comments(&stage.key).into_iter();
        let ours = said.filter(|comment| comment.author == jira::WRITER_NAME);
        let mut comments: Vec<String> = ours.map(|comment| plain(&comment.text)).collect();
        let mut pull_requests = Vec::new();
        for pull in stage.pull_requests() {
            let said = stage.github.comments(fixture::REPOSITORY, pull.number);
            let ours = said
                .iter()
                .filter(|comment| comment.author == github::WRITER_LOGIN);
            comments.extend(ours.map(|comment| plain(&comment.body)));
            for thread in stage.github.threads(fixture::REPOSITORY, pull.number)? {
                let replies = stage.github.replies(fixture::REPOSITORY, pull.number, thread)?;
                comments.extend(replies.iter().map(|reply| plain(reply)));
            }
            pull_requests.push(BTreeMap::from([
                ("title", pull.title),
                ("body", plain(&pull.body)),
                ("author", pull.author),
                ("branches", format!("{} -> {}", pull.head, pull.base)),
                ("draft", pull.draft.to_string()),
                ("merged", pull.merged.to_string()),
                ("labels", pull.labels.join(" ")),
                ("reviewers", pull.requested_reviewers.join(" ")),
            ]));
        }
        let dead = queue.dead_letters().list(100).await?;
        let links = stage.jira.remote_links(&stage.key);
        let violations = [
            stage.github.violations(),
            stage.jira.violations(),
            stage.model.violations(),
        ];
        Ok(Self {
            branches: branches(stage),
            pull_requests,
            files: stage.merged_files()?,
            statuses: stage.jira.status_history(&stage.key),
            comments,
            links: links
                .iter()
                .map(|link| format!("{} {}", link.global_id, link.title))
                .collect(),
            labels: stage.jira.labels(&stage.key),
            runs: runs(stage, queue).await?,
            dead_letters: dead.into_iter().map(|(_, letter)| letter.reason).collect(),
            violations: violations.concat(),
            model_calls: stage.model.all_calls().len(),
        })
    }

    /// What is wrong with it even when nothing crashed.
    pub(crate) fn faults(&self, story: Story) -> Vec<String> {
        let mut faults = Vec::new();
        let mut expect = |holds: bool, what: &str| {
            if !holds {
                faults.push(what.to_owned());
            }
        };
        expect(
            self.branches.len() == 2,
            "there is one branch besides the default one",
        );
        expect(self.pull_requests.len() == 1, "there is one pull request");
        let (comments, runs) = match story {
            Story::Straight | Story::Detours => (1, 3),
            Story::Rounds => (2, 6),
        };
        expect(
            self.comments.len() == comments,
            "there is one status comment, and one reply to each comment of a review",
        );
        expect(self.links.len() == 1, "there is one link");
        expect(self.runs.len() == runs, "each job runs once");
        let right = ["To Do", "Ready for Agent", "In Progress", "Done"];
        expect(self.statuses == right, "each transition is made once");
        let cart = self.files.get("shop/cart.py").map_or("", String::as_str);
        expect(
            cart.contains("line.price * line.quantity"),
            "the right diff is merged",
        );
        let unreadable = usize::from(story == Story::Detours);
        expect(
            self.dead_letters.len() == unreadable,
            "only what cannot be read is a dead letter, once",
        );
        faults.extend(
            self.violations
                .iter()
                .map(|broken| format!("broken protocol: {broken}")),
        );
        faults
    }

    /// How it differs from the story without a crash.
    pub(crate) fn differences(&self, usual: &Self, story: Story) -> Vec<String> {
        let mut found = self.faults(story);
        let mut compare = |what: &str, is: String, was: String| {
            if is != was {
                found.push(format!("{what}: {is}\n    instead of {was}"));
            }
        };
        let show = |ending: &Self| {
            [
                ("branches", format!("{:?}", ending.branches)),
                ("pull requests", format!("{:#?}", ending.pull_requests)),
                ("files", format!("{:?}", ending.files)),
                ("statuses", format!("{:?}", ending.statuses)),
                ("comments", format!("{:#?}", ending.comments)),
                ("links", format!("{:?}", ending.links)),
                ("labels", format!("{:?}", ending.labels)),
                ("runs", format!("{:?}", ending.runs)),
                ("dead letters", format!("{:?}", ending.dead_letters)),
            ]
        };
        for ((what, is), (_, was)) in show(self).into_iter().zip(show(usual)) {
            compare(what, is, was);
        }
        // A call whose answers cannot be read is made of two.
        let again = if story == Story::Detours { 2 } else { 1 };
        let most = usual.model_calls + again;
        if !(usual.model_calls..=most).contains(&self.model_calls) {
            found.push(format!("{} model calls, at most {most}", self.model_calls));
        }
        found
    }
}

/// Each run with its job and the way it ended.
async fn runs(stage: &Stage, queue: &Queue) -> anyhow::Result<Vec<String>> {
    let ended = |status: &RunStatus| match status {
        RunStatus::Finished { reason } => reason.as_str().to_owned(),
        other => format!("{other:?}"),
    };
    let row = row(stage, queue).await?.context("no row")?;
    let mut runs: Vec<_> = row
        .runs
        .iter()
        .map(|run| format!("{} {} turns={}", run.job.as_str(), ended(&run.status), run.turns))
        .collect();
    runs.sort();
    Ok(runs)
}

async fn row(stage: &Stage, queue: &Queue) -> anyhow::Result<Option<Row>> {
    let table = queue.table::<Row>(Bucket::Tickets);
    let ticket = TicketKey::jira(&stage.key)?;
    Ok(table.get(&ticket.to_string()).await?.map(|(row, _)| row))
}

/// Whether everything that was asked for is done and folded in.
///
/// # Errors
/// When the queue cannot be read.
pub(crate) async fn is_at_rest(stage: &Stage, queue: &Queue) -> anyhow::Result<bool> {
    let ticket = TicketKey::jira(&stage.key)?;
    let Some(row) = row(stage, queue).await? else {
        return Ok(false);
    };
    let triggers = queue.triggers().read_after(&ticket, 0).await?;
    let reports = queue.reports().read_after(&ticket, 0).await?;
    let is_settled = |id: &str| {
        let key = format!("settled:{id}");
        triggers.iter().any(|(_, trigger)| trigger.key.as_str() == key)
    };
    // Nobody waits for the word that a phase began: it settles nothing, and reports end in their order.
    let mut awaited = reports
        .iter()
        .filter(|(_, report)| !matches!(report.request, ReportRequest::Progressed(_)));
    let all_settled = awaited.all(|(_, report)| is_settled(report.id.as_str()));
    let is_over = |status: &RunStatus| matches!(status, RunStatus::Finished { .. });
    let last = triggers.last().map_or(0, |(sequence, _)| *sequence);
    Ok(all_settled && row.cursor >= last && row.runs.iter().all(|run| is_over(&run.status)))
}

/// A text without its numbers, without commits, and without the time since the start, which a crash makes longer.
fn plain(text: &str) -> String {
    let is_commit = |word: &str| word.len() == 12 && word.chars().all(|c| c.is_ascii_hexdigit());
    let parts = text
        .split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .map(|part| {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            match is_commit(word) {
                true => part.replace(word, "commit"),
                false => part.to_owned(),
            }
        });
    let text: String = parts.collect();
    let mut plain = String::new();
    for character in text.chars() {
        match character.is_ascii_digit() {
            true if plain.ends_with('#') => {}
            true => plain.push('#'),
            false => plain.push(character),
        }
    }
    plain
        .replace(", # min # s after the start", "")
        .replace(", # s after the start", "")
}

/// The branches that stand there, but that of the refused pull request.
fn branches(stage: &Stage) -> Vec<String> {
    let all = stage.github.branches(fixture::REPOSITORY).into_keys();
    all.filter(|branch| branch != REFUSED).collect()
}
