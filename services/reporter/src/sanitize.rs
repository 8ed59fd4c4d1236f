//! Makes Markdown by the model harmless: it notifies nobody, closes and references no other issue, loads nothing.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Markdown with mentions and issue references in code style, without raw HTML and with images as their words.
pub(crate) fn markdown(text: &str) -> String {
    let text: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let mut output = Output {
        text: String::with_capacity(text.len()),
        copied: 0,
    };
    let mut image: Option<(Range<usize>, String)> = None;
    let mut in_code_block = false;
    for (event, range) in
        Parser::new_ext(&text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH).into_offset_iter()
    {
        match (event, image.as_mut()) {
            (Event::End(TagEnd::Image), Some(_)) => {
                if let Some((range, words)) = image.take() {
                    output.replace(&text, range, &plain(&words));
                }
            }
            (Event::Text(words) | Event::Code(words), Some((_, alternative))) => alternative.push_str(&words),
            (_, Some(_)) => {}
            (Event::Start(Tag::Image { .. }), None) => image = Some((range, String::new())),
            (Event::Start(Tag::CodeBlock(_)), None) => in_code_block = true,
            (Event::End(TagEnd::CodeBlock), None) => in_code_block = false,
            (Event::Html(_) | Event::InlineHtml(_), None) => output.replace(&text, range, ""),
            (Event::Text(words), None) if !in_code_block => {
                let harmless = plain(&words);
                // An unchanged text keeps its source: escapes and entities stay what they are.
                if harmless != *words || has_hidden_sign(&words, &text[range.clone()]) {
                    let shown = if harmless == *words {
                        format!("`{words}`")
                    } else {
                        harmless
                    };
                    output.replace(&text, range, &shown);
                }
            }
            (_, None) => {}
        }
    }
    output.finish(&text)
}

/// One run of plain text with mentions and issue references in code style.
pub(crate) fn plain(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(next) = rest.chars().next() {
        let length = if before.is_none_or(is_boundary) {
            reference_length(rest)
        } else {
            0
        };
        if length == 0 {
            output.push(next);
            before = Some(next);
            rest = &rest[next.len_utf8()..];
        } else {
            output.push('`');
            output.push_str(&rest[..length]);
            output.push('`');
            before = rest[..length].chars().next_back();
            rest = &rest[length..];
        }
    }
    output
}

/// The text as it is built: untouched source between replaced ranges.
struct Output {
    text: String,
    copied: usize,
}

impl Output {
    fn replace(&mut self, source: &str, range: Range<usize>, with: &str) {
        if range.start < self.copied {
            return;
        }
        self.copy(source, range.start);
        if with.starts_with('`') {
            // A backslash would escape our backtick; the sign it was meant for stands in code now.
            while self.text.ends_with('\\') {
                self.text.pop();
            }
        }
        self.push(with);
        self.copied = range.end;
    }

    fn copy(&mut self, source: &str, to: usize) {
        let part = &source[self.copied..to];
        self.push(part);
    }

    /// Two backticks side by side would make a different code span.
    fn push(&mut self, part: &str) {
        if self.text.ends_with('`') && part.starts_with('`') {
            self.text.push(' ');
        }
        self.text.push_str(part);
    }

    fn finish(mut self, source: &str) -> String {
        self.copy(source, source.len());
        self.text
    }
}

/// Signs that were spelled as an entity or behind a backslash still notify people.
fn has_hidden_sign(words: &str, source: &str) -> bool {
    words != source && words.contains(['@', '#'])
}

fn is_boundary(c: char) -> bool {
    !(c.is_alphanumeric() || c == '_')
}

/// Length of a mention, `#12`, `GH-12`, `acme/shop#12` or issue link at the start of the text; 0 when there is none.
fn reference_length(text: &str) -> usize {
    if let Some(rest) = text.strip_prefix('@') {
        let name = rest.find(|c: char| !is_name(c) && c != '/').unwrap_or(rest.len());
        let name = rest[..name].trim_end_matches(['.', '/']).len();
        return if rest.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            1 + name
        } else {
            0
        };
    }
    if text.starts_with("https://") || text.starts_with("http://") {
        let end = text
            .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ')' | ']' | '"'))
            .unwrap_or(text.len());
        let is_issue = ["/issues/", "/pull/", "/discussions/"]
            .iter()
            .any(|part| text[..end].contains(part));
        return if is_issue { end } else { 0 };
    }
    if text
        .get(..3)
        .is_some_and(|start| start.eq_ignore_ascii_case("GH-"))
    {
        return digits(&text[3..]).map_or(0, |count| 3 + count);
    }
    let name = text.find(|c: char| !is_name(c) && c != '/').unwrap_or(text.len());
    match text[name..].strip_prefix('#') {
        Some(rest) if name == 0 || text[..name].contains('/') => {
            digits(rest).map_or(0, |count| name + 1 + count)
        }
        Some(_) | None => 0,
    }
}

fn digits(text: &str) -> Option<usize> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    (count > 0).then_some(count)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Characters that hide or reorder text.
fn is_invisible(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{ad}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_and_references_become_code() {
        for (given, harmless) in [
            (
                "Thanks @alice and @acme/core!",
                "Thanks `@alice` and `@acme/core`!",
            ),
            (
                "Fixes #12, closes acme/x#3 and GH-4.",
                "Fixes `#12`, closes `acme/x#3` and `GH-4`.",
            ),
            (
                "Resolves https://github.com/acme/x/issues/3 now",
                "Resolves `https://github.com/acme/x/issues/3` now",
            ),
            ("mail a@b.example, c# and C#7", "mail a@b.example, c# and C#7"),
            ("see https://docs.example/page", "see https://docs.example/page"),
            ("**@alice**", "**`@alice`**"),
            ("\\@alice", "`@alice`"),
            ("`x`@alice", "`x` `@alice`"),
            ("# Title\n\n- [ ] item @bob", "# Title\n\n- [ ] item `@bob`"),
        ] {
            assert_eq!(markdown(given), harmless, "{given}");
        }
    }

    #[test]
    fn a_mention_spelled_as_an_entity_does_not_survive() {
        for given in ["&#64;alice", "&commat;alice", "fixes &#35;12"] {
            let harmless = markdown(given);
            assert!(!harmless.contains('&') && harmless.contains('`'), "{harmless}");
        }
    }

    #[test]
    fn code_keeps_its_text() {
        let text = "Use `@decorator` and\n\n```python\n@cache\ndef f(): ...  # 12\n```\n";
        assert_eq!(markdown(text), text);
    }

    #[test]
    fn html_and_images_do_not_survive() {
        assert_eq!(markdown("a <!-- hidden --> b"), "a  b");
        assert_eq!(
            markdown("see ![the @chart](https://evil.example/x.png?leak=1) here"),
            "see the `@chart` here"
        );
        assert!(!markdown("<img src=\"https://evil.example/x\">\n\ntext").contains("evil"));
        assert!(
            !markdown("<details>\n<!-- journeyman:effect=x -->\n</details>").contains("journeyman:effect")
        );
    }

    #[test]
    fn invisible_characters_are_dropped() {
        assert_eq!(markdown("a\u{200b}b\u{202e}c"), "abc");
    }

    #[test]
    fn any_text_is_accepted() {
        for text in [
            "", "`", "![", "<", "<!--", "@", "#", "é@ü", "||||", "> > >", "\\", "```",
        ] {
            let _ = markdown(text);
        }
    }
}
