//! Runs checks on the base before the work, so that the model knows which of them fail already. The proof uses
//! the same results.

use domain::BaseCheckRule;
use domain::check::{CheckSpec, TreeKind};

use super::command::CheckCommand;
use super::{schedule, select_commands};
use crate::run::machine::{PhaseSpec, PlannerRunState, RunAction, RunStep};

pub(in crate::run) const BASE_CHECKS: PhaseSpec = PhaseSpec::without_dialog(check_base);

fn check_base(state: &PlannerRunState) -> RunStep {
    let Some(request) = state.request() else {
        return RunStep::Over;
    };
    let rules = &request.rules.agent;
    let is_off = rules.checks.as_ref().is_some_and(Vec::is_empty);
    // A former release began the work without these results, and the first message to the model must not change.
    if is_off || rules.base_checks == BaseCheckRule::Never || state.conversation().is_at_work() {
        return RunStep::Over;
    }
    let checks = state.verification().checks();
    let Some(candidates) = &checks.candidates else {
        // The work has not begun, so there is no change to inspect.
        return RunAction::FindChecks {
            inspects_change: false,
        }
        .into();
    };
    let candidates = select_commands(state, candidates, None).wanted;
    let command = |found| CheckCommand {
        checks,
        found,
        change: None,
        reports: &rules.reports,
    };
    let commands: Vec<CheckCommand<'_>> = candidates.iter().map(command).collect();
    // One run each: the proof repeats those that it needs to be sure of.
    let specs = commands.iter().map(|command| command.spec(TreeKind::Base, 0));
    let is_wanted = |check: &CheckSpec| match rules.base_checks {
        BaseCheckRule::Never => false,
        BaseCheckRule::WhenKnown => commands.iter().any(|command| command.is_known(check)),
        BaseCheckRule::Always => true,
    };
    let missing = specs.filter(|check| is_wanted(check) && checks.result(check).is_none());
    let missing: Vec<CheckSpec> = missing.collect();
    if missing.is_empty() {
        RunStep::Over
    } else {
        schedule::run_missing_checks(state, &commands, missing, Vec::new())
    }
}
