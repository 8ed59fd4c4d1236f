//! Short view of a run for a user at a terminal: plan, edits, commands, checks and proof, one line each.

use std::collections::BTreeMap;

use api::view::{EntryView, Tone};
use domain::{
    CallId, ChangeReview, CheckRow, Fact, IntakeDecision, JournalEntry, PhaseOutput, ToolCall, ToolResult,
    ToolStatus, WorkExit,
    check::{CheckOutcome, CheckSpec, CompletedCheck, EvidenceLevel, TreeKind},
    describe_evidence,
    text::format_duration,
};
use executor::{EditSize, measure_edits};

use crate::terminal_line::{
    TerminalLine,
    TextEmphasis::{self, Bad, Faint, Good, Plain, Warning},
};

// Longest sentence of a model or of a failure, in columns.
const SENTENCE_COLUMNS: usize = 100;
// Longest command, in columns.
const COMMAND_COLUMNS: usize = 72;
const COMMAND_TOOL: &str = "run_command";

/// Fold of a journal into the lines of the short view.
#[derive(Debug, Default)]
pub(super) struct BriefView {
    /// Tool calls without a result so far.
    calls: BTreeMap<CallId, ToolCall>,
    /// Last result of each command and check. The view omits a repetition with the same result.
    results: BTreeMap<String, String>,
}

impl BriefView {
    /// Lines of the next entry; empty for an entry that the view omits.
    pub(super) fn next_lines(&mut self, entry: &JournalEntry) -> Vec<TerminalLine> {
        match &entry.fact {
            Fact::ToolRequested { id, call, .. } => {
                self.calls.insert(id.clone(), call.clone());
                Vec::new()
            }
            Fact::ToolFinished { id, result } => self.finish_call(id, result),
            Fact::CheckRan { run, .. } => Vec::from_iter(self.render_check(run)),
            Fact::PhaseFinished { output } => Vec::from_iter(render_phase(output)),
            Fact::WorkspaceFailed { .. }
            | Fact::WorkspaceRestored { .. }
            | Fact::WentBack { .. }
            | Fact::SnapshotFailed { .. }
            | Fact::ModelFailed { .. }
            | Fact::SummaryFailed { .. }
            | Fact::Returned { .. }
            | Fact::HeadMoved { .. }
            | Fact::RetryScheduled { .. } => Vec::from_iter(render_warning(entry)),
            // The end of the command shows how the run ended, and a question shows what it waits for.
            Fact::RunFinished { .. }
            | Fact::Parked { .. }
            | Fact::Decided { .. }
            | Fact::StopRequested { .. }
            | Fact::BudgetRefused { .. }
            // A user at a terminal cannot use the rest; `--verbose` shows it.
            | Fact::RunStarted { .. }
            | Fact::TakenOver { .. }
            | Fact::WorkspaceRequested { .. }
            | Fact::WorkspaceOpened { .. }
            | Fact::LimitsSet { .. }
            | Fact::ModelRequested { .. }
            | Fact::ModelReplied { .. }
            | Fact::McpToolsListed { .. }
            | Fact::CodeFound { .. }
            | Fact::EffortForecast { .. }
            | Fact::ChecksFound { .. }
            | Fact::CheckRequested { .. }
            | Fact::ChangeInspected { .. }
            | Fact::ContextCleared { .. }
            | Fact::SummaryRequested { .. }
            | Fact::Summarized { .. }
            | Fact::ClassRaised { .. }
            | Fact::SnapshotTaken { .. }
            | Fact::ReportRequested { .. }
            | Fact::ReportSettled { .. }
            | Fact::Retried { .. }
            | Fact::NewsArrived { .. }
            | Fact::Hinted { .. } => Vec::new(),
        }
    }

    fn finish_call(&mut self, id: &CallId, result: &ToolResult) -> Vec<TerminalLine> {
        // A retried planner may repeat the result of a call that the view has shown.
        let Some(call) = self.calls.remove(id) else {
            return Vec::new();
        };
        if let Some(command) = find_command(&call) {
            return Vec::from_iter(self.render_command(command, result));
        }
        match result.status {
            ToolStatus::Ok => {
                let sizes = measure_edits(&call.name, &call.input);
                sizes.iter().map(render_edit).collect()
            }
            // The model reads the reason and edits again.
            ToolStatus::Error | ToolStatus::Interrupted => Vec::new(),
        }
    }

    fn render_command(&mut self, command: &str, result: &ToolResult) -> Option<TerminalLine> {
        let (emphasis, end) = match (result.exit_code, result.status) {
            (Some(0), _) => (Good, String::new()),
            (Some(code), _) => (Bad, format!("exit code {code}")),
            (None, ToolStatus::Interrupted) => (Bad, "interrupted".to_owned()),
            (None, ToolStatus::Ok | ToolStatus::Error) => (Bad, "did not end".to_owned()),
        };
        self.render_end("run", command, emphasis, end, result.duration_ms)
    }

    /// Line of a check of the whole change. The other trees are expected to fail, and the proof sums them up.
    fn render_check(&mut self, run: &CompletedCheck) -> Option<TerminalLine> {
        match &run.tree_kind {
            TreeKind::Head => {}
            TreeKind::Base
            | TreeKind::BaseWith { .. }
            | TreeKind::HeadWithout { .. }
            | TreeKind::HeadWithBase { .. } => return None,
        }
        let count = |of: fn(&domain::check::TestReport) -> u32| run.tests.as_ref().map_or(0, of);
        let (emphasis, end) = match run.outcome {
            CheckOutcome::Green => (Good, count_tests(count(|tests| tests.passed), "passed")),
            CheckOutcome::Red => (Bad, count_tests(count(|tests| tests.failed), "failed")),
            CheckOutcome::Inert => (Warning, "cannot be run here".to_owned()),
            CheckOutcome::NoTests => (Warning, "no tests ran".to_owned()),
            CheckOutcome::Timeout => (Bad, "exceeded its time limit".to_owned()),
            CheckOutcome::Infra => (Warning, "could not be completed".to_owned()),
        };
        let check = name_check(&run.command, &run.directory);
        self.render_end("check", &check, emphasis, end, run.duration_ms)
    }

    /// Line of a command or check that ended; `None` when its result repeats the last one.
    fn render_end(
        &mut self,
        label: &str,
        command: &str,
        emphasis: TextEmphasis,
        end: String,
        duration_ms: u64,
    ) -> Option<TerminalLine> {
        let mark = match emphasis {
            Good => "✓ ",
            Bad => "✗ ",
            Warning | Plain | Faint | TextEmphasis::Strong => "– ",
        };
        let line =
            TerminalLine::labeled(label)
                .with(emphasis, mark)
                .with_truncated(Plain, command, COMMAND_COLUMNS);
        let line = match end.as_str() {
            "" => line,
            end => line.with(Plain, &format!("  {end}")),
        };
        let before = self.results.insert(format!("{label} {command}"), end.clone());
        (before != Some(end)).then(|| line.with(Faint, &format!("  {}", format_duration(duration_ms))))
    }
}

/// Current activity of the run, for the last line of the terminal. `None` for a fact that starts nothing.
pub(super) fn describe_activity(fact: &Fact) -> Option<String> {
    match fact {
        Fact::ModelRequested { turn, phase, .. } => Some(format!(
            "the model, turn {turn} of {}",
            phase.as_str().replace('_', " ")
        )),
        Fact::SummaryRequested { .. } => Some("the model sums up".to_owned()),
        Fact::ToolRequested { call, .. } => Some(describe_call(call)),
        Fact::CheckRequested { check, .. } => Some(describe_check(check)),
        Fact::WorkspaceRequested { .. } => Some("the workspace is set up".to_owned()),
        Fact::ReportRequested { .. } => Some("the result is written".to_owned()),
        Fact::RunStarted { .. }
        | Fact::TakenOver { .. }
        | Fact::WorkspaceOpened { .. }
        | Fact::WorkspaceFailed { .. }
        | Fact::WorkspaceRestored { .. }
        | Fact::WentBack { .. }
        | Fact::LimitsSet { .. }
        | Fact::ModelReplied { .. }
        | Fact::ModelFailed { .. }
        | Fact::BudgetRefused { .. }
        | Fact::ToolFinished { .. }
        | Fact::McpToolsListed { .. }
        | Fact::CodeFound { .. }
        | Fact::EffortForecast { .. }
        | Fact::ChecksFound { .. }
        | Fact::CheckRan { .. }
        | Fact::ChangeInspected { .. }
        | Fact::PhaseFinished { .. }
        | Fact::ContextCleared { .. }
        | Fact::Summarized { .. }
        | Fact::SummaryFailed { .. }
        | Fact::ClassRaised { .. }
        | Fact::Returned { .. }
        | Fact::HeadMoved { .. }
        | Fact::SnapshotTaken { .. }
        | Fact::SnapshotFailed { .. }
        | Fact::ReportSettled { .. }
        | Fact::Parked { .. }
        | Fact::RetryScheduled { .. }
        | Fact::Retried { .. }
        | Fact::Decided { .. }
        | Fact::StopRequested { .. }
        | Fact::NewsArrived { .. }
        | Fact::Hinted { .. }
        | Fact::RunFinished { .. } => None,
    }
}

fn describe_call(call: &ToolCall) -> String {
    if let Some(command) = find_command(call) {
        return command.to_owned();
    }
    let path = call.input.get("path").and_then(serde_json::Value::as_str);
    match path {
        Some(path) => format!("{} {path}", call.name),
        None => call.name.clone(),
    }
}

fn describe_check(check: &CheckSpec) -> String {
    let tree = match &check.tree {
        TreeKind::Head => "with the change",
        TreeKind::Base => "before the change",
        TreeKind::BaseWith { .. } => "before the change, with its tests",
        TreeKind::HeadWithout { .. } | TreeKind::HeadWithBase { .. } => "without a part of the change",
    };
    format!("{} {tree}", name_check(&check.command, &check.directory))
}

/// Command of a check, with its folder below the root.
fn name_check(command: &str, directory: &str) -> String {
    match directory {
        "" => command.to_owned(),
        directory => format!("{command} in {directory}"),
    }
}

fn find_command(call: &ToolCall) -> Option<&str> {
    let command = call.input.get("command").and_then(serde_json::Value::as_str);
    command.filter(|_| call.name == COMMAND_TOOL)
}

/// Line of one edited file: `edit     shop/cart.py +3 −1`.
fn render_edit(size: &EditSize) -> TerminalLine {
    let line = TerminalLine::labeled("edit").with_truncated(Plain, &size.path, COMMAND_COLUMNS);
    match size.removed {
        Some(removed) => with_lines(line, size.added, removed),
        None if size.added == 0 => line.with(Bad, " deleted"),
        None => line.with(Good, &format!(" +{}", size.added)),
    }
}

/// Adds the number of added and removed lines.
pub(super) fn with_lines(line: TerminalLine, added: usize, removed: usize) -> TerminalLine {
    line.with(Good, &format!(" +{added}"))
        .with(Bad, &format!(" −{removed}"))
}

fn count_tests(count: u32, what: &str) -> String {
    match count {
        0 => String::new(),
        count => format!("{count} {what}"),
    }
}

fn render_phase(output: &PhaseOutput) -> Option<TerminalLine> {
    match output {
        PhaseOutput::Intake { intake: Some(intake) } => match &intake.decision {
            IntakeDecision::Go => Some(render_plan(&intake.one_liner, "")),
            // The question and the end of the run contain the reason.
            IntakeDecision::Ask { .. } | IntakeDecision::Decline { .. } => None,
        },
        PhaseOutput::Plan { plan: Some(plan) } => {
            let steps = match plan.steps.len() {
                0 => String::new(),
                1 => " (1 step)".to_owned(),
                steps => format!(" ({steps} steps)"),
            };
            Some(render_plan(&plan.goal, &steps))
        }
        PhaseOutput::Work {
            exit: WorkExit::CutShort { reason, .. },
        } => {
            let words = format!("the work ended early: {}", reason.words());
            Some(TerminalLine::labeled("limit").with_truncated(Warning, &words, SENTENCE_COLUMNS))
        }
        PhaseOutput::Prove { proof } => {
            let line = TerminalLine::labeled("proof");
            Some(line.with(
                choose_level_emphasis(proof.level, &proof.rows),
                describe_evidence(&**proof),
            ))
        }
        PhaseOutput::Review { review } => Some(render_review(review)),
        PhaseOutput::Intake { intake: None }
        | PhaseOutput::Plan { plan: None }
        | PhaseOutput::Work {
            exit: WorkExit::Finished(_) | WorkExit::GaveUp { .. },
        }
        | PhaseOutput::Answer { .. }
        | PhaseOutput::Issues { .. }
        | PhaseOutput::PullRequest { .. } => None,
    }
}

fn render_plan(words: &str, steps: &str) -> TerminalLine {
    TerminalLine::labeled("plan")
        .with_truncated(Plain, words, SENTENCE_COLUMNS)
        .with(Faint, steps)
}

fn render_review(review: &ChangeReview) -> TerminalLine {
    let line = TerminalLine::labeled("review");
    match (review.is_complete, review.blocking().count()) {
        (false, _) => line.with(Warning, "the second model did not complete its review"),
        (true, 0) => line.with(Good, "a second model has no objection"),
        (true, 1) => line.with(Warning, "a second model has 1 objection"),
        (true, count) => line.with(Warning, &format!("a second model has {count} objections")),
    }
}

/// Emphasis of evidence: tests show the change, something else does, or checks are worse.
pub(super) fn choose_level_emphasis(level: EvidenceLevel, rows: &[CheckRow]) -> TextEmphasis {
    match level {
        EvidenceLevel::E3 => Good,
        EvidenceLevel::E2 | EvidenceLevel::E1 | EvidenceLevel::E0 if rows.iter().any(CheckRow::is_worse) => {
            Bad
        }
        EvidenceLevel::E2 | EvidenceLevel::E1 | EvidenceLevel::E0 => Warning,
    }
}

/// Line of an event that needs attention; `None` for a usual one.
fn render_warning(entry: &JournalEntry) -> Option<TerminalLine> {
    let view = EntryView::from(entry);
    let emphasis = match view.tone {
        Tone::Warm => Warning,
        Tone::Bad => Bad,
        Tone::Quiet | Tone::Soft | Tone::Plain | Tone::Good => return None,
    };
    Some(TerminalLine::labeled(view.who.as_str()).with_truncated(emphasis, &view.head, SENTENCE_COLUMNS))
}

#[cfg(test)]
mod tests {
    use domain::{
        ChangePlan, ChangeProof, RunFence, RunId, SandboxLevel, StopReason, TicketIntake, Timestamp,
        check::TestReport,
    };
    use serde_json::{Value, json};

    use super::*;

    /// View of facts that a test adds one by one, with numbers for their calls.
    #[derive(Default)]
    struct RenderedFacts {
        view: BriefView,
        position: u64,
    }

    impl RenderedFacts {
        fn show(&mut self, fact: Fact) -> Vec<String> {
            let entry = JournalEntry {
                position: self.position,
                nonce: String::new(),
                fence: RunFence::default(),
                at: Timestamp::default(),
                fact,
            };
            let lines = self.view.next_lines(&entry);
            lines.iter().map(|line| line.render(false)).collect()
        }

        fn call(&mut self, tool: &str, input: Value, result: ToolResult) -> Vec<String> {
            self.position += 1;
            let id = "folder:shop#1@1".parse::<RunId>().unwrap().call(self.position);
            let call = ToolCall {
                id: "a".to_owned(),
                name: tool.to_owned(),
                input,
            };
            let requested = self.show(Fact::ToolRequested {
                id: id.clone(),
                call,
                own: false,
                repository: None,
                server: None,
            });
            assert!(requested.is_empty(), "{requested:?}");
            self.show(Fact::ToolFinished { id, result })
        }

        fn run(&mut self, exit_code: Option<i32>, duration_ms: u64) -> Vec<String> {
            let result = ToolResult {
                exit_code,
                duration_ms,
                ..ToolResult::ok("output")
            };
            self.call("run_command", json!({"command": "pytest -q"}), result)
        }

        fn check(
            &mut self,
            tree_kind: TreeKind,
            outcome: CheckOutcome,
            tests: Option<TestReport>,
        ) -> Vec<String> {
            self.check_in("", tree_kind, outcome, tests)
        }

        fn check_in(
            &mut self,
            directory: &str,
            tree_kind: TreeKind,
            outcome: CheckOutcome,
            tests: Option<TestReport>,
        ) -> Vec<String> {
            let run = CompletedCheck {
                command: "pytest".to_owned(),
                directory: directory.to_owned(),
                tree: None,
                tree_kind,
                outcome,
                reason: String::new(),
                exit_code: Some(0),
                duration_ms: 340,
                tests,
                output_tail: String::new(),
                truncated: false,
                sandbox: SandboxLevel::L1,
                tampered: Vec::new(),
                setup_hint: None,
            };
            let id = "folder:shop#1@1".parse::<RunId>().unwrap().call(99);
            self.show(Fact::CheckRan {
                id,
                run: Box::new(run),
            })
        }
    }

    #[test]
    fn edits_are_paths_with_lines() {
        let mut scene = RenderedFacts::default();
        let edit = json!({"path": "shop/cart.py", "old_string": "a\nb", "new_string": "a\nc\nd"});
        assert_eq!(
            scene.call("edit_file", edit.clone(), ToolResult::ok("done")),
            ["edit     shop/cart.py +2 −1"]
        );
        assert!(
            scene
                .call("edit_file", edit, ToolResult::error("no match"))
                .is_empty()
        );
        let file = json!({"path": "a.txt", "content": "one\n"});
        assert_eq!(
            scene.call("write_file", file, ToolResult::ok("done")),
            ["edit     a.txt +1"]
        );
        let reads = json!({"path": "a.txt"});
        assert!(scene.call("read_file", reads, ToolResult::ok("one")).is_empty());
    }

    #[test]
    fn commands_show_mark_and_time_once_per_result() {
        let mut scene = RenderedFacts::default();
        assert_eq!(
            scene.run(Some(1), 340),
            ["run      ✗ pytest -q  exit code 1  0.3 s"]
        );
        assert!(scene.run(Some(1), 350).is_empty(), "the same result again");
        assert_eq!(scene.run(Some(0), 12_400), ["run      ✓ pytest -q  12 s"]);
        assert_eq!(
            scene.run(None, 125_000),
            ["run      ✗ pytest -q  did not end  2 min 5 s"]
        );
    }

    #[test]
    fn only_checks_of_whole_change_are_shown() {
        let mut scene = RenderedFacts::default();
        let tests = |passed, failed| {
            Some(TestReport {
                runner: "pytest".to_owned(),
                passed,
                failed,
                ..TestReport::default()
            })
        };
        assert!(
            scene
                .check(TreeKind::Base, CheckOutcome::Red, tests(1, 2))
                .is_empty()
        );
        assert_eq!(
            scene.check(TreeKind::Head, CheckOutcome::Red, tests(3, 1)),
            ["check    ✗ pytest  1 failed  0.3 s"]
        );
        assert_eq!(
            scene.check(TreeKind::Head, CheckOutcome::Green, tests(4, 0)),
            ["check    ✓ pytest  4 passed  0.3 s"]
        );
        assert_eq!(
            scene.check(TreeKind::Head, CheckOutcome::Inert, None),
            ["check    – pytest  cannot be run here  0.3 s"]
        );
    }

    #[test]
    fn same_command_has_line_per_folder() {
        let mut scene = RenderedFacts::default();
        let mut check = |directory| scene.check_in(directory, TreeKind::Head, CheckOutcome::Timeout, None);
        assert_eq!(
            check("api"),
            ["check    ✗ pytest in api  exceeded its time limit  0.3 s"]
        );
        assert_eq!(
            check("web"),
            ["check    ✗ pytest in web  exceeded its time limit  0.3 s"]
        );
        assert!(check("web").is_empty(), "the same result again");
    }

    #[test]
    fn phases_show_plan_proof_and_review() {
        let mut scene = RenderedFacts::default();
        let mut phase = |output| scene.show(Fact::PhaseFinished { output });
        let intake = TicketIntake {
            one_liner: "Count every\npiece.".to_owned(),
            ..TicketIntake::default()
        };
        assert_eq!(
            phase(PhaseOutput::Intake {
                intake: Some(Box::new(intake))
            }),
            ["plan     Count every piece."]
        );
        let plan = ChangePlan {
            goal: "Every piece counts.".to_owned(),
            steps: vec![domain::PlanStep {
                what: "Multiply.".to_owned(),
                files: Vec::new(),
            }],
            ..ChangePlan::default()
        };
        assert_eq!(
            phase(PhaseOutput::Plan {
                plan: Some(Box::new(plan))
            }),
            ["plan     Every piece counts. (1 step)"]
        );
        let proof = ChangeProof {
            level: EvidenceLevel::E1,
            rows: Vec::new(),
            demonstrations: Vec::new(),
            findings: Vec::new(),
            outside: Vec::new(),
            unnoticed: Vec::new(),
            shown_by: None,
            unrepaired: Vec::new(),
            skipped_checks: Vec::new(),
        };
        assert_eq!(
            phase(PhaseOutput::Prove {
                proof: Box::new(proof)
            }),
            ["proof    The existing checks pass; no test shows the change itself."]
        );
        let review = ChangeReview {
            objections: Vec::new(),
            is_complete: true,
        };
        assert_eq!(
            phase(PhaseOutput::Review { review }),
            ["review   a second model has no objection"]
        );
    }

    #[test]
    fn failures_are_shown_and_details_are_not() {
        let mut scene = RenderedFacts::default();
        let id = "folder:shop#1@1".parse::<RunId>().unwrap().call(3);
        let failed = Fact::ModelFailed {
            id,
            detail: "529 overloaded".to_owned(),
            transient: true,
            kind: None,
            limit: None,
        };
        assert_eq!(scene.show(failed), ["model    failed: 529 overloaded"]);
        let ended = Fact::RunFinished {
            reason: StopReason::NoPlan,
        };
        assert!(scene.show(ended).is_empty());
        assert!(
            scene
                .show(Fact::Retried {
                    by: None,
                    trigger: None
                })
                .is_empty()
        );
    }

    #[test]
    fn activity_names_command_or_path() {
        let call = |name: &str, input| ToolCall {
            id: "a".to_owned(),
            name: name.to_owned(),
            input,
        };
        assert_eq!(
            describe_call(&call("run_command", json!({"command": "make"}))),
            "make"
        );
        assert_eq!(
            describe_call(&call("read_file", json!({"path": "a"}))),
            "read_file a"
        );
        assert_eq!(describe_call(&call("undo", json!({}))), "undo");
        assert_eq!(
            describe_activity(&Fact::RunFinished {
                reason: StopReason::NoPlan
            }),
            None
        );
    }
}
