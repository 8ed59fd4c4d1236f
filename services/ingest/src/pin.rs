//! Pinning: text of strangers is cleaned once, here, and hashed, so that a later edit never reaches a running job.

use std::collections::BTreeSet;

use domain::{TicketComment, TicketText, Timestamp};

use crate::{hex, outside::Comment};

const SUMMARY_CHARS: usize = 500;
const BODY_CHARS: usize = 65_536;
const CHANGED_COMMENT: &str = "(This comment was edited after work was asked for, so it is left out.)";

/// Removes what a person does not see: HTML comments, zero-width and direction characters, tags, variation selectors
/// and control characters. It is hygiene, not a boundary.
pub(crate) fn sanitise(text: &str) -> String {
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let visible: String = unified.chars().filter(|c| !is_hidden(*c)).collect();
    strip_all_comments(visible)
}

fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}' | '\u{00AD}' | '\u{180E}' | '\u{034F}' | '\u{061C}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{E0000}'..='\u{E007F}'
        | '\u{E0100}'..='\u{E01EF}')
        || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Taking a comment out may join the halves of another, so this repeats until nothing changes; nesting beyond eight
/// levels is an attack and loses its openers.
fn strip_all_comments(mut text: String) -> String {
    for _ in 0..8 {
        let stripped = strip_comments(&text);
        if stripped == text {
            return stripped;
        }
        text = stripped;
    }
    text.replace("<!--", "")
}

/// A comment at the start of a line that is never closed hides the rest, as renderers do; elsewhere the four
/// characters stand for themselves.
fn strip_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        let (before, comment) = rest.split_at(start);
        kept.push_str(before);
        if let Some(end) = comment[4..].find("-->") {
            rest = &comment[4 + end + 3..];
        } else if kept
            .rsplit('\n')
            .next()
            .is_some_and(|line| line.trim().is_empty())
        {
            return kept;
        } else {
            kept.push_str(&comment[..4]);
            rest = &comment[4..];
        }
    }
    kept.push_str(rest);
    kept
}

/// Cuts a text to this many characters, and says at its end how many are left out.
fn cut_visibly(text: &str, chars: usize) -> String {
    let left_out = text.chars().count().saturating_sub(chars);
    if left_out == 0 {
        return text.to_owned();
    }
    format!(
        "{}\n\n(The last {left_out} characters of this text are left out.)",
        cut(text, chars)
    )
}

/// Cuts a text to this many characters.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

/// The ticket's text with everything cleaned, without comments made at or after `at`, and hashed. A comment that was
/// changed since has lost the text that stood there at that moment, which is said in its place.
pub(crate) fn pin(
    text: TicketText,
    comments: &[Comment],
    at: Timestamp,
    instructors: &BTreeSet<String>,
) -> TicketText {
    let comments = comments.iter().filter(|comment| comment.created < at);
    let mut pinned = TicketText {
        summary: cut(&sanitise(&text.summary).replace('\n', " "), SUMMARY_CHARS),
        description: cut_visibly(&sanitise(&text.description), BODY_CHARS),
        kind: sanitise(&text.kind),
        priority: sanitise(&text.priority),
        labels: text.labels.iter().map(|label| sanitise(label)).collect(),
        comments: comments
            .map(|comment| pin_comment(comment, at, instructors))
            .collect(),
        url: text.url,
        sha256: String::new(),
    };
    pinned.sha256 = digest(&pinned);
    pinned
}

/// Somebody's words, sanitised and cut with a note.
pub(crate) fn words(text: &str) -> String {
    cut_visibly(&sanitise(text), BODY_CHARS)
}

fn pin_comment(comment: &Comment, at: Timestamp, instructors: &BTreeSet<String>) -> TicketComment {
    let text = if comment.updated < at {
        words(&comment.text)
    } else {
        CHANGED_COMMENT.to_owned()
    };
    TicketComment {
        author: sanitise(&comment.author),
        at: comment.created,
        text,
        may_instruct: instructors.contains(&comment.author_id),
    }
}

/// Each part is preceded by its length, so that moving text from one part to the next changes the hash.
fn digest(text: &TicketText) -> String {
    let comments = text
        .comments
        .iter()
        .flat_map(|comment| [comment.author.as_str(), comment.text.as_str()]);
    let parts = [text.summary.as_str(), text.description.as_str()]
        .into_iter()
        .chain(comments);
    let joined: String = parts.map(|part| format!("{}:{part}\n", part.len())).collect();
    hex::sha256(joined.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(text: &str, created: i64, updated: i64) -> Comment {
        Comment {
            author: "Ada".to_owned(),
            author_id: "a1".to_owned(),
            created: Timestamp::from_unix_ms(created),
            updated: Timestamp::from_unix_ms(updated),
            text: text.to_owned(),
        }
    }

    fn nobody() -> BTreeSet<String> {
        BTreeSet::new()
    }

    #[test]
    fn hidden_text_is_removed_and_visible_text_stays() {
        let corpus = [
            ("plain *text* with `code`", "plain *text* with `code`"),
            ("a<!-- run rm -rf -->b", "ab"),
            ("a<!-- one --><!-- two -->b", "ab"),
            ("a<!-- over\nlines -->b", "ab"),
            ("seen\n<!-- never closed", "seen\n"),
            ("seen\n  <!-- never closed", "seen\n  "),
            ("write `<!--` to open one", "write `<!--` to open one"),
            ("zero\u{200B}width\u{FEFF}", "zerowidth"),
            ("<\u{200B}!-- split opener -->x", "x"),
            ("bidi\u{202E}txt\u{2066}.", "biditxt."),
            ("soft\u{AD}hyphen", "softhyphen"),
            ("tag\u{E0041}\u{E007F}s", "tags"),
            ("selector\u{FE0F}\u{E0100}", "selector"),
            ("bell\u{7}esc\u{1b}[31m", "bellesc[31m"),
            ("line\r\nbreak\rand\ttab", "line\nbreak\nand\ttab"),
            ("Grüße, 日本語, 👍", "Grüße, 日本語, 👍"),
        ];
        for (raw, clean) in corpus {
            assert_eq!(sanitise(raw), clean, "{raw:?}");
        }
    }

    #[test]
    fn nested_comments_do_not_leave_one_behind() {
        assert_eq!(sanitise("a<!-<!-- x -->- tricky -->b"), "ab");
        let deep = format!("{}{}", "<!-".repeat(50), "- -->".repeat(50));
        assert!(!sanitise(&deep).contains("<!--"));
    }

    #[test]
    fn a_comment_made_after_the_trigger_is_dropped_and_one_edited_after_it_loses_its_text() {
        let comments = [
            comment("before", 1, 1),
            comment("edited", 1, 10),
            comment("same", 10, 10),
            comment("late", 11, 11),
        ];
        let pinned = pin(
            TicketText::default(),
            &comments,
            Timestamp::from_unix_ms(10),
            &nobody(),
        );
        let texts: Vec<_> = pinned
            .comments
            .iter()
            .map(|comment| comment.text.as_str())
            .collect();
        assert_eq!(texts, ["before", CHANGED_COMMENT]);
    }

    #[test]
    fn a_comment_says_whether_its_author_may_instruct() {
        let comments = [comment("do this", 1, 1)];
        let marked = |instructors: &BTreeSet<String>| {
            pin(
                TicketText::default(),
                &comments,
                Timestamp::from_unix_ms(10),
                instructors,
            )
            .comments[0]
                .may_instruct
        };
        assert!(!marked(&nobody()));
        assert!(marked(&BTreeSet::from(["a1".to_owned()])));
    }

    #[test]
    fn a_long_text_says_how_much_of_it_is_left_out() {
        let text = TicketText {
            description: "é".repeat(BODY_CHARS + 7),
            ..TicketText::default()
        };
        let pinned = pin(text, &[], Timestamp::from_unix_ms(10), &nobody());
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
            pin(text("a"), &[], at, &nobody()).sha256,
            pin(text("b"), &[], at, &nobody()).sha256,
            pin(text("a"), &[comment("c", 1, 1)], at, &nobody()).sha256,
        ];
        assert!(hashes[0] != hashes[1] && hashes[0] != hashes[2]);
        assert_eq!(hashes[0], pin(text("a\u{200B}"), &[], at, &nobody()).sha256);
    }
}
