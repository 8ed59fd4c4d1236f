//! Conversion of wiki markup to Markdown.

use super::inline::convert_line;

// Quotes and panels that are nested deeper than this join the innermost one.
const MAX_FRAMES: usize = 8;
const MAX_LISTS: usize = 16;
// The slash of an order, and characters that look like it.
const SLASHES: [char; 4] = ['/', '\u{ff0f}', '\u{2044}', '\u{2215}'];

/// Converts a text in wiki markup to Markdown.
///
/// Text is not escaped: users and models read it, and the rules search it for phrases such as `[AGENT-SKIP]`.
/// Unknown macros stay unchanged.
pub fn to_markdown(wiki: &str) -> String {
    // Texts from HTML forms have `\r\n` at the end of lines.
    let wiki = wiki.replace("\r\n", "\n").replace('\r', "\n");
    let mut page = MarkdownPage::default();
    for piece in WikiPieces::of(&wiki) {
        page.add(piece);
    }
    page.finish()
}

enum WikiPiece<'a> {
    Text(&'a str),
    Code {
        language: &'a str,
        code: &'a str,
    },
    Quote,
    /// Start of a panel with its title, or its end with an empty text.
    Panel(&'a str),
}

/// Iterator over the pieces of a text: macros, and the texts between them.
struct WikiPieces<'a> {
    rest: &'a str,
    next: Option<WikiPiece<'a>>,
}

impl<'a> WikiPieces<'a> {
    const fn of(text: &'a str) -> Self {
        Self {
            rest: text,
            next: None,
        }
    }
}

impl<'a> Iterator for WikiPieces<'a> {
    type Item = WikiPiece<'a>;

    fn next(&mut self) -> Option<WikiPiece<'a>> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        if self.rest.is_empty() {
            return None;
        }
        let mut from = 0;
        while let Some(found) = self.rest[from..].find('{') {
            let at = from + found;
            if let Some((piece, length)) = parse_macro(self.rest, at) {
                let text = &self.rest[..at];
                self.rest = &self.rest[at + length..];
                if text.trim().is_empty() {
                    return Some(piece);
                }
                self.next = Some(piece);
                return Some(WikiPiece::Text(text));
            }
            from = at + 1;
        }
        Some(WikiPiece::Text(std::mem::take(&mut self.rest)))
    }
}

/// Parses the macro at a position and returns it with its length.
fn parse_macro(text: &str, at: usize) -> Option<(WikiPiece<'_>, usize)> {
    if text[..at].ends_with('\\') {
        return None;
    }
    let inside = &text[at + 1..];
    let is_one = ["code", "noformat", "quote}", "panel"]
        .iter()
        .any(|name| inside.starts_with(name));
    // The head of a macro fits on one line, so the search ends there.
    let head = is_one.then(|| inside.split(['}', '\n']).next())??;
    if inside.as_bytes().get(head.len()) != Some(&b'}') {
        return None;
    }
    let (name, parameters) = head.split_once(':').unwrap_or((head, ""));
    let length = head.len() + 2;
    match name {
        "quote" => Some((WikiPiece::Quote, length)),
        "panel" => Some((WikiPiece::Panel(find_parameter(parameters, "title")), length)),
        "code" | "noformat" => {
            let body = &text[at + length..];
            // The first end counts: Jira has no escape within code.
            let end = if name == "code" { "{code}" } else { "{noformat}" };
            let code = &body[..body.find(end)?];
            let language = if name == "code" {
                find_language(parameters)
            } else {
                ""
            };
            let piece = WikiPiece::Code { language, code };
            Some((piece, length + code.len() + end.len()))
        }
        _ => None,
    }
}

fn find_parameter<'a>(parameters: &'a str, name: &str) -> &'a str {
    let mut pairs = parameters.split('|').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(known, _)| known.trim() == name);
    found.map_or("", |(_, value)| value.trim())
}

fn find_language(parameters: &str) -> &str {
    let first = parameters.split('|').next().unwrap_or_default().trim();
    if first.contains('=') {
        find_parameter(parameters, "language")
    } else if first == "none" {
        ""
    } else {
        first
    }
}

/// Open quote or panel, with its blocks so far.
#[derive(Default)]
struct QuoteFrame {
    blocks: Vec<String>,
    is_quote: bool,
}

#[derive(Default)]
struct MarkdownPage {
    top: Vec<String>,
    open: Vec<QuoteFrame>,
}

impl MarkdownPage {
    fn add(&mut self, piece: WikiPiece<'_>) {
        match piece {
            WikiPiece::Text(text) => {
                let blocks = BlockBuilder::of(text);
                self.blocks().extend(blocks);
            }
            WikiPiece::Code { language, code } => {
                let block = render_fence(language, code);
                self.blocks().push(block);
            }
            WikiPiece::Quote if self.open.last().is_some_and(|frame| frame.is_quote) => self.close(),
            WikiPiece::Quote => self.begin(true, ""),
            WikiPiece::Panel("") if self.open.last().is_some_and(|frame| !frame.is_quote) => self.close(),
            WikiPiece::Panel(title) => self.begin(false, title),
        }
    }

    fn blocks(&mut self) -> &mut Vec<String> {
        match self.open.last_mut() {
            Some(frame) => &mut frame.blocks,
            None => &mut self.top,
        }
    }

    fn begin(&mut self, is_quote: bool, title: &str) {
        if self.open.len() < MAX_FRAMES {
            let title = Some(title).filter(|title| !title.is_empty());
            self.open.push(QuoteFrame {
                blocks: title.map(str::to_owned).into_iter().collect(),
                is_quote,
            });
        }
    }

    fn close(&mut self) {
        let Some(frame) = self.open.pop() else { return };
        let text = frame.blocks.join("\n\n");
        let quote = render_quote(&text);
        if !quote.is_empty() {
            self.blocks().push(quote);
        }
    }

    /// Ends the page. Blocks of quotes and panels without an end are shown unquoted, except for those that may show an
    /// order: their author quotes it.
    fn finish(mut self) -> String {
        let open = std::mem::take(&mut self.open);
        for block in open.into_iter().flat_map(|frame| frame.blocks) {
            self.top.push(if block.contains(SLASHES) {
                render_quote(&block)
            } else {
                block
            });
        }
        self.top.join("\n\n")
    }
}

fn render_quote(text: &str) -> String {
    let lines = text.lines().map(|line| format!("> {line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn render_fence(language: &str, code: &str) -> String {
    let code = code.strip_prefix('\n').unwrap_or(code);
    let code = code.strip_suffix('\n').unwrap_or(code);
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let is_word = |c: char| c.is_ascii_alphanumeric() || "+#-_".contains(c);
    let language = if language.chars().all(is_word) {
        language
    } else {
        ""
    };
    format!("{fence}{language}\n{code}\n{fence}")
}

/// Builder of the blocks of a text without macros.
#[derive(Default)]
struct BlockBuilder {
    done: Vec<String>,
    lines: Vec<String>,
    kind: BlockKind,
    /// Delimiter and number of the last item of each open list.
    items: Vec<(char, usize)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum BlockKind {
    #[default]
    Paragraph,
    List,
    Table,
}

impl BlockBuilder {
    fn of(text: &str) -> Vec<String> {
        let mut blocks = Self::default();
        for line in text.lines() {
            blocks.line(line.trim());
        }
        blocks.end();
        blocks.done
    }

    fn end(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if !lines.is_empty() {
            self.done.push(lines.join("\n"));
        }
        self.items.clear();
        self.kind = BlockKind::Paragraph;
    }

    fn alone(&mut self, block: String) {
        self.end();
        self.done.push(block);
    }

    fn become_kind(&mut self, kind: BlockKind) {
        if self.kind != kind {
            self.end();
            self.kind = kind;
        }
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            return self.end();
        }
        if line.len() >= 4 && line.chars().all(|c| c == '-') {
            return self.alone("---".to_owned());
        }
        if let Some((level, text)) = parse_heading(line) {
            return self.alone(format!("{} {}", "#".repeat(level), convert_line(text)));
        }
        if let Some(text) = line.strip_prefix("bq. ") {
            return self.alone(format!("> {}", convert_line(text)));
        }
        if let Some((signs, text)) = parse_item(line) {
            return self.item(signs, text);
        }
        if line.starts_with('|') {
            return self.row(line);
        }
        match self.kind {
            // A line without a delimiter continues the previous item.
            BlockKind::List => {
                let indent = " ".repeat(measure_indent(&self.items));
                self.lines.push(format!("{indent}{}", convert_line(line)));
            }
            BlockKind::Table | BlockKind::Paragraph => {
                self.become_kind(BlockKind::Paragraph);
                self.lines.push(convert_line(line));
            }
        }
    }

    fn item(&mut self, signs: &str, text: &str) {
        self.become_kind(BlockKind::List);
        let depth = signs.len().min(MAX_LISTS);
        let sign = if signs.ends_with('#') { '#' } else { '*' };
        // A shallower item ends the deeper lists, so their numbers start again.
        self.items.truncate(depth);
        while self.items.len() < depth {
            self.items.push((sign, 0));
        }
        if let Some(last) = self.items.last_mut() {
            *last = (sign, if last.0 == sign { last.1 + 1 } else { 1 });
            let number = last.1;
            let indent = " ".repeat(measure_indent(&self.items[..depth - 1]));
            let marker = if sign == '#' {
                format!("{number}.")
            } else {
                "-".to_owned()
            };
            self.lines.push(
                format!("{indent}{marker} {}", convert_line(text))
                    .trim_end()
                    .to_owned(),
            );
        }
    }

    fn row(&mut self, line: &str) {
        self.become_kind(BlockKind::Table);
        let cells: Vec<String> = split_cells(line)
            .map(|cell| convert_line(cell.trim()).replace("  \n", " ").replace('|', "\\|"))
            .collect();
        self.lines.push(format!("| {} |", cells.join(" | ")));
        if self.lines.len() == 1 {
            self.lines.push(format!("|{}", " --- |".repeat(cells.len())));
        }
    }
}

/// Indentation of the text of the last of these items.
fn measure_indent(items: &[(char, usize)]) -> usize {
    items
        .iter()
        .map(|(sign, _)| if *sign == '#' { 3 } else { 2 })
        .sum()
}

fn parse_heading(line: &str) -> Option<(usize, &str)> {
    let level = line.strip_prefix('h')?.chars().next()?.to_digit(10)?;
    let text = line.get(2..)?.strip_prefix('.')?;
    let is_level = (1..=6).contains(&level) && text.starts_with(' ');
    is_level.then(|| (usize::try_from(level).unwrap_or(1), text.trim()))
}

/// Splits an item into its delimiters and its text.
fn parse_item(line: &str) -> Option<(&str, &str)> {
    let (signs, text) = line.split_once(' ')?;
    let is_dash = signs.chars().all(|c| c == '-') && signs.len() <= 3;
    let is_item = !signs.is_empty() && (is_dash || signs.chars().all(|c| c == '*' || c == '#'));
    is_item.then_some((signs, text.trim()))
}

/// Splits a row into cells at its bars, except within links and after a backslash.
fn split_cells(line: &str) -> impl Iterator<Item = &str> {
    let (mut cells, mut start, mut inside, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if is_escaped => {
                is_escaped = false;
                continue;
            }
            '\\' => is_escaped = true,
            '[' => inside = line[at..].contains(']'),
            ']' => inside = false,
            '|' if !inside => {
                cells.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    cells.push(&line[start..]);
    // A header row separates cells by two bars; the outer bars of a row separate nothing. Both leave empty
    // cells here.
    cells.into_iter().filter(|cell| !cell.is_empty())
}
