//! Review of a change by a second model.

use serde::{Deserialize, Serialize};

use crate::text::characters::{normalize_text, truncate_text};

/// The reviewer's verdict about a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeReview {
    /// Objections against the change; the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<ReviewObjection>,
    /// False when the reviewer did not complete the review.
    #[serde(default)]
    pub is_complete: bool,
}

/// An objection against a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewObjection {
    /// Path of a changed file, relative to the root.
    pub path: String,
    /// The line number, if the objection is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The input or situation that causes the problem.
    pub trigger: String,
    /// Effect of the problem.
    pub why: String,
    /// Severity of the objection.
    pub weight: ObjectionWeight,
}

/// Severity of an objection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectionWeight {
    /// The change must not be merged in its current state.
    Blocking,
    /// The objection is advice and blocks nothing.
    Advice,
}

// Maximum characters of an objection in one line.
const LINE: usize = 300;

impl ReviewObjection {
    /// Returns true when both are about the same problem: the same file with the same line or the same
    /// trigger.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        // The line alone is not enough: it moves between two rounds, and the model may give none.
        let is_same_line = self.line.is_some() && self.line == other.line;
        self.path == other.path
            && (is_same_line || normalize_text(&self.trigger) == normalize_text(&other.trigger))
    }

    /// Formats the objection in one line of at most 300 characters.
    #[must_use]
    pub fn in_a_line(&self) -> String {
        let line = self.line.map_or_else(String::new, |line| format!(" line {line}"));
        truncate_text(
            &format!("{}{line}: {} ({})", self.path, self.why, self.trigger),
            LINE,
        )
    }
}

impl ChangeReview {
    /// Returns the objections that block the delivery.
    pub fn blocking(&self) -> impl Iterator<Item = &ReviewObjection> {
        let all = self.objections.iter();
        all.filter(|objection| objection.weight == ObjectionWeight::Blocking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_objection(path: &str, line: Option<u32>, trigger: &str) -> ReviewObjection {
        ReviewObjection {
            path: path.to_owned(),
            line,
            trigger: trigger.to_owned(),
            why: "It divides by zero.".to_owned(),
            weight: ObjectionWeight::Blocking,
        }
    }

    #[test]
    fn objections_match_by_line_or_trigger() {
        let first = build_objection("cart.py", Some(3), "An empty cart");
        assert!(first.is_same(&build_objection("cart.py", Some(3), "No lines")));
        assert!(first.is_same(&build_objection("cart.py", None, "an EMPTY cart!")));
        assert!(!first.is_same(&build_objection("cart.py", Some(4), "No lines")));
        assert!(!first.is_same(&build_objection("shop.py", Some(3), "An empty cart")));
        let place_less = build_objection("cart.py", None, "No lines");
        assert!(!place_less.is_same(&build_objection("cart.py", None, "An empty cart")));
    }
}
