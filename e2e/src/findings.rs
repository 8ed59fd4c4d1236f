//! Problems of finished tickets: every result must exist exactly once.

use std::{fmt, ops::RangeInclusive};

use testkit::{
    fixture,
    github::{StandInPullRequest, WRITER_LOGIN},
    jira::WRITER_NAME,
};

use crate::{NOISE, NoteCourse, NoteTicket, StandInVendors, notes::describe_base_file};

/// Statuses of a ticket, each of which occurs once.
const STATUSES: [&str; 5] = ["To Do", "Ready for Agent", "In Progress", "In Review", "Done"];
/// Texts of the status comment, each with the number of its occurrences.
const WORDS: [CountedText; 4] = [
    CountedText("has started", NoteCourse::starts),
    CountedText("Draft", |_| 1..=1),
    CountedText("All checks passed", |course| course.heads()..=course.heads()),
    CountedText("merged", |_| 1..=1),
];

/// Text with the number of its occurrences by the course of a pull request.
struct CountedText(&'static str, fn(NoteCourse) -> RangeInclusive<usize>);

/// Kind of a broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenPromise {
    /// A missing or wrong result.
    Lost,
    /// A result that exists twice.
    Doubled,
}

/// Broken promise about a ticket or the whole.
#[derive(Debug)]
pub struct TicketProblem {
    /// Key of the ticket, if the problem belongs to one.
    pub ticket: Option<String>,
    /// Kind of the problem.
    pub broken: BrokenPromise,
    what: String,
}

impl TicketProblem {
    /// Creates a problem that belongs to no ticket.
    pub fn general(what: String) -> Self {
        Self {
            ticket: None,
            broken: BrokenPromise::Lost,
            what,
        }
    }
}

impl fmt::Display for TicketProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticket = self.ticket.as_deref().unwrap_or("all");
        let broken = match self.broken {
            BrokenPromise::Lost => "lost",
            BrokenPromise::Doubled => "doubled",
        };
        write!(f, "{ticket}: {broken}: {}", self.what)
    }
}

/// Returns the problems that the stand-ins show for these tickets. All their pull requests should be merged.
pub fn find_outside_problems(vendors: &StandInVendors, notes: &[&NoteTicket]) -> Vec<TicketProblem> {
    let pulls = vendors.github.pull_requests(fixture::REPOSITORY);
    let branches: Vec<String> = vendors.github.branches(fixture::REPOSITORY).into_keys().collect();
    let main = vendors.github.branch_files(fixture::REPOSITORY, "main");
    let main = main.unwrap_or_default();
    let mut problems = Vec::new();
    for note in notes {
        let mut findings = TicketFindings::of(&note.key);
        on_jira(vendors, note, &mut findings);
        on_github(vendors, note, (&pulls, &branches), &mut findings);
        let (path, content) = fixture::describe_note_file(&note.key);
        let merged = content + &describe_kept_base(note);
        if main.get(&path) != Some(&merged) {
            findings.add(BrokenPromise::Lost, format!("{path} on main"));
        }
        problems.append(&mut findings.problems);
    }
    problems.extend(vendors.violations().into_iter().map(TicketProblem::general));
    problems
}

/// Content that the base branch had in the note's file, which the merge keeps.
fn describe_kept_base(note: &NoteTicket) -> String {
    match note.course {
        NoteCourse::Conflict | NoteCourse::QueueConflict => describe_base_file(&note.key).1,
        NoteCourse::Plain | NoteCourse::Signed | NoteCourse::Dequeued => String::new(),
    }
}

/// Removes the [`NOISE`] files from a diff.
fn without_noise(diff: &str) -> String {
    const FILE: &str = "diff --git ";
    let files = diff.split(FILE).skip(1);
    let others = files.filter(|file| !file.starts_with(&format!("a/{NOISE}")));
    others.flat_map(|file| [FILE, file]).collect()
}

/// Collector of one ticket's problems.
pub struct TicketFindings<'a> {
    ticket: &'a str,
    problems: Vec<TicketProblem>,
}

impl<'a> TicketFindings<'a> {
    /// Creates an empty collection.
    pub fn of(ticket: &'a str) -> Self {
        Self {
            ticket,
            problems: Vec::new(),
        }
    }

    /// Returns the collected problems.
    pub fn into_problems(self) -> Vec<TicketProblem> {
        self.problems
    }

    /// Adds a problem of the ticket.
    pub fn add(&mut self, broken: BrokenPromise, what: String) {
        self.problems.push(TicketProblem {
            ticket: Some(self.ticket.to_owned()),
            broken,
            what,
        });
    }

    /// Checks a count: zero is a loss, more than one a duplicate.
    fn one(&mut self, what: &str, count: usize) {
        self.within(what, count, &(1..=1));
    }

    /// Checks a count: less than expected is a loss, more a duplicate.
    fn within(&mut self, what: &str, count: usize, expected: &RangeInclusive<usize>) {
        if count == 0 {
            self.add(BrokenPromise::Lost, format!("no {what}"));
        } else if count < *expected.start() {
            self.add(BrokenPromise::Lost, format!("{what}, only {count} times"));
        } else if count > *expected.end() {
            self.add(BrokenPromise::Doubled, format!("{what}, {count} times"));
        }
    }
}

fn on_jira(vendors: &StandInVendors, note: &NoteTicket, findings: &mut TicketFindings<'_>) {
    let key = &note.key;
    let history = vendors.jira.status_history(key);
    for status in STATUSES {
        let count = history.iter().filter(|had| *had == status).count();
        findings.one(&format!("transition to {status}"), count);
    }
    findings.one("link on Jira", vendors.jira.remote_links(key).len());
    let ours: Vec<String> = vendors
        .jira
        .comments(key)
        .into_iter()
        .filter(|comment| comment.author == WRITER_NAME)
        .map(|comment| comment.text)
        .collect();
    findings.one("comment on Jira", ours.len());
    if let Some(text) = ours.first() {
        for CountedText(words, expected) in WORDS {
            let count = text.matches(words).count();
            findings.within(
                &format!("{words:?} in the comment"),
                count,
                &expected(note.course),
            );
        }
    }
}

fn on_github(
    vendors: &StandInVendors,
    note: &NoteTicket,
    (pulls, branches): (&[StandInPullRequest], &[String]),
    findings: &mut TicketFindings<'_>,
) {
    let mine = |branch: &str| branch.contains(&format!("/{}-", note.key));
    findings.one("branch", branches.iter().filter(|branch| mine(branch)).count());
    let pulls: Vec<_> = pulls.iter().filter(|pull| mine(&pull.head)).collect();
    findings.one("pull request", pulls.len());
    for pull in pulls {
        if !pull.merged {
            findings.add(
                BrokenPromise::Lost,
                format!("pull request {} is not merged", pull.number),
            );
        }
        let signature = vendors.github.signature_of(fixture::REPOSITORY, &pull.head_sha);
        if note.course == NoteCourse::Signed && !signature.is_ok_and(|verdict| verdict == "valid") {
            findings.add(BrokenPromise::Lost, "the signature of the head".to_owned());
        }
        let comments = vendors.github.comments(fixture::REPOSITORY, pull.number);
        let ours = comments.iter().filter(|comment| comment.author == WRITER_LOGIN);
        if ours.count() > 0 {
            findings.add(
                BrokenPromise::Doubled,
                "a comment on the pull request too".to_owned(),
            );
        }
    }
    let (path, content) = fixture::describe_note_file(&note.key);
    let diff = without_noise(note.diff.as_deref().unwrap_or_default());
    let base = describe_kept_base(note);
    let context = if base.is_empty() {
        String::new()
    } else {
        format!(" {base}")
    };
    let is_right = diff.matches("diff --git").count() == 1
        && diff.contains(&format!("+++ b/{path}"))
        && diff.ends_with(&format!("@@\n+{content}{context}"));
    if !is_right {
        findings.add(BrokenPromise::Lost, format!("the right diff; it is {diff:?}"));
    }
}
