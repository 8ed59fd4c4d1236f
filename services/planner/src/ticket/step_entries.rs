//! Entries of one append: the facts of a step, and those that follow from them without a further step.

use std::collections::VecDeque;

use domain::{Fact, JournalEntry};

use crate::run::{IllegalFact, PlannerRunState, RunAction, decide_action};
use crate::telemetry;

/// Number of entries after which no further decision joins an append.
pub(super) const MOST_TOGETHER: usize = 8;

/// Entries for one append, already applied to the state.
pub(super) struct StepEntries {
    pub(super) entries: Vec<JournalEntry>,
    /// Error of the last entry. It reaches the journal as well, so that no later session repeats its step.
    pub(super) illegal: Option<IllegalFact>,
}

impl StepEntries {
    /// Applies facts to the state. While there are fewer than `most` entries, the next decision joins them if
    /// it only records a fact.
    ///
    /// The entries are those that one append for each fact would write, in the same order.
    pub(super) fn join(
        state: &mut PlannerRunState,
        facts: Vec<Fact>,
        most: usize,
        build: impl Fn(u64, Fact) -> JournalEntry,
    ) -> Self {
        let (mut facts, mut entries) = (VecDeque::from(facts), Vec::new());
        while let Some(fact) = facts.pop_front() {
            let is_followed = can_be_followed(&fact);
            let entry = build(state.journal.position, fact);
            let applied = state.apply(&entry);
            entries.push(entry);
            if let Err(illegal) = applied {
                return Self {
                    entries,
                    illegal: Some(illegal),
                };
            }
            if facts.is_empty()
                && is_followed
                && entries.len() < most
                && let RunAction::Record(next) = decide_action(state)
                && can_follow(&next)
            {
                telemetry::count_context_step(&next);
                facts.push_back(next);
            }
        }
        Self {
            entries,
            illegal: None,
        }
    }

    /// Returns true if the last entry requests a turn after the first one of its conversation. The first one reports
    /// its progress to the ticket, and only a stored request may do that.
    pub(super) fn has_later_turn(&self) -> bool {
        let last = self.entries.last().map(|entry| &entry.fact);
        self.illegal.is_none() && matches!(last, Some(Fact::ModelRequested { turn, .. }) if *turn > 1)
    }
}

/// Returns true if the decision after a fact may only record another one. A request waits for its outcome, so
/// the decision after it is spared.
fn can_be_followed(fact: &Fact) -> bool {
    !matches!(
        fact,
        Fact::ModelRequested { .. }
            | Fact::ToolRequested { .. }
            | Fact::WorkspaceRequested { .. }
            | Fact::SummaryRequested { .. }
            | Fact::ReportRequested { .. }
            | Fact::Parked { .. }
            | Fact::RunFinished { .. }
    )
}

/// Returns true if a fact may be appended together with the one before. The end of a run is added to the
/// history before its entry, and the facts before must be stored by then.
fn can_follow(fact: &Fact) -> bool {
    !matches!(fact, Fact::RunFinished { .. })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::run::tests::{Play, build_entry, build_tool_reply, build_work_replies, run_id};

    fn list_facts(entries: &[JournalEntry]) -> Vec<Value> {
        entries
            .iter()
            .map(|entry| serde_json::to_value(&entry.fact).unwrap())
            .collect()
    }

    /// Journal of a whole run, divided into the appends that write it.
    fn divide_into_appends(entries: &[JournalEntry], most: usize) -> Vec<Vec<JournalEntry>> {
        let (mut appends, mut start) = (Vec::new(), 1);
        while let Some(first) = entries.get(start) {
            let mut state = PlannerRunState::fold(&run_id(), &entries[..start])
                .unwrap()
                .unwrap();
            let step = StepEntries::join(&mut state, vec![first.fact.clone()], most, build_entry);
            assert!(step.illegal.is_none());
            start += step.entries.len();
            appends.push(step.entries);
        }
        appends
    }

    fn play_whole_run() -> Vec<JournalEntry> {
        let read = build_tool_reply(&[("read_file", json!({"path": "a"}))]);
        let mut play = Play::with([read].into_iter().chain(build_work_replies()));
        play.drive();
        play.pushed();
        play.drive();
        play.opened();
        play.drive();
        play.entries
    }

    #[test]
    fn joined_entries_equal_single_appends() {
        let entries = play_whole_run();
        let joined = divide_into_appends(&entries, MOST_TOGETHER);
        assert_eq!(list_facts(&joined.concat()), list_facts(&entries[1..]));
        let single = divide_into_appends(&entries, 1);
        assert_eq!(single.len(), entries.len() - 1);
        assert!(joined.len() < single.len(), "{} appends", joined.len());
    }

    #[test]
    fn turn_with_one_call_takes_two_appends() {
        let entries = play_whole_run();
        let appends = divide_into_appends(&entries, MOST_TOGETHER);
        let names: Vec<Vec<&str>> = appends
            .iter()
            .map(|append| append.iter().map(|entry| entry.fact.name()).collect())
            .collect();
        let turn = [
            vec!["model_replied", "tool_requested"],
            vec!["tool_finished", "model_requested"],
        ];
        assert!(names.windows(2).any(|pair| pair == turn), "{names:?}");
    }

    #[test]
    fn request_of_later_turn_ends_its_append() {
        let entries = play_whole_run();
        let (mut start, mut started) = (1, Vec::new());
        for append in divide_into_appends(&entries, MOST_TOGETHER) {
            let mut state = PlannerRunState::fold(&run_id(), &entries[..start])
                .unwrap()
                .unwrap();
            let facts = vec![append[0].fact.clone()];
            let step = StepEntries::join(&mut state, facts, MOST_TOGETHER, build_entry);
            start += append.len();
            if step.has_later_turn() {
                let RunAction::AskModel { id } = decide_action(&state) else {
                    panic!("{:?}", step.entries)
                };
                started.push(id);
            }
        }
        let requested = entries.iter().filter_map(|entry| match &entry.fact {
            Fact::ModelRequested { id, turn, .. } if *turn > 1 => Some(id.clone()),
            _ => None,
        });
        let requested: Vec<_> = requested.collect();
        assert!(!requested.is_empty());
        assert_eq!(started, requested);
    }

    #[test]
    fn end_of_run_is_appended_alone() {
        let appends = divide_into_appends(&play_whole_run(), MOST_TOGETHER);
        let last: Vec<_> = appends
            .last()
            .unwrap()
            .iter()
            .map(|entry| entry.fact.name())
            .collect();
        assert_eq!(last, ["run_finished"]);
    }

    #[test]
    fn illegal_fact_ends_append_with_its_entry() {
        let entries = play_whole_run();
        let mut state = PlannerRunState::fold(&run_id(), &entries[..1]).unwrap().unwrap();
        let facts = vec![
            Fact::ToolFinished {
                id: run_id().call(99),
                result: domain::ToolResult::error("none was requested".to_owned()),
            },
            Fact::StopRequested { by: "ann".to_owned() },
        ];
        let step = StepEntries::join(&mut state, facts, MOST_TOGETHER, build_entry);
        assert_eq!(step.entries.len(), 1);
        assert!(step.illegal.is_some());
    }
}
