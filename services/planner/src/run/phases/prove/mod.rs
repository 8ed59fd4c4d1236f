//! Verifies the change without the model: its checks run in trees that the model cannot access, and at the
//! base for comparison.

mod command;
mod coverage;
mod demonstrations;
mod schedule;
mod weakened_tests;

use domain::check::{
    ChangeFinding, ChangeHunk, ChangeReport, CheckCandidate, CheckSpec, EvidenceLevel, FindingSeverity,
    TreeKind,
};
use domain::{
    BaseCheckRule, ChangeDoubt, ChangeProof, ChangeScope, CheckRow, DemonstrationResult, JobRequest,
    JobSubject, OutOfScopeFile, PhaseOutput, RedCheck, ReturnReason, ShownBy, WorkHandover,
};

use self::command::CheckCommand;
use self::coverage::{HunkCoverage, measure_coverage, product_numbers};
use super::intake::instructing_text;
use super::repair::failed_repairs;
use super::resolution::lost_step;
use super::rework::{can_work, count_returns, go_back_to_work};
use crate::run::machine::{PhaseSpec, PlannerRunState, RunAction, RunStep};
use crate::run::tools::widen_scope;

// Commands. More of them cost more time than they show.
const MOST_COMMANDS: usize = 2;
// Commands of the modules that a change touches.
const MOST_MODULE_COMMANDS: usize = 4;
// Seconds for one check.
const CHECK_S: u32 = 900;
// Maximum of returns to the model because of failed checks.
const MOST_TRIES: usize = 3;
// Milliseconds below which a check runs again to confirm a repaired test.
const REPEATED_MS: u64 = 10_000;
// Milliseconds above which a check has one repeat less before a failure counts.
const SLOW_MS: u64 = 120_000;
// Names of tests that one finding lists.
const MOST_NAMES: usize = 10;
// Changed lines above which the model gets a question, by class of the ticket: trivial, normal.
const MOST_LINES: [u32; 2] = [400, 1_500];
// Milliseconds below which a check is fast enough to revert hunks one at a time.
const TAKEN_BACK_MS: u64 = 20_000;
// Maximum of hunks that are reverted one at a time.
const MOST_HUNKS: usize = 8;
// Characters that are kept of a failed check's output.
const TAIL: usize = 2_000;
// Seconds for a command that demonstrates the change.
const DEMONSTRATION_S: u32 = 120;
// Characters that are kept of a line of its output.
const SEEN: usize = 200;

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::without_dialog(decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    let Some(handover) = state
        .outputs()
        .handover()
        .filter(|_| state.outputs().proof().is_none())
    else {
        return RunStep::Over;
    };
    if changes_words_alone(state) {
        return RunStep::Over;
    }
    let checks = state.verification().checks();
    let Some(candidates) = &checks.candidates else {
        return RunAction::FindChecks {
            inspects_change: checks.change.is_pending(),
        }
        .into();
    };
    if checks.change.is_pending() {
        return RunAction::InspectChange.into();
    }
    let change = checks.report();
    // A merge that drops a change does not count, whatever its checks say.
    if let Some(step) = lost_step(state, change) {
        return step;
    }
    let outside = files_outside_scope(state, change);
    let strayed = ReturnReason::OutOfScope {
        files: outside.clone(),
    };
    // A change outside of the scope returns before any check runs, because checks cost minutes.
    if !outside.is_empty() && can_work(state) && count_returns(state, &strayed) == 0 {
        return go_back_to_work(state, strayed);
    }
    let SelectedChecks { wanted, skipped } = select_commands(state, candidates, change);
    let reports = state
        .request()
        .map_or(&[][..], |request| &request.rules.agent.reports);
    let command = |found| CheckCommand {
        checks,
        found,
        change,
        reports,
    };
    let commands: Vec<CheckCommand<'_>> = wanted.iter().map(command).collect();
    match judge_results(state, handover, &commands, outside, skipped) {
        ProofStep::Checks(needed) => {
            let likely = schedule::likely_checks(state, &commands, handover, change);
            schedule::run_missing_checks(state, &commands, needed, likely)
        }
        // Checks that are no longer needed end first, so that no result arrives in a later phase.
        ProofStep::Next(_) if checks.open().next().is_some() => schedule::run_open_checks(checks),
        ProofStep::Next(step) => step,
    }
}

/// Runs checks on the base before the work, so that the model knows which of them fail already. The proof
/// uses the same results.
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

/// Consequence of the results so far.
enum ProofStep {
    /// These checks are missing, and decide what follows.
    Checks(Vec<CheckSpec>),
    Next(RunStep),
}

/// Returns the missing checks of the first stage that has some, or the step that follows from the results.
fn judge_results(
    state: &PlannerRunState,
    handover: &WorkHandover,
    commands: &[CheckCommand<'_>],
    outside: Vec<OutOfScopeFile>,
    skipped: Vec<String>,
) -> ProofStep {
    let checks = state.verification().checks();
    let change = checks.report();
    let go_back = |why| ProofStep::Next(go_back_to_work(state, why));
    let missing: Vec<CheckSpec> = commands.iter().flat_map(CheckCommand::missing).collect();
    if !missing.is_empty() {
        return ProofStep::Checks(missing);
    }
    // Returns before the remaining checks: they would measure a change that the model must still repair.
    if let Some(why) = red_return(state, commands) {
        return go_back(why);
    }
    let missing: Vec<CheckSpec> = commands
        .iter()
        .flat_map(weakened_tests::missing_old_runs)
        .collect();
    if !missing.is_empty() {
        return ProofStep::Checks(missing);
    }
    let findings = collect_findings(state, commands, change);
    if let Some(why) = weakened_return(state, &findings) {
        return go_back(why);
    }
    if let Some(why) = question_return(state, coverage::size_doubts(state, change)) {
        return go_back(why);
    }
    let missing = demonstrations::missing_demonstrations(checks, handover);
    if !missing.is_empty() {
        return ProofStep::Checks(missing);
    }
    let unnoticed = match change.map(|change| measure_coverage(change, commands)) {
        Some(HunkCoverage::Missing(missing)) => return ProofStep::Checks(missing),
        Some(HunkCoverage::Known(unnoticed)) => unnoticed,
        None => Vec::new(),
    };
    let weaknesses = ProofWeaknesses {
        findings,
        outside,
        unnoticed,
        skipped,
    };
    ProofStep::Next(finish_proof(state, commands, weaknesses))
}

/// Returns true if the work was to address a review and changed nothing.
fn changes_words_alone(state: &PlannerRunState) -> bool {
    let about = state.request().map(|request| &request.about);
    let kept = state.source().work().snapshot.as_ref();
    matches!(about, Some(JobSubject::Review(_))) && kept.is_none_or(|kept| kept.files_changed == 0)
}

/// Commands of a proof.
#[derive(Default)]
struct SelectedChecks {
    /// Commands that run in the proof.
    wanted: Vec<CheckCandidate>,
    /// Commands of the rules that exceed the limits.
    skipped: Vec<String>,
}

impl SelectedChecks {
    /// Adds the first `most` commands that are not known yet, and skips the others.
    fn add<'a>(&mut self, commands: impl Iterator<Item = &'a String>, most: usize) {
        let most = self.wanted.len() + most;
        for command in commands {
            // The same command in another folder checks something else.
            let mut known = self.wanted.iter().filter(|known| known.directory.is_empty());
            if known.any(|known| known.command == *command) {
                continue;
            }
            self.skipped.retain(|skipped| skipped != command);
            if self.wanted.len() >= most {
                self.skipped.push(command.clone());
                continue;
            }
            self.wanted.push(CheckCandidate {
                command: command.clone(),
                directory: String::new(),
                why: String::new(),
                known_at_base: false,
            });
        }
    }
}

/// Returns the first commands, and the checks of the modules that the change touches. If the change touches contract
/// files, the end-to-end checks of the rules are added.
fn select_commands(
    state: &PlannerRunState,
    found: &[CheckCandidate],
    change: Option<&ChangeReport>,
) -> SelectedChecks {
    let mut selected = SelectedChecks {
        wanted: found.iter().take(MOST_COMMANDS).cloned().collect(),
        ..SelectedChecks::default()
    };
    let Some(request) = state.request() else {
        return selected;
    };
    let rules = &request.rules.agent;
    // Without an answer of the executor no command runs, and no limit is the reason.
    if !found.is_empty() {
        let named = rules.checks.iter().flatten();
        selected.add(named.filter(|command| !command.trim().is_empty()), 0);
    }
    let Some(change) = change else {
        return selected;
    };
    let (of_modules, is_covered) = list_module_checks(request, change);
    // Commands that were only found are left out where the modules have checks for every changed file: they would run
    // the tests of all other modules, too.
    if is_covered && rules.checks.is_none() {
        selected.wanted.clear();
    }
    selected.add(of_modules.into_iter(), MOST_MODULE_COMMANDS);
    if change.changed.iter().any(|file| rules.is_contract(&file.path)) {
        selected.add(rules.e2e_checks.iter(), MOST_COMMANDS);
    }
    selected
}

/// Returns the checks of the modules that a change touches, and true if every changed file is in a module with checks. The
/// first checks of all modules come before the second ones, so that the limit leaves each module one.
fn list_module_checks<'a>(request: &'a JobRequest, change: &ChangeReport) -> (Vec<&'a String>, bool) {
    let scope = ChangeScope::new(&request.rules.modules, "", &[]);
    let paths = || change.changed.iter().map(|file| file.path.as_str());
    let has_checks = |path: &str| {
        scope
            .module_of(path)
            .is_some_and(|module| !module.checks.is_empty())
    };
    let is_covered = !change.truncated && !change.changed.is_empty() && paths().all(has_checks);
    let touched = scope.touched_modules(paths());
    let mut placed: Vec<(usize, &String)> = touched
        .into_iter()
        .flat_map(|module| module.checks.iter().enumerate())
        .collect();
    // The sort is stable, so the order of the modules stays.
    placed.sort_by_key(|(place, _)| *place);
    let checks = placed.into_iter().map(|(_, command)| command);
    (checks.collect(), is_covered)
}

/// Returns the changed files outside of the scope. Commands may write anywhere, so the real difference
/// counts.
fn files_outside_scope(state: &PlannerRunState, change: Option<&ChangeReport>) -> Vec<OutOfScopeFile> {
    let (Some(request), Some(change)) = (state.request(), change) else {
        return Vec::new();
    };
    let scope = widen_scope::run_scope(state, request);
    change
        .changed
        .iter()
        .filter_map(|file| scope.outside(&file.path))
        .collect()
}

/// Returns the work to the model if checks are worse with the change.
fn red_return(state: &PlannerRunState, commands: &[CheckCommand<'_>]) -> Option<ReturnReason> {
    let checks: Vec<RedCheck> = commands.iter().filter_map(CheckCommand::red).collect();
    let (is_red, red) = (!checks.is_empty(), ReturnReason::Red { checks });
    (is_red && can_work(state) && count_returns(state, &red) < MOST_TRIES).then_some(red)
}

/// Returns everything that weakens checks, from the text of files and from the runs of tests.
fn collect_findings(
    state: &PlannerRunState,
    commands: &[CheckCommand<'_>],
    change: Option<&ChangeReport>,
) -> Vec<ChangeFinding> {
    let request = state.request();
    let ticket = request.map_or_else(String::new, |request| instructing_text(&request.text));
    let shown = commands
        .iter()
        .flat_map(|command| weakened_tests::weakened_findings(command, &ticket));
    let mut found: Vec<ChangeFinding> = shown.collect();
    found.extend(change.map(|change| change.findings.clone()).unwrap_or_default());
    // Most severe first; otherwise the order is kept.
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

fn weakened_return(state: &PlannerRunState, findings: &[ChangeFinding]) -> Option<ReturnReason> {
    let is_serious = |finding: &ChangeFinding| finding.severity == FindingSeverity::Block;
    let weakened = ReturnReason::Weakened {
        findings: findings.to_vec(),
    };
    let is_returned = findings.iter().any(is_serious) && can_work(state);
    (is_returned && count_returns(state, &weakened) == 0).then_some(weakened)
}

fn question_return(state: &PlannerRunState, doubts: Vec<ChangeDoubt>) -> Option<ReturnReason> {
    let is_doubted = !doubts.is_empty() && can_work(state);
    let questioned = ReturnReason::Questioned { doubts };
    (is_doubted && count_returns(state, &questioned) == 0).then_some(questioned)
}

/// Everything that limits how far the checks prove the change.
struct ProofWeaknesses {
    /// Changes that weaken the checks.
    findings: Vec<ChangeFinding>,
    /// Changed files outside of the scope.
    outside: Vec<OutOfScopeFile>,
    /// Parts of the change whose removal no test detects.
    unnoticed: Vec<ChangeHunk>,
    /// Commands of the rules that exceed the limits.
    skipped: Vec<String>,
}

/// Returns the step with the proof, or the return to the model with a last question about it.
fn finish_proof(
    state: &PlannerRunState,
    commands: &[CheckCommand<'_>],
    weaknesses: ProofWeaknesses,
) -> RunStep {
    let ProofWeaknesses {
        findings,
        outside,
        unnoticed,
        skipped,
    } = weaknesses;
    let change = state.verification().checks().report();
    let row = |command: &CheckCommand<'_>| {
        let parts = change.map_or_else(Vec::new, |change| {
            command.shown_by_parts(product_numbers(change).into_iter())
        });
        command.row(parts)
    };
    let rows: Vec<CheckRow> = commands.iter().filter_map(row).collect();
    let handover = state.outputs().handover();
    let demonstrations = handover
        .map(|handover| demonstrations::demonstration_results(state.verification().checks(), handover));
    let demonstrations = demonstrations.unwrap_or_default();
    let origin = origin_of_evidence(&rows, commands);
    let level = evidence_level(&rows, &demonstrations, &findings, origin);
    let doubt = coverage::cover_doubt(state, level, &rows, &unnoticed, change);
    if let Some(why) = question_return(state, doubt.into_iter().collect()) {
        return go_back_to_work(state, why);
    }
    let proof = ChangeProof {
        level,
        shown_by: (level == EvidenceLevel::E3).then_some(origin),
        rows,
        demonstrations,
        findings,
        outside,
        unnoticed,
        unrepaired: failed_repairs(state),
        skipped_checks: skipped,
    };
    PhaseOutput::Prove {
        proof: Box::new(proof),
    }
    .into()
}

/// Returns the origin of the tests that show the change. An existing, unmodified test is stronger evidence
/// than one from the change.
fn origin_of_evidence(rows: &[CheckRow], commands: &[CheckCommand<'_>]) -> ShownBy {
    let is_own = |test: &String| commands.iter().any(|command| command.is_own(test));
    if rows.iter().flat_map(|row| &row.mended).any(is_own) {
        ShownBy::OwnTests
    } else {
        ShownBy::ChangedTests
    }
}

fn evidence_level(
    rows: &[CheckRow],
    demonstrations: &[DemonstrationResult],
    findings: &[ChangeFinding],
    origin: ShownBy,
) -> EvidenceLevel {
    // If runs show that tests were silenced or weakened, no test of the change counts.
    let is_untrue = |finding: &ChangeFinding| {
        finding.severity == FindingSeverity::Block
            && matches!(
                finding.kind.as_str(),
                weakened_tests::TEST_SILENCED | weakened_tests::TEST_WEAKENED
            )
    };
    let is_worse = rows.iter().any(CheckRow::is_worse) || findings.iter().any(is_untrue);
    // If former tests cannot run with the change, it is open whether the change keeps what they asserted, and a
    // new name alone makes their replacements fail without it. Then only an unmodified test shows the change.
    let is_replaced = findings
        .iter()
        .any(|finding| finding.kind == weakened_tests::TEST_REPLACED && finding.ticket_words.is_empty());
    let is_shown = (origin == ShownBy::OwnTests || !is_replaced)
        && rows
            .iter()
            .any(|row| row.head.is_about_the_code() && !row.mended.is_empty());
    let is_seen = demonstrations.iter().any(|seen| seen.is_shown);
    let is_conclusive = rows.iter().any(|row| row.head.is_about_the_code());
    match (is_shown && !is_worse, is_seen && !is_worse, is_conclusive) {
        (true, ..) => EvidenceLevel::E3,
        (false, true, _) => EvidenceLevel::E2,
        (false, false, true) => EvidenceLevel::E1,
        (false, false, false) => EvidenceLevel::E0,
    }
}
