//! Words of a search over lists.

use std::fmt::Display;

use domain::{RunId, RunOverview};

// Words beyond this number are ignored, so that one request cannot compare without end.
const MOST_WORDS: usize = 10;

/// Lowercase words of a search, all of which a text must contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SearchWords(Vec<String>);

impl SearchWords {
    /// Splits a search at its spaces.
    pub(super) fn parse(text: Option<&str>) -> Self {
        let words = text.unwrap_or_default().split_whitespace().take(MOST_WORDS);
        Self(words.map(str::to_lowercase).collect())
    }

    /// True when the text contains all words, or when there are none. The text is built only for a comparison.
    pub(super) fn are_in(&self, text: impl FnOnce() -> String) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let text = text().to_lowercase();
        self.0.iter().all(|word| text.contains(word.as_str()))
    }
}

/// Text of a run that a search compares: what the lists show of it.
pub(super) fn build_search_text(run: &RunId, overview: Option<&RunOverview>) -> String {
    let mut parts = vec![run.to_string()];
    if let Some(overview) = overview {
        parts.push(overview.title.clone());
        parts.extend(overview.repository.as_ref().map(ToString::to_string));
        parts.extend(overview.actor.clone());
        parts.extend(overview.branch.clone());
        let opened = overview.pull_requests.iter();
        parts.extend(opened.map(|one| format_pull_request(&one.repository, one.number)));
    }
    // No word contains a line break, so none is found across two parts.
    parts.join("\n")
}

/// Formats a pull request as people type it: `acme/shop#7`.
pub(super) fn format_pull_request(repository: &impl Display, number: u64) -> String {
    format!("{repository}#{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_needs_every_word_somewhere() {
        let text = || "jira:ENG-12@57\nTotals are wrong\nacme/shop".to_owned();
        for found in ["", "  ", "eng-12", "SHOP totals", "acme/shop"] {
            assert!(SearchWords::parse(Some(found)).are_in(text), "{found}");
        }
        for other in ["ENG-13", "totals billing", "wrongacme"] {
            assert!(!SearchWords::parse(Some(other)).are_in(text), "{other}");
        }
        assert!(SearchWords::parse(None).are_in(text));
    }
}
