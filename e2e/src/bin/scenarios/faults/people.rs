//! One ticket under faults: how far it has come as it shows outside, and what struck it since.

use std::collections::BTreeMap;

use e2e::{Note, Vendors};
use testkit::github::PullRequestState;
use tokio::time::Instant;

/// After so many strikes without a step a ticket is spared. One strike can cost two takeovers.
const MOST_STRIKES: usize = 2;

/// One ticket on its way.
pub(crate) struct Ticket {
    pub(crate) note: Note,
    mark: Mark,
    /// The strikes since its last step.
    struck: Vec<Instant>,
}

/// How far Journeyman has come, as it shows.
#[derive(Default, PartialEq, Eq)]
struct Mark {
    model_calls: usize,
    status: String,
    said: usize,
    /// A draft, or ready.
    pull_request: Option<bool>,
}

impl Ticket {
    /// A person files it and moves it to the status that asks for work.
    pub(crate) fn ask(vendors: &Vendors, number: usize) -> anyhow::Result<Self> {
        Ok(Self {
            note: Note::ask(vendors, number)?,
            mark: Mark::default(),
            struck: Vec::new(),
        })
    }

    /// A fault strikes while the ticket is under way.
    pub(crate) fn struck(&mut self, now: Instant) {
        if self.note.done.is_none() {
            self.struck.push(now);
        }
    }

    /// Whether another strike might be the ticket's fifth without a step, after which it would be set aside.
    pub(crate) fn is_hard_hit(&self) -> bool {
        self.note.done.is_none() && self.struck.len() >= MOST_STRIKES
    }

    /// CI and people do what is theirs to do; gives the strikes since its last step when it has taken one.
    pub(crate) fn look(
        &mut self,
        vendors: &Vendors,
        pulls: &BTreeMap<String, PullRequestState>,
        calls: &BTreeMap<String, usize>,
    ) -> anyhow::Result<Option<Vec<Instant>>> {
        self.note.attend(vendors, pulls)?;
        let mark = Mark {
            model_calls: calls.get(&self.note.marker).copied().unwrap_or_default(),
            status: vendors.jira.status(&self.note.key).unwrap_or_default(),
            said: self.note.said(vendors).len(),
            pull_request: self.note.pull_request(pulls).map(|pull| pull.draft),
        };
        let has_gone_on = self.mark != mark;
        self.mark = mark;
        Ok(has_gone_on.then(|| std::mem::take(&mut self.struck)))
    }
}
