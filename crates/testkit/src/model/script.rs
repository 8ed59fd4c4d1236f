//! Scripts: ordered replies with their preconditions.

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;

use super::surrounding_replies::build_surrounding_scripts;

/// Reply of a script with its precondition.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptStep {
    /// Text that the latest tool results must contain; for the first step, the user's message.
    pub expect: Option<String>,
    /// Text of the reply; may be empty if it has tool calls.
    pub text: String,
    /// Thinking before the text.
    pub thinking: Option<String>,
    /// Tool calls: name and input.
    pub calls: Vec<(String, Value)>,
    /// Permits calls of tools that the request does not offer, to imitate a model's mistake.
    pub unoffered: bool,
}

impl ScriptStep {
    /// Creates a step with a text and no calls.
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

    /// Creates a step with one tool call.
    #[must_use]
    pub fn call(name: impl Into<String>, input: Value) -> Self {
        Self::say("").and_call(name, input)
    }

    /// Adds a tool call to the step.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, input: Value) -> Self {
        self.calls.push((name.into(), input));
        self
    }

    /// Sets the thinking. Only dialects that sign thinking transmit it.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.thinking = Some(text.into());
        self
    }

    /// Sets the text that the latest results must contain.
    #[must_use]
    pub fn expecting(mut self, text: impl Into<String>) -> Self {
        self.expect = Some(text.into());
        self
    }

    /// Permits calls of tools that the request does not offer.
    #[must_use]
    pub fn even_if_not_offered(mut self) -> Self {
        self.unoffered = true;
        self
    }
}

/// Scripts by the start of the first user message and a marker in it.
pub(super) type ScriptTable = BTreeMap<(String, String), Vec<ScriptStep>>;

/// Selects the script of a conversation by its first user message.
pub(super) fn choose_script<'s>(
    scripts: &'s ScriptTable,
    opening: &str,
) -> Option<(&'s (String, String), &'s Vec<ScriptStep>)> {
    let fitting = scripts.iter().filter_map(|script| {
        let (start, marker) = script.0;
        let place = opening.starts_with(start).then(|| opening.find(marker))??;
        // A ticket's own text precedes that of similar tickets. The empty marker matches every ticket and
        // comes last.
        let place = if marker.is_empty() { usize::MAX } else { place };
        Some(((start.len(), Reverse(place), marker.len()), script))
    });
    fitting.max_by_key(|(rank, _)| *rank).map(|(_, script)| script)
}

/// Combines the script of the work with the default scripts around it.
pub(super) fn with_surrounding_scripts(work: Vec<ScriptStep>) -> ScriptTable {
    let around = build_surrounding_scripts().into_iter();
    let mut scripts: BTreeMap<_, _> = around
        .map(|(start, steps)| ((start.to_owned(), String::new()), steps))
        .collect();
    scripts.insert((String::new(), String::new()), work);
    scripts
}

/// Transcript independent of the dialect.
#[derive(Debug, Default)]
pub(crate) struct PlayedTranscript {
    /// Text before the first assistant turn.
    pub(crate) opening: String,
    /// Number of assistant turns, which is the index of the next step.
    pub(crate) turns: usize,
    /// Texts since the last assistant turn.
    pub(crate) latest: String,
    /// Texts after each assistant turn.
    pub(crate) answers: Vec<String>,
    /// Names of the offered tools.
    pub(crate) tools: Vec<String>,
}

/// Sentence of the prompt that requests a summary of the conversation.
pub(super) const SUMMARY_ASKED: &str = "Reply with a summary of it for yourself";

/// Returns a summary that fits any conversation.
pub(super) fn build_summary_step() -> ScriptStep {
    ScriptStep::say("## Findings\nnone\n## Done\nnone\n## Decisions\nnone\n## Open\nnone\n## Next\nGo on.")
}

/// Returns the number of turns that a summary in the first message replaces.
pub(super) fn left_out(opening: &str) -> usize {
    // The sentence is part of the planner's prompt for a summarized conversation.
    let (_, rest) = opening.split_once("\nThe first ").unwrap_or_default();
    let (count, _) = rest
        .split_once(" turns of your work are left out")
        .unwrap_or_default();
    count.parse().unwrap_or(0)
}

/// Checks a step against the transcript. The error helps the author of the script or of the caller.
pub(crate) fn check_step(step: &ScriptStep, transcript: &PlayedTranscript) -> Result<(), String> {
    if let Some(wanted) = step
        .expect
        .as_ref()
        .filter(|wanted| !transcript.latest.contains(wanted.as_str()))
    {
        let tail = take_text_end(&transcript.latest, 600);
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

fn take_text_end(text: &str, characters: usize) -> String {
    let skip = text.chars().count().saturating_sub(characters);
    text.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_script_precedes_similar_tickets_script() {
        let of = |marker: &str| ((String::new(), marker.to_owned()), Vec::new());
        let scripts = ScriptTable::from([of(""), of("(first-12)"), of("(turns-0)"), of("(turns-0) of")]);
        let marker = |opening: &str| choose_script(&scripts, opening).map(|(key, _)| key.1.as_str());
        assert_eq!(marker("Cart (turns-0), like: Cart (first-12)"), Some("(turns-0)"));
        assert_eq!(marker("Cart (turns-0) of"), Some("(turns-0) of"));
        assert_eq!(marker("Cart"), Some(""));
    }
}
