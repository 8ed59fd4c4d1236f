//! Results of a run's phases: the plan, the model's handover, the proof of the change, and the facts of a
//! pull request's description.

use serde::{Deserialize, Serialize};

use crate::{
    budget::history::RunEffort,
    evidence::{
        check::{ChangeFinding, ChangeHunk, CheckOutcome, EvidenceLevel, FindingSeverity, SetupHint},
        size::ChangeStatistics,
    },
    journal::{
        record_format::is_default,
        stop::{GiveUp, StopReason},
    },
    outbound::refusal::OutboundRefusal,
    rules::scope::{OutOfScopeFile, WidenedModule},
    text::template::TemplateAnswer,
    trigger::job_subject::{CitedAnswer, ThreadReply},
    work::{
        intake::TicketIntake,
        model::RunPhase,
        pull_request_review::ReviewOfChange,
        resolution::{DroppedHunk, LostHunk},
        review::{ChangeReview, ReviewObjection},
    },
};

// Maximum number of test names in the stop reason of a run.
const MOST_NAMED: usize = 20;

/// End of the model's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkExit {
    /// The change is complete.
    Finished(Box<WorkHandover>),
    /// A limit ended the work. Journeyman delivers the existing change as a draft.
    CutShort {
        /// The limit that ended the work.
        reason: Box<StopReason>,
        /// The planner's description of the change.
        handover: Box<WorkHandover>,
    },
    /// The model ended the work without a change.
    GaveUp {
        /// Reason from a closed list.
        kind: GiveUp,
        /// Evidence for people; at most 4,000 characters.
        evidence: String,
    },
}

/// The model's description of its change.
// The model only describes the change. Branch, commit, push and pull request are made by code, so the model
// cannot claim evidence that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkHandover {
    /// The type of the change, as the rules name it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The scope of the commit message, a part of the repository; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// Effect of the change in one line.
    pub title: String,
    /// Contents and reasons of the change.
    pub summary: String,
    /// Root cause of the bug, if the ticket is a bug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<String>,
    /// Summary per changed file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileNote>,
    /// Design decisions with their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// Requests of the ticket that the change does not fulfill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<String>,
    /// Evidence for each acceptance criterion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CriterionNote>,
    /// Commands whose output demonstrates the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demonstrations: Vec<DemonstrationClaim>,
    /// Answers to the repository's pull request template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub template: Vec<TemplateAnswer>,
    /// Replies to the comments of a review, if the work is about a review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<ThreadReply>,
    /// Hunks of either side that the model changed or dropped, if the work resolves a conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedHunk>,
    /// The entries of `ci.auto_fix` that made the change, if no model was involved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repaired_by: Vec<String>,
}

/// A command whose output, according to the model, demonstrates the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemonstrationClaim {
    /// The command line for the shell.
    pub command: String,
    /// Text that the command prints only with the change.
    pub prints: String,
}

/// Observed output of a demonstration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemonstrationResult {
    /// The command line for the shell.
    pub command: String,
    /// Text that the model expects only with the change.
    pub prints: String,
    /// The last line of the output at the base.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// The output line that contains the expected text with the change, otherwise the last line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// True when the observation confirms the model's claim.
    pub is_shown: bool,
}

/// Summary of the change in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNote {
    /// Path relative to the root.
    pub path: String,
    /// The summary in one line.
    pub change: String,
}

/// The model's evidence for an acceptance criterion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CriterionNote {
    /// The criterion as quoted from the ticket.
    pub quote: String,
    /// A test, a command, or an instruction for a person's inspection.
    pub shown_by: String,
}

/// Facts of a pull request's description, with the model's texts as fields. The reporter renders them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeDescription {
    /// The model's description of its change.
    pub handover: WorkHandover,
    /// Reason for an early end of the work; absent: the work was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<StopReason>,
    /// The type of the ticket in the tracker.
    #[serde(default)]
    pub kind: String,
    /// The title of the ticket.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ticket: String,
    /// Size of the change; absent: the inspection failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeStatistics>,
    /// Results of the checks; empty: no check ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckRow>,
    /// Observed output of the model's demonstrations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demonstrations: Vec<DemonstrationResult>,
    /// Strength of the evidence; absent: no check was attempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<EvidenceLevel>,
    /// Effort of the run so far; absent in records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<RunEffort>,
    /// Findings that weaken the checks, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ChangeFinding>,
    /// Modules outside of the ticket's scope that the model changed, with its reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widened: Vec<WidenedModule>,
    /// Changed files that the scope of the ticket excludes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutOfScopeFile>,
    /// Parts of the change whose removal no test detects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnoticed: Vec<ChangeHunk>,
    /// Origin of the tests that support the change; absent: no test does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<ShownBy>,
    /// The repository's pull request template with the author's answers; empty: the repository has no
    /// template.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// Changed files that other files depend on, if the change has no new or changed test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested_contracts: Vec<String>,
    /// Repairs of the rules that failed before the commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrepaired: Vec<String>,
    /// Commands of the rules that did not run, because a proof runs no more of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_checks: Vec<String>,
    /// Files that the author wrote and an ignore rule keeps out of the change; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// Remaining objections of the reviewing model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<String>,
    /// True when the review started and did not complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreviewed: bool,
    /// True when the work continued after this state and ended in a worse one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub went_back: bool,
}

/// Results of one check before and after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRow {
    /// The command line for the shell.
    pub command: String,
    /// Outcome at the base; absent: the check did not run there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<CheckOutcome>,
    /// Outcome with the change.
    pub head: CheckOutcome,
    /// Number of tests that passed with the change.
    #[serde(default)]
    pub passed: u32,
    /// Tests that fail with the change, and at the base either pass or have no result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    /// Number of tests that passed at the base and no longer run with the change, without tests that the
    /// change visibly removes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missing_count: u32,
    /// The first names of these tests, if the runner reports names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Tests that fail at the base and pass with the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<String>,
    /// Tests that fail at the base and with the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_failing: Vec<String>,
    /// Tests whose results vary with the same files. They count as no evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// The executor's reason why the check could not run with the change; empty: it ran.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The missing program or library of the executor with its provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_hint: Option<SetupHint>,
}

impl CheckRow {
    /// Returns true when the check fails in a way that the base does not excuse.
    ///
    /// That is the case when tests fail newly, when they fail and the base gave no result, or when a check that is
    /// not green omits tests that passed. A separate finding reports silenced tests of a green check.
    pub const fn is_worse(&self) -> bool {
        !self.broken.is_empty() || (self.missing_count > 0 && !matches!(self.head, CheckOutcome::Green))
    }

    /// Returns true when the check passed or failed at the base, so that the change can be compared with it.
    pub fn has_base_result(&self) -> bool {
        self.base.is_some_and(CheckOutcome::is_about_the_code)
    }
}

/// Origin of the tests that support a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownBy {
    /// Tests of the repository in the version of the base.
    OwnTests,
    /// Tests or support files that the change also modifies.
    ChangedTests,
}

/// A reason to doubt a change before its delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChangeDoubt {
    /// No line of code differs, only comments, blank lines or prose.
    NoCode,
    /// The change is far larger than the class of the ticket suggests.
    TooLarge {
        /// Number of lines added and removed.
        lines: u32,
    },
    /// No test fails without the change, although the change should repair a bug.
    Uncovered,
}

/// Evidence for a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeProof {
    /// Strength of the evidence.
    pub level: EvidenceLevel,
    /// Results, one row per check.
    pub rows: Vec<CheckRow>,
    /// Observed output of the model's demonstrations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demonstrations: Vec<DemonstrationResult>,
    /// Findings that weaken the checks, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ChangeFinding>,
    /// Changed files that the scope of the ticket excludes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutOfScopeFile>,
    /// Parts of the change whose removal no test detects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnoticed: Vec<ChangeHunk>,
    /// Origin of the tests that support the change; absent: no test does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<ShownBy>,
    /// Repairs of the rules that failed before the commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrepaired: Vec<String>,
    /// Commands of the rules that did not run, because a proof runs no more of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_checks: Vec<String>,
}

impl ChangeProof {
    /// Returns the stop reason for a change whose own checks fail in a way that the base does not excuse; `None`
    /// without such checks.
    pub fn failure(&self) -> Option<StopReason> {
        let worse: Vec<&CheckRow> = self.rows.iter().filter(|row| row.is_worse()).collect();
        let uncompared = worse.iter().filter(|row| !row.has_base_result());
        let names = |of: fn(&CheckRow) -> &Vec<String>| -> Vec<String> {
            let all = worse.iter().flat_map(|row| of(row));
            all.take(MOST_NAMED).cloned().collect()
        };
        (!worse.is_empty()).then(|| StopReason::ChecksFail {
            commands: worse.iter().map(|row| row.command.clone()).collect(),
            uncompared: uncompared.map(|row| row.command.clone()).collect(),
            failing: names(|row| &row.broken),
            missing: names(|row| &row.missing),
        })
    }

    /// Returns true when a person must approve the change regardless of the rules.
    pub fn is_blocked(&self) -> bool {
        let is_serious = |finding: &ChangeFinding| finding.severity == FindingSeverity::Block;
        self.findings.iter().any(is_serious) || !self.outside.is_empty()
    }
}

/// A check that fails with the change in a way that the base does not excuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedCheck {
    /// The command line for the shell.
    pub command: String,
    /// Outcome at the base; absent: the check did not run there, or an earlier release stored the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<CheckOutcome>,
    /// Tests that fail with the change, and at the base either pass or have no result; the command if its tests
    /// are unknown.
    pub tests: Vec<String>,
    /// Number of tests that passed before and no longer run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missing_count: u32,
    /// The first names of these tests, if the runner reports names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The end of the check's output.
    pub output_tail: String,
}

/// Output of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum PhaseOutput {
    /// The model assessed the ticket.
    Intake {
        /// Assessment and decision; absent: the model gave no usable answer, and the work begins without an
        /// assessment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intake: Option<Box<TicketIntake>>,
    },
    /// The model planned the change.
    Plan {
        /// The plan; absent: the model made none, and the work begins without a plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Box<ChangePlan>>,
    },
    /// The model ended its work.
    Work {
        /// The kind of end with its details.
        exit: WorkExit,
    },
    /// The model answered a question.
    Answer {
        /// The answer; absent: the model gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Box<CitedAnswer>>,
    },
    /// The model planned the issues that follow from a discussion.
    Issues {
        /// The planned issues; empty: the model proposed none.
        issues: Vec<PlannedIssue>,
    },
    /// The model reviewed a pull request.
    PullRequest {
        /// The review; absent: the model finished none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        review: Option<Box<ReviewOfChange>>,
    },
    /// The planner checked the change.
    Prove {
        /// The evidence for the change.
        proof: Box<ChangeProof>,
    },
    /// A second model reviewed the change.
    Review {
        /// Verdict and objections of the reviewer.
        review: ChangeReview,
    },
}

impl PhaseOutput {
    /// Returns true when the output stays valid after the run returns to an earlier phase.
    pub const fn outlasts(&self, why: &ReturnReason) -> bool {
        match self {
            Self::Intake { .. } | Self::Answer { .. } | Self::Issues { .. } | Self::PullRequest { .. } => {
                true
            }
            // A person who requests another plan rejects the old one. Every other return keeps the plan and
            // repeats the work.
            Self::Plan { .. } => !matches!(why, ReturnReason::Replan { .. }),
            Self::Work { .. } | Self::Prove { .. } | Self::Review { .. } => false,
        }
    }
}

/// Reason why a run returns to an earlier phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReturnReason {
    /// The reporter, GitHub or Jira refused the change.
    Refused(OutboundRefusal),
    /// A person requests changes at the gate.
    Feedback {
        /// Name of the person.
        by: String,
        /// The requested changes.
        feedback: String,
    },
    /// The snapshot could not contain all changes.
    Unkept {
        /// Reason for the model.
        reason: String,
    },
    /// The workspace contains no change.
    NothingChanged,
    /// Checks fail with the change in a way that the base does not excuse.
    Red {
        /// The failing checks with their output.
        checks: Vec<RedCheck>,
    },
    /// The result of a merge lacks hunks that the model did not name, or has leftover markers.
    HunksLost {
        /// The hunks without a reason.
        hunks: Vec<LostHunk>,
        /// Files with markers.
        marked_files: Vec<String>,
    },
    /// The change touches modules outside of the ticket's scope.
    OutOfScope {
        /// The files outside of the scope.
        files: Vec<OutOfScopeFile>,
    },
    /// The change weakens checks.
    Weakened {
        /// Files, lines and kinds of the weaknesses.
        findings: Vec<ChangeFinding>,
    },
    /// The change may differ from the request of the ticket.
    Questioned {
        /// Reasons for the doubt.
        doubts: Vec<ChangeDoubt>,
    },
    /// A person requests another plan at the gate.
    Replan {
        /// Name of the person.
        by: String,
        /// The requested changes of the plan.
        feedback: String,
    },
    /// A reviewing model objects to the change.
    Reviewed {
        /// The objections that block the delivery.
        objections: Vec<ReviewObjection>,
    },
}

impl ReturnReason {
    /// Returns the phase whose conversation continues with the return.
    pub const fn phase(&self) -> RunPhase {
        match self {
            Self::Replan { .. } => RunPhase::Plan,
            Self::Refused(_)
            | Self::Feedback { .. }
            | Self::Unkept { .. }
            | Self::NothingChanged
            | Self::Red { .. }
            | Self::HunksLost { .. }
            | Self::OutOfScope { .. }
            | Self::Weakened { .. }
            | Self::Questioned { .. }
            | Self::Reviewed { .. } => RunPhase::Work,
        }
    }
}

/// Plan of a change, written by the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePlan {
    /// The state after the change.
    pub goal: String,
    /// The approach with its reason.
    pub approach: String,
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
    /// Planned tests with their methods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// Risks of the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// Work that a reader may expect and that the plan excludes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_doing: Vec<String>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// Description of the step.
    pub what: String,
    /// Files that the step touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A planned issue of a discussion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedIssue {
    /// Title in one line, written by the model.
    pub title: String,
    /// Description as Markdown, written by the model.
    pub text: String,
    /// Tasks of the issue, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checklist: Vec<String>,
}
