//! Makes Markdown by the model harmless: it notifies nobody, closes and references no other issue, loads nothing, and
//! links to the web and to mail only.

use std::ops::Range;

use domain::text::without_hidden;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, TextMergeWithOffset};

/// Taking a tag out may make what stood behind it the start of a block; deeper than this is an attack.
const ROUNDS: usize = 8;

/// Markdown with mentions and issue references in code style, without raw HTML, with images and other links as their
/// words. Read again, the result has nothing left to rewrite.
pub(crate) fn markdown(text: &str) -> String {
    let mut clean = once(&without_hidden(text));
    for _ in 0..ROUNDS {
        let again = once(&clean);
        if again == clean {
            return clean;
        }
        clean = again;
    }
    plain(&clean)
}

fn once(text: &str) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS;
    let mut output = Output {
        text: String::with_capacity(text.len()),
        copied: 0,
    };
    let mut dropped: Option<Dropped> = None;
    let mut in_code_block = false;
    // A backslash or an entity ends a piece of text; what is read is the whole.
    for (event, range) in TextMergeWithOffset::new(Parser::new_ext(text, options).into_offset_iter()) {
        match (event, dropped.as_mut()) {
            (Event::End(end), Some(open)) if end == open.end => {
                if let Some(open) = dropped.take() {
                    output.replace(text, open.range.clone(), &open.words());
                }
            }
            (Event::Text(words) | Event::Code(words), Some(open)) => open.text.push_str(&words),
            (Event::SoftBreak | Event::HardBreak, Some(open)) => open.text.push(' '),
            (_, Some(_)) => {}
            (Event::Start(Tag::Image { .. }), None) => dropped = Some(Dropped::new(range, TagEnd::Image, "")),
            (Event::Start(Tag::Link { dest_url, .. }), None) if !may_link_to(&dest_url) => {
                dropped = Some(Dropped::new(range, TagEnd::Link, &dest_url));
            }
            (Event::Start(Tag::CodeBlock(_)), None) => in_code_block = true,
            (Event::End(TagEnd::CodeBlock), None) => in_code_block = false,
            // What stood on both sides must not become one word.
            (Event::InlineHtml(_), None) => output.replace(text, range, " "),
            (Event::Html(_), None) => output.replace(text, range, ""),
            (Event::Text(words), None) if !in_code_block => {
                if needs_rewriting(&words, &text[range.clone()]) {
                    output.replace_text(text, range, &plain(&words));
                }
            }
            (_, None) => {}
        }
    }
    output.finish(text)
}

/// One run of plain text as Markdown that shows it, with mentions and issue references in code style. A hidden character
/// that was written as an entity is one here, and goes.
pub(crate) fn plain(text: &str) -> String {
    let text = without_hidden(text);
    let mut output = String::with_capacity(text.len());
    each_part(&text, |part| match part {
        Part::Reference(reference) => output.push_str(&format!("`{reference}`")),
        Part::Other(c) => {
            if is_special(c) {
                output.push('\\');
            }
            output.push(c);
        }
    });
    output
}

/// A title: one line that is read as Markdown by some and as the message of a commit by others, so mentions lose their
/// sign, references stand in code style, and `#done` after an issue's key is no command to Jira.
pub(crate) fn title(text: &str) -> String {
    let text = without_hidden(text);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut output = String::with_capacity(line.len());
    each_part(&line, |part| match part {
        Part::Reference(reference) => match reference.strip_prefix('@') {
            Some(name) => output.push_str(name),
            None => output.push_str(&format!("`{reference}`")),
        },
        Part::Other('`') => output.push('\''),
        Part::Other(c) => output.push(c),
    });
    let words = output.split(' ').map(|word| match word.strip_prefix('#') {
        Some(command) if command.starts_with(|c: char| c.is_alphabetic()) => command,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A piece of a text.
enum Part<'a> {
    /// A mention or a reference.
    Reference(&'a str),
    Other(char),
}

fn each_part<'a>(text: &'a str, mut take: impl FnMut(Part<'a>)) {
    let mut rest = text;
    let mut before = None;
    while let Some(next) = rest.chars().next() {
        let length = if before.is_none_or(is_boundary) {
            reference_length(rest)
        } else {
            0
        };
        let end = if length == 0 { next.len_utf8() } else { length };
        take(if length == 0 {
            Part::Other(next)
        } else {
            Part::Reference(&rest[..length])
        });
        before = rest[..end].chars().next_back();
        rest = &rest[end..];
    }
}

/// A link or image that only its words are left of.
struct Dropped {
    range: Range<usize>,
    end: TagEnd,
    /// Where it led.
    address: String,
    text: String,
}

impl Dropped {
    fn new(range: Range<usize>, end: TagEnd, address: &str) -> Self {
        Self {
            range,
            end,
            address: address.to_owned(),
            text: String::new(),
        }
    }

    fn words(&self) -> String {
        if self.address.is_empty() || self.address == self.text {
            return plain(&self.text);
        }
        let address = without_hidden(&self.address).replace('`', "'");
        format!("{} (`{address}`)", plain(&self.text))
    }
}

/// Whether a link may stay: to the web, to mail or within the page, and to no issue.
fn may_link_to(address: &str) -> bool {
    let scheme = address
        .split_once(':')
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_scheme = |scheme: &String| !scheme.contains(['/', '?', '#']);
    let is_known = match scheme.filter(is_scheme).as_deref() {
        Some(scheme) => matches!(scheme, "http" | "https" | "mailto"),
        None => !address.starts_with("//"),
    };
    is_known && !is_issue(address)
}

fn is_issue(address: &str) -> bool {
    ["/issues/", "/pull/", "/discussions/"]
        .iter()
        .any(|part| address.contains(part))
}

/// Text keeps its source, unless it says something to others, hides a character behind an entity, or a backtick of its own
/// would end one of ours.
fn needs_rewriting(words: &str, source: &str) -> bool {
    let mut has_reference = false;
    each_part(words, |part| has_reference |= matches!(part, Part::Reference(_)));
    let is_spelled = words != source && words.contains(['@', '#']);
    has_reference || is_spelled || words.contains('`') || without_hidden(words) != words
}

/// Characters that mean something to Markdown within a line.
fn is_special(c: char) -> bool {
    matches!(
        c,
        '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '|'
    )
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
        self.push(with);
        self.copied = range.end;
    }

    /// The same for words whose first character may stand behind a backslash, which is not part of their range.
    fn replace_text(&mut self, source: &str, range: Range<usize>, with: &str) {
        let escaped = range
            .start
            .checked_sub(1)
            .filter(|at| source.as_bytes()[*at] == b'\\');
        let start = escaped.filter(|at| *at >= self.copied).unwrap_or(range.start);
        self.replace(source, start..range.end, with);
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
            .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ')' | ']' | '"' | '`'))
            .unwrap_or(text.len());
        return if is_issue(&text[..end]) { end } else { 0 };
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

#[cfg(test)]
#[path = "sanitize_tests.rs"]
mod tests;
