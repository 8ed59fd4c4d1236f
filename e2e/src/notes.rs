//! A ticket that asks for a note of its own, and what people and CI do with it.

use std::collections::BTreeMap;

use testkit::{
    JiraOptions, fixture,
    github::{Conclusion, PullRequestState},
};
use tokio::time::Instant;

use crate::{Vendors, note_marker};

/// One ticket on its way.
pub struct Note {
    /// The ticket.
    pub key: String,
    /// What the model's script is found by.
    pub marker: String,
    /// When the work was asked for.
    pub asked: Instant,
    /// When it was Done and said to be merged.
    pub done: Option<Instant>,
    /// What the person saw who merged it.
    pub(crate) diff: Option<String>,
}

impl Note {
    /// A workflow that leads forward only, as most do: what a frozen reporter sends late is refused.
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

    /// A person files it and moves it to the status that asks for work.
    ///
    /// # Errors
    /// When the workflow forbids it.
    pub fn ask(vendors: &Vendors, number: usize) -> anyhow::Result<Self> {
        Ok(Self {
            key: vendors.ask_for_note(number)?,
            marker: note_marker(number),
            asked: Instant::now(),
            done: None,
            diff: None,
        })
    }

    /// Its pull request among all, by branch.
    pub fn pull_request<'a>(
        &self,
        pulls: &'a BTreeMap<String, PullRequestState>,
    ) -> Option<&'a PullRequestState> {
        pulls.get(&fixture::note_branch(&self.key))
    }

    /// Everything that was said on the ticket.
    pub fn said(&self, vendors: &Vendors) -> String {
        let comments = vendors.jira.comments(&self.key).into_iter();
        comments.map(|comment| comment.text).collect()
    }

    /// [`Note::attend`] for many; true when all are done.
    ///
    /// # Errors
    /// When the stand-ins refuse.
    pub fn attend_all(vendors: &Vendors, notes: &mut [Self]) -> anyhow::Result<bool> {
        let pulls = vendors.github.pull_requests(fixture::REPOSITORY).into_iter();
        let pulls = pulls.map(|pull| (pull.head.clone(), pull)).collect();
        for note in notes.iter_mut().filter(|note| note.done.is_none()) {
            note.attend(vendors, &pulls)?;
        }
        Ok(notes.iter().all(|note| note.done.is_some()))
    }

    /// CI and people do what is theirs to do; notes when the ticket is done.
    ///
    /// # Errors
    /// When the stand-ins refuse.
    pub fn attend(
        &mut self,
        vendors: &Vendors,
        pulls: &BTreeMap<String, PullRequestState>,
    ) -> anyhow::Result<()> {
        if let Some(pull) = self.pull_request(pulls).filter(|pull| pull.open) {
            let (github, repository, head) = (&vendors.github, fixture::REPOSITORY, &pull.head_sha);
            if !github.is_checked(repository, head) {
                github.run_checks(repository, head, &[("test", Conclusion::Success, "ok")])?;
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
