//! The script: which reply comes when, and what must have come before.

use std::collections::BTreeMap;

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
