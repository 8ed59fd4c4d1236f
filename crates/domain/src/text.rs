//! Characters that a reader does not see, or that make him see another order than the one that counts: one list for what
//! comes in, what goes out and what is printed. And texts that are too long.

/// Whether a character hides, reorders or controls text: control characters except line feed and tab, zero-width and
/// direction characters, blank letters, variation selectors and tags.
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

/// The text without hidden characters.
pub fn without_hidden(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

/// The text with each hidden character spelled out, such as `<U+202E>`, so that a person sees that it is there.
pub fn visible(text: &str) -> String {
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

/// The text on one line: control characters are spaces, and several spaces are one.
pub fn one_line(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A foreign word in code style: on a page of Markdown it neither notifies anybody nor is read as Markdown.
pub fn code(text: &str) -> String {
    format!("`{}`", capped(&one_line(text).replace('`', "'"), 300))
}

/// The letters and digits of a text in lower case: the same for texts that differ in spaces, marks and case alone.
pub fn bare(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The start of a text, with a mark where something was cut; at most this many characters, the mark among them.
pub fn capped(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

/// The last characters of a text, at most this many.
pub fn tail(text: &str, limit: usize) -> String {
    let skipped = text.chars().count().saturating_sub(limit);
    text.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_does_not_see_is_removed_or_spelled_out() {
        let text = "a\u{200b}b\u{202e}c\u{1b}]0;x\u{7}\u{3164}\u{e0041}\td\n";
        assert_eq!(without_hidden(text), "abc]0;x\td\n");
        assert_eq!(
            visible(text),
            "a<U+200B>b<U+202E>c<U+001B>]0;x<U+0007><U+3164><U+E0041>\td\n"
        );
    }

    #[test]
    fn ordinary_text_of_any_script_stays() {
        let text = "Grüße, 你好, שלום, नमस्ते: 1 – 2 “quoted” €\n";
        assert_eq!(without_hidden(text), text);
        assert_eq!(visible(text), text);
    }
}
