//! Ticket that requests a note, and the users and CI around it.

use std::{collections::BTreeMap, fmt, ops::RangeInclusive};

use serde_json::json;
use testkit::{
    JiraOptions, ScriptStep, fixture,
    github::{BranchRuleset, RulesetCondition, RunConclusion, StandInPullRequest},
};
use tokio::time::Instant;

use crate::{StandInVendors, cart_conflict::RESOLUTION, note_marker};

/// Prefix of the files of a change that are not the note: those of a ticket's command, and of a repair.
pub const NOISE: &str = "notes/noise-";

const PASSED: &str = "All checks passed";

/// Course of a note's pull request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteCourse {
    /// Its checks pass, and it is merged.
    #[default]
    Plain,
    /// Its branch requires signed commits.
    Signed,
    /// The base branch gets a file with the same name before the merge.
    Conflict,
    /// As [`NoteCourse::Conflict`], while the merge queue has the pull request and removes it therefore.
    QueueConflict,
    /// A check fails in the merge queue before the merge.
    Dequeued,
}

impl NoteCourse {
    /// Number of starts of work that the ticket states. Two ingests that assess a conflict at the same time may start a
    /// second resolution, which ends without a result, and a base that moves again during the resolution needs another one.
    pub(crate) const fn starts(self) -> RangeInclusive<usize> {
        match self {
            Self::Plain | Self::Signed => 1..=1,
            Self::Dequeued => 2..=2,
            Self::Conflict | Self::QueueConflict => 2..=4,
        }
    }

    /// Number of heads whose checks passed.
    pub(crate) const fn heads(self) -> usize {
        match self {
            Self::Plain | Self::Signed => 1,
            Self::Conflict | Self::QueueConflict | Self::Dequeued => 2,
        }
    }

    /// Maximum number of runs: `implement`, `finish`, one for the checks of each head, and those between the heads.
    #[must_use]
    pub const fn most_runs(self) -> u32 {
        match self {
            Self::Plain | Self::Signed => 3,
            Self::Dequeued => 5,
            Self::Conflict | Self::QueueConflict => 7,
        }
    }
}

impl fmt::Display for NoteCourse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Signed => "signed",
            Self::Conflict => "conflict",
            Self::QueueConflict => "queue conflict",
            Self::Dequeued => "dequeued",
        })
    }
}

/// Ticket of a note, in progress or done.
pub struct NoteTicket {
    /// Key of the ticket.
    pub key: String,
    /// Marker that selects the model's script.
    pub marker: String,
    /// Time of the request.
    pub asked: Instant,
    /// Time at which it was Done with a status comment about the merge.
    pub done: Option<Instant>,
    /// Course of the pull request.
    pub course: NoteCourse,
    /// Diff at the merge.
    pub(crate) diff: Option<String>,
    /// Head at the conflict or in the merge queue, from then on.
    turned: Option<String>,
}

impl NoteTicket {
    /// Workflow with forward transitions alone, as most are. A late transition of a frozen reporter is
    /// refused.
    #[must_use]
    pub fn workflow() -> JiraOptions {
        let ways = [
            ("To Do", "Ready for Agent"),
            ("Ready for Agent", "In Progress"),
            ("In Progress", "In Review"),
            ("In Review", "Done"),
        ];
        let transitions = ways.map(|(from, to)| (from.to_owned(), to.to_owned()));
        JiraOptions {
            transitions: transitions.to_vec(),
            ..JiraOptions::default()
        }
    }

    /// Creates a ticket and requests work on it, as a user.
    ///
    /// # Errors
    /// When the workflow forbids the transition.
    pub fn ask(vendors: &StandInVendors, number: usize) -> anyhow::Result<Self> {
        Self::ask_on(vendors, number, NoteCourse::Plain)
    }

    /// Creates a ticket as [`NoteTicket::ask`], with a course of its pull request. [`NoteTicket::set_branch_rules`] prepares
    /// the courses with signed commits and with the merge queue.
    ///
    /// # Errors
    /// When the workflow forbids the transition.
    pub fn ask_on(vendors: &StandInVendors, number: usize, course: NoteCourse) -> anyhow::Result<Self> {
        let (key, marker) = (vendors.ask_for_note(number)?, note_marker(number));
        match course {
            NoteCourse::Plain | NoteCourse::Signed => {}
            NoteCourse::Conflict | NoteCourse::QueueConflict => {
                let script = build_resolution_script(&key);
                vendors.model.set_script_of(RESOLUTION, &marker, script);
            }
            NoteCourse::Dequeued => {
                let start = "Checks failed on the pull request";
                vendors
                    .model
                    .set_script_of(start, &marker, build_repair_script(&key));
            }
        }
        Ok(Self {
            key,
            marker,
            asked: Instant::now(),
            done: None,
            course,
            diff: None,
            turned: None,
        })
    }

    /// Gives the base branch a merge queue, and requires signed commits on the branches of these tickets. The numbers are
    /// those of tickets that are created in order as the first ones of the project.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn set_branch_rules(vendors: &StandInVendors, signed: &[usize]) -> anyhow::Result<()> {
        let branch = |number: &usize| fixture::note_branch(&format!("{}-{number}", fixture::PROJECT));
        let signed = BranchRuleset {
            branches: signed.iter().map(branch).collect(),
            conditions: vec![RulesetCondition::SignedCommits],
            ..BranchRuleset::default()
        };
        let queue = BranchRuleset {
            branches: vec!["main".to_owned()],
            conditions: vec![RulesetCondition::MergeQueue],
            ..BranchRuleset::default()
        };
        vendors.github.set_rulesets(fixture::REPOSITORY, &[signed, queue])
    }

    /// Finds the ticket's pull request by its branch.
    pub fn pull_request<'a>(
        &self,
        pulls: &'a BTreeMap<String, StandInPullRequest>,
    ) -> Option<&'a StandInPullRequest> {
        pulls.get(&fixture::note_branch(&self.key))
    }

    /// Returns the text of all comments on the ticket.
    pub fn said(&self, vendors: &StandInVendors) -> String {
        let comments = vendors.jira.comments(&self.key).into_iter();
        comments.map(|comment| comment.text).collect()
    }

    /// Acts on several tickets as [`NoteTicket::attend`]. Returns true if all are done.
    ///
    /// # Errors
    /// When a stand-in refuses.
    pub fn attend_all(vendors: &StandInVendors, notes: &mut [Self]) -> anyhow::Result<bool> {
        let pulls = vendors.github.pull_requests(fixture::REPOSITORY).into_iter();
        let pulls = pulls.map(|pull| (pull.head.clone(), pull)).collect();
        for note in notes.iter_mut().filter(|note| note.done.is_none()) {
            note.attend(vendors, &pulls)?;
        }
        Ok(notes.iter().all(|note| note.done.is_some()))
    }

    /// Acts as CI and users, and records when the ticket is done.
    ///
    /// # Errors
    /// When a stand-in refuses.
    pub fn attend(
        &mut self,
        vendors: &StandInVendors,
        pulls: &BTreeMap<String, StandInPullRequest>,
    ) -> anyhow::Result<()> {
        if let Some(pull) = self.pull_request(pulls).filter(|pull| pull.open) {
            let (github, repository, head) = (&vendors.github, fixture::REPOSITORY, &pull.head_sha);
            if !github.is_checked(repository, head) {
                vendors.report_tests(head, true, "ok")?;
            } else if !pull.draft && self.turn(vendors, pull)? {
                self.diff = Some(github.diff(repository, "main", head)?);
                github.merge(repository, pull.number, "grace")?;
            }
        }
        let is_done = vendors.jira.status(&self.key).as_deref() == Some("Done");
        if is_done && self.said(vendors).contains("merged") {
            self.done.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// Makes the conflict or the failure in the merge queue. Returns true if the pull request may be merged.
    fn turn(&mut self, vendors: &StandInVendors, pull: &StandInPullRequest) -> anyhow::Result<bool> {
        let (github, repository) = (&vendors.github, fixture::REPOSITORY);
        if let Some(turned) = &self.turned {
            // A merge before the ticket states the checks of the new head would leave the statement out.
            let stated = self.said(vendors).matches(PASSED).count();
            return Ok(*turned != pull.head_sha && stated >= self.course.heads());
        }
        match self.course {
            NoteCourse::Plain | NoteCourse::Signed => return Ok(true),
            NoteCourse::Conflict | NoteCourse::QueueConflict => {
                if self.course == NoteCourse::QueueConflict {
                    github.enqueue(repository, pull.number, "grace")?;
                }
                let (path, content) = describe_base_file(&self.key);
                github.commit(repository, "main", "Note by a person", &[(&path, &content)])?;
            }
            NoteCourse::Dequeued => {
                let commit = github.enqueue(repository, pull.number, "grace")?;
                let failed = [("notes", RunConclusion::Failure, "AssertionError: no second note")];
                github.run_checks(repository, &commit, &failed)?;
                github.dequeue(repository, pull.number, "CI_FAILURE", "github-merge-queue[bot]")?;
            }
        }
        self.turned = Some(pull.head_sha.clone());
        Ok(false)
    }
}

/// Path and content of the file that the base branch gets in the courses with a conflict.
pub(crate) fn describe_base_file(key: &str) -> (String, String) {
    let (path, _) = fixture::describe_note_file(key);
    (path, format!("A person wrote about {key}, too.\n"))
}

/// Model replies that keep both notes.
fn build_resolution_script(key: &str) -> Vec<ScriptStep> {
    let ((path, ours), (_, theirs)) = (fixture::describe_note_file(key), describe_base_file(key));
    vec![
        ScriptStep::call("read_file", json!({"path": path})),
        ScriptStep::call(
            "write_file",
            json!({"path": path, "content": format!("{ours}{theirs}")}),
        ),
        ScriptStep::call(
            "finish",
            json!({"type": "feat", "title": format!("Merge main into the note of {key}"),
                "summary": "Keeps both notes."}),
        ),
    ]
}

/// Model replies that add the file for which the check in the merge queue asks.
fn build_repair_script(key: &str) -> Vec<ScriptStep> {
    let path = format!("{NOISE}{}.md", key.to_lowercase());
    vec![
        ScriptStep::call("write_file", json!({"path": path, "content": "A second note.\n"})),
        ScriptStep::call(
            "finish",
            json!({"type": "fix", "title": "Add the second note",
                "summary": "The check asks for a second note."}),
        ),
    ]
}
