//! The board of a ticket: the content of its status comment, and the comments that are checked again for duplicates.

use domain::{
    Dollars, Job, OutboundId, RecordKind, ReporterFence, RepositoryName, RunId, RunPhase, StoredRecord,
    Timestamp, report::JobProgress,
};
use serde::{Deserialize, Serialize};

use crate::{receipt::TransitionResult, refused_notice::RefusedNotice, rounds::WorkRounds};

// Newest entries that the board keeps. The comment must stay readable and within the length limits of GitHub and
// Jira.
const MAX_ENTRIES: usize = 20;

/// Content of the status comment. It is stored in the ledger, and its fence allows one writer at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StatusBoard {
    /// Fence of the last writer.
    pub(crate) fence: ReporterFence,
    /// Entries of the comment, newest first.
    pub(crate) entries: Vec<BoardEntry>,
    /// Time at which work on the ticket started last.
    pub(crate) started_at: Option<Timestamp>,
    /// Failed transition of the ticket that a person has to make.
    #[serde(default)]
    pub(crate) unmoved: Option<TransitionResult>,
    /// Finished work, shown until newer finished work replaces it.
    #[serde(default, skip_serializing_if = "FinishedWork::is_unknown")]
    pub(crate) lasting: FinishedWork,
    /// Progress of the current run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) standing: Option<BoardProgress>,
    /// Rounds of work on the pull request, for its check run.
    #[serde(default, skip_serializing_if = "WorkRounds::is_empty")]
    pub(crate) rounds: WorkRounds,
    /// True if the comment shows the current content.
    pub(crate) is_shown: bool,
    /// Markers whose comments are listed again, because lists of GitHub and Jira lag behind writes.
    #[serde(default)]
    pub(crate) watched: Vec<WatchedMarker>,
}

impl StoredRecord for StatusBoard {
    const KIND: RecordKind = RecordKind::Ledger;
}

/// Finished work on a ticket, as Markdown. An empty part is not shown, and replaces an earlier one; an absent part
/// keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FinishedWork {
    /// The author's summary of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<String>,
    /// The list of changed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<String>,
}

impl FinishedWork {
    /// Both parts empty: a new start of work hides the earlier work.
    pub(crate) const fn nothing() -> Self {
        Self {
            done: Some(String::new()),
            changed: Some(String::new()),
        }
    }

    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Applies `change` to each present part.
    pub(crate) fn map(self, change: impl Fn(String) -> String) -> Self {
        Self {
            done: self.done.map(&change),
            changed: self.changed.map(&change),
        }
    }
}

/// Progress of the run that reported last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BoardProgress {
    /// Time of the report.
    pub(crate) at: Timestamp,
    /// Job of the run.
    pub(crate) job: Job,
    /// Phase in which the model works; absent while the run waits or after its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<RunPhase>,
    /// Progress of the first clone of the repository, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clone_percent: Option<u8>,
    /// Cost of the run so far; absent if a model has no known price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Dollars>,
}

/// End of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkEnd {
    /// The work reached its goal.
    Done,
    /// The work failed, and a person has to act.
    Failed,
    /// A person or a refusal ended the work, or it never began.
    Stopped,
}

/// Text of one report in the status comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BoardEntry {
    /// Id of the report.
    pub(crate) report: OutboundId,
    /// Time of the request for the report.
    pub(crate) at: Timestamp,
    /// Run that requested the report.
    pub(crate) run: Option<RunId>,
    /// Job of the run; absent in boards of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<Job>,
    /// Text in Markdown.
    pub(crate) text: String,
    /// End of the work; absent while it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<WorkEnd>,
}

/// Marker with which more than one comment may exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatchedMarker {
    /// Effect marker of the comments.
    pub(crate) marker: String,
    /// Conversation with the comments; absent for the thread of the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on: Option<WatchedConversation>,
    /// Refusal by the conversation of the ticket, because of which its status is elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<RefusedNotice>,
    /// Time from which every list shows the last write.
    pub(crate) due: Timestamp,
}

/// Conversation of a pull request, apart from the thread of its ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatchedConversation {
    /// Repository of the pull request.
    pub(crate) repository: RepositoryName,
    /// Number of the pull request.
    pub(crate) number: u64,
}

impl StatusBoard {
    /// Returns true if the comment already shows the report. A report without text is shown if the board is.
    pub(crate) fn shows(&self, report: &OutboundId, has_words: bool) -> bool {
        if has_words {
            self.is_shown && self.has(report)
        } else {
            self.is_shown || self.entries.is_empty()
        }
    }

    /// Adds the text of a report unless it is present. `is_start` restarts the clock of the work.
    pub(crate) fn add(&mut self, entry: BoardEntry, is_start: bool) {
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

    /// Updates the progress. `phase` is known only while the model works.
    pub(crate) fn stand(&mut self, at: Timestamp, progress: JobProgress, phase: Option<RunPhase>) {
        let JobProgress {
            job,
            cost,
            clone_percent,
            ..
        } = progress;
        let now = BoardProgress {
            at,
            job,
            phase,
            clone_percent,
            cost,
        };
        // A report that differs in its time alone causes no edit of the comment.
        if self
            .standing
            .is_some_and(|known| BoardProgress { at, ..known } == now)
        {
            return;
        }
        self.standing = Some(now);
        self.is_shown = false;
    }

    /// Returns true if the newest entry marks the work as done.
    pub(crate) fn is_done(&self) -> bool {
        let latest = self.entries.first();
        latest.is_some_and(|entry| entry.mark == Some(WorkEnd::Done))
    }

    /// Records the result of a transition. A failed one is shown until a later one succeeds.
    pub(crate) fn moved(&mut self, moved: &TransitionResult) {
        self.unmoved = match moved {
            TransitionResult::To(_) => None,
            TransitionResult::Unavailable { .. } | TransitionResult::Refused { .. } => Some(moved.clone()),
        };
    }

    /// Replaces the parts of the finished work that are new.
    pub(crate) fn keep(&mut self, lasting: FinishedWork) {
        let known = std::mem::take(&mut self.lasting);
        self.lasting = FinishedWork {
            done: lasting.done.or(known.done),
            changed: lasting.changed.or(known.changed),
        };
    }

    /// Schedules a marker's comments for the check for duplicates.
    pub(crate) fn watch(&mut self, watched: WatchedMarker) {
        // The due time of the last write is the latest, so it replaces an earlier one.
        self.watched.retain(|earlier| earlier.marker != watched.marker);
        self.watched.push(watched);
    }

    /// Returns true if a marker's comments are scheduled for the check for duplicates.
    pub(crate) fn watches(&self, marker: &str) -> bool {
        self.watched.iter().any(|watched| watched.marker == marker)
    }

    fn has(&self, report: &OutboundId) -> bool {
        self.entries.iter().any(|entry| entry.report == *report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_board_entry(position: u64) -> BoardEntry {
        let run = RunId::new("jira:ENG-12".parse().unwrap(), 7);
        BoardEntry {
            report: run.call(position).into(),
            at: Timestamp::from_unix_ms(i64::try_from(position).unwrap() * 1000),
            run: Some(run),
            job: None,
            text: format!("text {position}"),
            mark: None,
        }
    }

    #[test]
    fn board_shows_report_once_newest_first() {
        let mut board = StatusBoard::default();
        board.add(build_board_entry(1), true);
        board.is_shown = true;
        assert!(board.shows(&build_board_entry(1).report, true));
        board.add(build_board_entry(1), true);
        assert!(board.is_shown, "nothing changed");
        board.add(build_board_entry(2), false);
        assert!(
            !board.shows(&build_board_entry(2).report, true)
                && !board.shows(&build_board_entry(1).report, true)
        );
        assert!(
            !board.shows(&build_board_entry(3).report, false),
            "the comment does not say it yet"
        );
        assert!(
            StatusBoard::default().shows(&build_board_entry(3).report, false),
            "there is no comment"
        );
        assert_eq!(board.entries, [build_board_entry(2), build_board_entry(1)]);
        assert_eq!(board.started_at, Some(build_board_entry(1).at));
    }

    #[test]
    fn finished_work_stays_until_newer_work() {
        let mut board = StatusBoard::default();
        let done = |done: &str, changed: Option<&str>| FinishedWork {
            done: Some(done.to_owned()),
            changed: changed.map(str::to_owned),
        };
        board.keep(done("fixed", Some("a.rs")));
        board.keep(FinishedWork::default());
        assert_eq!(board.lasting, done("fixed", Some("a.rs")));
        board.keep(done("fixed again", None));
        assert_eq!(board.lasting, done("fixed again", Some("a.rs")));
        board.keep(FinishedWork::nothing());
        assert_eq!(board.lasting, done("", Some("")));
    }

    #[test]
    fn an_old_ticket_keeps_a_readable_board() {
        let mut board = StatusBoard::default();
        (1..100).for_each(|position| board.add(build_board_entry(position), false));
        assert_eq!(board.entries.len(), MAX_ENTRIES);
        assert_eq!(board.entries[0], build_board_entry(99));
    }
}
