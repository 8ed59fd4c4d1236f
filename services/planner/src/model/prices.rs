//! Prices and context windows of known models.

use std::collections::BTreeMap;

use domain::TokenUsage;

use crate::config::{ModelPrice, ModelSettings};

/// Row of a price table: name, input, output, cache read, cache write for five minutes, cache write for an
/// hour.
type PriceRow = (&'static str, f64, f64, f64, f64, f64);

/// US dollars per million tokens, from Anthropic's price list of 2026-11-22.
const ANTHROPIC: [PriceRow; 18] = [
    ("claude-fable-5-1", 10.0, 50.0, 0.25, 12.5, 20.0),
    ("claude-fable-5", 10.0, 50.0, 1.0, 12.5, 20.0),
    ("claude-mythos-5-1", 10.0, 50.0, 0.25, 12.5, 20.0),
    ("claude-mythos-5", 10.0, 50.0, 1.0, 12.5, 20.0),
    ("claude-opus-5-5", 4.0, 20.0, 0.2, 5.0, 8.0),
    ("claude-opus-5", 5.0, 25.0, 0.5, 6.25, 10.0),
    ("claude-opus-4-8", 5.0, 25.0, 0.5, 6.25, 10.0),
    ("claude-opus-4-7", 5.0, 25.0, 0.5, 6.25, 10.0),
    ("claude-opus-4-6", 5.0, 25.0, 0.5, 6.25, 10.0),
    ("claude-opus-4-5", 5.0, 25.0, 0.5, 6.25, 10.0),
    ("claude-opus-4-1", 15.0, 75.0, 1.5, 18.75, 30.0),
    ("claude-sonnet-5-5", 2.0, 10.0, 0.1, 2.5, 4.0),
    ("claude-sonnet-5", 2.0, 10.0, 0.2, 2.5, 4.0),
    ("claude-sonnet-4-6", 3.0, 15.0, 0.3, 3.75, 6.0),
    ("claude-sonnet-4-5", 3.0, 15.0, 0.3, 3.75, 6.0),
    ("claude-sonnet-4", 3.0, 15.0, 0.3, 3.75, 6.0),
    ("claude-haiku-5-5", 0.1, 0.5, 0.01, 0.125, 0.2),
    ("claude-haiku-4-5", 1.0, 5.0, 0.1, 1.25, 2.0),
];

/// US dollars per million tokens, from `OpenAI`'s prices as reported from 2026-09-03 to 2026-11-05. From
/// GPT-5.6 on, a cache write costs more than an input token.
const OPENAI: [PriceRow; 22] = [
    ("gpt-6-astra", 10.0, 50.0, 1.0, 12.5, 12.5),
    ("gpt-6.1-sol", 2.0, 10.0, 0.1, 2.5, 2.5),
    ("gpt-6.1-terra", 1.0, 5.0, 0.05, 1.25, 1.25),
    ("gpt-6-sol", 2.0, 10.0, 0.2, 2.5, 2.5),
    ("gpt-6-luna", 0.1, 0.5, 0.01, 0.125, 0.125),
    ("gpt-5.6-terra", 2.0, 12.0, 0.2, 2.5, 2.5),
    ("gpt-5.6-luna", 0.2, 1.2, 0.02, 0.25, 0.25),
    ("gpt-5.5", 5.0, 30.0, 0.5, 5.0, 5.0),
    ("gpt-5.4", 2.5, 15.0, 0.25, 2.5, 2.5),
    ("gpt-5.4-mini", 0.75, 4.5, 0.075, 0.75, 0.75),
    ("gpt-5.4-nano", 0.2, 1.25, 0.02, 0.2, 0.2),
    ("gpt-5.1", 1.25, 10.0, 0.125, 1.25, 1.25),
    ("gpt-5", 1.25, 10.0, 0.125, 1.25, 1.25),
    ("gpt-5-mini", 0.25, 2.0, 0.025, 0.25, 0.25),
    ("gpt-5-nano", 0.05, 0.4, 0.005, 0.05, 0.05),
    ("gpt-4.1", 2.0, 8.0, 0.5, 2.0, 2.0),
    ("gpt-4.1-mini", 0.4, 1.6, 0.1, 0.4, 0.4),
    ("gpt-4.1-nano", 0.1, 0.4, 0.025, 0.1, 0.1),
    ("gpt-4o", 2.5, 10.0, 1.25, 2.5, 2.5),
    ("gpt-4o-mini", 0.15, 0.6, 0.075, 0.15, 0.15),
    ("o3", 2.0, 8.0, 0.5, 2.0, 2.0),
    ("o4-mini", 1.1, 4.4, 0.275, 1.1, 1.1),
];

/// Models whose prompts above 272,000 tokens cost twice as much, and their replies one and a half times as
/// much.
const LONG_OPENAI: [&str; 9] = [
    "gpt-6-astra",
    "gpt-6.1-sol",
    "gpt-6.1-terra",
    "gpt-6-sol",
    "gpt-6-luna",
    "gpt-5.6-terra",
    "gpt-5.6-luna",
    "gpt-5.5",
    "gpt-5.4",
];

/// Returns the price of a model: from the settings by its exact name, else from the tables.
pub(super) fn find_price(overrides: &BTreeMap<String, ModelPrice>, model: &str) -> Option<ModelPrice> {
    overrides.get(model).copied().or_else(|| known_price(model))
}

/// Returns the price from the tables.
pub(super) fn known_price(model: &str) -> Option<ModelPrice> {
    let name = plain_model_name(model);
    let lines = ANTHROPIC.iter().chain(&OPENAI);
    // A row also covers the dated releases of its model, which providers sell at the same price.
    let line = lines.into_iter().find(|(known, ..)| {
        name.strip_prefix(known)
            .is_some_and(|rest| rest.is_empty() || is_release(rest))
    })?;
    let (known, input, output, read, write, write_1h) = *line;
    let long = match known {
        "claude-haiku-5-5" => Some((100_000, 5.0, 5.0)),
        _ if LONG_OPENAI.contains(&known) => Some((272_000, 2.0, 1.5)),
        _ => None,
    };
    Some(ModelPrice {
        input,
        output,
        cache_read: Some(read),
        cache_write: Some(write),
        cache_write_1h: Some(write_1h),
        long_above: long.map(|(above, ..)| above),
        long_input_factor: long.map_or(1.0, |(_, factor, _)| factor),
        long_output_factor: long.map_or(1.0, |(.., factor)| factor),
    })
}

/// Context windows in tokens by prefix of the model's name; the first match counts. Where a provider offers
/// a larger window on request only, the table has the smaller one.
const WINDOWS: [(&str, u64); 16] = [
    ("claude-fable-5", 1_000_000),
    ("claude-mythos-5", 1_000_000),
    ("claude-opus-5", 1_000_000),
    ("claude-sonnet-5", 1_000_000),
    ("claude-haiku-5-5", 1_000_000),
    ("claude-opus-4", 200_000),
    ("claude-sonnet-4", 200_000),
    ("claude-haiku-4", 200_000),
    ("gpt-6", 400_000),
    ("gpt-5.5", 400_000),
    ("gpt-5.6", 400_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];

// Percent of the context window that a conversation may fill before it is shortened.
const FILLED: u64 = 60;
// Limit of a conversation with a model of unknown context window, in tokens.
const UNKNOWN: u64 = 100_000;

/// Returns the tokens from which on a conversation is shortened: a share of the context window, at most the
/// length above which a prompt costs more.
pub(super) fn conversation_limit(settings: &ModelSettings, model: &str) -> u64 {
    let window = settings
        .windows
        .get(model)
        .copied()
        .or_else(|| known_window(model));
    let limit = window.map_or(UNKNOWN, |window| window * FILLED / 100);
    let long = find_price(&settings.prices, model).and_then(|price| price.long_above);
    long.map_or(limit, |above| limit.min(above))
}

/// Returns the context window from the table, for models with a known price.
fn known_window(model: &str) -> Option<u64> {
    known_price(model)?;
    let name = plain_model_name(model);
    let line = WINDOWS.into_iter().find(|(start, _)| name.starts_with(start))?;
    Some(line.1)
}

/// Returns the model's name without a reseller's prefix: `us.anthropic.` on Bedrock, `anthropic/` on
/// routers, whose names have dots where Anthropic's have hyphens.
fn plain_model_name(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = match name.split_once("anthropic.") {
        Some((_, rest)) => rest,
        None => name,
    };
    if name.starts_with("claude-") {
        name.replace('.', "-")
    } else {
        name.to_owned()
    }
}

/// Returns true if the rest of a name is only a release of the model: `-20250929`, `-2025-08-07`, `-v1:0`,
/// `-latest`.
fn is_release(rest: &str) -> bool {
    let Some(parts) = rest.strip_prefix(['-', '@']) else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == ':');
    let is_part = |part: &str| part == "latest" || is_number(part.strip_prefix('v').unwrap_or(part));
    // A short number is a model version: 4-5 is not a release of 4.
    let is_version = parts
        .split('-')
        .next()
        .is_some_and(|first| first.len() < 4 && !first.starts_with('v'));
    !is_version && parts.split('-').all(is_part)
}

impl ModelPrice {
    /// Returns the cost of a call in millionths of a dollar.
    pub(super) fn cost_micros(&self, usage: &TokenUsage) -> u64 {
        let cached = usage.cache_read_tokens + usage.cache_write_tokens;
        // Saturates: a server may report more cached tokens than input tokens.
        let plain = usage.input_tokens.saturating_sub(cached);
        let long_write = usage.cache_write_1h_tokens.min(usage.cache_write_tokens);
        let short_write = usage.cache_write_tokens - long_write;
        let write = self.cache_write.unwrap_or(self.input);
        let read = token_count(plain) * self.input
            + token_count(usage.cache_read_tokens) * self.cache_read.unwrap_or(self.input)
            + token_count(short_write) * write
            + token_count(long_write) * self.cache_write_1h.unwrap_or(write);
        let written = token_count(usage.output_tokens) * self.output;
        let (input_factor, output_factor) = self.factors(usage.input_tokens);
        let cost = read * input_factor + written * output_factor;
        // One dollar per million tokens is one millionth of a dollar per token. The cast saturates.
        cost.round() as u64
    }

    /// Returns the upper bound of a call with this many input and output tokens, in millionths of a dollar.
    pub(super) fn most_micros(&self, input: u64, output: u64) -> u64 {
        let (read, written) = self.factors(input);
        // The most expensive way to read a token is not known before the call, so every token counts at
        // that price.
        let write = self.cache_write.unwrap_or(self.input);
        let dearest = self.input.max(write).max(self.cache_write_1h.unwrap_or(write));
        (token_count(input) * dearest * read + token_count(output) * self.output * written).ceil() as u64
    }

    /// Returns the factors of the input prices and the output price for a prompt of this length.
    fn factors(&self, input: u64) -> (f64, f64) {
        if self.long_above.is_some_and(|above| input > above) {
            (self.long_input_factor, self.long_output_factor)
        } else {
            (1.0, 1.0)
        }
    }
}

/// Converts a token count; exact below 2^32.
fn token_count(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute_cost(model: &str, usage: TokenUsage) -> Option<u64> {
        Some(find_price(&BTreeMap::new(), model)?.cost_micros(&usage))
    }

    #[test]
    fn each_token_kind_has_separate_price() {
        let usage = TokenUsage {
            input_tokens: 1_111_000,
            output_tokens: 2_000,
            cache_read_tokens: 1_000_000,
            cache_write_tokens: 110_000,
            cache_write_1h_tokens: 100_000,
        };
        // 1,000 × 3 + 1,000,000 × 0.3 + 10,000 × 3.75 + 100,000 × 6 + 2,000 × 15
        assert_eq!(compute_cost("claude-sonnet-4-5", usage), Some(970_500));
    }

    #[test]
    fn long_prompt_costs_more_by_price_table() {
        let prompt = |input_tokens| TokenUsage {
            input_tokens,
            output_tokens: 1_000,
            ..TokenUsage::default()
        };
        assert_eq!(compute_cost("gpt-6-sol", prompt(272_000)), Some(554_000));
        assert_eq!(compute_cost("gpt-6-sol", prompt(273_000)), Some(1_107_000));
        assert_eq!(compute_cost("claude-haiku-5-5", prompt(200_000)), Some(102_500));
    }

    #[test]
    fn release_and_reseller_names_share_model_price() {
        let sonnet = known_price("claude-sonnet-4-5");
        assert!(sonnet.is_some());
        for name in [
            "claude-sonnet-4-5-20250929",
            "claude-sonnet-4-5-latest",
            "anthropic/claude-sonnet-4.5",
            "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5@20250929",
        ] {
            assert_eq!(known_price(name), sonnet, "{name}");
        }
        assert_eq!(known_price("gpt-5-mini-2025-08-07"), known_price("gpt-5-mini"));
        assert_ne!(known_price("gpt-5-mini"), known_price("gpt-5"));
        for name in [
            "claude-sonnet-4-9-20270101",
            "claude-sonnet-5-9",
            "gpt-5-pro",
            "gpt-5.1-codex",
            "gpt-55",
            "llama3:8b",
            "scripted",
        ] {
            assert_eq!(known_price(name), None, "{name}");
        }
    }

    #[test]
    fn conversation_limit_respects_window_and_price_step() {
        let settings = crate::model::tests::from_json(serde_json::json!({
            "name": "m", "windows": { "llama3:8b": 8_000, "gpt-4o": 100_000 },
        }));
        for (model, limit) in [
            ("claude-sonnet-4-5-20250929", 120_000),
            ("claude-sonnet-5-5", 600_000),
            ("claude-haiku-5-5", 100_000),
            ("gpt-6.1-sol", 240_000),
            ("gpt-4o-mini", 76_800),
            ("gpt-4o", 60_000),
            ("llama3:8b", 4_800),
            ("scripted", 100_000),
        ] {
            assert_eq!(conversation_limit(&settings, model), limit, "{model}");
        }
        for (model, ..) in ANTHROPIC.iter().chain(&OPENAI) {
            assert!(known_window(model).is_some(), "{model}");
        }
    }

    #[test]
    fn configured_price_overrides_and_fills_gaps() {
        let settings = crate::model::tests::from_json(serde_json::json!({
            "name": "m", "prices": { "gpt-5": { "input": 2.0, "output": 3.0 } },
        }));
        let price = find_price(&settings.prices, "gpt-5").unwrap();
        let usage = TokenUsage {
            input_tokens: 100,
            output_tokens: 10,
            cache_read_tokens: 50,
            ..TokenUsage::default()
        };
        assert_eq!(price.cost_micros(&usage), 230);
    }
}
