//! Regular expressions in this crate's source, compiled on first use.

use std::sync::OnceLock;

use regex::{Captures, Match, Regex};

/// A regular expression. An invalid one matches nothing; a unit test of each expression prevents that.
pub(crate) struct LazyPattern {
    text: &'static str,
    regex: OnceLock<Option<Regex>>,
}

impl LazyPattern {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self {
            text,
            regex: OnceLock::new(),
        }
    }

    fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| Regex::new(self.text).ok()).as_ref()
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<Match<'t>> {
        self.regex()?.find(text)
    }

    pub(crate) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(text)
    }

    /// Returns the first group of the first match.
    pub(crate) fn first<'t>(&self, text: &'t str) -> Option<&'t str> {
        Some(self.captures(text)?.get(1)?.as_str())
    }

    /// Returns all matches from left to right.
    pub(crate) fn all<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        self.regex()
            .into_iter()
            .flat_map(move |regex| regex.captures_iter(text))
    }

    #[cfg(test)]
    pub(crate) fn is_sound(&self) -> bool {
        self.regex().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_pattern_matches_nothing() {
        let (good, bad) = (LazyPattern::new(r"(\d+) passed"), LazyPattern::new("("));
        assert_eq!(good.first("in all 3 passed"), Some("3"));
        assert!(!bad.is_match("(") && bad.all("(").next().is_none() && !bad.is_sound());
    }
}
