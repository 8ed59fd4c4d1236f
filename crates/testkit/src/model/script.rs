//! The script: which reply comes when, and what must have come before.

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;

use super::around::around;

/// One reply of the script, and what must have come before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Text that must occur in the last tool results (for the first step: in the user's text).
    pub expect: Option<String>,
    /// What the model says; may be empty when it calls tools.
    pub text: String,
    /// What it thinks first.
    pub thinking: Option<String>,
    /// The tools it calls: name and input.
    pub calls: Vec<(String, Value)>,
    /// True when the tools may be called although they are not offered: a model's mistake, played on purpose.
    pub unoffered: bool,
}

impl Step {
    /// A step that says `text`.
    #[must_use]
    pub fn say(text: impl Into<String>) -> Self {
        Self {
            expect: None,
            text: text.into(),
            thinking: None,
            calls: Vec::new(),
            unoffered: false,
        }
    }

    /// A step that calls one tool.
    #[must_use]
    pub fn call(name: impl Into<String>, input: Value) -> Self {
        Self::say("").and_call(name, input)
    }

    /// Another call in the same step.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, input: Value) -> Self {
        self.calls.push((name.into(), input));
        self
    }

    /// What the model thinks first; only dialects that sign thinking show it.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.thinking = Some(text.into());
        self
    }

    /// What must have come before.
    #[must_use]
    pub fn expecting(mut self, text: impl Into<String>) -> Self {
        self.expect = Some(text.into());
        self
    }

    /// The step's tools may be called although they are not offered.
    #[must_use]
    pub fn even_if_not_offered(mut self) -> Self {
        self.unoffered = true;
        self
    }
}

/// By the beginning of the first user message, and a marker in it.
pub(super) type Scripts = BTreeMap<(String, String), Vec<Step>>;

/// The script of a conversation that begins with this message.
pub(super) fn chosen<'s>(
    scripts: &'s Scripts,
    opening: &str,
) -> Option<(&'s (String, String), &'s Vec<Step>)> {
    let fitting = scripts.iter().filter_map(|script| {
        let (start, marker) = script.0;
        let place = opening.starts_with(start).then(|| opening.find(marker))??;
        // A ticket's own words come before those of tickets like it; no marker at all fits any ticket.
        let place = if marker.is_empty() { usize::MAX } else { place };
        Some(((start.len(), Reverse(place), marker.len()), script))
    });
    fitting.max_by_key(|(rank, _)| *rank).map(|(_, script)| script)
}

/// The script of the work, and short answers to what is asked around it.
pub(super) fn scripts(work: Vec<Step>) -> Scripts {
    let around = around().into_iter();
    let mut scripts: BTreeMap<_, _> = around
        .map(|(start, steps)| ((start.to_owned(), String::new()), steps))
        .collect();
    scripts.insert((String::new(), String::new()), work);
    scripts
}

/// A transcript, free of its dialect.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The text before the first assistant turn.
    pub(crate) opening: String,
    /// How many assistant turns there are: the next step's index.
    pub(crate) turns: usize,
    /// The texts that came since the last assistant turn.
    pub(crate) latest: String,
    /// The texts that came after each assistant turn.
    pub(crate) answers: Vec<String>,
    /// The names of the offered tools.
    pub(crate) tools: Vec<String>,
}

/// What stands in the message that asks for a summary of the conversation.
pub(super) const SUMMARY_ASKED: &str = "Reply with a summary of it for yourself";

/// A summary of whatever came before.
pub(super) fn summary() -> Step {
    Step::say("## Findings\nnone\n## Done\nnone\n## Decisions\nnone\n## Open\nnone\n## Next\nGo on.")
}

/// For how many turns a summary stands in the first message.
pub(super) fn left_out(opening: &str) -> usize {
    let (_, rest) = opening.split_once("\nThe first ").unwrap_or_default();
    let (count, _) = rest
        .split_once(" turns of your work are left out")
        .unwrap_or_default();
    count.parse().unwrap_or(0)
}

/// Checks a step against the transcript; the error is for the person who wrote the script or the caller.
pub(crate) fn check(step: &Step, transcript: &Transcript) -> Result<(), String> {
    if let Some(wanted) = step
        .expect
        .as_ref()
        .filter(|wanted| !transcript.latest.contains(wanted.as_str()))
    {
        let tail = tail(&transcript.latest, 600);
        return Err(format!(
            "step {} expects {wanted:?} in the last results, which end with: {tail}",
            transcript.turns
        ));
    }
    let missing = step
        .calls
        .iter()
        .find(|(name, _)| !step.unoffered && !transcript.tools.contains(name));
    match missing {
        Some((name, _)) => Err(format!(
            "step {} calls {name}, which is not offered",
            transcript.turns
        )),
        None => Ok(()),
    }
}

fn tail(text: &str, characters: usize) -> String {
    let skip = text.chars().count().saturating_sub(characters);
    text.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_played_by_its_own_script_and_not_by_that_of_one_like_it() {
        let of = |marker: &str| ((String::new(), marker.to_owned()), Vec::new());
        let scripts = Scripts::from([of(""), of("(first-12)"), of("(turns-0)"), of("(turns-0) of")]);
        let marker = |opening: &str| chosen(&scripts, opening).map(|(key, _)| key.1.as_str());
        assert_eq!(marker("Cart (turns-0), like: Cart (first-12)"), Some("(turns-0)"));
        assert_eq!(marker("Cart (turns-0) of"), Some("(turns-0) of"));
        assert_eq!(marker("Cart"), Some(""));
    }
}
