//! Pinning of ticket text: ingest sanitizes and hashes it once, so that a later edit never reaches a running job.

use std::collections::BTreeSet;

use domain::{TicketComment, TicketText, Timestamp};

use crate::{facts::tracker_reader::TrackerComment, hex};

pub(crate) use crate::text::sanitizer::sanitize_text;

const SUMMARY_CHARS: usize = 500;
const BODY_CHARS: usize = 65_536;
// Limit of a label, a kind, a priority or a name, in characters.
const LINE_CHARS: usize = 100;
const LABELS: usize = 50;
const CHANGED_COMMENT: &str = "(This comment was edited after work was asked for, so it is left out.)";

/// Truncates a text to this many characters, with a note about the number of omitted ones.
fn truncate_visibly(text: &str, chars: usize) -> String {
    let left_out = text.chars().count().saturating_sub(chars);
    if left_out == 0 {
        return text.to_owned();
    }
    format!(
        "{}\n\n(The last {left_out} characters of this text are left out.)",
        truncate_text(text, chars)
    )
}

/// Truncates a text to this many characters.
pub(crate) fn truncate_text(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

/// Sanitizes, truncates and hashes the ticket's text, without comments from `at` or later. A comment that was edited
/// since is replaced by a note, because its text at that moment is lost.
pub(crate) fn pin_text(
    text: TicketText,
    comments: &[TrackerComment],
    at: Timestamp,
    instructors: &BTreeSet<String>,
) -> TicketText {
    let comments = comments.iter().filter(|comment| comment.created < at);
    let mut pinned = TicketText {
        summary: clean_line(&text.summary, SUMMARY_CHARS),
        description: truncate_visibly(&sanitize_text(&text.description), BODY_CHARS),
        kind: clean_line(&text.kind, LINE_CHARS),
        priority: clean_line(&text.priority, LINE_CHARS),
        labels: text
            .labels
            .iter()
            .take(LABELS)
            .map(|label| clean_line(label, LINE_CHARS))
            .collect(),
        comments: comments
            .map(|comment| pin_comment(comment, at, instructors))
            .collect(),
        attachments: text.attachments,
        url: text.url,
        sha256: String::new(),
    };
    // The hash is computed last, because it covers the truncated text, which is the one that the model
    // reads.
    pinned.sha256 = hash_text(&pinned);
    pinned
}

/// Adds instructions of an authorized user to the text, as its last comment.
pub(crate) fn add_instruction(mut text: TicketText, by: &str, at: Timestamp, said: &str) -> TicketText {
    text.comments.push(TicketComment {
        author: clean_line(by, LINE_CHARS),
        at,
        text: pin_words(said),
        may_instruct: true,
        is_new: false,
    });
    text.sha256 = hash_text(&text);
    text
}

/// Marks instructions from after `since` as new.
pub(crate) fn mark_new(text: &mut TicketText, since: Timestamp) {
    for comment in &mut text.comments {
        comment.is_new = comment.may_instruct && comment.at > since;
    }
}

/// Sanitized text of a comment, truncated with a note.
pub(crate) fn pin_words(text: &str) -> String {
    truncate_visibly(&sanitize_text(text), BODY_CHARS)
}

/// Sanitized text of at most this many characters.
pub(crate) fn clean_text(text: &str, chars: usize) -> String {
    truncate_text(&sanitize_text(text), chars)
}

/// Sanitized text on one line, of at most this many characters.
pub(crate) fn clean_line(text: &str, chars: usize) -> String {
    truncate_text(&sanitize_text(text).replace('\n', " "), chars)
}

fn pin_comment(comment: &TrackerComment, at: Timestamp, instructors: &BTreeSet<String>) -> TicketComment {
    let text = if comment.updated < at {
        pin_words(&comment.text)
    } else {
        CHANGED_COMMENT.to_owned()
    };
    TicketComment {
        author: clean_line(&comment.author, LINE_CHARS),
        at: comment.created,
        text,
        may_instruct: instructors.contains(&comment.author_id),
        is_new: false,
    }
}

/// SHA-256 of the text. A length prefix precedes each part, so that moving text between parts changes the hash.
fn hash_text(text: &TicketText) -> String {
    let comments = text
        .comments
        .iter()
        .flat_map(|comment| [comment.author.as_str(), comment.text.as_str()]);
    let parts = [text.summary.as_str(), text.description.as_str()]
        .into_iter()
        .chain(comments);
    let joined: String = parts.map(|part| format!("{}:{part}\n", part.len())).collect();
    hex::hash_sha256(joined.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_tracker_comment(text: &str, created: i64, updated: i64) -> TrackerComment {
        TrackerComment {
            author: "Ada".to_owned(),
            author_id: "a1".to_owned(),
            by_bot: false,
            created: Timestamp::from_unix_ms(created),
            updated: Timestamp::from_unix_ms(updated),
            text: text.to_owned(),
        }
    }

    fn build_empty_set() -> BTreeSet<String> {
        BTreeSet::new()
    }

    #[test]
    fn late_comment_is_dropped_edited_one_emptied() {
        let comments = [
            build_tracker_comment("before", 1, 1),
            build_tracker_comment("edited", 1, 10),
            build_tracker_comment("same", 10, 10),
            build_tracker_comment("late", 11, 11),
        ];
        let pinned = pin_text(
            TicketText::default(),
            &comments,
            Timestamp::from_unix_ms(10),
            &build_empty_set(),
        );
        let texts: Vec<_> = pinned
            .comments
            .iter()
            .map(|comment| comment.text.as_str())
            .collect();
        assert_eq!(texts, ["before", CHANGED_COMMENT]);
    }

    #[test]
    fn pinned_comment_carries_author_authority() {
        let comments = [build_tracker_comment("do this", 1, 1)];
        let marked = |instructors: &BTreeSet<String>| {
            pin_text(
                TicketText::default(),
                &comments,
                Timestamp::from_unix_ms(10),
                instructors,
            )
            .comments[0]
                .may_instruct
        };
        assert!(!marked(&build_empty_set()));
        assert!(marked(&BTreeSet::from(["a1".to_owned()])));
    }

    #[test]
    fn labels_are_limited_and_single_line() {
        let text = TicketText {
            labels: vec!["x\n</labels>".repeat(50); 80],
            ..TicketText::default()
        };
        let labels = pin_text(text, &[], Timestamp::from_unix_ms(10), &build_empty_set()).labels;
        assert_eq!(labels.len(), LABELS);
        assert!(
            labels
                .iter()
                .all(|label| label.chars().count() <= LINE_CHARS && !label.contains('\n'))
        );
    }

    #[test]
    fn truncated_text_states_omitted_length() {
        let text = TicketText {
            description: "é".repeat(BODY_CHARS + 7),
            ..TicketText::default()
        };
        let pinned = pin_text(text, &[], Timestamp::from_unix_ms(10), &build_empty_set());
        let kept = "é".repeat(BODY_CHARS);
        let note = "\n\n(The last 7 characters of this text are left out.)";
        assert_eq!(pinned.description, format!("{kept}{note}"));
    }

    #[test]
    fn the_hash_covers_text_and_comments() {
        let at = Timestamp::from_unix_ms(10);
        let text = |summary: &str| TicketText {
            summary: summary.to_owned(),
            ..TicketText::default()
        };
        let hashes = [
            pin_text(text("a"), &[], at, &build_empty_set()).sha256,
            pin_text(text("b"), &[], at, &build_empty_set()).sha256,
            pin_text(
                text("a"),
                &[build_tracker_comment("c", 1, 1)],
                at,
                &build_empty_set(),
            )
            .sha256,
        ];
        assert!(hashes[0] != hashes[1] && hashes[0] != hashes[2]);
        assert_eq!(
            hashes[0],
            pin_text(text("a\u{200B}"), &[], at, &build_empty_set()).sha256
        );
    }
}
