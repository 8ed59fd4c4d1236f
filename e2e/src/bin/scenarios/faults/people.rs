//! Ticket under faults: its externally visible progress, and the strikes since the last step.

use std::collections::BTreeMap;

use e2e::{NoteCourse, NoteTicket, StandInVendors};
use testkit::github::StandInPullRequest;
use tokio::time::Instant;

// Strikes without progress after which a ticket is spared. One strike can cost two takeovers, and the fifth
// takeover quarantines a ticket.
const MOST_STRIKES: usize = 2;

/// Ticket with its progress.
pub(crate) struct FaultTicket {
    pub(crate) note: NoteTicket,
    mark: ProgressMark,
    /// Times of the strikes since its last step.
    struck: Vec<Instant>,
}

/// Externally visible progress of a ticket.
#[derive(Default, PartialEq, Eq)]
struct ProgressMark {
    model_calls: usize,
    status: String,
    said: usize,
    /// True for a draft, false for a pull request that is ready; with its head.
    pull_request: Option<(bool, String)>,
}

impl FaultTicket {
    /// Creates a ticket and requests work on it, as a user.
    pub(crate) fn ask(vendors: &StandInVendors, number: usize, course: NoteCourse) -> anyhow::Result<Self> {
        Ok(Self {
            note: NoteTicket::ask_on(vendors, number, course)?,
            mark: ProgressMark::default(),
            struck: Vec::new(),
        })
    }

    /// Records a strike while the ticket is in progress.
    pub(crate) fn struck(&mut self, now: Instant) {
        if self.note.done.is_none() {
            self.struck.push(now);
        }
    }

    /// True if another strike might quarantine the ticket, which happens at the fifth takeover without a
    /// step.
    pub(crate) fn is_hard_hit(&self) -> bool {
        self.note.done.is_none() && self.struck.len() >= MOST_STRIKES
    }

    /// Acts as CI and users. If the ticket has made a step, it returns the strikes since the previous one.
    pub(crate) fn act(
        &mut self,
        vendors: &StandInVendors,
        pulls: &BTreeMap<String, StandInPullRequest>,
        calls: &BTreeMap<String, usize>,
    ) -> anyhow::Result<Option<Vec<Instant>>> {
        self.note.attend(vendors, pulls)?;
        let mark = ProgressMark {
            model_calls: calls.get(&self.note.marker).copied().unwrap_or_default(),
            status: vendors.jira.status(&self.note.key).unwrap_or_default(),
            said: self.note.said(vendors).len(),
            pull_request: self
                .note
                .pull_request(pulls)
                .map(|pull| (pull.draft, pull.head_sha.clone())),
        };
        let has_gone_on = self.mark != mark;
        self.mark = mark;
        Ok(has_gone_on.then(|| std::mem::take(&mut self.struck)))
    }
}
