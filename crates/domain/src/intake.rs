//! What is decided about a ticket before anybody works on it.

use serde::{Deserialize, Serialize};

use crate::{GiveUp, Question};

/// A ticket as the first look at it has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Intake {
    /// What the ticket is.
    pub kind: TicketKind,
    /// The work in one technical sentence.
    pub one_liner: String,
    /// What may cause the bug; a guess.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<String>,
    /// What the change must do, in the ticket's own words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
    /// Parts of the product that are concerned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// Modules that may have to change, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleNote>,
    /// Files that may have to change; guesses that nobody has looked up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// How much work it is.
    pub class: Class,
    /// What is taken for granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// What happens next.
    pub decision: IntakeDecision,
}

/// Why a module may have to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleNote {
    /// Its name in the rules; without modules there a folder.
    pub name: String,
    /// One line.
    pub why: String,
}

/// What a ticket is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TicketKind {
    /// Something does not work.
    Bug,
    /// Something new is wanted.
    #[default]
    Story,
    /// Somebody wants to know something.
    Question,
    /// Upkeep: documents, dependencies, configuration.
    Chore,
}

impl TicketKind {
    /// What a tracker's type of ticket says of it.
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bug => "bug",
            Self::Story => "story",
            Self::Question => "question",
            Self::Chore => "chore",
        }
    }
}

/// A point that the change must meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// The ticket's own words.
    pub quote: String,
    /// Whether a test can show it.
    #[serde(default)]
    pub testable: bool,
}

/// How much work a ticket is. It sets the turns that the work may take, and what happens around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// One small place, no question open.
    Trivial,
    /// Most tickets.
    #[default]
    Normal,
    /// Several modules, a migration or a public interface: it is planned first.
    Large,
}

impl Class {
    /// The name in rules, prompts and listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trivial => "trivial",
            Self::Normal => "normal",
            Self::Large => "large",
        }
    }

    /// The next larger class.
    #[must_use]
    pub const fn larger(self) -> Option<Self> {
        match self {
            Self::Trivial => Some(Self::Normal),
            Self::Normal => Some(Self::Large),
            Self::Large => None,
        }
    }
}

/// What happens after the first look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum IntakeDecision {
    /// The work begins.
    #[default]
    Go,
    /// The people of the ticket are asked first.
    Ask {
        /// What only they can know; at most three.
        questions: Vec<Question>,
    },
    /// There will be no change.
    Decline {
        /// Why, of a closed list.
        kind: GiveUp,
        /// For the people of the ticket.
        reason: String,
    },
}
