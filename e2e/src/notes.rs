//! Ticket that requests a note, and the users and CI around it.

use std::collections::BTreeMap;

use testkit::{JiraOptions, fixture, github::StandInPullRequest};
use tokio::time::Instant;

use crate::{StandInVendors, note_marker};

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
    /// Diff at the merge.
    pub(crate) diff: Option<String>,
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
        Ok(Self {
            key: vendors.ask_for_note(number)?,
            marker: note_marker(number),
            asked: Instant::now(),
            done: None,
            diff: None,
        })
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
            } else if !pull.draft {
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
}
