//! Conversion of inline wiki markup to Markdown.

use domain::is_safe_link;

use crate::attachment_text::{AttachmentPlace, render_attachment, render_remote_image};

// Marks that are nested deeper than this stay text.
const MAX_MARKS: usize = 8;
// Maximum length of a link, in characters.
const MAX_LINK: usize = 2_000;
// Wiki delimiters with their Markdown; empty where Markdown has no counterpart and the text suffices.
const MARKS: [(char, &str); 6] = [
    ('*', "**"),
    ('_', "*"),
    ('-', "~~"),
    ('+', ""),
    ('^', ""),
    ('~', ""),
];

/// Converts a line to Markdown. Text is not escaped: users and models read it, and the rules search it for
/// phrases such as `[AGENT-SKIP]`.
pub(super) fn convert_line(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    convert_inline(&chars, 0)
}

fn convert_inline(text: &[char], depth: usize) -> String {
    let mut scan = InlineScan {
        text,
        depth,
        at: 0,
        out: String::with_capacity(text.len()),
        unclosed: Vec::new(),
    };
    while scan.at < text.len() {
        scan.step();
    }
    scan.out
}

struct InlineScan<'a> {
    text: &'a [char],
    depth: usize,
    at: usize,
    out: String,
    /// Delimiters without an end in the rest of the line, so that the search is not repeated for each of
    /// them.
    unclosed: Vec<&'static str>,
}

impl InlineScan<'_> {
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        // Longer delimiters come before their prefixes.
        let taken = match rest {
            ['\\', '\\', next, ..] if next.is_whitespace() => self.emit("  \n", 3),
            ['\\', '\\'] => self.emit("", 2),
            // An escaped slash stays escaped: it shows an order and gives none.
            ['\\', '/', ..] => self.emit("\\/", 2),
            ['\\', c, ..] if c.is_ascii_punctuation() && *c != '\\' => self.emit(&c.to_string(), 2),
            ['&', ..] => self.entity(rest),
            ['h', 't', 't', 'p', ..] => self.address(rest),
            ['{', '{', ..] => self.monospaced(rest),
            ['{', sign, '}', ..] => self.braced(*sign),
            ['{', ..] => self.dropped(rest),
            ['[', ..] => self.link(rest),
            ['!', ..] => self.picture(rest),
            ['?', '?', ..] => self.cited(rest),
            [sign, ..] => self.mark(*sign),
            [] => None,
        };
        match taken {
            Some(length) => self.at += length,
            None => {
                self.out.extend(rest.first());
                self.at += 1;
            }
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "every kind says how much it took")]
    fn emit(&mut self, text: &str, length: usize) -> Option<usize> {
        self.out.push_str(text);
        Some(length)
    }

    fn before(&self) -> Option<char> {
        self.at.checked_sub(1).map(|before| self.text[before])
    }

    /// Finds the delimiter that ends the markup at this position.
    fn end(&mut self, rest: &[char], from: usize, sign: &'static str) -> Option<usize> {
        if self.unclosed.contains(&sign) {
            return None;
        }
        let wanted: Vec<char> = sign.chars().collect();
        let mut at = from;
        // An escaped character cannot end the markup, so it is skipped with its backslash.
        while at + wanted.len() <= rest.len() {
            if rest[at..].starts_with(&wanted) {
                return Some(at);
            }
            at += if rest[at] == '\\' { 2 } else { 1 };
        }
        self.unclosed.push(sign);
        None
    }

    fn entity(&mut self, rest: &[char]) -> Option<usize> {
        let (c, length) = parse_entity(&rest[1..])?;
        self.emit(&c.to_string(), length + 1)
    }

    /// Copies a URL, whose characters are never marks.
    fn address(&mut self, rest: &[char]) -> Option<usize> {
        let is_apart = self.before().is_none_or(|c| !c.is_alphanumeric());
        let begins = |scheme: &str| rest.iter().take(scheme.len()).copied().eq(scheme.chars());
        if !is_apart || !(begins("http://") || begins("https://")) {
            return None;
        }
        let ends = |c: &char| c.is_whitespace() || "|[]{}\\*\"<>".contains(*c);
        let is_entity = |at: usize| matches!(&rest[at..], ['&', after @ ..] if parse_entity(after).is_some());
        let length = (0..rest.len()).find(|at| ends(&rest[*at]) || is_entity(*at));
        let length = length.unwrap_or(rest.len());
        let address: String = rest[..length].iter().collect();
        self.emit(&address, length)
    }

    fn monospaced(&mut self, rest: &[char]) -> Option<usize> {
        let end = self.end(rest, 2, "}}").filter(|end| *end > 2)?;
        let code = unescape_text(&rest[2..end]);
        self.emit(&render_inline_code(&code), end + 2)
    }

    /// Converts `{*}bold{*}`, the form of marks within a word.
    fn braced(&mut self, sign: char) -> Option<usize> {
        let (sign, outside) = MARKS.iter().find(|(known, _)| *known == sign)?;
        let rest = &self.text[self.at..];
        if self.depth >= MAX_MARKS {
            return None;
        }
        let close = ['{', *sign, '}'];
        let length = rest[3..].windows(3).position(|end| end == close)?;
        let inside = convert_inline(&rest[3..3 + length], self.depth + 1);
        self.emit(&format!("{outside}{inside}{outside}"), length + 6)
    }

    /// Drops markup that colors a text or names an anchor.
    fn dropped(&mut self, rest: &[char]) -> Option<usize> {
        let head: String = rest[1..].iter().take(8).collect();
        let is_known = ["color:", "color}", "anchor:"]
            .iter()
            .any(|known| head.starts_with(known));
        let length = rest
            .iter()
            // A color or anchor is short; the limit keeps the search linear.
            .take(200)
            .position(|c| *c == '}')
            .filter(|_| is_known)?;
        Some(length + 1)
    }

    fn link(&mut self, rest: &[char]) -> Option<usize> {
        let is_end = |at: &usize| rest[*at] == ']' && rest[*at - 1] != '\\';
        let end = (2..rest.len().min(MAX_LINK)).find(is_end)?;
        let inside = &rest[1..end];
        let target: String = match inside {
            ['~', name @ ..] => {
                let name: String = name.iter().collect();
                return self.emit(&format!("@{name}"), end + 1);
            }
            ['^', file @ ..] => {
                let file = render_attachment(&unescape_text(file), "", AttachmentPlace::Named);
                return self.emit(&file, end + 1);
            }
            _ => {
                let last = inside.iter().position(|c| *c == '|').map_or(0, |bar| bar + 1);
                // A link has the parts text, URL and tooltip.
                let target = inside[last..].iter().take_while(|c| **c != '|');
                target.collect::<String>().trim().to_owned()
            }
        };
        if !is_safe_link(&target) || self.depth >= MAX_MARKS {
            return None;
        }
        let text = inside
            .iter()
            .position(|c| *c == '|')
            .map(|bar| convert_inline(&inside[..bar], self.depth + 1));
        let link = match text.as_deref().map(str::trim) {
            None | Some("") => format!("<{target}>"),
            Some(text) if text == target => format!("<{target}>"),
            Some(text) if target.contains([' ', '(', ')']) => format!("[{text}](<{target}>)"),
            Some(text) => format!("[{text}]({target})"),
        };
        self.emit(&link, end + 1)
    }

    /// Replaces an image by the name of its file.
    fn picture(&mut self, rest: &[char]) -> Option<usize> {
        if self.before().is_some_and(char::is_alphanumeric) {
            return None;
        }
        let end = self.end(rest, 1, "!")?;
        let inside = &rest[1..end];
        let name: String = inside.iter().take_while(|c| **c != '|').collect();
        let is_file = name.contains('.') && !name.starts_with('.') && !name.chars().any(char::is_whitespace);
        if !is_file {
            return None;
        }
        let parameters: String = inside.iter().skip(name.chars().count()).collect();
        let mut pairs = parameters
            .split(['|', ','])
            .filter_map(|pair| pair.split_once('='));
        let alt = pairs.find(|(known, _)| matches!(known.trim(), "alt" | "title"));
        let alt = alt.map_or("", |(_, text)| text.trim().trim_matches('"'));
        let remote = render_remote_image(&name, alt).filter(|_| name.contains("://"));
        let text = remote.unwrap_or_else(|| render_attachment(&name, alt, AttachmentPlace::Shown));
        self.emit(&text, end + 1)
    }

    fn cited(&mut self, rest: &[char]) -> Option<usize> {
        let end = self.end(rest, 2, "??").filter(|end| *end > 2)?;
        let inside = &rest[2..end];
        if self.depth >= MAX_MARKS || inside.first().is_none_or(|c| c.is_whitespace()) {
            return None;
        }
        let inside = convert_inline(inside, self.depth + 1);
        self.emit(&inside, end + 2)
    }

    /// Converts a mark, which begins before a word and ends after one.
    fn mark(&mut self, sign: char) -> Option<usize> {
        let (sign, outside) = MARKS.iter().find(|(known, _)| *known == sign)?;
        let opens = self.before().is_none_or(|c| {
            c.is_whitespace()
                || "([{\"',;:>|}".contains(c)
                || MARKS.iter().any(|(other, _)| *other == c && c != *sign)
        });
        let rest = &self.text[self.at..];
        let next = rest.get(1)?;
        if !opens || next.is_whitespace() || next == sign || self.depth >= MAX_MARKS {
            return None;
        }
        let end = self.close(*sign)?;
        let rest = &self.text[self.at..];
        let inside = convert_inline(&rest[1..end], self.depth + 1);
        self.emit(&format!("{outside}{inside}{outside}"), end + 1)
    }

    fn close(&mut self, sign: char) -> Option<usize> {
        let name = MARKS.iter().position(|(known, _)| *known == sign)?;
        let name = ["*", "_", "-", "+", "^", "~"][name];
        if self.unclosed.contains(&name) {
            return None;
        }
        let rest = &self.text[self.at..];
        let mut at = 1;
        while at < rest.len() {
            let closes = rest[at] == sign
                && at > 1
                && !rest[at - 1].is_whitespace()
                && rest
                    .get(at + 1)
                    .is_none_or(|next| !next.is_alphanumeric() && *next != sign);
            if closes {
                return Some(at);
            }
            at += if rest[at] == '\\' { 2 } else { 1 };
        }
        self.unclosed.push(name);
        None
    }
}

/// Removes the escapes of a text.
fn unescape_text(text: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            ('\\', [c, further @ ..]) if c.is_ascii_punctuation() => {
                out.push(*c);
                rest = further;
            }
            ('&', _) => match parse_entity(after) {
                Some((c, length)) => {
                    out.push(c);
                    rest = &after[length..];
                }
                None => out.push('&'),
            },
            (c, _) => out.push(*c),
        }
    }
    out
}

/// Parses the entity after an `&`: its character and the length of its name.
fn parse_entity(after: &[char]) -> Option<(char, usize)> {
    let length = after.iter().take(11).position(|c| *c == ';')?;
    let name: String = after[..length].iter().collect();
    Some((decode_entity(&name)?, length + 1))
}

fn decode_entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|c| !c.is_control());
    }
    let known = [
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("nbsp", ' '),
    ];
    known.iter().find(|(known, _)| *known == name).map(|(_, c)| *c)
}

fn render_inline_code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let is_padded = text.starts_with('`') || text.ends_with('`');
    let pad = if is_padded { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}
