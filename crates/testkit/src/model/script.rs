//! Scripts: ordered replies with their preconditions.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

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
    pub fn reply(text: impl Into<String>) -> Self {
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
        Self::reply("").and_call(name, input)
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
#[derive(Default)]
pub(super) struct ScriptTable {
    by_start: BTreeMap<String, MarkedScripts>,
}

/// Scripts of conversations with the same start.
///
/// A conversation costs one pass over its text, however many scripts there are: the bench has a thousand.
#[derive(Default)]
struct MarkedScripts {
    by_marker: HashMap<String, Script>,
    /// Lengths of the markers in bytes, for lookups at a position of the text.
    lengths: BTreeSet<usize>,
    /// First bytes of the markers, indexed by byte; empty without markers.
    first_bytes: Vec<bool>,
}

/// Script with the key that selects it.
#[derive(Clone)]
pub(super) struct Script {
    pub(super) start: String,
    pub(super) marker: String,
    pub(super) steps: Arc<[ScriptStep]>,
}

impl ScriptTable {
    /// Adds or replaces a script.
    pub(super) fn insert(&mut self, start: &str, marker: &str, steps: Vec<ScriptStep>) {
        let script = Script {
            start: start.to_owned(),
            marker: marker.to_owned(),
            steps: steps.into(),
        };
        self.by_start.entry(start.to_owned()).or_default().insert(script);
    }

    /// Selects the script of a conversation by its first user message. The longest start wins, then the
    /// earliest marker, then the longest marker.
    pub(super) fn choose_script(&self, opening: &str) -> Option<&Script> {
        let mut fitting: Vec<_> = self
            .by_start
            .iter()
            .filter(|(start, _)| opening.starts_with(start.as_str()))
            .collect();
        fitting.sort_unstable_by_key(|(start, _)| Reverse(start.len()));
        fitting
            .into_iter()
            .find_map(|(_, scripts)| scripts.choose(opening))
    }
}

impl MarkedScripts {
    fn insert(&mut self, script: Script) {
        if let Some(first) = script.marker.bytes().next() {
            self.lengths.insert(script.marker.len());
            self.first_bytes.resize(256, false);
            if let Some(is_first) = self.first_bytes.get_mut(usize::from(first)) {
                *is_first = true;
            }
        }
        self.by_marker.insert(script.marker.clone(), script);
    }

    // A ticket's own text precedes that of similar tickets. The empty marker matches every ticket and comes
    // last.
    fn choose(&self, opening: &str) -> Option<&Script> {
        let mut places = opening
            .bytes()
            .enumerate()
            .filter(|(_, byte)| {
                self.first_bytes
                    .get(usize::from(*byte))
                    .is_some_and(|is_first| *is_first)
            })
            .map(|(place, _)| place);
        places
            .find_map(|place| self.find_longest_at(opening, place))
            .or_else(|| self.by_marker.get(""))
    }

    fn find_longest_at(&self, opening: &str, place: usize) -> Option<&Script> {
        let longest_first = self.lengths.iter().rev();
        longest_first
            .filter_map(|length| opening.get(place..place + length))
            .find_map(|candidate| self.by_marker.get(candidate))
    }
}

/// Combines the script of the work with the default scripts around it.
pub(super) fn with_surrounding_scripts(work: Vec<ScriptStep>) -> ScriptTable {
    let mut scripts = ScriptTable::default();
    for (start, steps) in build_surrounding_scripts() {
        scripts.insert(start, "", steps);
    }
    scripts.insert("", "", work);
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

/// Transcript that grows message by message.
pub(super) struct TranscriptBuilder {
    transcript: PlayedTranscript,
    /// True if the next text starts a new answer.
    is_fresh: bool,
}

impl TranscriptBuilder {
    pub(super) fn new(tools: Vec<String>) -> Self {
        Self {
            transcript: PlayedTranscript {
                tools,
                ..PlayedTranscript::default()
            },
            is_fresh: true,
        }
    }

    pub(super) fn add_turn(&mut self) {
        self.transcript.turns += 1;
        self.is_fresh = true;
    }

    pub(super) fn add_user_text(&mut self, text: &str) {
        self.add_text(text);
        // All texts before the first reply form the opening.
        if self.transcript.turns == 0 {
            let opening = &mut self.transcript.opening;
            opening.push_str(if opening.is_empty() { "" } else { "\n" });
            opening.push_str(text);
        }
    }

    pub(super) fn add_text(&mut self, text: &str) {
        // All texts between two assistant turns form one answer.
        if std::mem::take(&mut self.is_fresh) {
            self.transcript.latest.clear();
            self.transcript.answers.push(String::new());
        }
        if let Some(answer) = self.transcript.answers.last_mut() {
            answer.push_str(text);
        }
        self.transcript.latest.push_str(text);
        self.transcript.latest.push('\n');
    }

    /// Returns the transcript; `None` unless its last text is the user's or a tool's.
    pub(super) fn build(self) -> Option<PlayedTranscript> {
        (!self.is_fresh && !self.transcript.opening.is_empty()).then_some(self.transcript)
    }
}

/// Sentence of the prompt that requests a summary of the conversation.
pub(super) const SUMMARY_ASKED: &str = "Reply with a summary of it for yourself";

/// Returns a summary that fits any conversation.
pub(super) fn build_summary_step() -> ScriptStep {
    ScriptStep::reply("## Findings\nnone\n## Done\nnone\n## Decisions\nnone\n## Open\nnone\n## Next\nGo on.")
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

    fn build_table(keys: &[(&str, &str)]) -> ScriptTable {
        let mut scripts = ScriptTable::default();
        for (start, marker) in keys {
            scripts.insert(start, marker, Vec::new());
        }
        scripts
    }

    #[test]
    fn own_script_precedes_similar_tickets_script() {
        let scripts = build_table(&[
            ("", ""),
            ("", "(first-12)"),
            ("", "(turns-0)"),
            ("", "(turns-0) of"),
        ]);
        let marker = |opening: &str| {
            let script = scripts.choose_script(opening);
            script.map(|script| script.marker.as_str())
        };
        assert_eq!(marker("Cart (turns-0), like: Cart (first-12)"), Some("(turns-0)"));
        assert_eq!(marker("Cart (turns-0) of"), Some("(turns-0) of"));
        assert_eq!(marker("Cart"), Some(""));
    }

    #[test]
    fn longest_start_precedes_any_marker() {
        let scripts = build_table(&[
            ("", ""),
            ("", "(one)"),
            ("Look", ""),
            ("Look at", "ü (two)"),
            ("Plan", "x"),
        ]);
        let chosen = |opening: &str| {
            let script = scripts.choose_script(opening);
            script.map(|script| (script.start.as_str(), script.marker.as_str()))
        };
        assert_eq!(chosen("Look here (one)"), Some(("Look", "")));
        assert_eq!(chosen("Look at ü (two)"), Some(("Look at", "ü (two)")));
        // Without its marker, the longest start has no script.
        assert_eq!(chosen("Look at ü"), Some(("Look", "")));
        assert_eq!(chosen("Plan (one)"), Some(("", "(one)")));
        assert!(build_table(&[("", "(one)")]).choose_script("nothing").is_none());
    }
}
