//! The invariants, read from the stand-ins' final state and from what is stored.

use std::fmt;

use domain::{Row, RunStatus, StopReason};
use e2e::World;
use queue::Bucket;
use testkit::{
    fixture,
    github::{PullRequestState, WRITER_LOGIN},
    jira::WRITER_NAME,
};

use crate::people::Ticket;

/// Every status of a ticket, once each.
const STATUSES: [&str; 5] = ["To Do", "Ready for Agent", "In Progress", "In Review", "Done"];
/// What the status comment says, once each.
const WORDS: [&str; 4] = ["has started", "Draft", "All checks passed", "merged"];
/// `implement`, `mark_ready`, `finish`.
const RUNS: u32 = 3;

/// What kind of promise is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Something is missing or wrong.
    Lost,
    /// Something is there twice.
    Doubled,
}

/// One broken promise.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Whose; none when it is nobody's in particular.
    pub(crate) ticket: Option<String>,
    pub(crate) broken: Broken,
    what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticket = self.ticket.as_deref().unwrap_or("all");
        let broken = match self.broken {
            Broken::Lost => "lost",
            Broken::Doubled => "doubled",
        };
        write!(f, "{ticket}: {broken}: {}", self.what)
    }
}

/// Collects what is wrong with one ticket.
struct Findings<'a> {
    ticket: &'a str,
    problems: Vec<Problem>,
}

impl Findings<'_> {
    fn add(&mut self, broken: Broken, what: String) {
        self.problems.push(Problem {
            ticket: Some(self.ticket.to_owned()),
            broken,
            what,
        });
    }

    /// Exactly one is right; none is a loss, more are doubles.
    fn one(&mut self, what: &str, count: usize) {
        match count {
            0 => self.add(Broken::Lost, format!("no {what}")),
            1 => {}
            more => self.add(Broken::Doubled, format!("{what}, {more} times")),
        }
    }
}

/// Everything that is wrong now.
pub(crate) async fn check(world: &World, tickets: &[Ticket]) -> Vec<Problem> {
    let pulls = world.github.pull_requests(fixture::REPOSITORY);
    let branches: Vec<String> = world.github.branches(fixture::REPOSITORY).into_keys().collect();
    let main = world
        .github
        .branch_files(fixture::REPOSITORY, "main")
        .unwrap_or_default();
    let mut problems = Vec::new();
    for ticket in tickets {
        let mut findings = Findings {
            ticket: &ticket.key,
            problems: Vec::new(),
        };
        on_jira(world, &ticket.key, &mut findings);
        on_github(world, ticket, (&pulls, &branches), &mut findings);
        let (path, content) = fixture::note(&ticket.key);
        if main.get(&path) != Some(&content) {
            findings.add(Broken::Lost, format!("{path} on main"));
        }
        problems.append(&mut findings.problems);
    }
    match stored(world, tickets).await {
        Ok(mut found) => problems.append(&mut found),
        Err(error) => problems.push(nobodys(Broken::Lost, format!("what is stored: {error:#}"))),
    }
    let broken = world.violations().into_iter();
    problems.extend(broken.map(|violation| nobodys(Broken::Lost, violation)));
    problems
}

fn nobodys(broken: Broken, what: String) -> Problem {
    Problem {
        ticket: None,
        broken,
        what,
    }
}

fn on_jira(world: &World, key: &str, findings: &mut Findings<'_>) {
    let history = world.jira.status_history(key);
    for status in STATUSES {
        let count = history.iter().filter(|had| *had == status).count();
        findings.one(&format!("transition to {status}"), count);
    }
    findings.one("link on Jira", world.jira.remote_links(key).len());
    let ours: Vec<String> = world
        .jira
        .comments(key)
        .into_iter()
        .filter(|comment| comment.author == WRITER_NAME)
        .map(|comment| comment.text)
        .collect();
    findings.one("comment on Jira", ours.len());
    if let Some(text) = ours.first() {
        for words in WORDS {
            findings.one(&format!("{words:?} in the comment"), text.matches(words).count());
        }
    }
}

fn on_github(
    world: &World,
    ticket: &Ticket,
    (pulls, branches): (&[PullRequestState], &[String]),
    findings: &mut Findings<'_>,
) {
    let mine = |branch: &str| branch.contains(&format!("/{}-", ticket.key));
    findings.one("branch", branches.iter().filter(|branch| mine(branch)).count());
    let pulls: Vec<_> = pulls.iter().filter(|pull| mine(&pull.head)).collect();
    findings.one("pull request", pulls.len());
    for pull in pulls {
        if !pull.merged {
            findings.add(
                Broken::Lost,
                format!("pull request {} is not merged", pull.number),
            );
        }
        let comments = world.github.comments(fixture::REPOSITORY, pull.number);
        let ours = comments.iter().filter(|comment| comment.author == WRITER_LOGIN);
        if ours.count() > 0 {
            findings.add(Broken::Doubled, "a comment on the pull request too".to_owned());
        }
    }
    let (path, content) = fixture::note(&ticket.key);
    let diff = ticket.diff.as_deref().unwrap_or_default();
    let is_right = diff.matches("diff --git").count() == 1
        && diff.contains(&format!("+++ b/{path}"))
        && diff.ends_with(&format!("@@\n+{content}"));
    if !is_right {
        findings.add(Broken::Lost, format!("the right diff; it is {diff:?}"));
    }
}

async fn stored(world: &World, tickets: &[Ticket]) -> anyhow::Result<Vec<Problem>> {
    let mut problems: Vec<Problem> = world
        .dead_letters()
        .await?
        .into_iter()
        .map(|letter| nobodys(Broken::Lost, format!("dead letter: {letter}")))
        .collect();
    let rows = world.queue().await?.table::<Row>(Bucket::Tickets).list().await?;
    for ticket in tickets {
        let mut findings = Findings {
            ticket: &ticket.key,
            problems: Vec::new(),
        };
        let key = format!("jira:{}", ticket.key);
        match rows.iter().find(|(known, _)| *known == queue::Key::from(&key)) {
            None => findings.add(Broken::Lost, "no row".to_owned()),
            Some((_, row)) => of_row(row, &mut findings),
        }
        problems.append(&mut findings.problems);
    }
    Ok(problems)
}

fn of_row(row: &Row, findings: &mut Findings<'_>) {
    if let Some(reason) = &row.quarantined {
        findings.add(Broken::Lost, format!("set aside: {reason}"));
    }
    if row.opened > RUNS {
        findings.add(Broken::Doubled, format!("{} runs", row.opened));
    }
    for run in &row.runs {
        let is_good =
            matches!(&run.status, RunStatus::Finished { reason } if *reason == StopReason::Completed);
        if !is_good {
            findings.add(Broken::Lost, format!("{} is {:?}", run.id, run.status));
        }
    }
}
