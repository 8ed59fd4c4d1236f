//! Prompt cache of the provider: tokens that a request reads from it and writes to it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Bound;

use serde_json::{Map, Value};

// Number of blocks before a marker in which the provider searches for a stored prefix, as Anthropic documents
// it.
const LOOKBACK: usize = 20;
/// Approximate bytes per token.
const TOKEN: usize = 4;
// Smallest shared prefix in tokens and its granularity for automatic caching, as `OpenAI` documents them.
const LEAST_SHARED: usize = 1024;
const STEP: usize = 128;

/// Token counts of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TokenCounts {
    /// Tokens outside the cache.
    pub(super) plain: u64,
    pub(super) read: u64,
    pub(super) write: u64,
    /// Part of `write` with a lifetime of one hour.
    pub(super) write_1h: u64,
}

#[derive(Debug, Default)]
pub(super) struct PromptCache {
    /// Length in bytes of stored prefixes, by hash.
    stored: BTreeMap<u64, usize>,
    /// Earlier prompts in alphabetical order, for automatic caching.
    prompts: BTreeSet<String>,
}

/// Block of a prompt with its cache marker and the prefix that ends with it.
struct PromptBlock {
    ttl: Option<String>,
    hash: u64,
    bytes: usize,
}

impl PromptCache {
    /// Applies explicit cache markers: reads the longest stored prefix near a marker and stores the prefixes
    /// that end at markers.
    pub(super) fn marked(&mut self, request: &Value) -> Result<TokenCounts, String> {
        let blocks = split_blocks(request);
        let is_short = |block: &PromptBlock| block.ttl.as_deref() == Some("5m");
        let first_short = blocks.iter().position(is_short).unwrap_or(blocks.len());
        let is_long = |block: &PromptBlock| block.ttl.as_deref() == Some("1h");
        // A longer lifetime must precede a shorter one.
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
        Ok(TokenCounts {
            plain: count_tokens(whole.saturating_sub(last.max(read))),
            read: count_tokens(read),
            write: count_tokens(last.saturating_sub(read)),
            write_1h: count_tokens(last_long.saturating_sub(read)),
        })
    }

    /// Applies automatic caching: reads the longest prefix that an earlier prompt shares.
    pub(super) fn automatic(&mut self, request: &Value) -> TokenCounts {
        // Responses names the messages `input`, and keeps the system prompt apart.
        let prompt = ["tools", "instructions", "messages", "input"].map(|part| request[part].to_string());
        let prompt = prompt.concat();
        // In alphabetical order, the earlier prompt with the longest shared prefix is a neighbor.
        let below = (Bound::Unbounded, Bound::Excluded(prompt.as_str()));
        let from = (Bound::Included(prompt.as_str()), Bound::Unbounded);
        let before = self.prompts.range::<str, _>(below).next_back();
        let after = self.prompts.range::<str, _>(from).next();
        let neighbors = before.into_iter().chain(after);
        let shared = neighbors.map(|earlier| count_shared_bytes(earlier, &prompt));
        let shared = shared.max().unwrap_or(0) / TOKEN;
        let read = if shared < LEAST_SHARED {
            0
        } else {
            shared - shared % STEP
        };
        let whole = prompt.len();
        self.prompts.insert(prompt);
        TokenCounts {
            plain: count_tokens(whole).saturating_sub(read as u64),
            read: read as u64,
            ..TokenCounts::default()
        }
    }
}

fn count_shared_bytes(left: &str, right: &str) -> usize {
    let pairs = left.bytes().zip(right.bytes());
    pairs.take_while(|(left, right)| left == right).count()
}

fn count_tokens(bytes: usize) -> u64 {
    bytes.div_ceil(TOKEN) as u64
}

/// Splits a request into blocks in the provider's order: tools, system prompt, messages.
fn split_blocks(request: &Value) -> Vec<PromptBlock> {
    let mut blocks = Vec::new();
    let mut hasher = DefaultHasher::new();
    let mut bytes = 0;
    let mut push = |context: &str, block: &Value| {
        let ttl = block
            .get("cache_control")
            .map(|marker| marker["ttl"].as_str().unwrap_or("5m").to_owned());
        // The marker is not part of the cached content: moving it must not invalidate the prefix.
        let text = match (&ttl, block.as_object()) {
            (Some(_), Some(fields)) => {
                let bare = fields.iter().filter(|(name, _)| *name != "cache_control");
                let bare: Map<String, Value> =
                    bare.map(|(name, value)| (name.clone(), value.clone())).collect();
                format!("{context}{}", Value::Object(bare))
            }
            _ => format!("{context}{block}"),
        };
        // The hash continues over all blocks, so that each value identifies the whole prefix.
        text.hash(&mut hasher);
        bytes += text.len();
        blocks.push(PromptBlock {
            ttl,
            hash: hasher.finish(),
            bytes,
        });
    };
    for tool in request["tools"].as_array().into_iter().flatten() {
        push("tool", tool);
    }
    for block in list_blocks(&request["system"]) {
        push("system", block);
    }
    for message in request["messages"].as_array().into_iter().flatten() {
        for block in list_blocks(&message["content"]) {
            push(message["role"].as_str().unwrap_or_default(), block);
        }
    }
    blocks
}

fn list_blocks(content: &Value) -> &[Value] {
    match content {
        Value::Array(blocks) => blocks,
        Value::Null => &[],
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            std::slice::from_ref(content)
        }
    }
}
