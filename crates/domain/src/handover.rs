//! How the model's work ends, and what a pull request says of it.

use serde::{Deserialize, Serialize};

use crate::check::{CheckOutcome, Finding, Hunk, Level, Severity};
use crate::{
    Answered, ChangeSize, Effort, GiveUp, Intake, Objection, Outside, Phase, Plan, PlannedIssue, Refusal,
    Review, ReviewOfChange, SetupHint, StopReason, TemplateAnswer, ThreadReply, Widened,
};

/// Names of tests that the end of a run keeps.
const MOST_NAMED: usize = 20;

/// How the model ended its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Exit {
    /// The change is complete.
    Finished(Box<Handover>),
    /// A limit ended the work; what exists goes into a draft.
    CutShort {
        /// Which limit.
        reason: Box<StopReason>,
        /// What is known of the change.
        handover: Box<Handover>,
    },
    /// There will be no change.
    GaveUp {
        /// Why, of a closed list.
        kind: GiveUp,
        /// What shows it, for people; at most 4,000 characters.
        evidence: String,
    },
}

/// What the model says of its change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// The type of the change, as the rules name it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The part of the repository; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// One line: what the change does.
    pub title: String,
    /// What was changed and why.
    pub summary: String,
    /// What caused the bug, for a bug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<String>,
    /// What changed in which file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileNote>,
    /// What was decided, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// What the ticket asks and the change does not do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<String>,
    /// How each acceptance criterion is met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CriterionNote>,
    /// Commands whose output shows the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demonstrations: Vec<Demonstration>,
    /// Answers to the repository's template for pull requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub template: Vec<TemplateAnswer>,
    /// Replies to the comments of a review, where the work is about one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<ThreadReply>,
    /// The entries of `ci.auto_fix` that made the change, where no model did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repaired_by: Vec<String>,
}

/// A command whose output shows the change, as the model says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demonstration {
    /// For the shell.
    pub command: String,
    /// Text that it prints with the change and not without it.
    pub prints: String,
}

/// What was seen of a command that is said to show the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demonstrated {
    /// For the shell.
    pub command: String,
    /// Text that it was said to print with the change and not without it.
    pub prints: String,
    /// The last line that it printed at the base.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// The line with the text that it printed with the change; without that text its last line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// Whether it was as the model said.
    pub is_shown: bool,
}

/// What changed in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNote {
    /// Relative to the root.
    pub path: String,
    /// One line.
    pub change: String,
}

/// How an acceptance criterion is met, as the model says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CriterionNote {
    /// The criterion, as the ticket has it.
    pub quote: String,
    /// A test, a command, or what a person has to look at.
    pub shown_by: String,
}

/// What a pull request says: facts, and the model's words in their places. The reporter has the wording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// What the model says of its change.
    pub handover: Handover,
    /// Why the work ended early, when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<StopReason>,
    /// The kind of ticket, as the tracker names it.
    #[serde(default)]
    pub kind: String,
    /// The ticket's own first line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ticket: String,
    /// What really differs; absent: that could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeSize>,
    /// What the checks showed; empty: none was run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckRow>,
    /// What was seen of the commands that the model says show the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demonstrations: Vec<Demonstrated>,
    /// How strong the evidence is; absent: nothing was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// What the run has taken so far; absent in records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// What weakens the checks, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Modules that the model changed beyond those of the ticket's kind, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widened: Vec<Widened>,
    /// Files that the ticket's kind may not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Outside>,
    /// Parts of the change that no test notices when they are taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnoticed: Vec<Hunk>,
    /// Whose tests show the change, where tests do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<ShownBy>,
    /// The repository's template for pull requests with the author's answers; empty: there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// Changed files that others rely on, where the change has no new or changed test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested_contracts: Vec<String>,
    /// Repairs of the rules that failed before the commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrepaired: Vec<String>,
    /// What a reviewing model still objects to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<String>,
    /// Whether the review was begun and did not come to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreviewed: bool,
    /// Whether the work went on after this state and ended worse.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub went_back: bool,
}

/// One check, before and after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRow {
    /// For the shell.
    pub command: String,
    /// How it ended at the base; absent: not run there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<CheckOutcome>,
    /// How it ended with the change.
    pub head: CheckOutcome,
    /// Tests that passed with the change.
    #[serde(default)]
    pub passed: u32,
    /// Tests that fail with the change and not at the base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    /// How many tests passed at the base and do not run any more with the change, nor are removed in the open.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_count: u32,
    /// The first of them, where the runner names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Tests that fail at the base and pass with the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<String>,
    /// Tests that fail at the base and with the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_failing: Vec<String>,
    /// Tests that fail in some runs with the same files: they show nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// Why it could not be run with the change, as the executor says; empty where it ran.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the machine lacked for it, and what would provide that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_hint: Option<SetupHint>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl CheckRow {
    /// Whether the check is worse with the change than before it: tests fail, or a check that does not end well leaves out
    /// tests that passed. Tests that are silenced while the check passes are a finding of their own.
    pub const fn is_worse(&self) -> bool {
        !self.broken.is_empty() || (self.missing_count > 0 && !matches!(self.head, CheckOutcome::Green))
    }
}

/// Whose tests show a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownBy {
    /// Tests of the repository as the base has them.
    OwnTests,
    /// Tests or support files that the change also changes.
    ChangedTests,
}

/// A reason to doubt a change before it is delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChangeDoubt {
    /// No line of code differs: comments, blanks and prose alone.
    NoCode,
    /// The change is far larger than the work seemed to be.
    TooLarge {
        /// Lines added and removed.
        lines: u32,
    },
    /// No test fails without the change, although it is to repair a bug.
    Uncovered,
}

/// What was shown of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// How strong the evidence is.
    pub level: Level,
    /// One for each check.
    pub rows: Vec<CheckRow>,
    /// What was seen of the commands that the model says show the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demonstrations: Vec<Demonstrated>,
    /// What weakens the checks, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Files that the ticket's kind may not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Outside>,
    /// Parts of the change that no test notices when they are taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnoticed: Vec<Hunk>,
    /// Whose tests show the change, where tests do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<ShownBy>,
    /// Repairs of the rules that failed before the commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrepaired: Vec<String>,
}

impl Proof {
    /// The end of a run that delivers a change whose own checks are worse than before; nothing where they are not.
    pub fn failure(&self) -> Option<StopReason> {
        let worse: Vec<&CheckRow> = self.rows.iter().filter(|row| row.is_worse()).collect();
        let names = |of: fn(&CheckRow) -> &Vec<String>| -> Vec<String> {
            let all = worse.iter().flat_map(|row| of(row));
            all.take(MOST_NAMED).cloned().collect()
        };
        (!worse.is_empty()).then(|| StopReason::ChecksFail {
            commands: worse.iter().map(|row| row.command.clone()).collect(),
            failing: names(|row| &row.broken),
            missing: names(|row| &row.missing),
        })
    }

    /// Whether a person must approve the change, whatever the rules say.
    pub fn is_blocked(&self) -> bool {
        let is_serious = |finding: &Finding| finding.severity == Severity::Block;
        self.findings.iter().any(is_serious) || !self.outside.is_empty()
    }
}

/// A check that fails because of the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedCheck {
    /// For the shell.
    pub command: String,
    /// Tests that fail with the change and not before it; the command where its tests are not known.
    pub tests: Vec<String>,
    /// How many tests passed before and do not run any more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_count: u32,
    /// The first of them, where the runner names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The end of its output.
    pub output_tail: String,
}

/// What a phase brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum PhaseOutput {
    /// The ticket was looked at.
    Intake {
        /// What was found and decided; absent: the model gave no usable answer, and the work begins without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intake: Option<Box<Intake>>,
    },
    /// The change was planned.
    Plan {
        /// The plan; absent: the model made none, and the work begins without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Box<Plan>>,
    },
    /// The model ended its work.
    Work {
        /// How.
        exit: Exit,
    },
    /// The question was answered.
    Answer {
        /// The answer; absent: the model gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Box<Answered>>,
    },
    /// The issues that follow from a discussion were planned.
    Issues {
        /// The issues; none: the model came to no plan.
        issues: Vec<PlannedIssue>,
    },
    /// A pull request was reviewed.
    PullRequest {
        /// The review; absent: the model came to none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        review: Option<Box<ReviewOfChange>>,
    },
    /// The change was checked.
    Prove {
        /// What was shown.
        proof: Box<Proof>,
    },
    /// The change was reviewed.
    Review {
        /// What the reviewer says.
        review: Review,
    },
}

impl PhaseOutput {
    /// Whether it still holds when the run goes back.
    pub const fn outlasts(&self, why: &Return) -> bool {
        match self {
            Self::Intake { .. } | Self::Answer { .. } | Self::Issues { .. } | Self::PullRequest { .. } => {
                true
            }
            Self::Plan { .. } => !matches!(why, Return::Replan { .. }),
            Self::Work { .. } | Self::Prove { .. } | Self::Review { .. } => false,
        }
    }
}

/// Why a run goes back to its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Return {
    /// The outside refused the change.
    Refused(Refusal),
    /// A person wants it changed.
    Feedback {
        /// Who.
        by: String,
        /// What they want.
        feedback: String,
    },
    /// Not everything that was changed could be kept.
    Unkept {
        /// Why.
        reason: String,
    },
    /// The workspace holds no change.
    NothingChanged,
    /// Checks fail because of the change.
    Red {
        /// Which.
        checks: Vec<RedCheck>,
    },
    /// The change is in modules that the ticket's kind may not change.
    OutOfScope {
        /// Where.
        files: Vec<Outside>,
    },
    /// The change weakens checks.
    Weakened {
        /// Where and how.
        findings: Vec<Finding>,
    },
    /// The change may not be what the ticket asks for.
    Questioned {
        /// Why.
        doubts: Vec<ChangeDoubt>,
    },
    /// A person wants another plan.
    Replan {
        /// Who.
        by: String,
        /// What they want.
        feedback: String,
    },
    /// A reviewing model objects to the change.
    Reviewed {
        /// What stands in its way.
        objections: Vec<Objection>,
    },
}

impl Return {
    /// The conversation that goes on with it.
    pub const fn phase(&self) -> Phase {
        match self {
            Self::Replan { .. } => Phase::Plan,
            Self::Refused(_)
            | Self::Feedback { .. }
            | Self::Unkept { .. }
            | Self::NothingChanged
            | Self::Red { .. }
            | Self::OutOfScope { .. }
            | Self::Weakened { .. }
            | Self::Questioned { .. }
            | Self::Reviewed { .. } => Phase::Work,
        }
    }
}
