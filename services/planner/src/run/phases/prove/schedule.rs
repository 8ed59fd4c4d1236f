//! Checks that run at the same time: those whose results decide next, and others that will most likely be
//! needed, as far as the executor has room.

use domain::check::{ChangeReport, CheckSpec};
use domain::{Fact, WorkHandover};

use super::command::CheckCommand;
use super::coverage::{HunkCoverage, measure_coverage};
use super::{demonstrations, weakened_tests};
use crate::run::machine::{PlannerRunState, RunAction, RunChecks, RunStep};

// Checks that are requested at the same time, whatever the executor offers. It keeps the results of as many.
const MOST_AT_ONCE: u32 = 8;

/// Requests the next check that has room, or waits for the requested ones. `needed`: missing checks that decide
/// about the next step, at least one. `likely`: checks that use room that would be idle.
pub(super) fn run_missing_checks(
    state: &PlannerRunState,
    commands: &[CheckCommand<'_>],
    needed: Vec<CheckSpec>,
    likely: Vec<CheckSpec>,
) -> RunStep {
    let checks = state.verification().checks();
    // A kept result takes no room.
    let is_kept = |check: &CheckSpec| commands.iter().any(|command| command.is_known(check));
    let running = checks.open().filter(|open| !is_kept(&open.spec)).count();
    let has_room = running < checks_at_once(state);
    let mut missing = needed.into_iter().chain(likely);
    let next = missing.find(|check| !checks.is_open(check) && (has_room || is_kept(check)));
    match next {
        Some(check) => Fact::CheckRequested {
            id: state.next_id(),
            check,
        }
        .into(),
        None => run_open_checks(checks),
    }
}

/// Runs the requested checks. After a crash they continue under their ids; the executor returns the results
/// that it has.
pub(super) fn run_open_checks(checks: &RunChecks) -> RunStep {
    let open = checks.open().map(|open| (open.id.clone(), open.spec.clone()));
    RunAction::RunChecks {
        checks: open.collect(),
    }
    .into()
}

/// Returns the missing checks that will most likely be needed, although other results decide about them.
pub(super) fn likely_checks(
    state: &PlannerRunState,
    commands: &[CheckCommand<'_>],
    handover: &WorkHandover,
    change: Option<&ChangeReport>,
) -> Vec<CheckSpec> {
    let mut likely: Vec<CheckSpec> = commands.iter().flat_map(CheckCommand::likely).collect();
    // A change that the model must still repair is not measured further.
    if commands.iter().all(CheckCommand::is_undisputed) {
        likely.extend(commands.iter().flat_map(weakened_tests::missing_old_runs));
        let checks = state.verification().checks();
        likely.extend(demonstrations::missing_demonstrations(checks, handover));
        if let Some(HunkCoverage::Missing(parts)) = change.map(|change| measure_coverage(change, commands)) {
            likely.extend(parts);
        }
    }
    likely
}

fn checks_at_once(state: &PlannerRunState) -> usize {
    let open = state.source().open_workspace();
    let most = open.map_or(1, |info| info.checks_at_once.clamp(1, MOST_AT_ONCE));
    usize::try_from(most).unwrap_or(1)
}
