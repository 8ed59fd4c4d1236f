//! Looks at what somebody who is not trusted wants to push: imports the pack, compares, checks, renders the difference.
//! That reads hostile objects with C libraries, so it happens in a process of its own: no credentials, no network, no
//! files but the repository's mirror, which it reads, and one quarantine folder, which it writes; bounded in time and memory.
//! The reporter itself moves the pack of a change that may be pushed from the quarantine into the mirror.

mod confine;
mod examine;
mod process;
mod program;

use domain::{CommitAuthor, ModuleRules, Outside, PushBranch, TicketKey, Violation};
use serde::{Deserialize, Serialize};

pub(crate) use self::process::Inspector;
pub use self::program::run as run_inspector;
use crate::policy::LimitSettings;

/// What is to be looked at. The pack follows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// What would be pushed.
    pub(crate) push: PushBranch,
    /// For whom.
    pub(crate) ticket: TicketKey,
    /// Branches of the remote in one of which the base must be.
    pub(crate) branches: Vec<String>,
    /// Authors that the commits may have.
    pub(crate) authors: Vec<CommitAuthor>,
    /// What it is measured against.
    pub(crate) limits: LimitSettings,
    /// Modules of the rules; only compared where the push says whose change it is.
    pub(crate) modules: Vec<ModuleRules>,
    /// Whether the difference is wanted as text.
    pub(crate) show: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It may be pushed; its checked pack is in the quarantine.
    Clean {
        /// The difference, where it was wanted.
        shown: Option<Rendered>,
        /// Files that this kind of ticket may not change.
        outside: Vec<Outside>,
    },
    /// It may not.
    Breach {
        /// Why, each thing once.
        violations: Vec<Violation>,
    },
    /// The pack is refused or incomplete.
    BadPack {
        /// Why.
        detail: String,
    },
    /// The repository or git is in trouble; it may work later.
    Trouble {
        /// What.
        detail: String,
    },
}

/// A difference as text in git's format, with hidden characters spelled out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rendered {
    /// The text.
    pub(crate) text: String,
    /// How many paths differ.
    pub(crate) files: usize,
}
