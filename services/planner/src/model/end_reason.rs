//! Normalizes the stop reason of a reply, which servers spell in many ways.

use domain::ReplyStop;

use super::failure::AttemptFailure;

/// Content of a reply at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplyContent {
    /// Number of tool calls.
    pub(super) calls: usize,
    /// Number of calls whose arguments are not complete JSON.
    pub(super) broken: usize,
    /// True if the reply has text.
    pub(super) text: bool,
    /// True if the text is a refusal, which some providers end like an ordinary reply.
    pub(super) refused: bool,
}

/// Stop reasons of a stream, in order, without empty ones.
#[derive(Clone, Debug, Default)]
pub(super) struct EndReasons(Vec<String>);

/// Meaning of a known stop reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndMeaning {
    Ended,
    Limit,
    Refused,
    /// Failure of the server.
    Trouble,
    /// The server failed to parse a call that the model wrote.
    Malformed,
}

impl EndReasons {
    /// Adds a reason. A stream has one, but some servers repeat it or add an empty one.
    pub(super) fn take(&mut self, reason: Option<&str>) {
        let reason = reason.unwrap_or_default().trim().to_ascii_lowercase();
        if !reason.is_empty() && !self.0.contains(&reason) && self.0.len() < MOST_REASONS {
            self.0.push(reason);
        }
    }

    /// Returns true if the stream has a stop reason.
    pub(super) fn is_given(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the stop of a reply. An unknown reason is ignored where the reply itself is complete.
    ///
    /// # Errors
    /// [`AttemptFailure`] when the reply may be incomplete.
    pub(super) fn stop(&self, held: ReplyContent) -> Result<ReplyStop, AttemptFailure> {
        let meanings: Vec<EndMeaning> = self
            .0
            .iter()
            .filter_map(|reason| meaning_of_reason(reason))
            .collect();
        let means = |meaning| meanings.contains(&meaning);
        let ended = if held.refused {
            ReplyStop::Refusal
        } else if held.calls > 0 {
            ReplyStop::ToolUse
        } else {
            ReplyStop::EndTurn
        };
        // The order is by severity: a refusal or failure outweighs a regular end that the server reports as
        // well.
        if means(EndMeaning::Refused) {
            Ok(ReplyStop::Refusal)
        } else if means(EndMeaning::Trouble) {
            Err(AttemptFailure::transient(
                "reported an error in the middle of its reply",
            ))
        } else if means(EndMeaning::Malformed) {
            Err(AttemptFailure::Garbage(
                "a tool call that its server could not read",
            ))
        } else if means(EndMeaning::Limit) {
            Ok(ReplyStop::MaxTokens)
        } else if means(EndMeaning::Ended) {
            Ok(ended)
        } else if held.broken > 0 {
            Err(AttemptFailure::Garbage(
                "an incomplete tool call without a known reason for its end",
            ))
        } else if held.calls > 0 || held.text {
            if let Some(reason) = self.0.first() {
                tracing::warn!(
                    reason = reason.escape_debug().to_string(),
                    "a reply ended for an unknown reason and is taken as complete"
                );
            }
            Ok(ended)
        } else {
            Err(AttemptFailure::Garbage(
                "an empty reply without a known reason for its end",
            ))
        }
    }
}

// More reasons of one reply add nothing.
const MOST_REASONS: usize = 8;

fn meaning_of_reason(reason: &str) -> Option<EndMeaning> {
    Some(match reason {
        "stop" | "tool_calls" | "tool_call" | "function_call" | "function_calls" | "tool_use"
        | "end_turn" | "stop_sequence" | "pause_turn" | "eos" | "eos_token" | "end" | "complete"
        | "completed" => EndMeaning::Ended,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_length"
        | "max_length"
        | "incomplete"
        | "model_context_window_exceeded" => EndMeaning::Limit,
        "content_filter"
        | "content_filtered"
        | "refusal"
        | "safety"
        | "recitation"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "sensitive"
        | "guardrail_intervened" => EndMeaning::Refused,
        "error" | "network_error" | "insufficient_system_resource" | "model_error" => EndMeaning::Trouble,
        "malformed_function_call" | "malformed_tool_use" | "unexpected_tool_call" => EndMeaning::Malformed,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derive_stop(reasons: &[&str], held: ReplyContent) -> Result<ReplyStop, AttemptFailure> {
        let mut all = EndReasons::default();
        for reason in reasons {
            all.take(Some(reason));
        }
        all.stop(held)
    }

    #[test]
    fn unknown_reason_is_decided_by_the_reply() {
        let (call, text) = (
            ReplyContent {
                calls: 1,
                ..ReplyContent::default()
            },
            ReplyContent {
                text: true,
                ..ReplyContent::default()
            },
        );
        let broken = ReplyContent {
            calls: 1,
            broken: 1,
            text: true,
            refused: false,
        };
        for reason in ["cancel", "UNKNOWN", "something_new", "abort"] {
            assert_eq!(derive_stop(&[reason], call), Ok(ReplyStop::ToolUse), "{reason}");
            assert_eq!(derive_stop(&[reason], text), Ok(ReplyStop::EndTurn), "{reason}");
            assert!(
                matches!(derive_stop(&[reason], broken), Err(AttemptFailure::Garbage(_))),
                "{reason}"
            );
            assert!(
                matches!(
                    derive_stop(&[reason], ReplyContent::default()),
                    Err(AttemptFailure::Garbage(_))
                ),
                "{reason}"
            );
        }
        assert_eq!(derive_stop(&[], call), Ok(ReplyStop::ToolUse));
        assert_eq!(derive_stop(&["", " "], text), Ok(ReplyStop::EndTurn));
    }

    #[test]
    fn known_end_reason_counts_in_any_spelling() {
        let (call, text) = (
            ReplyContent {
                calls: 1,
                ..ReplyContent::default()
            },
            ReplyContent {
                text: true,
                ..ReplyContent::default()
            },
        );
        assert_eq!(derive_stop(&["stop"], call), Ok(ReplyStop::ToolUse));
        assert_eq!(derive_stop(&["tool_call", ""], call), Ok(ReplyStop::ToolUse));
        assert_eq!(
            derive_stop(&["MAX_TOKENS", "stop"], text),
            Ok(ReplyStop::MaxTokens)
        );
        assert_eq!(derive_stop(&["incomplete"], call), Ok(ReplyStop::MaxTokens));
        assert_eq!(derive_stop(&["SAFETY"], text), Ok(ReplyStop::Refusal));
        assert!(matches!(
            derive_stop(&["error"], text),
            Err(AttemptFailure::Transient { .. })
        ));
        assert!(matches!(
            derive_stop(&["MALFORMED_FUNCTION_CALL"], text),
            Err(AttemptFailure::Garbage(_))
        ));
    }
}
