//! The board of a ticket: what its one status comment says, and which comments are to be looked at again.

use domain::{
    Dollars, Job, Phase, RecordKind, ReportFence, ReportId, RunId, Stored, Timestamp, report::Progress,
};
use serde::{Deserialize, Serialize};

use crate::{made::Moved, rounds::Rounds};

/// More than this is not kept: the comment must stay readable and within the outside's limits.
const MAX_ENTRIES: usize = 20;

/// What the status comment says. Kept in the ledger; one writer at a time, by its fence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Board {
    /// The fence of who wrote it last.
    pub(crate) fence: ReportFence,
    /// Newest first.
    pub(crate) entries: Vec<Entry>,
    /// When work on the ticket started last.
    pub(crate) started_at: Option<Timestamp>,
    /// What became of the ticket's last move, as long as a person has to move it.
    #[serde(default)]
    pub(crate) unmoved: Option<Moved>,
    /// What was done, which no later word takes from sight.
    #[serde(default, skip_serializing_if = "Lasting::is_unknown")]
    pub(crate) lasting: Lasting,
    /// How far the run is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) standing: Option<Standing>,
    /// What was done on the pull request.
    #[serde(default, skip_serializing_if = "Rounds::is_empty")]
    pub(crate) rounds: Rounds,
    /// Whether the comment outside says what the entries say.
    pub(crate) is_shown: bool,
    /// Comments that are listed again, because lists lag behind what was written.
    #[serde(default)]
    pub(crate) watched: Vec<Watched>,
}

impl Stored for Board {
    const KIND: RecordKind = RecordKind::Ledger;
}

/// What was done for a ticket, as Markdown. An empty part is not said, and takes the place of an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lasting {
    /// What the author says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<String>,
    /// The changed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<String>,
}

impl Lasting {
    /// Nothing was done yet.
    pub(crate) const fn nothing() -> Self {
        Self {
            done: Some(String::new()),
            changed: Some(String::new()),
        }
    }

    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Each part as `change` makes it.
    pub(crate) fn map(self, change: impl Fn(String) -> String) -> Self {
        Self {
            done: self.done.map(&change),
            changed: self.changed.map(&change),
        }
    }
}

/// How far the run is that said something last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Standing {
    /// When that was known.
    pub(crate) at: Timestamp,
    /// The kind of work.
    pub(crate) job: Job,
    /// What the model is asked for now; absent when the run waits or has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<Phase>,
    /// How far the first clone is that it waits for, of a hundred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clone_percent: Option<u8>,
    /// What it has spent; absent where the price of a model is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Dollars>,
}

/// How work came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mark {
    /// It reached its goal.
    Done,
    /// It did not, and a person has to look.
    Failed,
    /// A person ended it, or it was never to begin.
    Stopped,
}

/// What one report says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The report.
    pub(crate) report: ReportId,
    /// When it was asked for.
    pub(crate) at: Timestamp,
    /// The run that asked.
    pub(crate) run: Option<RunId>,
    /// Markdown.
    pub(crate) text: String,
    /// Absent while work goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<Mark>,
}

/// A marker of which there may be more than one comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watched {
    /// The marker.
    pub(crate) marker: String,
    /// When every list shows what was written.
    pub(crate) due: Timestamp,
}

impl Board {
    /// Whether the comment outside says already what the report says; a report without words is said by what is there.
    pub(crate) fn shows(&self, report: &ReportId, has_words: bool) -> bool {
        match has_words {
            true => self.is_shown && self.has(report),
            false => self.is_shown || self.entries.is_empty(),
        }
    }

    /// Adds what a report says, once; `is_start` begins to count the time anew.
    pub(crate) fn add(&mut self, entry: Entry, is_start: bool) {
        if self.has(&entry.report) {
            return;
        }
        if is_start {
            self.started_at = Some(entry.at);
        }
        self.entries.insert(0, entry);
        self.entries.truncate(MAX_ENTRIES);
        self.is_shown = false;
    }

    /// Takes in how far the run is; `phase` is known only while the model is at work.
    pub(crate) fn stand(&mut self, at: Timestamp, progress: Progress, phase: Option<Phase>) {
        let Progress {
            job,
            cost,
            clone_percent,
            ..
        } = progress;
        let now = Standing {
            at,
            job,
            phase,
            clone_percent,
            cost,
        };
        if self.standing.is_some_and(|known| Standing { at, ..known } == now) {
            return;
        }
        self.standing = Some(now);
        self.is_shown = false;
    }

    /// Whether the ticket's work has reached its goal.
    pub(crate) fn is_done(&self) -> bool {
        let latest = self.entries.first();
        latest.is_some_and(|entry| entry.mark == Some(Mark::Done))
    }

    /// Notes what became of a move: one that was not made stays to be said until another one is.
    pub(crate) fn moved(&mut self, moved: &Moved) {
        self.unmoved = match moved {
            Moved::To(_) => None,
            Moved::Unavailable { .. } | Moved::Refused { .. } => Some(moved.clone()),
        };
    }

    /// Keeps what is new of what was done.
    pub(crate) fn keep(&mut self, lasting: Lasting) {
        let known = std::mem::take(&mut self.lasting);
        self.lasting = Lasting {
            done: lasting.done.or(known.done),
            changed: lasting.changed.or(known.changed),
        };
    }

    /// Has a marker's comments listed again.
    pub(crate) fn watch(&mut self, marker: &str, due: Timestamp) {
        self.watched.retain(|watched| watched.marker != marker);
        self.watched.push(Watched {
            marker: marker.to_owned(),
            due,
        });
    }

    fn has(&self, report: &ReportId) -> bool {
        self.entries.iter().any(|entry| entry.report == *report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(position: u64) -> Entry {
        let run = RunId::new("jira:ENG-12".parse().unwrap(), 7);
        Entry {
            report: run.call(position).into(),
            at: Timestamp::from_unix_ms(i64::try_from(position).unwrap() * 1000),
            run: Some(run),
            text: format!("text {position}"),
            mark: None,
        }
    }

    #[test]
    fn a_report_is_said_once_and_the_newest_stands_first() {
        let mut board = Board::default();
        board.add(entry(1), true);
        board.is_shown = true;
        assert!(board.shows(&entry(1).report, true));
        board.add(entry(1), true);
        assert!(board.is_shown, "nothing changed");
        board.add(entry(2), false);
        assert!(!board.shows(&entry(2).report, true) && !board.shows(&entry(1).report, true));
        assert!(
            !board.shows(&entry(3).report, false),
            "the comment does not say it yet"
        );
        assert!(
            Board::default().shows(&entry(3).report, false),
            "there is no comment"
        );
        assert_eq!(board.entries, [entry(2), entry(1)]);
        assert_eq!(board.started_at, Some(entry(1).at));
    }

    #[test]
    fn what_was_done_stays_until_there_is_something_new() {
        let mut board = Board::default();
        let done = |done: &str, changed: Option<&str>| Lasting {
            done: Some(done.to_owned()),
            changed: changed.map(str::to_owned),
        };
        board.keep(done("fixed", Some("a.rs")));
        board.keep(Lasting::default());
        assert_eq!(board.lasting, done("fixed", Some("a.rs")));
        board.keep(done("fixed again", None));
        assert_eq!(board.lasting, done("fixed again", Some("a.rs")));
        board.keep(Lasting::nothing());
        assert_eq!(board.lasting, done("", Some("")));
    }

    #[test]
    fn an_old_ticket_keeps_a_readable_board() {
        let mut board = Board::default();
        (1..100).for_each(|position| board.add(entry(position), false));
        assert_eq!(board.entries.len(), MAX_ENTRIES);
        assert_eq!(board.entries[0], entry(99));
    }
}
