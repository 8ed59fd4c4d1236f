//! Folds of journals in parts, and restarts of the work after a foreign push.

use std::collections::BTreeMap;

use domain::{CommitId, Fact, JournalEntry, TriggerReason};
use proptest::prelude::*;
use proptest::sample::Index;

use super::play::{build_commit_id, build_entry, build_finish_call, build_tool_reply, run_id};
use super::properties::{any_reply, whole_run};
use super::rounds::finish_review;
use crate::run::PlannerRunState;

/// Fields that a restart of the work keeps. Every other one is as in a new run.
const KEPT: [&str; 15] = [
    // The journal continues.
    "journal.position",
    "journal.fence",
    "journal.last_at",
    // The comments count for the next work as well, and a model has the same limit.
    "conversation.news",
    "conversation.learned",
    // The size of the ticket is known.
    "outputs.raised",
    // The ticket shows what the run reported.
    "delivery.reports",
    "delivery.unsent",
    // The run has the same limits and has spent what it has spent.
    "budget.limits",
    "budget.ticket_limits",
    "budget.spending",
    // The run has the same requester and counts its restarts and failures.
    "lifecycle.begun",
    "lifecycle.moves",
    "lifecycle.retries",
    // A trigger counts once.
    "lifecycle.last_trigger",
];

fn fold_entries<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> PlannerRunState {
    PlannerRunState::fold(&run_id(), entries).unwrap().unwrap()
}

/// Returns the text of each field of each part, by `part.field`.
fn list_fields(state: &PlannerRunState) -> BTreeMap<String, String> {
    let (mut part, mut key) = (String::new(), String::new());
    let mut fields = BTreeMap::<String, String>::new();
    for line in format!("{state:#?}").lines() {
        let name = |indent: &str| {
            let (name, _) = line.strip_prefix(indent)?.split_once(": ")?;
            let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            is_name.then(|| name.to_owned())
        };
        if let Some(name) = name("    ") {
            (part, key) = (name.clone(), name);
        } else if let Some(name) = name("        ") {
            key = format!("{part}.{name}");
        }
        fields.entry(key.clone()).or_default().push_str(line);
    }
    fields
}

/// Returns the run as if its trigger had named this head.
fn start_run_at(head: &CommitId, first: &JournalEntry) -> PlannerRunState {
    let mut first = first.clone();
    let Fact::RunStarted { trigger } = &mut first.fact else {
        panic!("it starts no run");
    };
    let TriggerReason::JobRequested(request) = &mut trigger.reason else {
        panic!("it requests no job");
    };
    request.about.move_to(head);
    fold_entries([&first])
}

/// Restarts the work after these entries, and returns true if that was legal.
fn restart_run(entries: &[JournalEntry]) -> bool {
    let head = build_commit_id('e');
    let mut state = fold_entries(entries);
    let moved = Fact::HeadMoved {
        head: head.clone(),
        by: Some("grace".to_owned()),
        trigger: Some(60),
    };
    if !state.accepts(&moved) {
        return false;
    }
    state.apply(&build_entry(state.journal.position, moved)).unwrap();
    let fresh = list_fields(&start_run_at(&head, &entries[0]));
    let restarted = list_fields(&state);
    assert!(fresh.keys().eq(restarted.keys()));
    for (field, text) in &restarted {
        assert!(
            KEPT.contains(&field.as_str()) || *text == fresh[field],
            "{field} survived: {text}"
        );
    }
    let mut news = state.conversation().news().received().iter();
    assert!(news.all(|item| item.after_turns == 0));
    assert_eq!(state.gate().asks_about(state.delivery()), None);
    true
}

#[test]
fn kept_fields_exist_in_state() {
    let whole = whole_run((Vec::new(), Vec::new()), 0, (false, 2), 0);
    let fields = list_fields(&whole.state);
    for kept in KEPT {
        assert!(fields.contains_key(kept), "{kept}: {:?}", fields.keys());
    }
}

#[test]
fn restart_at_every_entry_leaves_new_run() {
    for kind in [2, 3] {
        let mut replies = vec![
            build_tool_reply(&[("edit_file", serde_json::json!({}))]),
            build_tool_reply(&[("commit_changes", serde_json::json!({}))]),
        ];
        // The handover of a review has replies, and only that one; each job refuses the other handover.
        for _ in 0..3 {
            replies.push(build_tool_reply(&[build_finish_call()]));
            replies.push(build_tool_reply(&[finish_review()]));
        }
        let whole = whole_run((replies, Vec::new()), 1, (true, kind), 1);
        let cuts = 1..=whole.entries.len();
        let legal = cuts.filter(|cut| restart_run(&whole.entries[..*cut])).count();
        assert!(legal > 20, "{kind}: {legal}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fold_in_two_parts_equals_whole(
        replies in prop::collection::vec(any_reply(), 0..8),
        around in prop::collection::vec(any_reply(), 0..3),
        refusals in 0_u8..3,
        gate in any::<bool>(),
        kind in 0_u8..6,
        faults in 0_u8..8,
        cut in any::<Index>(),
    ) {
        let whole = whole_run((replies, around), refusals, (gate, kind), faults).entries;
        let (first, second) = whole.split_at(1 + cut.index(whole.len()));
        let mut state = fold_entries(first);
        for entry in second {
            state.apply(entry).unwrap();
        }
        prop_assert_eq!(format!("{state:?}"), format!("{:?}", fold_entries(&whole)));
    }

    #[test]
    fn restart_anywhere_keeps_documented_fields_only(
        replies in prop::collection::vec(any_reply(), 0..8),
        refusals in 0_u8..3,
        gate in any::<bool>(),
        kind in 2_u8..4,
        faults in 0_u8..8,
        cuts in prop::collection::vec(any::<Index>(), 6),
    ) {
        let whole = whole_run((replies, Vec::new()), refusals, (gate, kind), faults).entries;
        for cut in cuts {
            restart_run(&whole[..1 + cut.index(whole.len())]);
        }
    }
}
