//! Sections of Markdown files.

use crate::{code_chunk::ChunkDraft, text::SharedTextLines};

pub(crate) fn is_markdown(path: &str) -> bool {
    let end = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    matches!(end.as_str(), "md" | "markdown" | "mdx")
}

/// Returns one piece per heading, and one for the lines before the first.
pub(crate) fn divide_sections(lines: &SharedTextLines<'_>) -> Vec<ChunkDraft> {
    let mut pieces = Vec::new();
    let mut open = ChunkDraft::of(0, 0);
    let mut is_code = false;
    for at in 0..lines.count() {
        let text = lines.line(at).trim_start();
        // A `#` in a code block is a comment of a script, not a heading.
        if text.starts_with("```") || text.starts_with("~~~") {
            is_code = !is_code;
        }
        let heading = parse_heading(text).filter(|_| !is_code);
        if let Some(title) = heading {
            // The empty piece before a heading in the first line is replaced.
            if at > open.start {
                pieces.push(std::mem::take(&mut open));
            }
            open = ChunkDraft::of(at, at);
            open.title = title.to_owned();
            open.heads = vec![title.to_owned()];
        }
        open.end = at + 1;
    }
    pieces.push(open);
    pieces
}

fn parse_heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let is_heading = (1..=6).contains(&level) && text.starts_with(' ');
    let title = text.trim().trim_end_matches('#').trim_end();
    (is_heading && !title.is_empty()).then_some(crate::text::truncate_text(title, 120))
}
