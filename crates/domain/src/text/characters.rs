//! Hidden characters and length limits of texts. One list of characters that a reader cannot see, or that
//! reorder text, applies to input, output and printed text.

use std::borrow::Cow;

/// Returns true for a character that hides, reorders or controls text.
///
/// These are control characters except line feed and tab, zero-width and direction characters, blank letters,
/// variation selectors and tags.
pub fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{2800}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E01EF}')
}

/// Returns the text without hidden characters.
pub fn remove_hidden(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

/// Returns the text with each hidden character spelled out, such as `<U+202E>`, so that a reader notices it.
pub fn escape_hidden(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            shown.push_str(&format!("<U+{:04X}>", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

// Maximum characters of a terminal sequence. A longer one is treated as text, so that an unterminated
// sequence cannot hide the remaining output.
const MAX_SEQUENCE: usize = 4_096;

/// Converts output of programs to a form that a model, a journal and a terminal can process.
///
/// Terminal sequences are removed, line ends become line feeds, and other control characters, direction marks
/// and tags are spelled out, such as `<U+0000>`. Letters of any script, joiners and emoji remain.
pub fn sanitize_output(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_steering) {
        return Cow::Borrowed(text);
    }
    let chars: Vec<char> = text.chars().collect();
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let rest = chars.get(at + 1..).unwrap_or_default();
        if !is_steering(c) {
            shown.push(c);
            at += 1;
        // A lone carriage return is the progress line of a program, so each state gets a separate line.
        } else if c == '\r' {
            if rest.first() != Some(&'\n') {
                shown.push('\n');
            }
            at += 1;
        } else if let Some(length) = sequence_length(c, rest) {
            at += 1 + length;
        } else {
            // Runs of the same character are counted, because binary output can contain thousands of zero
            // bytes.
            let same = 1 + rest.iter().take_while(|other| **other == c).count();
            shown.push_str(&match same {
                1 => format!("<U+{:04X}>", u32::from(c)),
                _ => format!("<U+{:04X} x{same}>", u32::from(c)),
            });
            at += same;
        }
    }
    Cow::Owned(shown)
}

/// Returns true for a character that controls a terminal or reorders text, and for invisible tags.
fn is_steering(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c,
            '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
            | '\u{E0000}'..='\u{E007F}')
}

/// Returns the length of the remaining part of a terminal sequence after its start; `None` if the start
/// begins no sequence.
fn sequence_length(start: char, rest: &[char]) -> Option<usize> {
    let (kind, skipped) = match start {
        // The single characters are the C1 forms (ECMA-48) of the two-character sequences.
        '\u{1b}' => (*rest.first()?, 1),
        '\u{9b}' => ('[', 0),
        '\u{9d}' => (']', 0),
        '\u{90}' => ('P', 0),
        '\u{98}' => ('X', 0),
        '\u{9e}' => ('^', 0),
        '\u{9f}' => ('_', 0),
        _ => return None,
    };
    let body = rest.get(skipped..)?;
    let body = body.get(..body.len().min(MAX_SEQUENCE))?;
    let length = match kind {
        '[' => {
            let parameters = body.iter().take_while(|c| matches!(c, ' '..='?')).count();
            body.get(parameters).filter(|c| matches!(c, '@'..='~'))?;
            parameters + 1
        }
        // A string for the terminal ends with BEL or ST.
        ']' | 'P' | 'X' | '^' | '_' => {
            let end = body
                .iter()
                .position(|c| matches!(c, '\u{7}' | '\u{9c}' | '\u{1b}'))?;
            match (body.get(end)?, body.get(end + 1)) {
                ('\u{1b}', Some('\\')) => end + 2,
                // An escape without the backslash of ST aborts the string, so its text is shown.
                ('\u{1b}', _) => return None,
                _ => end + 1,
            }
        }
        ' '..='/' => {
            let between = body.iter().take_while(|c| matches!(c, ' '..='/')).count();
            body.get(between).filter(|c| matches!(c, '0'..='~'))?;
            between + 1
        }
        '0'..='~' => 0,
        _ => return None,
    };
    Some(skipped + length)
}

/// Returns the text on one line: control characters become spaces, and repeated spaces become one.
pub fn one_line(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Formats a foreign text as code. In Markdown it neither notifies a user nor adds markup.
pub fn format_code(text: &str) -> String {
    // A backtick or a line break in the text would end the code, and the rest would be markup.
    format!("`{}`", truncate_text(&one_line(text).replace('`', "'"), 300))
}

/// Returns the letters and digits of a text in lower case, for a comparison that ignores spaces, punctuation
/// and case.
pub fn normalize_text(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns the start of a text with `…` if it was truncated; at most `limit` characters including the mark.
pub fn truncate_text(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

/// Returns the last characters of a text; at most `limit`.
pub fn take_tail(text: &str, limit: usize) -> String {
    let skipped = text.chars().count().saturating_sub(limit);
    text.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_removed_or_escaped() {
        let text = "a\u{200b}b\u{202e}c\u{1b}]0;x\u{7}\u{3164}\u{e0041}\td\n";
        assert_eq!(remove_hidden(text), "abc]0;x\td\n");
        assert_eq!(
            escape_hidden(text),
            "a<U+200B>b<U+202E>c<U+001B>]0;x<U+0007><U+3164><U+E0041>\td\n"
        );
    }

    #[test]
    fn program_output_is_legible_without_terminal() {
        for (printed, shown) in [
            ("\u{1b}[31mred\u{1b}[0m \u{1b}[1;38;5;9mx\u{1b}[K", "red x"),
            (
                "\u{1b}]0;title\u{7}a\u{1b}]8;;https://x\u{1b}\\b\u{9d}52;c;eA==\u{9c}c",
                "abc",
            ),
            ("\u{1b}Pq#0\u{1b}\\x\u{1b}_y\u{1b}\\\u{1b}(B\u{1b}7\u{1b}c.", "x."),
            ("\u{9b}2Jx\u{90}q\u{9c}y", "xy"),
            ("a\0\0\0b\u{8}c\u{7f}", "a<U+0000 x3>b<U+0008>c<U+007F>"),
            (
                "if \u{202e}x\u{2066}\u{200f}\u{e0041}",
                "if <U+202E>x<U+2066><U+200F><U+E0041>",
            ),
            ("one\r\ntwo\r10%\r20%\n", "one\ntwo\n10%\n20%\n"),
            ("cut \u{1b}[31", "cut <U+001B>[31"),
            ("cut \u{1b}]0;never ends\nnext", "cut <U+001B>]0;never ends\nnext"),
            ("\u{1b}", "<U+001B>"),
            ("\u{85}\u{9a}", "<U+0085><U+009A>"),
        ] {
            assert_eq!(sanitize_output(printed), shown, "{printed:?}");
        }
        let plain = "Grüße, 你好, שלום, नमस्ते \u{1f468}\u{200d}\u{1f467} ❤\u{fe0f}\tx\n";
        assert!(matches!(sanitize_output(plain), Cow::Borrowed(same) if same == plain));
    }

    #[test]
    fn ordinary_text_of_any_script_stays() {
        let text = "Grüße, 你好, שלום, नमस्ते: 1 – 2 “quoted” €\n";
        assert_eq!(remove_hidden(text), text);
        assert_eq!(escape_hidden(text), text);
    }
}
