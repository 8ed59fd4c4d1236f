//! Conversion of ADF to Markdown.

use domain::is_safe_link;
use serde_json::Value;

use super::placeholder;
use crate::attachment_text::AttachmentPlace;

/// Converts an ADF document to Markdown. A plain string (older APIs) is returned unchanged, null as an empty
/// text.
///
/// Text is not escaped: users and models read it, and the rules search it for phrases such as `[AGENT-SKIP]`.
/// An unknown node counts by its text; a node without text becomes a placeholder with its name.
pub fn to_markdown(document: &Value) -> String {
    match document {
        Value::String(text) => text.trim_end().to_owned(),
        Value::Object(_) => render_blocks(list_children(document)).join("\n\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => String::new(),
    }
}

/// Ids of the accounts that a document mentions outside of quotations and code. Display names are not unique
/// and may change, so they do not identify an account.
pub fn mentioned_accounts(document: &Value) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![document]);
    while let Some(node) = left.pop() {
        match read_kind(node) {
            "mention" => found.extend(node["attrs"]["id"].as_str().map(str::to_owned)),
            "blockquote" | "codeBlock" => {}
            _ => left.extend(list_children(node)),
        }
    }
    found
}

fn list_children(node: &Value) -> &[Value] {
    node["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn read_kind(node: &Value) -> &str {
    node["type"].as_str().unwrap_or_default()
}

fn is_inline(node: &Value) -> bool {
    matches!(
        read_kind(node),
        "text"
            | "hardBreak"
            | "mention"
            | "emoji"
            | "date"
            | "status"
            | "inlineCard"
            | "mediaInline"
            | "inlineExtension"
            | "placeholder"
    )
}

/// Renders one text per block; a run of inline nodes between blocks becomes a paragraph.
fn render_blocks(nodes: &[Value]) -> Vec<String> {
    let runs = nodes.chunk_by(|a, b| is_inline(a) && is_inline(b));
    let texts = runs.map(|run| match run {
        [node] if !is_inline(node) => render_block(node),
        inlines => render_inline(inlines),
    });
    texts.filter(|text| !text.trim().is_empty()).collect()
}

fn render_block(node: &Value) -> String {
    let inside = list_children(node);
    match read_kind(node) {
        "paragraph" => render_inline(inside),
        "heading" => format!(
            "{} {}",
            "#".repeat(read_heading_level(node)),
            render_inline(inside).replace('\n', " ")
        ),
        "bulletList" | "decisionList" => render_items(inside, |_| "- ".to_owned()),
        "orderedList" => {
            let first = node["attrs"]["order"].as_u64().unwrap_or(1);
            // Saturating: a foreign document may have any number here.
            render_items(inside, |index| format!("{}. ", first.saturating_add(index)))
        }
        "taskList" => render_tasks(inside),
        "codeBlock" => render_code_block(node),
        "blockquote" | "panel" => prefix_lines(&render_blocks(inside).join("\n\n"), "> ", "> "),
        "rule" => "---".to_owned(),
        "table" => render_table(inside),
        "expand" | "nestedExpand" => {
            let title = node["attrs"]["title"].as_str().unwrap_or_default().to_owned();
            let parts = std::iter::once(title).filter(|title| !title.is_empty());
            parts
                .chain(render_blocks(inside))
                .collect::<Vec<_>>()
                .join("\n\n")
        }
        "blockCard" | "embedCard" => placeholder::render_card(&node["attrs"]),
        "mediaGroup" => render_files(inside),
        "media" => placeholder::render_media(&node["attrs"], AttachmentPlace::Shown),
        kind => match render_blocks(inside).join("\n\n") {
            text if !text.is_empty() => text,
            _ if matches!(kind, "extension" | "bodiedExtension" | "multiBodiedExtension") => {
                placeholder::render_extension(&node["attrs"])
            }
            _ => placeholder::render_unknown(kind, &node["attrs"]),
        },
    }
}

/// Renders the files of a group, which the text only names.
fn render_files(files: &[Value]) -> String {
    let files = files.iter().map(|file| match read_kind(file) {
        "media" => placeholder::render_media(&file["attrs"], AttachmentPlace::Named),
        _ => render_block(file),
    });
    files.collect::<Vec<_>>().join("\n\n")
}

fn read_heading_level(heading: &Value) -> usize {
    heading["attrs"]["level"]
        .as_u64()
        .and_then(|level| usize::try_from(level).ok())
        .unwrap_or(1)
        // Markdown has six levels; a foreign document may name any.
        .clamp(1, 6)
}

fn render_items(nodes: &[Value], marker: impl Fn(u64) -> String) -> String {
    let lines = nodes.iter().zip(0..).map(|(item, index)| {
        let marker = marker(index);
        let indent = " ".repeat(marker.len());
        prefix_lines(&render_item(item), &marker, &indent)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Renders an item. A nested list follows its text without an empty line, so that the outer list stays tight.
fn render_item(item: &Value) -> String {
    let mut text = String::new();
    for node in list_children(item) {
        let next = if is_inline(node) {
            render_inline(std::slice::from_ref(node))
        } else {
            render_block(node)
        };
        if !text.is_empty() && !is_inline(node) {
            text.push_str(if read_kind(node).ends_with("List") {
                "\n"
            } else {
                "\n\n"
            });
        }
        text.push_str(&next);
    }
    text
}

fn render_tasks(nodes: &[Value]) -> String {
    let lines = nodes
        .iter()
        .map(|task| match (read_kind(task), task["attrs"]["state"].as_str()) {
            ("taskList", _) => prefix_lines(&render_tasks(list_children(task)), "  ", "  "),
            (_, Some("DONE")) => prefix_lines(&render_item(task), "- [x] ", "  "),
            (_, Some(_) | None) => prefix_lines(&render_item(task), "- [ ] ", "  "),
        });
    lines.collect::<Vec<_>>().join("\n")
}

fn prefix_lines(text: &str, first: &str, others: &str) -> String {
    let mut lines = text.split('\n');
    let mut whole = format!("{first}{}", lines.next().unwrap_or_default());
    for line in lines {
        whole.push('\n');
        // No line ends in the spaces of a prefix.
        whole.push_str(if line.is_empty() {
            others.trim_end()
        } else {
            others
        });
        whole.push_str(line);
    }
    whole
}

fn render_code_block(node: &Value) -> String {
    let code = collect_plain_text(node);
    // The fence is longer than every run of backticks in the code, so that the code cannot close it.
    let fence = "`".repeat(measure_longest_run(&code, '`').max(2) + 1);
    let language = node["attrs"]["language"].as_str().unwrap_or_default();
    format!("{fence}{language}\n{code}\n{fence}")
}

fn measure_longest_run(text: &str, wanted: char) -> usize {
    text.split(|c| c != wanted).map(str::len).max().unwrap_or(0)
}

fn collect_plain_text(node: &Value) -> String {
    list_children(node)
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect()
}

fn render_table(rows: &[Value]) -> String {
    let mut lines = Vec::new();
    for row in rows {
        let cells = list_children(row).iter().map(|cell| {
            let text = render_blocks(list_children(cell)).join(" ");
            text.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .replace('|', "\\|")
        });
        let cells: Vec<String> = cells.collect();
        lines.push(format!("| {} |", cells.join(" | ")));
        if lines.len() == 1 {
            lines.push(format!("|{}", " --- |".repeat(cells.len())));
        }
    }
    lines.join("\n")
}

/// Inline text with the marks that are not yet put around it, outermost first.
struct InlinePiece<'a> {
    text: String,
    marks: Vec<&'a Value>,
}

// From the outside to the inside: Markdown formats nothing within code, so that `code` is last.
const MARK_ORDER: [&str; 5] = ["link", "strong", "em", "strike", "code"];

fn render_inline(nodes: &[Value]) -> String {
    let pieces: Vec<InlinePiece<'_>> = nodes
        .iter()
        .map(build_piece)
        .filter(|piece| !piece.text.is_empty())
        .collect();
    wrap_marks(&pieces)
}

fn build_piece(node: &Value) -> InlinePiece<'_> {
    let attrs = &node["attrs"];
    let text = match read_kind(node) {
        "text" => node["text"].as_str().unwrap_or_default().to_owned(),
        "hardBreak" => "  \n".to_owned(),
        "mention" => placeholder::render_mention(attrs),
        "status" => placeholder::render_status(attrs),
        "emoji" => placeholder::render_emoji(attrs),
        "date" => placeholder::render_date(attrs),
        "inlineCard" => placeholder::render_card(attrs),
        "mediaInline" => placeholder::render_media(attrs, AttachmentPlace::Named),
        "inlineExtension" => placeholder::render_extension(attrs),
        "placeholder" => placeholder::render_unknown("placeholder", attrs),
        _ => render_block(node),
    };
    let all = node["marks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let marks = MARK_ORDER
        .iter()
        .filter_map(|name| all.iter().find(|mark| read_kind(mark) == *name))
        .collect();
    InlinePiece { text, marks }
}

/// Puts each mark once around the neighbors that share it.
fn wrap_marks(pieces: &[InlinePiece<'_>]) -> String {
    let mut text = String::new();
    for run in pieces.chunk_by(|a, b| a.marks.first() == b.marks.first()) {
        let Some(mark) = run[0].marks.first() else {
            text.extend(run.iter().map(|piece| piece.text.as_str()));
            continue;
        };
        let inner: Vec<InlinePiece<'_>> = run
            .iter()
            .map(|piece| InlinePiece {
                text: piece.text.clone(),
                marks: piece.marks[1..].to_vec(),
            })
            .collect();
        text.push_str(&apply_mark(mark, &wrap_marks(&inner)));
    }
    text
}

/// Puts a mark around a text. Markdown has no mark that begins or ends with a space, so outer spaces move
/// outside.
fn apply_mark(mark: &Value, text: &str) -> String {
    if read_kind(mark) == "code" {
        return render_inline_code(text);
    }
    let core = text.trim();
    if core.is_empty() {
        return text.to_owned();
    }
    let before = &text[..text.len() - text.trim_start().len()];
    let after = &text[text.trim_end().len()..];
    let core = match read_kind(mark) {
        "strong" => format!("**{core}**"),
        "em" => format!("*{core}*"),
        "strike" => format!("~~{core}~~"),
        _ => render_link(mark, core),
    };
    format!("{before}{core}{after}")
}

fn render_inline_code(text: &str) -> String {
    let ticks = "`".repeat(measure_longest_run(text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn render_link(mark: &Value, text: &str) -> String {
    match mark["attrs"]["href"].as_str().filter(|href| is_safe_link(href)) {
        Some(href) if href == text && href.contains("://") => format!("<{href}>"),
        Some(href) if href.contains([' ', '(', ')']) => format!("[{text}](<{href}>)"),
        Some(href) => format!("[{text}]({href})"),
        None => text.to_owned(),
    }
}
