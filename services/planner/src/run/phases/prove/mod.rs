//! Verifies the change without the model: its checks run in trees that the model cannot access, and at the
//! base for comparison.

mod command;
mod demonstrations;
mod doubts;
mod hunks;
mod limits;
mod trees;
mod weakened;

use domain::check::{ChangeReport, CheckCandidate, CheckSpec, Finding, Hunk, Level, Severity};
use domain::{
    ChangeDoubt, CheckRow, Demonstrated, Fact, Outside, PhaseOutput, Proof, RedCheck, Return, ShownBy,
};

use self::command::Command;
use self::hunks::{Covered, covered, product_numbers};
use self::limits::{MOST_COMMANDS, MOST_TRIES};
use super::back::{back, can_work, tries};
use super::tidy::unrepaired;
use crate::run::machine::{Action, PhaseSpec, RunState, Step};
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
    // A change outside of the scope returns before any check runs, because checks cost minutes.
    if !outside.is_empty() && can_work(state) && tries(state, &strayed) == 0 {
        return back(state, strayed);
    }
    // A check that a crash interrupted continues under its id; the executor returns its result.
    if let Some(open) = checks.open() {
        let (id, check) = (open.id.clone(), open.spec.clone());
        return Action::RunCheck { id, check }.into();
    }
    let candidates = wanted(state, candidates, change.as_ref());
    let reports = state
        .request()
        .map_or(&[][..], |request| &request.rules.agent.reports);
    let command = |found| Command {
        checks,
        found,
        change: change.as_ref(),
        reports,
    };
    let commands: Vec<Command<'_>> = candidates.iter().map(command).collect();
    if let Some(check) = commands.iter().find_map(Command::missing) {
        return check_next(state, check);
    }
    // Returns before the remaining checks: they would measure a change that the model must still repair.
    if let Some(why) = red(state, &commands) {
        return back(state, why);
    }
    if let Some(check) = commands.iter().find_map(weakened::missing) {
        return check_next(state, check);
    }
    let findings = findings(state, &commands, change.as_ref());
    if let Some(why) = weaker(state, &findings) {
        return back(state, why);
    }
    if let Some(why) = questioned(state, doubts::about_size(state, change.as_ref())) {
        return back(state, why);
    }
    if let Some(check) = demonstrations::missing(checks, handover) {
        return check_next(state, check);
    }
    let parts = change.as_ref().map(|change| covered(change, &commands));
    match parts {
        Some(Covered::Missing(check)) => check_next(state, check),
        Some(Covered::Known(unnoticed)) => conclude(state, &commands, outside, unnoticed, findings),
        None => conclude(state, &commands, outside, Vec::new(), findings),
    }
}

fn check_next(state: &RunState, check: CheckSpec) -> Step {
    let id = state.next_id();
    Action::Record(Fact::CheckRequested { id, check }).into()
}

/// Returns the first commands. If the change touches contract files, the end-to-end checks of the rules are
/// added.
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

/// Returns the changed files outside of the scope. Commands may write anywhere, so the real difference
/// counts.
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

/// Returns the work to the model if checks are worse with the change.
fn red(state: &RunState, commands: &[Command<'_>]) -> Option<Return> {
    let checks: Vec<RedCheck> = commands.iter().filter_map(Command::red).collect();
    let (is_red, red) = (!checks.is_empty(), Return::Red { checks });
    (is_red && can_work(state) && tries(state, &red) < MOST_TRIES).then_some(red)
}

/// Returns everything that weakens checks, from the text of files and from the runs of tests.
fn findings(state: &RunState, commands: &[Command<'_>], change: Option<&ChangeReport>) -> Vec<Finding> {
    let ticket = state.request().map(|request| {
        let comments = request
            .text
            .comments
            .iter()
            .filter(|comment| comment.may_instruct);
        let said: Vec<&str> = comments.map(|comment| comment.text.as_str()).collect();
        format!(
            "{}\n{}\n{}",
            request.text.summary,
            request.text.description,
            said.join("\n")
        )
    });
    let ticket = ticket.unwrap_or_default();
    let shown = commands
        .iter()
        .flat_map(|command| weakened::findings(command, &ticket));
    let mut found: Vec<Finding> = shown.collect();
    found.extend(change.map(|change| change.findings.clone()).unwrap_or_default());
    // Most severe first; otherwise the order is kept.
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

fn weaker(state: &RunState, findings: &[Finding]) -> Option<Return> {
    let is_serious = |finding: &Finding| finding.severity == Severity::Block;
    let weakened = Return::Weakened {
        findings: findings.to_vec(),
    };
    let is_told = findings.iter().any(is_serious) && can_work(state);
    (is_told && tries(state, &weakened) == 0).then_some(weakened)
}

fn questioned(state: &RunState, doubts: Vec<ChangeDoubt>) -> Option<Return> {
    let is_doubted = !doubts.is_empty() && can_work(state);
    let questioned = Return::Questioned { doubts };
    (is_doubted && tries(state, &questioned) == 0).then_some(questioned)
}

fn conclude(
    state: &RunState,
    commands: &[Command<'_>],
    outside: Vec<Outside>,
    unnoticed: Vec<Hunk>,
    findings: Vec<Finding>,
) -> Step {
    let change = state.checks.report();
    let row = |command: &Command<'_>| {
        let parts = change.map_or_else(Vec::new, |change| {
            command.shown_by_parts(product_numbers(change).into_iter())
        });
        command.row(parts)
    };
    let rows: Vec<CheckRow> = commands.iter().filter_map(row).collect();
    let handover = state.handover();
    let demonstrations = handover.map(|handover| demonstrations::seen(&state.checks, handover));
    let demonstrations = demonstrations.unwrap_or_default();
    let level = level(&rows, &demonstrations, &findings);
    let doubt = doubts::about_cover(state, level, &rows, &unnoticed, change);
    if let Some(why) = questioned(state, doubt.into_iter().collect()) {
        return back(state, why);
    }
    let proof = Proof {
        level,
        shown_by: (level == Level::E3).then(|| shown_by(&rows, commands)),
        rows,
        demonstrations,
        findings,
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

/// Returns the origin of the tests that show the change. An existing, unmodified test is stronger evidence
/// than one from the change.
fn shown_by(rows: &[CheckRow], commands: &[Command<'_>]) -> ShownBy {
    let is_own = |test: &String| commands.iter().any(|command| command.is_own(test));
    match rows.iter().flat_map(|row| &row.mended).any(is_own) {
        true => ShownBy::OwnTests,
        false => ShownBy::ChangedTests,
    }
}

fn level(rows: &[CheckRow], demonstrations: &[Demonstrated], findings: &[Finding]) -> Level {
    // If runs show that tests were silenced or weakened, no test of the change counts.
    let is_untrue = |finding: &Finding| {
        finding.severity == Severity::Block
            && matches!(finding.kind.as_str(), "test_silenced" | "test_weakened")
    };
    let is_worse = rows.iter().any(CheckRow::is_worse) || findings.iter().any(is_untrue);
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
