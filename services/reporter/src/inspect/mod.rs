//! Inspection of an untrusted change: imports the pack, compares, checks and renders the difference.
//!
//! C libraries read hostile objects here, so the inspection runs in a separate process without credentials and
//! network. It can read the repository's mirror and write one quarantine folder, and its time and memory are bounded.
//! The reporter itself moves the pack of an accepted change from the quarantine into the mirror.

mod confine;
mod examine;
mod process;
mod program;

use domain::{
    BranchPush, CommitAuthor, MetadataPattern, ModuleRules, OutOfScopeFile, PolicyViolation, TicketKey,
};
use serde::{Deserialize, Serialize};

pub(crate) use self::process::ChangeInspector;
pub use self::program::run_inspection as run_inspector;
use crate::policy::LimitSettings;

/// Input of an inspection. The pack follows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InspectionTask {
    /// Push that would follow.
    pub(crate) push: BranchPush,
    /// Ticket of the change.
    pub(crate) ticket: TicketKey,
    /// Branches of the remote; one of them must contain the base.
    pub(crate) branches: Vec<String>,
    /// Accepted authors of the commits.
    pub(crate) authors: Vec<CommitAuthor>,
    /// Limits that the change must keep.
    pub(crate) limits: LimitSettings,
    /// Modules of the rules. They apply only if the push names a scope.
    pub(crate) modules: Vec<ModuleRules>,
    /// Patterns that the server requires of the commits.
    pub(crate) patterns: Vec<MetadataPattern>,
    /// Use of the difference as text.
    pub(crate) show: DiffDisplay,
}

/// Use of a difference as text in the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiffDisplay {
    /// A person decides about the change, so a change that cannot be shown is refused.
    ForDecision,
    /// Pages show it later. A difference that is too long is omitted.
    ForRecord,
}

/// Result of an inspection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub(crate) enum InspectionVerdict {
    /// The change may be pushed. Its checked pack is in the quarantine.
    Clean {
        /// Difference as text; absent: it is too long for a record.
        shown: Option<RenderedDiff>,
        /// Files that this kind of ticket may not change.
        outside: Vec<OutOfScopeFile>,
    },
    /// The change must not be pushed.
    Breach {
        /// Violations, without duplicates.
        violations: Vec<PolicyViolation>,
    },
    /// The pack is invalid or incomplete.
    BadPack {
        /// Error of git.
        detail: String,
    },
    /// The repository or git failed. A retry may succeed.
    Trouble {
        /// Error of git.
        detail: String,
    },
}

/// Difference as text in git's format, with hidden characters spelled out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RenderedDiff {
    /// Text of the difference.
    pub(crate) text: String,
    /// Number of paths that differ.
    pub(crate) files: usize,
}
