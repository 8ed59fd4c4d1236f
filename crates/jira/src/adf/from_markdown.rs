//! Conversion of Markdown to ADF.

use domain::is_safe_link;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};
use serde_json::{Map, Value, json};

// Lists that are nested deeper than this become text of the innermost list; Jira's own editor stops at six.
const MAX_LISTS: usize = 16;

/// Converts a Markdown text to an ADF document.
///
/// A node that ADF does not allow at its place is replaced: a heading in a list by bold text, a table in a
/// list by a paragraph for each row, an image by a link, HTML by text.
pub fn from_markdown(markdown: &str) -> Value {
    let mut builder = AdfBuilder::default();
    let extensions = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES;
    for event in Parser::new_ext(markdown, extensions) {
        builder.event(event);
    }
    builder.finish()
}

/// Node that is still open.
struct OpenNode {
    kind: &'static str,
    attrs: Value,
    content: Vec<Value>,
    /// True when text without a paragraph opened it (tight lists, HTML); it closes together with its parent.
    implicit: bool,
}

#[derive(Default)]
struct AdfBuilder {
    done: Vec<Value>,
    open: Vec<OpenNode>,
    marks: Vec<Value>,
    /// Result of each open Markdown element, so that its end closes the same nodes and marks.
    tags: Vec<OpenedNode>,
}

enum OpenedNode {
    Block,
    Mark,
    BlockAndMark,
    Nothing,
}

impl AdfBuilder {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Html(html) | Event::InlineHtml(html) => self.text(html.trim_end_matches('\n')),
            Event::Code(code) => self.code(&code),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.inline(json!({ "type": "hardBreak" })),
            Event::Rule => self.rule(),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text)
            }
            Event::TaskListMarker(_) => {}
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the parser has tags that ADF cannot express"
    )]
    fn start(&mut self, tag: Tag<'_>) {
        let opened = match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block("paragraph", Value::Null),
            // ADF restricts headings, quotes, tables and rules within other nodes, so they keep their form at
            // the top only.
            Tag::Heading { level, .. } if self.at_top() => {
                self.block("heading", json!({ "level": level as u8 }))
            }
            Tag::Heading { .. } => {
                self.block("paragraph", Value::Null);
                self.marks.push(json!({ "type": "strong" }));
                OpenedNode::BlockAndMark
            }
            Tag::BlockQuote(_) if self.at_top() => self.block("blockquote", Value::Null),
            Tag::CodeBlock(kind) => self.block("codeBlock", build_language_attrs(&kind)),
            Tag::List(_) if self.lists() >= MAX_LISTS => OpenedNode::Nothing,
            // Items of a list that was not opened become text of the surrounding item.
            Tag::Item if matches!(self.tags.last(), Some(OpenedNode::Nothing)) => OpenedNode::Nothing,
            Tag::List(Some(start)) if self.may_list() => self.block("orderedList", json!({ "order": start })),
            Tag::List(None) if self.may_list() => self.block("bulletList", Value::Null),
            Tag::Item => self.block("listItem", Value::Null),
            Tag::Table(_) if self.at_top() => self.block("table", Value::Null),
            Tag::TableHead | Tag::TableRow if self.is_in("table") => self.block("tableRow", Value::Null),
            Tag::TableHead | Tag::TableRow => self.block("paragraph", Value::Null),
            Tag::TableCell => self.cell(),
            Tag::Strong => self.mark("strong", Value::Null),
            Tag::Emphasis => self.mark("em", Value::Null),
            Tag::Strikethrough => self.mark("strike", Value::Null),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(&dest_url),
            _ => OpenedNode::Nothing,
        };
        self.tags.push(opened);
    }

    fn end(&mut self, _tag: TagEnd) {
        match self.tags.pop() {
            Some(OpenedNode::Block) => self.close(),
            Some(OpenedNode::Mark) => drop(self.marks.pop()),
            Some(OpenedNode::BlockAndMark) => {
                self.marks.pop();
                self.close();
            }
            Some(OpenedNode::Nothing) | None => {}
        }
    }

    fn block(&mut self, kind: &'static str, attrs: Value) -> OpenedNode {
        self.close_implicit();
        self.open.push(OpenNode {
            kind,
            attrs,
            content: Vec::new(),
            implicit: false,
        });
        OpenedNode::Block
    }

    fn is_in(&self, kind: &str) -> bool {
        self.open.last().is_some_and(|frame| frame.kind == kind)
    }

    fn cell(&mut self) -> OpenedNode {
        if !self.is_in("tableRow") {
            let is_first = self.open.last().is_none_or(|frame| frame.content.is_empty());
            self.text(if is_first { "" } else { " | " });
            return OpenedNode::Nothing;
        }
        // A table without rows so far is at its header: Markdown tables always begin with one.
        let is_head = self
            .open
            .iter()
            .rev()
            .nth(1)
            .is_some_and(|table| table.content.is_empty());
        self.block(if is_head { "tableHeader" } else { "tableCell" }, Value::Null)
    }

    fn mark(&mut self, kind: &str, attrs: Value) -> OpenedNode {
        self.marks.push(build_node(kind, attrs));
        OpenedNode::Mark
    }

    /// Opens a link. ADF refuses a link within a link, and an unsafe URL (e.g. `javascript:`) becomes text.
    fn link(&mut self, href: &CowStr<'_>) -> OpenedNode {
        if !is_safe_link(href) || self.marks.iter().any(|mark| mark["type"] == "link") {
            return OpenedNode::Nothing;
        }
        self.mark("link", json!({ "href": href.as_ref() }))
    }

    fn lists(&self) -> usize {
        let is_list = |frame: &&OpenNode| matches!(frame.kind, "bulletList" | "orderedList");
        self.open.iter().filter(is_list).count()
    }

    fn at_top(&self) -> bool {
        self.open.iter().all(|frame| frame.implicit)
    }

    /// True where a list is allowed: a dropped quote still shows its lists, a paragraph cannot contain one.
    fn may_list(&self) -> bool {
        self.open
            .last()
            .is_none_or(|frame| frame.implicit || frame.kind != "paragraph")
    }

    fn rule(&mut self) {
        if self.at_top() {
            self.close_implicit();
            self.attach(json!({ "type": "rule" }));
        }
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let in_code = self.open.last().is_some_and(|frame| frame.kind == "codeBlock");
        let marks = if in_code { Vec::new() } else { self.marks.clone() };
        self.inline(build_text_node(text, marks));
    }

    /// Adds inline code. ADF allows a link as its only other mark.
    fn code(&mut self, code: &str) {
        let mut marks: Vec<Value> = self
            .marks
            .iter()
            .filter(|mark| mark["type"] == "link")
            .cloned()
            .collect();
        marks.push(json!({ "type": "code" }));
        self.inline(build_text_node(code, marks));
    }

    fn inline(&mut self, inline: Value) {
        let holds_blocks = |kind| {
            matches!(
                kind,
                "listItem" | "blockquote" | "bulletList" | "orderedList" | "tableHeader" | "tableCell"
            )
        };
        if self.open.last().is_none_or(|frame| holds_blocks(frame.kind)) {
            self.block("paragraph", Value::Null);
            if let Some(frame) = self.open.last_mut() {
                frame.implicit = true;
            }
        }
        let Some(frame) = self.open.last_mut() else { return };
        // The parser splits a text at each special character; neighbors with the same marks become one node.
        match frame.content.last_mut() {
            Some(last)
                if last["type"] == "text" && inline["type"] == "text" && last["marks"] == inline["marks"] =>
            {
                let joined = [&*last, &inline]
                    .map(|node| node["text"].as_str().unwrap_or_default())
                    .concat();
                last["text"] = Value::String(joined);
            }
            Some(_) | None => frame.content.push(inline),
        }
    }

    fn close_implicit(&mut self) {
        // A paragraph that text opened must end before a block begins, as ADF nests no block in it.
        if self.open.last().is_some_and(|frame| frame.implicit) {
            self.close_frame();
        }
    }

    fn close(&mut self) {
        self.close_implicit();
        self.close_frame();
    }

    fn close_frame(&mut self) {
        let Some(mut frame) = self.open.pop() else { return };
        match frame.kind {
            "codeBlock" => trim_final_newline(&mut frame.content),
            "listItem" | "blockquote" | "tableHeader" | "tableCell" => begin_with_paragraph(&mut frame),
            _ => {}
        }
        if frame.kind == "paragraph" && frame.content.is_empty() {
            return;
        }
        let mut node = build_node(frame.kind, frame.attrs);
        node["content"] = Value::Array(frame.content);
        self.attach(node);
    }

    fn attach(&mut self, node: Value) {
        match self.open.last_mut() {
            Some(parent) => parent.content.push(node),
            None => self.done.push(node),
        }
    }

    fn finish(mut self) -> Value {
        // A paragraph opened by trailing text is still open here.
        while !self.open.is_empty() {
            self.close_frame();
        }
        json!({ "version": 1, "type": "doc", "content": self.done })
    }
}

fn build_node(kind: &str, attrs: Value) -> Value {
    let mut node = Map::new();
    node.insert("type".to_owned(), Value::from(kind));
    if !attrs.is_null() {
        node.insert("attrs".to_owned(), attrs);
    }
    Value::Object(node)
}

fn build_text_node(text: &str, marks: Vec<Value>) -> Value {
    let mut node = json!({ "type": "text", "text": text });
    if !marks.is_empty() {
        node["marks"] = Value::Array(marks);
    }
    node
}

fn build_language_attrs(kind: &CodeBlockKind<'_>) -> Value {
    match kind {
        CodeBlockKind::Fenced(info) => match info.split_whitespace().next() {
            Some(language) => json!({ "language": language }),
            None => Value::Null,
        },
        CodeBlockKind::Indented => Value::Null,
    }
}

/// Removes the newline before the closing fence, which Markdown counts as code.
fn trim_final_newline(content: &mut Vec<Value>) {
    if let Some(last) = content.last_mut() {
        let text = last["text"].as_str().unwrap_or_default();
        let trimmed = text.strip_suffix('\n').unwrap_or(text).to_owned();
        if trimmed.is_empty() {
            content.pop();
        } else {
            last["text"] = Value::String(trimmed);
        }
    }
}

/// Inserts an empty paragraph where ADF requires an item or cell to begin with one.
fn begin_with_paragraph(frame: &mut OpenNode) {
    let starts_well = frame
        .content
        .first()
        .is_some_and(|first| first["type"] == "paragraph");
    let may_start_otherwise = frame.kind == "blockquote" && !frame.content.is_empty();
    if !starts_well && !may_start_otherwise {
        frame
            .content
            .insert(0, json!({ "type": "paragraph", "content": [] }));
    }
}
