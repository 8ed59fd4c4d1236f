//! Order of runs: in each lane one run at a time, in the order of the triggers.

use domain::{Lane, PendingRun, RunId, RunStatus, TicketRow};

/// Returns the runs to drive now, at most one per lane.
///
/// A started run keeps its lane until it parks or ends. Then the oldest run follows whose branch no older
/// live run works on, parked or not; so every run gets its turn.
pub(super) fn next_runs(row: &TicketRow) -> Vec<RunId> {
    let mut lanes: Vec<&Lane> = row.pending.iter().map(|pending| &pending.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
        .into_iter()
        .filter_map(|lane| next_in_lane(row, lane))
        .collect()
}

fn next_in_lane(row: &TicketRow, lane: &Lane) -> Option<RunId> {
    let members = || row.pending.iter().filter(|pending| pending.lane == *lane);
    let is = |pending: &PendingRun, wanted: &RunStatus| {
        row.run(&pending.run).is_some_and(|run| run.status == *wanted)
    };
    let active = members().find(|pending| is(pending, &RunStatus::Active));
    let oldest =
        || members().find(|pending| is(pending, &RunStatus::Queued) && !waits_for_branch(row, pending));
    active.or_else(oldest).map(|pending| pending.run.clone())
}

fn waits_for_branch(row: &TicketRow, later: &PendingRun) -> bool {
    row.pending
        .iter()
        .take_while(|earlier| earlier.run != later.run)
        .any(|earlier| earlier.lane == later.lane && may_share_branch(earlier, later))
}

/// Returns true if two runs may work on one branch. A run with an unknown branch may work on any.
fn may_share_branch(one: &PendingRun, other: &PendingRun) -> bool {
    let known = one.branch.as_ref().zip(other.branch.as_ref());
    matches!(one.lane, Lane::Change { .. }) && known.is_none_or(|(one, other)| one == other)
}
