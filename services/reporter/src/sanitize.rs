//! Sanitizer for Markdown of the model.
//!
//! The result causes no notification, gives no order to other bots, and closes and references no other issue. It loads
//! nothing, and links only to the web and to mail. The grammar of mentions and references is GitHub's.

use std::ops::Range;

use domain::{
    commit_orders,
    text::{remove_hidden, truncate_text},
};
use percent_encoding::percent_decode_str;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, TextMergeWithOffset};

use crate::bot_orders;

// Removal of a tag can turn the text after it into a block, so the text is cleaned until it no longer changes. A
// deeper nesting than this is an attack.
const ROUNDS: usize = 8;
// Extensions of GitHub's Markdown.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_TASKLISTS);

/// Sanitizes Markdown: mentions, references and orders become code, raw HTML is removed, and images and other links
/// become their text. A second pass over the result changes nothing.
pub(crate) fn sanitize_markdown(text: &str) -> String {
    // Markup that goes may leave a joiner without the letter that needs it, so hidden characters go after it, too.
    let mut clean = remove_hidden(&sanitize_once(&remove_hidden(text)));
    for _ in 0..ROUNDS {
        let again = remove_hidden(&sanitize_once(&clean));
        if again == clean {
            return clean;
        }
        clean = again;
    }
    // Still changing: plain text has no structure left to attack.
    remove_hidden(&sanitize_plain(&clean))
}

/// Sanitizes Markdown that other text follows: no code block stays open, which would make that text part of it.
pub(crate) fn sanitize_part(text: &str) -> String {
    close_code_block(sanitize_markdown(text))
}

/// Sanitizes Markdown that other text follows, to about `most` characters.
pub(crate) fn sanitize_and_truncate(text: &str, most: usize) -> String {
    // Sanitizing may lengthen a text, and truncation may open a code block, so each happens twice.
    let clean = sanitize_markdown(&truncate_text(text, most));
    sanitize_part(&truncate_text(&clean, most))
}

/// Closes the code block that is open at the end of the text. A block in a list or quotation ends with it.
pub(crate) fn close_code_block(text: String) -> String {
    match find_open_fence(&text) {
        // Other white space may be the reason why the last line is not a fence.
        Some(fence) => format!("{}\n{fence}", text.trim_end_matches('\n')),
        None => text,
    }
}

/// Returns the fence of the code block that would contain a paragraph after the text.
fn find_open_fence(text: &str) -> Option<String> {
    // The parser decides, because a line with the form of a fence may be part of the code.
    let followed = format!("{text}\n\n.");
    let mut fence = None;
    for (event, range) in Parser::new_ext(&followed, OPTIONS).into_offset_iter() {
        let is_block = matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
        if is_block && range.end == followed.len() {
            let block = followed[range].trim_start();
            let sign = block.chars().next()?;
            fence = Some(block.chars().take_while(|c| *c == sign).collect());
        }
    }
    fence
}

/// Returns lines of code, none of which gives an order to a bot. Bots read the raw text of a comment, including fences.
pub(crate) fn code_lines(text: &str) -> String {
    bot_orders::guard_code(text)
}

fn sanitize_once(text: &str) -> String {
    let mut output = MarkdownOutput {
        text: String::with_capacity(text.len()),
        copied: 0,
    };
    let mut dropped: Option<DroppedLink> = None;
    let mut in_code_block = false;
    let mut read_to = 0;
    // A backslash or an entity splits text into several events, but readers see one text.
    for (event, range) in TextMergeWithOffset::new(Parser::new_ext(text, OPTIONS).into_offset_iter()) {
        // Parts without an event, such as link targets, are in the text for bots, too.
        let silent_to = if let Event::End(_) = &event {
            range.end
        } else {
            range.start
        };
        if dropped.is_none() {
            guard_silent(&mut output, text, read_to, silent_to);
        }
        read_to = read_to.max(if let Event::Start(_) = &event {
            range.start
        } else {
            range.end
        });
        match (event, dropped.as_mut()) {
            (Event::End(end), Some(open)) if end == open.end => {
                if let Some(open) = dropped.take() {
                    output.replace(text, open.range.clone(), &open.words());
                }
            }
            (Event::Text(words) | Event::Code(words), Some(open)) => open.text.push_str(&words),
            (Event::SoftBreak | Event::HardBreak, Some(open)) => open.text.push(' '),
            (_, Some(_)) => {}
            (Event::Start(Tag::Image { .. }), None) => {
                dropped = Some(DroppedLink::new(range, TagEnd::Image, ""))
            }
            (Event::Start(Tag::Link { dest_url, .. }), None) if !may_link_to(&dest_url) => {
                dropped = Some(DroppedLink::new(range, TagEnd::Link, &dest_url));
            }
            (Event::Start(Tag::CodeBlock(_)), None) => {
                in_code_block = true;
                for at in bot_orders::orders_in_code(text, range) {
                    output.replace(text, at..at, bot_orders::CODE_MARK);
                }
            }
            // A line break in a code span could put an order at the start of a line.
            (Event::Code(words), None) if text[range.clone()].contains('\n') => {
                let words = domain::text::one_line(&words).replace('`', "'");
                output.replace(text, range, &format!("`{words}`"));
            }
            (Event::End(TagEnd::CodeBlock), None) => in_code_block = false,
            // Without a space, the words on both sides would become one.
            (Event::InlineHtml(_), None) => output.replace(text, range, " "),
            (Event::Html(_), None) => output.replace(text, range, ""),
            (Event::Text(words), None) if !in_code_block => {
                let opens = bot_orders::is_line_start(text, range.start);
                if needs_rewriting(&words, &text[range.clone()], opens) {
                    output.replace_text(text, range, &escape_plain(&words, opens));
                }
            }
            (_, None) => {}
        }
    }
    guard_silent(&mut output, text, read_to, text.len());
    // The last step, because code, link targets and what is left of removed parts are raw text for bots.
    bot_orders::break_orders(&output.finish(text))
}

/// Escapes orders at line starts in parts that are not text, such as link targets and titles.
fn guard_silent(output: &mut MarkdownOutput, text: &str, from: usize, to: usize) {
    if from >= to {
        return;
    }
    for at in bot_orders::orders_in(text, from..to) {
        // `break_orders` breaks the others at their sign.
        if bot_orders::anywhere_length(&text[..at], &text[at..]) == 0 {
            output.replace(text, at..at, "\\");
        }
    }
}

/// Converts plain text to Markdown that shows it, with mentions and issue references as code. Hidden characters, also
/// from entities, are removed.
pub(crate) fn sanitize_plain(text: &str) -> String {
    escape_plain(text, true)
}

/// Converts plain text for a position that begins a line, or does not.
fn escape_plain(text: &str, opens_line: bool) -> String {
    let text = remove_hidden(text);
    let mut output = String::with_capacity(text.len());
    let mut ends_with_code = false;
    each_part(&text, opens_line, |part| {
        let words = match part {
            TextPart::Reference(words) | TextPart::Order(words) => words,
            TextPart::Sign(sign) => {
                output.push_str(&format!("&#{};", u32::from(sign)));
                ends_with_code = false;
                return;
            }
            TextPart::Other(c) => {
                if is_special(c) {
                    output.push('\\');
                }
                output.push(c);
                ends_with_code = false;
                return;
            }
        };
        // Two adjacent backticks would join two code spans.
        if ends_with_code {
            output.push(' ');
        }
        output.push_str(&format!("`{}`", remove_order_sign(words)));
        ends_with_code = true;
    });
    output
}

/// Returns words for code style. Bots that obey an order anywhere obey it in code style, too, so it loses its sign.
fn remove_order_sign(words: &str) -> String {
    let bare = if bot_orders::anywhere_length("", words) == words.len() {
        words.trim_start_matches(['/', '@'])
    } else {
        words
    };
    bot_orders::break_orders(bare)
}

/// Sanitizes a title: one line that some readers parse as Markdown, and others as a commit message.
///
/// Mentions lose their sign, references become code, and the sign of a command is in brackets. No mark skips checks, and
/// `#done` after an issue's key is not a Jira command.
pub(crate) fn sanitize_title(text: &str) -> String {
    let text = commit_orders::clean_marks(&remove_hidden(text));
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut output = String::with_capacity(line.len());
    each_part(&line, true, |part| match part {
        TextPart::Order(order) => output.push_str(&format!("`{}`", remove_order_sign(order))),
        TextPart::Reference(reference) => match reference.strip_prefix('@') {
            Some(name) => output.push_str(name),
            None => output.push_str(&format!("`{}`", remove_order_sign(reference))),
        },
        TextPart::Other('`') => output.push('\''),
        // `break_orders` below puts the sign of an order into brackets.
        TextPart::Sign(c) | TextPart::Other(c) => output.push(c),
    });
    let words = output.split(' ').map(|word| match word.strip_prefix('#') {
        Some(command) if command.starts_with(|c: char| c.is_alphabetic()) => command,
        _ => word,
    });
    bot_orders::break_orders(&words.collect::<Vec<_>>().join(" "))
}

/// Part of a text.
enum TextPart<'a> {
    /// A mention or a reference.
    Reference(&'a str),
    /// Words that a bot reads as an order at the start of a line, or a mention that it obeys.
    Order(&'a str),
    /// First character of a command, such as `/release`, or `@` of an e-mail address with the name of a bot. Readers need
    /// it; a character reference shows it to them and not to bots.
    Sign(char),
    Other(char),
}

fn each_part<'a>(text: &'a str, opens_line: bool, mut take: impl FnMut(TextPart<'a>)) {
    let (mut rest, mut before) = (text, None);
    let mut opens = opens_line;
    while let Some(next) = rest.chars().next() {
        let length = reference_length(rest, before);
        // After a part in code style, the output ends with a backtick.
        let behind = match before {
            Some('`') => "`",
            Some(_) | None => &text[..text.len() - rest.len()],
        };
        let order = if opens && bot_orders::may_begin_behind(before) {
            bot_orders::order_length(rest)
        } else {
            0
        };
        let anywhere = bot_orders::anywhere_length(behind, rest);
        let order = order.max(anywhere);
        let is_order = order > 0 && order >= length;
        let is_sign = is_order && anywhere > 0 && (next == '/' || before.is_some_and(is_word));
        let (part, end) = if is_sign {
            (TextPart::Sign(next), next.len_utf8())
        } else if is_order {
            (TextPart::Order(&rest[..order]), order)
        } else if length > 0 {
            (TextPart::Reference(&rest[..length]), length)
        } else {
            (TextPart::Other(next), next.len_utf8())
        };
        // Code style ends a word, so a mention may follow it at once.
        let is_code = matches!(part, TextPart::Order(_) | TextPart::Reference(_));
        take(part);
        opens = (opens && end == next.len_utf8() && bot_orders::is_skipped(next)) || next == '\n';
        before = Some(if is_code { '`' } else { next });
        rest = &rest[end..];
    }
}

/// A link or image that is replaced by its text.
struct DroppedLink {
    range: Range<usize>,
    end: TagEnd,
    /// Target of the link.
    address: String,
    text: String,
}

impl DroppedLink {
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
            return sanitize_plain(&self.text);
        }
        let address = remove_hidden(&self.address).replace('`', "'");
        format!("{} (`{address}`)", sanitize_plain(&self.text))
    }
}

/// Returns true if a link may stay: to the web, to mail or within the page, and not to an issue.
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
    let address = percent_decode_str(address)
        .decode_utf8_lossy()
        .to_ascii_lowercase();
    ["/issues/", "/pull/", "/discussions/"]
        .iter()
        .any(|part| address.contains(part))
}

/// Returns true unless the source can stay as it is: without references, without characters hidden behind entities,
/// and without a backtick that would end one of our code spans.
fn needs_rewriting(words: &str, source: &str, opens_line: bool) -> bool {
    let mut has_reference = false;
    each_part(words, opens_line, |part| {
        has_reference |= !matches!(part, TextPart::Other(_))
    });
    let is_spelled = words != source && words.contains(['@', '#']);
    has_reference || is_spelled || words.contains('`') || remove_hidden(words) != words
}

/// Characters that have a meaning within a line of Markdown.
fn is_special(c: char) -> bool {
    matches!(
        c,
        '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '|'
    )
}

/// Result in progress: unchanged source between replaced ranges.
struct MarkdownOutput {
    text: String,
    copied: usize,
}

impl MarkdownOutput {
    fn replace(&mut self, source: &str, range: Range<usize>, with: &str) {
        if range.start < self.copied {
            return;
        }
        self.copy(source, range.start);
        self.push(with);
        self.copied = range.end;
    }

    /// Replaces words. A backslash before their first character is not part of their range, so it is replaced, too.
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

    /// Appends a part. Two adjacent backticks would form another code span, so a space separates them.
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

/// GitHub's `\W` covers ASCII only: a letter of another script before a mention does not prevent it.
const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the length of a mention, `#12`, `GH-12`, `ann#12`, `acme/shop#12` or issue link at the start of the text;
/// 0 without one.
fn reference_length(text: &str, before: Option<char>) -> usize {
    let is_apart = before.is_none_or(|c| !c.is_ascii_alphanumeric());
    if is_apart && starts_link(text) {
        let end = text
            .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ')' | ']' | '"' | '`'))
            .unwrap_or(text.len());
        return if is_issue(&text[..end]) { end } else { 0 };
    }
    if before.is_some_and(is_word) {
        return 0;
    }
    if let Some(rest) = text.strip_prefix('@') {
        let name = rest.find(|c: char| !is_name(c) && c != '/').unwrap_or(rest.len());
        let name = rest[..name].trim_end_matches(['.', '/']).len();
        return if rest.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            1 + name
        } else {
            0
        };
    }
    if text
        .get(..3)
        .is_some_and(|start| start.eq_ignore_ascii_case("GH-"))
    {
        return count_digits(&text[3..]).map_or(0, |count| 3 + count);
    }
    let name = text.find(|c: char| !is_name(c) && c != '/').unwrap_or(text.len());
    match text[name..].strip_prefix('#') {
        Some(rest) => count_digits(rest).map_or(0, |count| name + 1 + count),
        None => 0,
    }
}

/// Returns true if GitHub turns the start of the text into a link, or a person would read it as one.
fn starts_link(text: &str) -> bool {
    ["https://", "http://", "www.", "github.com/"]
        .iter()
        .any(|start| {
            let found = text.get(..start.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(start))
        })
}

fn count_digits(text: &str) -> Option<usize> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    (count > 0).then_some(count)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
#[path = "sanitize_tests.rs"]
mod tests;
