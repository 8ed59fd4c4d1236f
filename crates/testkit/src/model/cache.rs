//! The provider's prompt cache: what is read from it and written to it, as the markers of a request say.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

/// How many blocks the provider looks back from a marker for something that it has stored.
const LOOKBACK: usize = 20;
/// Bytes of one token, roughly.
const TOKEN: usize = 4;
/// Prompts share from this many tokens on, in steps, where caching is automatic.
const LEAST_SHARED: usize = 1024;
const STEP: usize = 128;

/// Tokens of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Neither read from the cache nor written to it.
    pub(super) plain: u64,
    pub(super) read: u64,
    pub(super) write: u64,
    /// Of those written: for an hour.
    pub(super) write_1h: u64,
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Stored prefixes by their hash.
    stored: BTreeMap<u64, usize>,
    /// Whole prompts, where caching is automatic.
    prompts: Vec<String>,
}

/// A block of a prompt in the order of the provider: its marker, and the prefix that ends with it.
struct Block {
    ttl: Option<String>,
    hash: u64,
    bytes: usize,
}

impl Cache {
    /// Caching by markers: the longest stored prefix near a marker is read, what follows up to the last marker is stored.
    pub(super) fn marked(&mut self, request: &Value) -> Result<Counts, String> {
        let blocks = blocks(request);
        let is_short = |block: &Block| block.ttl.as_deref() == Some("5m");
        let first_short = blocks.iter().position(is_short).unwrap_or(blocks.len());
        let is_long = |block: &Block| block.ttl.as_deref() == Some("1h");
        if blocks[first_short.min(blocks.len())..].iter().any(is_long) {
            return Err(
                "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
                    .to_owned(),
            );
        }
        let marks = || blocks.iter().enumerate().filter(|(_, block)| block.ttl.is_some());
        let near = |place: usize| blocks[place.saturating_sub(LOOKBACK)..=place].iter();
        let read = marks()
            .flat_map(|(place, _)| near(place))
            .filter_map(|block| self.stored.get(&block.hash).copied())
            .max()
            .unwrap_or(0);
        let last = marks().map(|(_, block)| block.bytes).max().unwrap_or(0);
        let last_long = marks()
            .filter(|(_, block)| is_long(block))
            .map(|(_, block)| block.bytes)
            .max()
            .unwrap_or(0);
        let whole = blocks.last().map_or(0, |block| block.bytes);
        for (_, block) in blocks.iter().enumerate().filter(|(_, block)| block.ttl.is_some()) {
            self.stored.insert(block.hash, block.bytes);
        }
        Ok(Counts {
            plain: tokens(whole.saturating_sub(last.max(read))),
            read: tokens(read),
            write: tokens(last.saturating_sub(read)),
            write_1h: tokens(last_long.saturating_sub(read)),
        })
    }

    /// Automatic caching: what a prompt shares with an earlier one from its start.
    pub(super) fn automatic(&mut self, request: &Value) -> Counts {
        let prompt = format!("{}{}", request["tools"], request["messages"]);
        let shared = |earlier: &String| {
            let pairs = earlier.bytes().zip(prompt.bytes());
            pairs.take_while(|(left, right)| left == right).count()
        };
        let shared = self.prompts.iter().map(shared).max().unwrap_or(0) / TOKEN;
        let read = if shared < LEAST_SHARED {
            0
        } else {
            shared - shared % STEP
        };
        let whole = prompt.len();
        self.prompts.push(prompt);
        Counts {
            plain: tokens(whole).saturating_sub(read as u64),
            read: read as u64,
            ..Counts::default()
        }
    }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(TOKEN) as u64
}

/// Tools, system prompt, messages: block by block.
fn blocks(request: &Value) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut hasher = DefaultHasher::new();
    let mut bytes = 0;
    let mut push = |context: &str, block: &Value| {
        let mut bare = block.clone();
        let marker = bare
            .as_object_mut()
            .and_then(|fields| fields.remove("cache_control"));
        let text = format!("{context}{bare}");
        text.hash(&mut hasher);
        bytes += text.len();
        let ttl = marker.map(|marker| marker["ttl"].as_str().unwrap_or("5m").to_owned());
        blocks.push(Block {
            ttl,
            hash: hasher.finish(),
            bytes,
        });
    };
    for tool in request["tools"].as_array().into_iter().flatten() {
        push("tool", tool);
    }
    for block in list(&request["system"]) {
        push("system", &block);
    }
    for message in request["messages"].as_array().into_iter().flatten() {
        for block in list(&message["content"]) {
            push(message["role"].as_str().unwrap_or_default(), &block);
        }
    }
    blocks
}

fn list(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) => blocks.clone(),
        Value::Null => Vec::new(),
        other => vec![other.clone()],
    }
}
