//! Assembles the tool calls of a Chat Completions stream from fragments, tolerant of what servers send.

use domain::{ReplyBlock, ToolCall};
use serde_json::Value;

use crate::model::{
    failure::AttemptFailure,
    original_calls::{build_original, originals_block},
    split_characters::{self, join_halves},
    stream::parse_call_arguments,
    tool_name::ToolNames,
};

// A reply with more calls is garbage.
const MOST_CALLS: usize = 128;

/// Content of one event about a call.
#[derive(Default)]
struct CallFragment {
    index: Option<i64>,
    id: String,
    name: String,
    arguments: FragmentArguments,
    extra: Value,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum FragmentArguments {
    #[default]
    None,
    Text(String),
    /// Complete arguments as a JSON value instead of text.
    Whole(Value),
}

impl CallFragment {
    /// Reads an event; a field of another type counts as absent.
    fn read(call: &Value) -> Self {
        let function = if call["function"].is_object() {
            &call["function"]
        } else {
            call
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        Self {
            index: parse_index(&call["index"]),
            id: if let Value::Number(number) = &call["id"] {
                number.to_string()
            } else {
                text(&call["id"])
            },
            name: text(&function["name"]),
            arguments: match &function["arguments"] {
                Value::Null => FragmentArguments::None,
                Value::String(text) if text.is_empty() => FragmentArguments::None,
                Value::String(text) => FragmentArguments::Text(text.clone()),
                // Some servers open a call with `{}` before the real arguments.
                Value::Object(fields) if fields.is_empty() => FragmentArguments::None,
                whole @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    FragmentArguments::Whole(whole.clone())
                }
            },
            extra: call["extra_content"].clone(),
        }
    }

    fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments == FragmentArguments::None
    }

    /// Returns true if the arguments may start a call's arguments.
    fn opens(&self) -> bool {
        match &self.arguments {
            FragmentArguments::None | FragmentArguments::Whole(_) => true,
            FragmentArguments::Text(text) => text.trim_start().starts_with(['{', '"']),
        }
    }
}

fn parse_index(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Finds the end of a JSON value in a growing text. Parsing the text for every fragment would be quadratic
/// in its length.
#[derive(Default)]
struct ValueEnd {
    depth: usize,
    in_string: bool,
    escaped: bool,
    is_closed: bool,
    has_more: bool,
}

impl ValueEnd {
    fn follow(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.is_closed {
                self.has_more |= !byte.is_ascii_whitespace();
            } else if std::mem::take(&mut self.escaped) {
                continue;
            } else if self.in_string {
                self.escaped = byte == b'\\';
                self.in_string = byte != b'"';
                // JSON that is encoded as a JSON string.
                self.is_closed = !self.in_string && self.depth == 0;
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        self.is_closed = self.depth == 0;
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Tool call that is still incomplete.
#[derive(Default)]
struct PartialCall {
    index: Option<i64>,
    id: String,
    name: String,
    arguments: String,
    end: ValueEnd,
    /// True if the name repeats after the arguments: a repetition, or the start of a call of the same tool.
    is_named_again: bool,
    extra: Value,
}

impl PartialCall {
    /// Returns true if the arguments are complete, so that no more of them can follow.
    const fn is_whole(&self) -> bool {
        self.end.is_closed && !self.end.has_more
    }

    fn append(&mut self, text: &str) {
        self.end.follow(text);
        self.arguments.push_str(text);
    }

    /// Returns true if a fragment repeats known content.
    fn repeats(&self, fragment: &CallFragment) -> bool {
        let same_name = fragment.name.is_empty() || fragment.name == self.name;
        let same_arguments = match &fragment.arguments {
            FragmentArguments::None => true,
            FragmentArguments::Text(text) => *text == self.arguments,
            FragmentArguments::Whole(value) => {
                split_characters::read_json(&self.arguments).is_ok_and(|known| known == *value)
            }
        };
        same_name && same_arguments
    }
}

/// Relation of a fragment to the calls before it.
#[derive(Debug, PartialEq, Eq)]
enum FragmentRole {
    /// Continuation of the call at this place.
    More(usize),
    /// Repetition of the call at this place.
    Again(usize),
    /// Start of a new call.
    First,
    /// Start of a new call of the tool that the call at this place names.
    Next(usize),
}

/// Tool calls of a reply that is still incomplete.
#[derive(Default)]
pub(super) struct PartialCalls {
    tools: ToolNames,
    calls: Vec<PartialCall>,
}

impl PartialCalls {
    pub(super) fn new(tools: ToolNames) -> Self {
        Self {
            tools,
            calls: Vec::new(),
        }
    }

    /// Adds one event about one call.
    pub(super) fn take(&mut self, call: &Value) -> Result<(), AttemptFailure> {
        let fragment = CallFragment::read(call);
        if fragment.is_empty() && fragment.extra.is_null() {
            return Ok(());
        }
        let place = match self.role(&fragment) {
            FragmentRole::More(place) => place,
            FragmentRole::Again(place) => {
                let call = &mut self.calls[place];
                call.is_named_again |=
                    !fragment.name.is_empty() && fragment.arguments == FragmentArguments::None;
                keep_extra(call, fragment.extra);
                return Ok(());
            }
            FragmentRole::First => self.begin(&fragment, String::new())?,
            FragmentRole::Next(place) => {
                let name = self.calls[place].name.clone();
                self.begin(&fragment, name)?
            }
        };
        self.add(place, fragment);
        Ok(())
    }

    fn begin(&mut self, fragment: &CallFragment, name: String) -> Result<usize, AttemptFailure> {
        if self.calls.len() == MOST_CALLS {
            return Err(AttemptFailure::Garbage("too many tool calls"));
        }
        self.calls.push(PartialCall {
            index: fragment.index,
            name,
            ..PartialCall::default()
        });
        Ok(self.calls.len() - 1)
    }

    /// Finds the call of a fragment. Servers number parallel calls from 0, from 1, all alike or not at all.
    /// A new id, or a new name after complete arguments, begins a new call.
    fn role(&self, fragment: &CallFragment) -> FragmentRole {
        let last = |is_it: &dyn Fn(&PartialCall) -> bool| self.calls.iter().rposition(is_it);
        let by_id = || last(&|call| !call.id.is_empty() && call.id == fragment.id);
        let place = match fragment.index {
            Some(index) => last(&|call| call.index == Some(index)).or_else(|| {
                // The first fragment of the call had no number.
                let nameless = fragment.name.is_empty() && fragment.id.is_empty();
                let newest = self.calls.len().checked_sub(1)?;
                (nameless && self.calls[newest].index.is_none()).then_some(newest)
            }),
            None if !fragment.id.is_empty() => by_id().or_else(|| {
                let newest = self.calls.len().checked_sub(1)?;
                (fragment.name.is_empty() || self.calls[newest].id.is_empty()).then_some(newest)
            }),
            None => self.calls.len().checked_sub(1),
        };
        let Some(place) = place else {
            return FragmentRole::First;
        };
        // If calls share a number, a known id selects one of them.
        let place = match by_id() {
            Some(named) if self.calls[named].index == self.calls[place].index => named,
            _ => place,
        };
        self.role_beside(place, fragment)
    }

    fn role_beside(&self, place: usize, fragment: &CallFragment) -> FragmentRole {
        let call = &self.calls[place];
        let is_other_id = !fragment.id.is_empty() && !call.id.is_empty() && fragment.id != call.id;
        let has_name = !fragment.name.is_empty();
        // Some servers repeat the complete call in the last event.
        if call.is_whole() && call.repeats(fragment) && !(is_other_id && has_name) {
            return FragmentRole::Again(place);
        }
        let is_next = call.is_whole() && fragment.opens() && fragment.arguments != FragmentArguments::None;
        if is_other_id {
            // Some servers create an id for every fragment; only the first has a name.
            return if has_name || is_next {
                FragmentRole::First
            } else {
                FragmentRole::More(place)
            };
        }
        // Some servers name the tool after its arguments.
        let is_named_late = call.name.is_empty() && fragment.arguments == FragmentArguments::None;
        if call.is_whole() && !(has_name && is_named_late) {
            return if has_name {
                FragmentRole::First
            } else if is_next && call.is_named_again {
                FragmentRole::Next(place)
            } else {
                FragmentRole::More(place)
            };
        }
        if !has_name || call.name.is_empty() || fragment.name == call.name {
            return FragmentRole::More(place);
        }
        let is_tool = |name: &str| self.tools.has(&self.tools.meant(name));
        let is_piece = fragment.name.starts_with(&call.name)
            || fragment.name.starts_with("<|")
            || self.tools.begins(&format!("{}{}", call.name, fragment.name))
            || (call.arguments.is_empty() && !is_tool(&call.name) && !is_tool(&fragment.name));
        if is_piece || !fragment.opens() {
            FragmentRole::More(place)
        } else {
            FragmentRole::First
        }
    }

    fn add(&mut self, place: usize, fragment: CallFragment) {
        let call = &mut self.calls[place];
        if call.id.is_empty() {
            call.id = fragment.id;
        }
        call.index = call.index.or(fragment.index);
        if call.name.is_empty() || fragment.name.starts_with(&call.name) {
            if !fragment.name.is_empty() {
                call.name = fragment.name;
            }
        } else if call.arguments.is_empty() {
            call.name.push_str(&fragment.name);
        }
        match fragment.arguments {
            FragmentArguments::None => {}
            FragmentArguments::Text(text) => call.append(&text),
            FragmentArguments::Whole(value) => call.append(&value.to_string()),
        }
        keep_extra(call, fragment.extra);
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns the number of calls with incomplete arguments.
    pub(super) fn broken(&self) -> usize {
        let is_broken =
            |call: &&PartialCall| !matches!(call.arguments.trim(), "" | "null") && !call.is_whole();
        self.calls.iter().filter(is_broken).count()
    }

    /// Returns the calls as blocks, followed by a block with their original form for the same model.
    ///
    /// # Errors
    /// [`AttemptFailure::Garbage`] when the tool or its arguments are ambiguous.
    pub(super) fn blocks(self) -> Result<Vec<ReplyBlock>, AttemptFailure> {
        let (mut blocks, mut originals) = (Vec::new(), Vec::new());
        for (place, call) in self.calls.into_iter().enumerate() {
            let text = join_halves(call.arguments);
            let name = self.tools.called(&join_halves(call.name))?;
            let input = parse_call_arguments(&name, text.clone())?;
            originals.push(build_original(&call.id, text, &input, call.extra));
            blocks.push(ReplyBlock::ToolCall(ToolCall {
                id: if call.id.is_empty() {
                    format!("call_{place}")
                } else {
                    join_halves(call.id)
                },
                name,
                input,
            }));
        }
        blocks.extend(originals_block(originals));
        Ok(blocks)
    }
}

fn keep_extra(call: &mut PartialCall, extra: Value) {
    if extra.is_object() {
        call.extra = extra;
    }
}
