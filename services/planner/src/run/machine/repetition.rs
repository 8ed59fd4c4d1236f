//! Detection of repeated turns. A result counts together with the state of the files: the same command
//! after an edit is progress.

use domain::{ModelHint, RepetitionKind, ReplyStop, ToolResult, TurnRepetition};

use super::{CallResult, DialogSpec, DialogTurn, PlannerRunState, TurnCall, hash_text};

// Turns with the same calls and results: number for a hint, number for the end of the work.
const SAME: (usize, usize) = (3, 5);
// The same for two kinds of turns that alternate.
const ALTERNATING: (usize, usize) = (4, 6);
// Turns in a row without a valid call, each of which got an answer.
const MALFORMED: usize = 3;
const TOOLS: usize = 4;
const NAME_CHARS: usize = 80;

/// Returns the hint about repeated turns, once for each repetition.
pub(super) fn repetition_hint(state: &PlannerRunState, dialog: &DialogSpec) -> Option<ModelHint> {
    let turns = turns_since_return(state, dialog);
    let (repetition, (hinted, _)) = find_repetition(&turns)?;
    let alike = repetition.turns as usize;
    let is_known = |turn: &&DialogTurn| {
        turn.hints
            .iter()
            .any(|hint| matches!(hint, ModelHint::Repeating(_)))
    };
    let is_hinted = turns.iter().rev().take(alike).any(is_known);
    (alike >= hinted && !is_hinted).then_some(ModelHint::Repeating(repetition))
}

/// Returns the repetition that ends a conversation.
pub(crate) fn final_repetition(state: &PlannerRunState, dialog: &DialogSpec) -> Option<TurnRepetition> {
    let turns = turns_since_return(state, dialog);
    let is_malformed = |turn: &&&DialogTurn| is_malformed_turn(state, dialog, turn);
    let malformed = turns.iter().rev().take_while(is_malformed).count();
    if malformed >= MALFORMED {
        return Some(build_repetition(RepetitionKind::Malformed, malformed, &turns));
    }
    let (repetition, (_, most)) = find_repetition(&turns)?;
    (repetition.turns as usize >= most).then_some(repetition)
}

/// Returns the turns of a conversation since the run returned to it.
fn turns_since_return<'a>(state: &'a PlannerRunState, dialog: &DialogSpec) -> Vec<&'a DialogTurn> {
    let returned = state.outputs().returns().last();
    let since = returned.map_or(0, |returned| returned.after_turns);
    let all = dialog.turns(state).iter();
    all.filter(|turn| turn.after >= since).collect()
}

/// Returns the repetition of the last turns, and its thresholds. Results can be long, so the search stops
/// at the first turn that differs.
fn find_repetition(turns: &[&DialogTurn]) -> Option<(TurnRepetition, (usize, usize))> {
    let mut changes = 0;
    let mut prints = turns
        .iter()
        .rev()
        .map(|turn| fingerprint_turn(turn, &mut changes));
    let newest = prints.next()??;
    let before = prints.next()??;
    if before == newest {
        let same = 2 + prints.take_while(|print| *print == Some(newest)).count();
        return Some((build_repetition(RepetitionKind::Same, same, turns), SAME));
    }
    let expected = [newest, before].into_iter().cycle();
    let alternating = 2 + prints
        .zip(expected)
        .take_while(|(print, next)| *print == Some(*next))
        .count();
    Some((
        build_repetition(RepetitionKind::Alternating, alternating, turns),
        ALTERNATING,
    ))
}

fn build_repetition(kind: RepetitionKind, alike: usize, turns: &[&DialogTurn]) -> TurnRepetition {
    let mut tools: Vec<String> = Vec::new();
    for call in turns.iter().rev().take(alike).flat_map(|turn| &turn.calls) {
        let name: String = call.call.name.chars().take(NAME_CHARS).collect();
        if tools.len() < TOOLS && !tools.contains(&name) {
            tools.push(name);
        }
    }
    TurnRepetition {
        kind,
        turns: u32::try_from(alike).unwrap_or(u32::MAX),
        tools,
    }
}

/// Returns true if the reply has calls and none of them is valid.
fn is_malformed_turn(state: &PlannerRunState, dialog: &DialogSpec, turn: &DialogTurn) -> bool {
    let is_wrong = |call: &TurnCall| !call.call.input.is_object() || !dialog.offers(state, &call.call.name);
    !turn.calls.is_empty() && !turn.stopped_with(ReplyStop::MaxTokens) && turn.calls.iter().all(is_wrong)
}

/// Returns a fingerprint of a turn's calls and results; `None` without calls, or before their results.
///
/// A duplicate call counts once. The caller goes from the newest turn back, and `changes` counts the
/// changes of files after the call.
fn fingerprint_turn(turn: &DialogTurn, changes: &mut u32) -> Option<u64> {
    let calls = turn
        .calls
        .iter()
        .rev()
        .map(|call| fingerprint_call(call, changes));
    let mut calls: Vec<u64> = calls.collect::<Option<_>>()?;
    calls.sort_unstable();
    calls.dedup();
    (!calls.is_empty()).then(|| hash_text(&format!("{calls:?}")))
}

fn fingerprint_call(call: &TurnCall, changes: &mut u32) -> Option<u64> {
    let learned = match call.outcome()? {
        CallResult::Ran(result) => {
            let learned = normalize_result(result, *changes);
            *changes += u32::from(result.changed);
            learned
        }
        CallResult::Settled(outcome) => format!("{outcome:?}"),
    };
    // The JSON map of the arguments is sorted by key, so the text is canonical.
    Some(hash_text(&format!(
        "{}\n{}\n{learned}",
        call.call.name, call.call.input
    )))
}

/// Omits digits of the text: commands print their duration. Without a tree id, the count of changes
/// identifies the state of the files.
fn normalize_result(result: &ToolResult, changes: u32) -> String {
    let files = result
        .tree
        .as_ref()
        .map_or_else(|| changes.to_string(), ToString::to_string);
    let content = result.content.replace(|letter: char| letter.is_ascii_digit(), "");
    format!("{content}\n{:?} {:?} {files}", result.status, result.exit_code)
}
