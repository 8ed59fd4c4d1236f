//! Conversion of Markdown to wiki markup.

use domain::{is_safe_link, text::truncate_bytes};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, TextMergeStream};

use super::escape::{TextContext, encode_target, escape_text};

// Lists that are nested deeper than this become text of the innermost list.
const MAX_LISTS: usize = 16;
// Languages that Jira highlights. For any other name it shows an error instead of the text.
const LANGUAGES: &str = "actionscript ada applescript bash c c# c++ css erlang go groovy haskell html java javascript json lua \
     objc perl php python r ruby scala sql xml yaml";

/// Converts a Markdown text to wiki markup.
///
/// A node that wiki markup does not allow at its place is replaced: a heading in a list by bold text, a table
/// in a list by a line for each row, an image by a link, HTML by text. No text becomes active markup, and
/// none leaves its block.
pub fn from_markdown(markdown: &str) -> String {
    // Wiki markup has no task lists; their markers become text.
    let extensions = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut events = TextMergeStream::new(Parser::new_ext(markdown, extensions)).peekable();
    let mut builder = WikiBuilder::default();
    while let Some(event) = events.next() {
        // A mark before a word needs braces, which only the next event shows.
        let touches =
            matches!(events.peek(), Some(Event::Text(text)) if text.starts_with(char::is_alphanumeric));
        builder.event(event, touches);
    }
    builder.finish()
}

/// Converts to at most `most` characters; a longer text is truncated at the end of a line.
pub fn from_markdown_within(markdown: &str, most: usize) -> String {
    let (mut wiki, mut kept) = (from_markdown(markdown), markdown.len());
    loop {
        let length = wiki.chars().count();
        if length <= most || kept == 0 {
            return wiki;
        }
        // The ratio of lengths is a guess, since escapes are not spread evenly; the factor 19/20 saves
        // further rounds.
        kept = (kept * most / length).min(kept - 1) * 19 / 20;
        let start = truncate_bytes(markdown, kept);
        kept = start.rfind('\n').unwrap_or(start.len());
        // Truncated Markdown is converted again, so that open blocks are closed.
        wiki = format!("{}\n\n…", from_markdown(&markdown[..kept]));
    }
}

/// Open mark with its position in the output.
struct OpenMark {
    sign: char,
    start: usize,
    is_braced: bool,
    /// True when it begins a block, an item or a cell.
    is_fresh: bool,
}

#[derive(Default)]
struct WikiBuilder {
    out: String,
    /// `*` or `#` for each open list.
    lists: Vec<char>,
    /// Result of each open Markdown element, so that its end closes the same markup.
    tags: Vec<OpenedMarkup>,
    marks: Vec<OpenMark>,
    quotes: usize,
    is_heading: bool,
    /// Language and text of the open code block.
    code: Option<(String, String)>,
    /// URL and text of the open link.
    link: Option<(String, String)>,
    /// True when the next text begins a block, an item or a cell.
    is_fresh: bool,
    /// True when a block of an item has ended, so that the next text begins another block.
    is_after_block: bool,
}

enum OpenedMarkup {
    Block,
    Mark,
    BlockAndMark,
    Quote,
    Code,
    Link,
    List,
    Table,
    /// Delimiter after each cell of a row.
    Row,
    Cell(&'static str),
    Nothing,
}

impl WikiBuilder {
    fn event(&mut self, event: Event<'_>, touches: bool) {
        match event {
            Event::Start(tag) => {
                let opened = self.start(tag);
                self.tags.push(opened);
            }
            Event::End(tag) => self.end(tag, touches),
            Event::Text(text) => self.text(&text),
            Event::Html(html) => {
                if !self.is_fresh && !self.out.ends_with(char::is_whitespace) {
                    self.out.push(' ');
                }
                self.text(html.trim_end_matches('\n'));
            }
            Event::InlineHtml(html) => self.text(&html),
            Event::Code(code) => self.monospaced(&code),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.line_break(),
            Event::Rule => {
                self.begin_block();
                self.out.push_str("----");
                self.end_block();
            }
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text)
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the parser has tags that wiki markup cannot express"
    )]
    fn start(&mut self, tag: Tag<'_>) -> OpenedMarkup {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(""),
            Tag::Heading { level, .. } if self.lists.is_empty() => {
                self.is_heading = true;
                self.block(&format!("h{}. ", level as u8))
            }
            Tag::Heading { .. } => {
                self.block("");
                self.mark('*');
                OpenedMarkup::BlockAndMark
            }
            Tag::BlockQuote(_) if self.lists.is_empty() && self.quotes == 0 => {
                self.begin_block();
                self.out.push_str("{quote}\n");
                self.is_fresh = true;
                self.quotes += 1;
                OpenedMarkup::Quote
            }
            Tag::CodeBlock(kind) => {
                self.code = Some((map_language(&kind), String::new()));
                OpenedMarkup::Code
            }
            Tag::List(start) if self.lists.len() < MAX_LISTS => {
                if self.lists.is_empty() {
                    self.begin_block();
                }
                self.lists.push(if start.is_some() { '#' } else { '*' });
                OpenedMarkup::List
            }
            Tag::Item if matches!(self.tags.last(), Some(OpenedMarkup::List)) => self.item(),
            // Items of a list that was not opened become text of the surrounding item.
            Tag::Item => {
                self.text(" ");
                OpenedMarkup::Nothing
            }
            Tag::Table(_) if self.lists.is_empty() => {
                self.begin_block();
                OpenedMarkup::Table
            }
            Tag::TableHead | Tag::TableRow => self.row(matches!(tag, Tag::TableHead)),
            Tag::TableCell => self.cell(),
            Tag::Strong => self.mark('*'),
            Tag::Emphasis => self.mark('_'),
            Tag::Strikethrough => self.mark('-'),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }
                // Wiki links cannot be nested.
                if self.link.is_none() && is_safe_link(&dest_url) =>
            {
                self.link = Some((dest_url.to_string(), String::new()));
                OpenedMarkup::Link
            }
            _ => OpenedMarkup::Nothing,
        }
    }

    fn end(&mut self, _tag: TagEnd, touches: bool) {
        match self.tags.pop() {
            Some(OpenedMarkup::Block) => self.end_block(),
            Some(OpenedMarkup::Mark) => self.unmark(touches),
            Some(OpenedMarkup::BlockAndMark) => {
                self.unmark(false);
                self.end_block();
            }
            Some(OpenedMarkup::Quote) => {
                self.quotes -= 1;
                if !self.out.ends_with('\n') {
                    self.out.push('\n');
                }
                self.out.push_str("{quote}");
                self.end_block();
            }
            Some(OpenedMarkup::Code) => self.code_block(),
            Some(OpenedMarkup::Link) => self.unlink(),
            Some(OpenedMarkup::List) => {
                self.lists.pop();
                self.end_block();
            }
            Some(OpenedMarkup::Table) => self.end_block(),
            Some(OpenedMarkup::Cell(sign)) => {
                if self.out.ends_with('|') {
                    self.out.push(' ');
                }
                self.out.push_str(sign);
                self.is_fresh = true;
            }
            Some(OpenedMarkup::Row) => self.is_fresh = false,
            Some(OpenedMarkup::Nothing) | None => {}
        }
    }

    fn begin_block(&mut self) {
        self.is_after_block = false;
        if self.out.is_empty() || self.is_fresh {
            self.is_fresh = true;
            return;
        }
        // An empty line would end the list.
        self.out
            .push_str(if self.lists.is_empty() { "\n\n" } else { "\n" });
        self.is_fresh = true;
    }

    fn end_block(&mut self) {
        self.is_fresh = false;
        self.is_after_block = true;
        self.is_heading = false;
    }

    fn block(&mut self, prefix: &str) -> OpenedMarkup {
        self.begin_block();
        self.out.push_str(prefix);
        OpenedMarkup::Block
    }

    fn item(&mut self) -> OpenedMarkup {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.out.extend(&self.lists);
        self.out.push(' ');
        (self.is_fresh, self.is_after_block) = (true, false);
        OpenedMarkup::Nothing
    }

    fn row(&mut self, is_head: bool) -> OpenedMarkup {
        if !matches!(self.tags.last(), Some(OpenedMarkup::Table)) {
            return self.block("");
        }
        if !self.out.ends_with('\n') && !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out.push_str(if is_head { "||" } else { "|" });
        self.is_fresh = true;
        OpenedMarkup::Row
    }

    fn cell(&mut self) -> OpenedMarkup {
        match self.tags.last() {
            Some(OpenedMarkup::Row)
                if self
                    .out
                    .rsplit('\n')
                    .next()
                    .is_some_and(|line| line.starts_with("||")) =>
            {
                OpenedMarkup::Cell("||")
            }
            Some(OpenedMarkup::Row) => OpenedMarkup::Cell("|"),
            _ => {
                self.text(if self.is_fresh { "" } else { " | " });
                OpenedMarkup::Nothing
            }
        }
    }

    /// Prepares the output for text within a line.
    fn inline(&mut self) {
        if self.is_after_block {
            self.begin_block();
        }
    }

    /// Previous character on the line; `None` at the start of the line.
    fn before(&self) -> Option<char> {
        self.out
            .chars()
            .next_back()
            .filter(|last| !self.is_fresh && *last != '\n')
    }

    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            return code.push_str(text);
        }
        if let Some((_, link)) = &mut self.link {
            return link.push_str(text);
        }
        if text.is_empty() {
            return;
        }
        self.inline();
        let text = escape_text(text, self.before(), TextContext::Text);
        self.write(&text);
    }

    fn write(&mut self, markup: &str) {
        self.out.push_str(markup);
        self.is_fresh = false;
    }

    fn monospaced(&mut self, code: &str) {
        if let Some((_, link)) = &mut self.link {
            return link.push_str(code);
        }
        let code = code.trim();
        if !code.is_empty() {
            self.inline();
            let code = escape_text(code, Some('{'), TextContext::Marked);
            self.write(&format!("{{{{{code}}}}}"));
        }
    }

    fn line_break(&mut self) {
        // A plain newline would end a cell, a heading or a mark.
        let in_cell = self.tags.iter().any(|tag| matches!(tag, OpenedMarkup::Row));
        if let Some((_, link)) = &mut self.link {
            link.push(' ');
        } else if in_cell || self.is_heading || !self.marks.is_empty() {
            self.write(" \\\\ ");
        } else {
            self.write("\n");
        }
    }

    /// Opens a mark. A mark of the same kind within itself is ignored.
    fn mark(&mut self, sign: char) -> OpenedMarkup {
        if self.link.is_some() || self.marks.iter().any(|mark| mark.sign == sign) {
            return OpenedMarkup::Nothing;
        }
        self.inline();
        let is_braced = self.before().is_some_and(char::is_alphanumeric);
        self.marks.push(OpenMark {
            sign,
            start: self.out.len(),
            is_braced,
            is_fresh: self.is_fresh,
        });
        self.write(&format_marker(sign, is_braced));
        OpenedMarkup::Mark
    }

    /// Closes a mark. A mark that touches a word needs braces at both ends.
    fn unmark(&mut self, touches: bool) {
        let Some(mark) = self.marks.pop() else { return };
        let open = format_marker(mark.sign, mark.is_braced);
        let end = mark.start + open.len();
        // Jira would show the delimiters of an empty mark.
        if self.out.len() == end {
            self.is_fresh = mark.is_fresh;
            return self.out.truncate(mark.start);
        }
        let wanted = format_marker(mark.sign, mark.is_braced || touches);
        self.out.replace_range(mark.start..end, &wanted);
        self.out.push_str(&wanted);
    }

    fn unlink(&mut self) {
        let Some((address, text)) = self.link.take() else {
            return;
        };
        self.inline();
        let to = encode_target(&address);
        let text = text.trim();
        let link = if text.is_empty() || text == address {
            format!("[{to}]")
        } else {
            format!("[{}|{to}]", escape_text(text, Some('['), TextContext::Marked))
        };
        self.write(&link);
    }

    fn code_block(&mut self) {
        if let Some((language, code)) = self.code.take() {
            self.begin_block();
            self.write(&render_code_block(&language, &code));
            self.end_block();
        }
    }

    fn finish(mut self) -> String {
        self.out.truncate(self.out.trim_end().len());
        self.out
    }
}

fn format_marker(sign: char, is_braced: bool) -> String {
    if is_braced {
        format!("{{{sign}}}")
    } else {
        sign.to_string()
    }
}

/// Renders a code block. Wiki markup has no escape within code, so the block uses a delimiter that the code
/// does not contain; code with all delimiters becomes monospaced lines.
fn render_code_block(language: &str, code: &str) -> String {
    let code = code.replace('\r', "");
    let code = code.strip_suffix('\n').unwrap_or(&code);
    // Jira matches the names of macros regardless of case.
    let lower = code.to_lowercase();
    let has = |sign: &str| lower.contains(sign);
    match (has("{code"), has("{noformat")) {
        (false, _) if !language.is_empty() => format!("{{code:{language}}}\n{code}\n{{code}}"),
        (_, false) => format!("{{noformat}}\n{code}\n{{noformat}}"),
        (false, true) => format!("{{code:none}}\n{code}\n{{code}}"),
        (true, true) => render_monospaced_lines(code),
    }
}

fn render_monospaced_lines(code: &str) -> String {
    let lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.map(|line| format!("{{{{{}}}}}", escape_text(line, Some('{'), TextContext::Marked)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Jira's name of a block's language; empty for an unknown one.
fn map_language(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else {
        return String::new();
    };
    let named = info.split_whitespace().next().unwrap_or_default().to_lowercase();
    let meant = match named.as_str() {
        "sh" | "shell" | "console" => "bash",
        "js" | "jsx" | "ts" | "typescript" => "javascript",
        "py" => "python",
        "rb" => "ruby",
        "yml" => "yaml",
        "cpp" => "c++",
        other => other,
    };
    let known = LANGUAGES.split_whitespace().any(|known| known == meant);
    if known { meant.to_owned() } else { String::new() }
}
