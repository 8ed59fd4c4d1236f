//! The change is proven without the model: its checks run in trees that the model cannot touch, with the base beside it.

mod command;
mod demonstrations;
mod hunks;
mod limits;

use domain::check::{ChangeReport, CheckCandidate, CheckSpec, Hunk, Level};
use domain::{CheckRow, Demonstrated, Fact, Outside, PhaseOutput, Proof, RedCheck, Return};

use self::command::Command;
use self::hunks::{Covered, covered};
use self::limits::{MOST_COMMANDS, MOST_TRIES};
use super::back::{back, can_work, tries};
use super::tidy::unrepaired;
use crate::run::machine::{Action, Checks, PhaseSpec, RunState, Step};
use crate::run::tools::widen_scope;

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let Some(handover) = state.handover().filter(|_| state.proof().is_none()) else {
        return Step::Over;
    };
    if state.is_words_alone() {
        return Step::Over;
    }
    let checks = &state.checks;
    let Some(candidates) = &checks.candidates else {
        return Action::FindChecks.into();
    };
    let Some(change) = &checks.change else {
        return Action::InspectChange.into();
    };
    let outside = outside(state, change.as_ref());
    let strayed = Return::OutOfScope {
        files: outside.clone(),
    };
    if !outside.is_empty() && can_work(state) && tries(state, &strayed) == 0 {
        return back(state, strayed);
    }
    if let Some(open) = checks.open() {
        let (id, check) = (open.id.clone(), open.spec.clone());
        return Action::RunCheck { id, check }.into();
    }
    let candidates = wanted(state, candidates, change.as_ref());
    let commands = commands(checks, &candidates, change.as_ref());
    if let Some(check) = commands.iter().find_map(Command::missing) {
        return check_next(state, check);
    }
    if let Some(why) = not_yet(state, &commands, change.as_ref()) {
        return back(state, why);
    }
    if let Some(check) = demonstrations::missing(checks, handover) {
        return check_next(state, check);
    }
    let parts = change.as_ref().map(|change| covered(change, &commands));
    match parts {
        Some(Covered::Missing(check)) => check_next(state, check),
        Some(Covered::Known(unnoticed)) => conclude(state, &commands, outside, unnoticed),
        None => conclude(state, &commands, outside, Vec::new()),
    }
}

fn check_next(state: &RunState, check: CheckSpec) -> Step {
    let id = state.next_id();
    Action::Record(Fact::CheckRequested { id, check }).into()
}

/// The first commands; those of the rules for the whole system as well, where the change touches what others rely on.
fn wanted(state: &RunState, found: &[CheckCandidate], change: Option<&ChangeReport>) -> Vec<CheckCandidate> {
    let mut wanted: Vec<CheckCandidate> = found.iter().take(MOST_COMMANDS).cloned().collect();
    let (Some(request), Some(change)) = (state.request(), change) else {
        return wanted;
    };
    let rules = &request.rules.agent;
    if change.changed.iter().any(|file| rules.is_contract(&file.path)) {
        let whole = rules.e2e_checks.iter().map(|command| CheckCandidate {
            command: command.clone(),
            directory: String::new(),
            why: String::new(),
        });
        let known = wanted.clone();
        let is_new = |check: &CheckCandidate| known.iter().all(|known| known.command != check.command);
        wanted.extend(whole.filter(is_new).take(MOST_COMMANDS));
    }
    wanted
}

fn commands<'a>(
    checks: &'a Checks,
    candidates: &'a [CheckCandidate],
    change: Option<&'a ChangeReport>,
) -> Vec<Command<'a>> {
    let tests = change.map_or(&[][..], |change| &change.test_files);
    let command = |found| Command { checks, found, tests };
    candidates.iter().map(command).collect()
}

/// What really differs is compared with the scope: commands write where they like.
fn outside(state: &RunState, change: Option<&ChangeReport>) -> Vec<Outside> {
    let (Some(request), Some(change)) = (state.request(), change) else {
        return Vec::new();
    };
    let scope = widen_scope::scope(state, request);
    change
        .changed
        .iter()
        .filter_map(|file| scope.outside(&file.path))
        .collect()
}

/// Why the model has to see the change again.
fn not_yet(state: &RunState, commands: &[Command<'_>], change: Option<&ChangeReport>) -> Option<Return> {
    if !can_work(state) {
        return None;
    }
    let checks: Vec<RedCheck> = commands.iter().filter_map(Command::red).collect();
    let (is_red, red) = (!checks.is_empty(), Return::Red { checks });
    if is_red && tries(state, &red) < MOST_TRIES {
        return Some(red);
    }
    let change = change.filter(|change| change.is_blocked())?;
    let weakened = Return::Weakened {
        findings: change.findings.clone(),
    };
    (tries(state, &weakened) == 0).then_some(weakened)
}

fn conclude(state: &RunState, commands: &[Command<'_>], outside: Vec<Outside>, unnoticed: Vec<Hunk>) -> Step {
    let rows: Vec<CheckRow> = commands.iter().filter_map(Command::row).collect();
    let change = state.checks.report();
    let handover = state.handover();
    let demonstrations = handover.map(|handover| demonstrations::seen(&state.checks, handover));
    let demonstrations = demonstrations.unwrap_or_default();
    let proof = Proof {
        level: level(&rows, &demonstrations),
        rows,
        demonstrations,
        findings: change.map(|change| change.findings.clone()).unwrap_or_default(),
        outside,
        unnoticed,
        unrepaired: unrepaired(state),
    };
    Action::Record(Fact::PhaseFinished {
        output: PhaseOutput::Prove {
            proof: Box::new(proof),
        },
    })
    .into()
}

fn level(rows: &[CheckRow], demonstrations: &[Demonstrated]) -> Level {
    let is_worse = rows.iter().any(|row| !row.broken.is_empty());
    let is_shown = rows
        .iter()
        .any(|row| row.head.is_about_the_code() && !row.mended.is_empty());
    let is_seen = demonstrations.iter().any(|seen| seen.is_shown);
    let is_telling = rows.iter().any(|row| row.head.is_about_the_code());
    match (is_shown && !is_worse, is_seen && !is_worse, is_telling) {
        (true, ..) => Level::E3,
        (false, true, _) => Level::E2,
        (false, false, true) => Level::E1,
        (false, false, false) => Level::E0,
    }
}
