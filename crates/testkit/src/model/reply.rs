//! Replies from steps. The ids depend on the step's index alone, so a repeated call gets an equal reply.

use serde_json::Value;

use super::cache::TokenCounts;
use super::script::ScriptStep;

// Characters per streamed piece. The small number splits tool arguments into several events.
const PIECE: usize = 12;

/// Reply independent of the dialect.
pub(super) struct PlayedReply {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) thinking: Option<String>,
    pub(super) text: String,
    pub(super) calls: Vec<PlayedCall>,
    pub(super) input: TokenCounts,
    pub(super) output_tokens: u64,
}

pub(super) struct PlayedCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
}

impl PlayedReply {
    pub(super) fn new(step: &ScriptStep, index: usize, request: &Value, input: TokenCounts) -> Self {
        let calls = step
            .calls
            .iter()
            .enumerate()
            .map(|(position, (name, input))| PlayedCall {
                id: format!("call_{index:03}_{position}"),
                name: name.clone(),
                input: input.clone(),
            });
        // Four bytes per token is the usual estimate; scripts need no exact count.
        let written = step.text.len()
            + step
                .calls
                .iter()
                .map(|(_, input)| input.to_string().len())
                .sum::<usize>();
        Self {
            id: format!("msg_{index:03}"),
            model: request["model"].as_str().unwrap_or("scripted").to_owned(),
            thinking: step.thinking.clone(),
            text: step.text.clone(),
            calls: calls.collect(),
            input,
            output_tokens: written as u64 / 4 + 1,
        }
    }
}

/// Splits a text into short pieces at character boundaries.
pub(super) fn split_pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(PIECE)
        .map(|piece| piece.iter().collect())
        .collect::<Vec<String>>()
        .into_iter()
}
