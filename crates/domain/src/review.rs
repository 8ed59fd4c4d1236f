//! What a second look at a change found.

use serde::{Deserialize, Serialize};

use crate::text::{bare, capped};

/// The reviewer's word on a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// What speaks against the change; the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<Objection>,
    /// False when the reviewer came to no end.
    #[serde(default)]
    pub is_complete: bool,
}

/// Something that speaks against a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// A file of the change.
    pub path: String,
    /// The line, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The input or situation that shows it.
    pub trigger: String,
    /// What goes wrong then.
    pub why: String,
    /// Whether it stands in the way.
    pub weight: Weight,
}

/// How much an objection counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The change must not be merged as it is.
    Blocking,
    /// Good to know.
    Advice,
}

/// Characters of an objection in one line.
const LINE: usize = 300;

impl Objection {
    /// True for the same thing said again: the same file, with the same line or the same words.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_line = self.line.is_some() && self.line == other.line;
        self.path == other.path && (is_same_line || bare(&self.trigger) == bare(&other.trigger))
    }

    /// The objection in one line.
    #[must_use]
    pub fn in_a_line(&self) -> String {
        let line = self.line.map_or_else(String::new, |line| format!(" line {line}"));
        capped(
            &format!("{}{line}: {} ({})", self.path, self.why, self.trigger),
            LINE,
        )
    }
}

impl Review {
    /// What stands in the way.
    pub fn blocking(&self) -> impl Iterator<Item = &Objection> {
        let all = self.objections.iter();
        all.filter(|objection| objection.weight == Weight::Blocking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objection(path: &str, line: Option<u32>, trigger: &str) -> Objection {
        Objection {
            path: path.to_owned(),
            line,
            trigger: trigger.to_owned(),
            why: "It divides by zero.".to_owned(),
            weight: Weight::Blocking,
        }
    }

    #[test]
    fn the_same_line_or_the_same_trigger_in_the_same_file_is_the_same_objection() {
        let first = objection("cart.py", Some(3), "An empty cart");
        assert!(first.is_same(&objection("cart.py", Some(3), "No lines")));
        assert!(first.is_same(&objection("cart.py", None, "an EMPTY cart!")));
        assert!(!first.is_same(&objection("cart.py", Some(4), "No lines")));
        assert!(!first.is_same(&objection("shop.py", Some(3), "An empty cart")));
        let place_less = objection("cart.py", None, "No lines");
        assert!(!place_less.is_same(&objection("cart.py", None, "An empty cart")));
    }
}
