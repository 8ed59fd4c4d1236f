//! Assessment of a ticket before the work on it begins.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::{identity::ticket::TicketQuestion, journal::stop::GiveUp};

/// The model's first assessment of a ticket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TicketIntake {
    /// The kind of the ticket.
    pub kind: TicketKind,
    /// The work in one technical sentence.
    pub one_liner: String,
    /// Possible cause of the bug; a guess.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<String>,
    /// Acceptance criteria as quotations of the ticket.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<AcceptanceCriterion>,
    /// Parts of the product that the ticket concerns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// Modules that may have to change, with reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleNote>,
    /// Files that may have to change; unverified guesses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Amount of work.
    pub class: WorkClass,
    /// Assumptions of the assessment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// The next step for the ticket.
    pub decision: IntakeDecision,
}

/// Reason why a module may have to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleNote {
    /// Its name in the rules; a folder if the rules define no modules.
    pub name: String,
    /// The reason in one line.
    pub why: String,
}

/// Kind of a ticket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum TicketKind {
    /// A report that the product does not work.
    Bug,
    /// A request for a new feature.
    #[default]
    Story,
    /// A request for information.
    Question,
    /// Maintenance: documents, dependencies, configuration.
    Chore,
}

impl TicketKind {
    /// Maps the name of a tracker's ticket type to a kind. Unknown names map to [`TicketKind::Story`].
    pub fn of(kind: &str) -> Self {
        let kind = kind.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
        match () {
            () if has(&["bug", "defect", "incident"]) => Self::Bug,
            () if has(&["chore", "maintenance", "upkeep", "documentation"]) => Self::Chore,
            () if has(&["question", "support"]) => Self::Question,
            () => Self::Story,
        }
    }

    /// The name in prompts and listings.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// An acceptance criterion of a ticket.
// Only a quotation counts as a criterion. What the model adds to the ticket is shown as a guess.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptanceCriterion {
    /// The quotation from the ticket.
    pub quote: String,
    /// True when a test can verify the criterion.
    #[serde(default)]
    pub testable: bool,
}

/// Amount of work for a ticket. It determines the limit of turns and the phases of the run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum WorkClass {
    /// A change in one small place without open questions.
    Trivial,
    /// The class of most tickets.
    #[default]
    Normal,
    /// Several modules, a migration or a public interface: a planning phase precedes the work.
    Large,
}

impl WorkClass {
    /// The name in rules, prompts and listings.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the next larger class, if any.
    #[must_use]
    pub const fn larger(self) -> Option<Self> {
        match self {
            Self::Trivial => Some(Self::Normal),
            Self::Normal => Some(Self::Large),
            Self::Large => None,
        }
    }
}

/// The next step after the assessment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum IntakeDecision {
    /// The work begins.
    #[default]
    Go,
    /// The planner asks the participants of the ticket first.
    Ask {
        /// Questions that only they can answer; at most three.
        questions: Vec<TicketQuestion>,
    },
    /// The planner declines the ticket without a change.
    Decline {
        /// Reason from a closed list.
        kind: GiveUp,
        /// Explanation for the participants of the ticket.
        reason: String,
    },
}
