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

/// Returns the text without the characters that hide or reorder text.
///
/// Joiners, variation selectors and tags stay where a script or an emoji needs them: there they change what a reader
/// sees. The result contains no further one, so a second call changes nothing.
pub fn remove_hidden(text: &str) -> String {
    if !text.contains(is_hidden) {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut shown = String::with_capacity(text.len());
    // The last kept character, because a removed one is no neighbor.
    let mut before = None;
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let rest = chars.get(at + 1..).unwrap_or_default();
        at += 1;
        if is_hidden(c) && !is_needed(before, c, rest) {
            continue;
        }
        shown.push(c);
        before = Some(c);
        let tags = if c == BLACK_FLAG {
            measure_flag_tags(rest)
        } else {
            0
        };
        shown.extend(rest.iter().take(tags));
        at += tags;
    }
    shown
}

/// Returns true when the text contains a character that [`remove_hidden`] removes.
pub fn has_hidden(text: &str) -> bool {
    text.contains(is_hidden) && remove_hidden(text) != text
}

/// Returns the text without any invisible character, for a comparison that none of them may change.
pub fn remove_invisible(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

// Base of the flags of regions, such as that of Scotland, whose letters are tags.
const BLACK_FLAG: char = '\u{1F3F4}';
const END_OF_TAGS: char = '\u{E007F}';
// Longest code of a region: two letters of the country and up to four of the part.
const MOST_TAGS: usize = 6;

/// Returns the number of tags of a flag, with their end; 0 without a complete sequence.
fn measure_flag_tags(rest: &[char]) -> usize {
    let is_tag = |c: &&char| matches!(c, '\u{E0030}'..='\u{E0039}' | '\u{E0061}'..='\u{E007A}');
    let letters = rest.iter().take_while(is_tag).count();
    let is_whole = (1..=MOST_TAGS).contains(&letters) && rest.get(letters) == Some(&END_OF_TAGS);
    if is_whole { letters + 1 } else { 0 }
}

/// Returns true for a hidden character that its neighbors need. One base takes one of them, so no text can be hidden in
/// a row of them.
fn is_needed(before: Option<char>, c: char, rest: &[char]) -> bool {
    let Some(base) = before.filter(|base| !is_hidden(*base) || is_selector(*base)) else {
        return false;
    };
    let next = rest.first().copied();
    match c {
        // Letters of these scripts change their form; people, flags and professions are several emoji.
        '\u{200C}' | '\u{200D}' if has_joined_letters(base) => true,
        '\u{200D}' => {
            let is_emoji_base = is_emoji(base) || base == '\u{FE0F}';
            is_emoji_base && next.is_some_and(is_emoji)
        }
        // A keycap is a digit with a selector and a frame.
        '\u{FE0F}' if base.is_ascii_digit() || base == '*' => next == Some('\u{20E3}'),
        '\u{FE00}'..='\u{FE0F}' => !base.is_ascii() && !base.is_whitespace() && !is_selector(base),
        '\u{E0100}'..='\u{E01EF}' => is_ideograph(base),
        '\u{180B}'..='\u{180F}' => matches!(base, '\u{1820}'..='\u{18AA}'),
        // The empty cell of Braille is its space.
        '\u{2800}' => {
            matches!(base, '\u{2801}'..='\u{28FF}')
                && next.is_some_and(|next| matches!(next, '\u{2801}'..='\u{28FF}'))
        }
        _ => false,
    }
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}')
}

/// Returns true for a letter or mark of a script that uses joiners: those of the Middle East, South and Southeast Asia,
/// and Mongolian.
fn has_joined_letters(c: char) -> bool {
    let is_script = matches!(c,
        '\u{0590}'..='\u{109F}' | '\u{1700}'..='\u{18AF}' | '\u{1900}'..='\u{1CFF}'
        | '\u{A800}'..='\u{A82F}' | '\u{A840}'..='\u{AADF}' | '\u{ABC0}'..='\u{ABFF}'
        | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
        | '\u{10A00}'..='\u{11FFF}' | '\u{1E900}'..='\u{1E95F}');
    is_script && !is_hidden(c) && !c.is_whitespace()
}

/// Returns true for a symbol that may be part of an emoji.
fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{00A9}' | '\u{00AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{21FF}' | '\u{2300}'..='\u{27BF}' | '\u{2900}'..='\u{297F}'
        | '\u{2B00}'..='\u{2BFF}' | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}'
        | '\u{1F000}'..='\u{1FAFF}')
}

fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
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

/// Returns a text as one word of a POSIX shell, in single quotes.
pub fn quote_shell_word(text: &str) -> String {
    // A quoted word cannot contain a single quote, so it ends there and begins again.
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns the path that git quotes because of its characters: `"f\303\274.py"` is `fü.py`.
pub fn unquote_path(path: &str) -> Cow<'_, str> {
    let Some(quoted) = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) else {
        return Cow::Borrowed(path);
    };
    let (mut bytes, mut rest) = (Vec::with_capacity(quoted.len()), quoted.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'\\' => parse_escape(after),
            plain => (*plain, after),
        };
        bytes.push(byte);
        rest = after;
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the byte of an escape without its backslash, and the text after it.
fn parse_escape(text: &[u8]) -> (u8, &[u8]) {
    let octal = text.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
    if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
        return (byte, text.get(3..).unwrap_or_default());
    }
    match text.split_first() {
        Some((b'n', after)) => (b'\n', after),
        Some((b'r', after)) => (b'\r', after),
        Some((b't', after)) => (b'\t', after),
        Some((other, after)) => (*other, after),
        None => (b'\\', text),
    }
}

/// Returns the last characters of a text; at most `limit`.
pub fn take_tail(text: &str, limit: usize) -> String {
    let skipped = text.chars().count().saturating_sub(limit);
    text.chars().skip(skipped).collect()
}

/// Returns the start of a text; at most `limit` bytes, and only whole characters.
pub fn truncate_bytes(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// Returns the end of a text; at most `limit` bytes, and only whole characters.
pub fn take_tail_bytes(text: &str, limit: usize) -> &str {
    let start = (text.len().saturating_sub(limit)..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[start.unwrap_or_default()..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn limited_bytes_are_whole_characters(text in "\\PC{0,20}", limit in 0..80_usize) {
            let (start, end) = (truncate_bytes(&text, limit), take_tail_bytes(&text, limit));
            prop_assert!(text.starts_with(start) && text.ends_with(end));
            for part in [start, end] {
                // The next character has at most four bytes.
                prop_assert!(part.len() <= limit && part.len() + 4 > limit.min(text.len()));
            }
        }
    }

    #[test]
    fn shell_word_contains_any_text_quoted() {
        assert_eq!(quote_shell_word("my shop"), "'my shop'");
        assert_eq!(quote_shell_word("it's $x"), r"'it'\''s $x'");
        assert_eq!(quote_shell_word(""), "''");
    }

    #[test]
    fn quoted_path_of_git_is_plain() {
        for (path, plain) in [
            (r#""b/s/f\303\274.py""#, "b/s/f\u{fc}.py"),
            (r#""q\"\t\\.txt""#, "q\"\t\\.txt"),
            (r#""a\"#, r#""a\"#),
            (r#""\""#, "\\"),
            (r#""\9""#, "9"),
            (r#"""#, r#"""#),
            ("a b.py", "a b.py"),
        ] {
            assert_eq!(unquote_path(path), plain, "{path}");
        }
    }

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
        for text in [
            // Persian with a non-joiner, Hindi and Sinhala with joiners, Mongolian with a form selector.
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "ශ්\u{200d}රී",
            "ᠮᠣᠩᠭᠣᠯ\u{180b}",
            // A warning, a heart, a family, a person with a skin tone, a keycap, two kinds of flags.
            "\u{26a0}\u{fe0f} \u{2764}\u{fe0f}",
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "\u{1f9d1}\u{1f3fd}\u{200d}\u{2764}\u{fe0f}\u{200d}\u{1f9d1}",
            "1\u{fe0f}\u{20e3}",
            "\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
            // A variant of an ideograph, Braille with a space.
            "\u{845b}\u{e0100}",
            "\u{2803}\u{2800}\u{2817}",
        ] {
            assert_eq!(remove_hidden(text), text, "{text:?}");
            assert!(!has_hidden(text), "{text:?}");
        }
    }

    #[test]
    fn invisible_characters_without_need_are_removed() {
        for (text, clean) in [
            ("sec\u{200d}ret", "secret"),
            ("a\u{fe0f}b\u{fe0e}", "ab"),
            ("1\u{fe0f} 2", "1 2"),
            ("é\u{200c}a", "éa"),
            ("\u{200d}\u{1f467}", "\u{1f467}"),
            ("\u{1f467}\u{200d}now", "\u{1f467}now"),
            ("می\u{200c}\u{200c}\u{200d}خ", "می\u{200c}خ"),
            ("\u{26a0}\u{fe0f}\u{fe01}\u{fe02}", "\u{26a0}\u{fe0f}"),
            ("\u{1f3f4}\u{e0067}\u{e0062} flag", "\u{1f3f4} flag"),
            ("\u{1f600}\u{e0041}\u{e0042}\u{e007f}", "\u{1f600}"),
            ("a\u{2800}b", "ab"),
            ("a\u{e0100}", "a"),
        ] {
            assert_eq!(remove_hidden(text), clean, "{text:?}");
            assert!(has_hidden(text), "{text:?}");
            assert_eq!(remove_hidden(clean), clean, "{text:?}");
        }
        assert_eq!(remove_invisible("می\u{200c}خ \u{26a0}\u{fe0f}"), "میخ \u{26a0}");
    }
}
