//! End of a story: everything that users and operators see, without details that may differ between two runs
//! of a story.

use std::collections::BTreeMap;

use anyhow::Context;
use domain::{OutboundAction, OutboundRequest, RunStatus, TicketKey, TicketRow};
use e2e::cart_conflict::BOTH;
use queue::{KeyValueBucket, Queue};
use testkit::{fixture, github, jira};

use crate::crash_matrix::{
    people::{discussion, issue, mergeable, triaged_tickets},
    stage::{MatrixStage, MatrixStory, REFUSED},
};

/// Final state of the external services and of the runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoryEnding {
    branches: Vec<String>,
    pull_requests: Vec<BTreeMap<&'static str, String>>,
    files: BTreeMap<String, String>,
    statuses: Vec<String>,
    comments: Vec<String>,
    links: Vec<String>,
    labels: Vec<String>,
    /// Further state of an issue, a discussion, a review or a branch.
    seen: Vec<String>,
    runs: Vec<String>,
    dead_letters: Vec<String>,
    violations: Vec<String>,
    /// Number of model calls. It is compared with a tolerance, because a lost reply is requested again.
    model_calls: usize,
}

impl StoryEnding {
    /// Reads the final state.
    ///
    /// # Errors
    /// When the queue or a repository cannot be read.
    pub(crate) async fn of(stage: &MatrixStage, queue: &Queue) -> anyhow::Result<Self> {
        let said = stage.jira.comments(&stage.key).into_iter();
        let ours = said.filter(|comment| comment.author == jira::WRITER_NAME);
        let mut comments: Vec<String> = ours.map(|comment| normalize_text(&comment.text)).collect();
        let (words, seen) = match stage.story {
            MatrixStory::Straight | MatrixStory::Detours | MatrixStory::Rounds => (Vec::new(), Vec::new()),
            MatrixStory::Issue => (words_on_issue(stage), stage.seen_of_issue()?),
            MatrixStory::Asked => (Vec::new(), stage.seen_of_asked()?),
            MatrixStory::Talk => (stage.words_in_talk()?, stage.seen_of_talk()?),
            MatrixStory::Mergeable => (Vec::new(), stage.seen_of_mergeable()?),
        };
        comments.extend(words.iter().map(|words| normalize_text(words)));
        let mut pull_requests = Vec::new();
        for pull in stage.pull_requests() {
            let said = stage.github.comments(fixture::REPOSITORY, pull.number);
            let ours = said
                .iter()
                .filter(|comment| comment.author == github::WRITER_LOGIN);
            comments.extend(ours.map(|comment| normalize_text(&comment.body)));
            for thread in stage.github.threads(fixture::REPOSITORY, pull.number)? {
                let replies = stage.github.replies(fixture::REPOSITORY, pull.number, thread)?;
                comments.extend(replies.iter().map(|reply| normalize_text(reply)));
            }
            pull_requests.push(BTreeMap::from([
                ("title", pull.title),
                ("body", normalize_text(&pull.body)),
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
            branches: list_branches(stage),
            pull_requests,
            files: stage.merged_files()?,
            statuses: stage.jira.status_history(&stage.key),
            comments,
            links: links
                .iter()
                .map(|link| format!("{} {}", link.global_id, link.title))
                .collect(),
            labels: stage.jira.labels(&stage.key),
            seen,
            runs: list_runs(stage, queue).await?,
            dead_letters: dead.into_iter().map(|(_, letter)| letter.reason).collect(),
            violations: violations.concat(),
            model_calls: stage.model.all_calls().len(),
        })
    }

    /// Finds faults that are independent of any crash.
    pub(crate) fn faults(&self, story: MatrixStory) -> Vec<String> {
        let mut faults = match story {
            MatrixStory::Straight | MatrixStory::Detours | MatrixStory::Rounds => self.faults_at_jira(story),
            MatrixStory::Issue => self.faults_of_issue(),
            MatrixStory::Asked => self.faults_of_asked(),
            MatrixStory::Talk => self.faults_of_talk(),
            MatrixStory::Mergeable => self.faults_of_mergeable(),
        };
        faults.extend(
            self.violations
                .iter()
                .map(|broken| format!("broken protocol: {broken}")),
        );
        faults
    }

    fn faults_of_issue(&self) -> Vec<String> {
        let cart = self.files.get("shop/cart.py").map_or("", String::as_str);
        let pulls = self.pull_requests.iter();
        let merged = pulls.filter(|pull| pull["merged"] == "true" && pull["labels"] == "by an agent");
        list_broken_expectations([
            (
                self.seen == issue::SEEN,
                "the issue is triaged, assigned again and closed",
            ),
            (
                self.comments.len() == 2,
                "there is one status comment, and one that asks for a decision",
            ),
            (
                self.pull_requests.len() == 1 && merged.count() == 1,
                "there is one pull request, labeled and merged",
            ),
            (
                cart.contains("line.price * line.quantity"),
                "the right diff is merged",
            ),
            (self.dead_letters.is_empty(), "there is no dead letter"),
        ])
    }

    fn faults_of_asked(&self) -> Vec<String> {
        let draft = |pull: &BTreeMap<&str, String>| pull["draft"] == "true" && pull["merged"] == "false";
        list_broken_expectations([
            (
                self.seen == triaged_tickets::SEEN,
                "the second ticket is sorted and linked, the first given back",
            ),
            (
                self.comments.len() == 3,
                "there is one answer, one status comment and one call",
            ),
            (
                self.pull_requests.len() == 1 && self.pull_requests.iter().all(draft),
                "there is one draft",
            ),
            (self.runs.len() == 6, "each job runs once"),
            (self.dead_letters.is_empty(), "there is no dead letter"),
        ])
    }

    fn faults_of_talk(&self) -> Vec<String> {
        list_broken_expectations([
            (
                self.seen == discussion::SEEN,
                "there is each issue, the answer and the review once",
            ),
            (
                self.comments.len() == 6,
                "there is one research with two threads, one summary, one list of issues and one last word",
            ),
            (self.runs.len() == 5, "each job runs once"),
            (self.dead_letters.is_empty(), "there is no dead letter"),
        ])
    }

    fn faults_of_mergeable(&self) -> Vec<String> {
        let merged = |pull: &BTreeMap<&str, String>| pull["merged"] == "true";
        let has = |path: &str, text: &str| self.files.get(path).is_some_and(|file| file.contains(text));
        list_broken_expectations([
            (
                self.seen == mergeable::SEEN,
                "there is each commit once: of the work, the update, the resolution and the repair, all signed",
            ),
            (self.branches.len() == 2, "no branch of the merge queue is left"),
            (
                self.pull_requests.len() == 1 && self.pull_requests.iter().all(merged),
                "there is one pull request, which is merged",
            ),
            (
                has("shop/cart.py", BOTH) && has("notes/moved.md", "On.") && has("notes/cart.md", "Pieces."),
                "both sides of the conflict, the base and the repair are merged",
            ),
            (self.comments.len() == 1, "there is one status comment"),
            (self.links.len() == 1, "there is one link"),
            (self.runs.len() == 11, "each job runs once"),
            (
                self.statuses == ["To Do", "Ready for Agent", "In Progress", "Done"],
                "each transition is made once",
            ),
            (self.dead_letters.is_empty(), "there is no dead letter"),
        ])
    }

    fn faults_at_jira(&self, story: MatrixStory) -> Vec<String> {
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
            MatrixStory::Rounds => (2, 6),
            _ => (1, 3),
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
        let unreadable = usize::from(story == MatrixStory::Detours);
        expect(
            self.dead_letters.len() == unreadable,
            "only what cannot be read is a dead letter, once",
        );
        faults
    }

    /// Finds the differences from the story without a crash.
    pub(crate) fn differences(&self, usual: &Self, story: MatrixStory) -> Vec<String> {
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
                ("what is seen", format!("{:#?}", ending.seen)),
                ("runs", format!("{:?}", ending.runs)),
                ("dead letters", format!("{:?}", ending.dead_letters)),
            ]
        };
        for ((what, is), (_, was)) in show(self).into_iter().zip(show(usual)) {
            compare(what, is, was);
        }
        let again = match story {
            // A read of answers that fails to parse is two model calls.
            MatrixStory::Detours => 2,
            // After a takeover the new planner calls the unavailable model again.
            MatrixStory::Issue => 8,
            MatrixStory::Straight
            | MatrixStory::Rounds
            | MatrixStory::Asked
            | MatrixStory::Talk
            | MatrixStory::Mergeable => 1,
        };
        let most = usual.model_calls + again;
        if !(usual.model_calls..=most).contains(&self.model_calls) {
            found.push(format!("{} model calls, at most {most}", self.model_calls));
        }
        found
    }
}

/// Lists job, end and turns of each run.
async fn list_runs(stage: &MatrixStage, queue: &Queue) -> anyhow::Result<Vec<String>> {
    let ended = |status: &RunStatus| match status {
        RunStatus::Finished { reason } => reason.as_str().to_owned(),
        other => format!("{other:?}"),
    };
    let mut runs = Vec::new();
    for ticket in &stage.tickets {
        let row = read_row(ticket, queue).await?.context("no row")?;
        runs.extend(
            row.runs
                .iter()
                .map(|run| format!("{} {} turns={}", run.job.as_str(), ended(&run.status), run.turns)),
        );
    }
    runs.sort();
    Ok(runs)
}

async fn read_row(ticket: &TicketKey, queue: &Queue) -> anyhow::Result<Option<TicketRow>> {
    let table = queue.table::<TicketRow>(KeyValueBucket::Tickets);
    Ok(table.get(&ticket.to_string()).await?.map(|(row, _)| row))
}

/// True if all requested work is done and contained in the tickets' rows.
///
/// # Errors
/// When the queue cannot be read.
pub(crate) async fn is_at_rest(stage: &MatrixStage, queue: &Queue) -> anyhow::Result<bool> {
    for ticket in &stage.tickets {
        if !is_ticket_at_rest(ticket, queue).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn is_ticket_at_rest(ticket: &TicketKey, queue: &Queue) -> anyhow::Result<bool> {
    let Some(row) = read_row(ticket, queue).await? else {
        return Ok(false);
    };
    let triggers = queue.triggers().read_after(ticket, 0).await?;
    let reports = queue.reports().read_after(ticket, 0).await?;
    let is_settled = |id: &str| {
        let key = format!("settled:{id}");
        triggers.iter().any(|(_, trigger)| trigger.key.as_str() == key)
    };
    // Two kinds of reports settle nothing: progress notes, and reports without a run. The others settle in
    // order.
    let is_awaited = |report: &OutboundRequest| {
        report.run.is_some() && !matches!(report.request, OutboundAction::Progressed(_))
    };
    let mut awaited = reports.iter().filter(|(_, report)| is_awaited(report));
    let all_settled = awaited.all(|(_, report)| is_settled(report.id.as_str()));
    let is_over = |status: &RunStatus| matches!(status, RunStatus::Finished { .. });
    let last = triggers.last().map_or(0, |(sequence, _)| *sequence);
    Ok(all_settled && row.cursor >= last && row.runs.iter().all(|run| is_over(&run.status)))
}

fn list_broken_expectations<const N: usize>(expected: [(bool, &str); N]) -> Vec<String> {
    let broken = expected.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, what)| what.to_owned()).collect()
}

/// Returns our comments on the issue.
fn words_on_issue(stage: &MatrixStage) -> Vec<String> {
    let number = stage.issue_number().unwrap_or_default();
    let comments = stage.github.comments(fixture::REPOSITORY, number).into_iter();
    let ours = comments.filter(|comment| comment.author == github::WRITER_LOGIN);
    ours.map(|comment| comment.body).collect()
}

/// Normalizes a text: removes numbers, commits and the time since the start, which a crash prolongs.
fn normalize_text(text: &str) -> String {
    // Abbreviated commit ids have 12 digits, full ones 40.
    let is_commit = |word: &str| matches!(word.len(), 12 | 40) && word.chars().all(|c| c.is_ascii_hexdigit());
    let parts = text
        .split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .map(|part| {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if is_commit(word) {
                part.replace(word, "commit")
            } else {
                part.to_owned()
            }
        });
    let text: String = parts.collect();
    let mut plain = String::new();
    for character in text.chars() {
        if !character.is_ascii_digit() {
            plain.push(character);
        } else if !plain.ends_with('#') {
            plain.push('#');
        }
    }
    plain
        // A poll that precedes its webhook does not know who pushed, or who closed a pull request.
        .replace("`somebody` pushed", "`rita` pushed")
        .replace("somebody", "grace")
        .replace(", # min # s after the start", "")
        .replace(", # s after the start", "")
}

/// Lists the branches without that of the refused pull request.
fn list_branches(stage: &MatrixStage) -> Vec<String> {
    let all = stage.github.branches(fixture::REPOSITORY).into_keys();
    all.filter(|branch| branch != REFUSED).collect()
}
