//! Division of a file into chunks of whole lines, each line in exactly one chunk.

use crate::{
    code_chunk::{ChunkDraft, CodeChunk, MAX_NAMES},
    file::CodeDefinition,
    text::{SharedTextLines, truncate_text},
};

/// Size above which a chunk is divided further where possible, in bytes.
const MAX: usize = 2500;
/// Size up to which neighboring pieces are merged, in bytes.
const TARGET: usize = 2000;
/// Lines of a chunk without definitions or headings.
const WINDOW: usize = 60;
// A long file gets longer windows instead of more.
const MAX_WINDOWS: usize = 200;
/// Maximum number of lines before a definition that count as its comment.
const MAX_COMMENT: usize = 60;
/// Maximum depth of nested definitions that are divided.
// The division is recursive and the files are foreign, so their nesting must not decide the use of the
// stack.
const MAX_NESTING: usize = 16;
/// Limit of a signature with its comment, in bytes.
const MAX_HEAD: usize = 800;

/// Divides a file into chunks, in order: by definitions, by Markdown headings, otherwise windows of lines.
#[must_use]
pub fn divide_file(path: &str, text: &str, definitions: &[CodeDefinition]) -> Vec<CodeChunk> {
    let lines = SharedTextLines::new(text);
    if lines.count() == 0 {
        return Vec::new();
    }
    let pieces = if is_markdown(path) {
        divide_sections(&lines)
            .into_iter()
            .flat_map(|section| limit_piece(&lines, section))
            .collect()
    } else if definitions.is_empty() {
        divide_into_windows(&lines, &ChunkDraft::of(0, lines.count()))
    } else {
        let blocks = build_definition_blocks(&lines, definitions);
        divide_piece(&lines, &ChunkDraft::of(0, lines.count()), &blocks, 0)
    };
    let merged = merge_pieces(&lines, pieces);
    merged.into_iter().map(ChunkDraft::done).collect()
}

/// Definition with its lines, including the comment above it.
struct DefinitionBlock {
    name: String,
    start: usize,
    end: usize,
    depth: usize,
    head: String,
}

/// Blocks of the definitions, sorted by line. No block begins before its predecessor.
fn build_definition_blocks(
    lines: &SharedTextLines<'_>,
    definitions: &[CodeDefinition],
) -> Vec<DefinitionBlock> {
    let count = lines.count();
    let mut sorted: Vec<&CodeDefinition> = definitions.iter().filter(|found| found.line >= 1).collect();
    sorted.sort_by_key(|found| (found.line, found.depth));
    let mut blocks: Vec<DefinitionBlock> = Vec::new();
    for found in sorted {
        let line = (found.line - 1).min(count - 1);
        // An inner definition may begin in the lines of the outer one, but not at its first line.
        let floor = blocks.last().map_or(0, |last| {
            let is_inside = last.depth < found.depth;
            if is_inside { last.start + 1 } else { last.end }
        });
        let start = comment_start(lines, line, floor.min(line));
        let comment = lines.text(start, line);
        let body = doc_string(lines, line + 1);
        let head = format!("{} {comment}{body}", found.signature);
        blocks.push(DefinitionBlock {
            name: found.name.clone(),
            start,
            end: found.end.clamp(line + 1, count),
            depth: found.depth,
            head: truncate_text(&head, MAX_HEAD).to_owned(),
        });
    }
    blocks
}

/// First line of the comment, decorators and attributes directly above a line.
fn comment_start(lines: &SharedTextLines<'_>, line: usize, floor: usize) -> usize {
    let belongs = |at: &usize| {
        let text = lines.line(*at).trim_start();
        ["//", "#", "/*", "*", "@", "--", "\"\"\""]
            .iter()
            .any(|start| text.starts_with(start))
    };
    let floor = floor.max(line.saturating_sub(MAX_COMMENT));
    (floor..line).rev().take_while(belongs).last().unwrap_or(line)
}

/// First lines of a Python function, if they are a docstring; otherwise empty.
fn doc_string<'a>(lines: &SharedTextLines<'a>, line: usize) -> &'a str {
    let opens = |text: &str| text.trim_start().starts_with("\"\"\"") || text.trim_start().starts_with("'''");
    if line < lines.count() && opens(lines.line(line)) {
        lines.text(line, (line + 5).min(lines.count()))
    } else {
        ""
    }
}

/// Divides the lines of a piece at the outermost blocks, and pieces that are still too long at the inner
/// ones.
fn divide_piece(
    lines: &SharedTextLines<'_>,
    whole: &ChunkDraft,
    blocks: &[DefinitionBlock],
    nesting: usize,
) -> Vec<ChunkDraft> {
    if lines.bytes(whole.start, whole.end) <= MAX {
        let mut piece = whole.clone();
        add_names(&mut piece, blocks);
        return vec![piece];
    }
    let Some(depth) = blocks.iter().map(|block| block.depth).min() else {
        return divide_into_windows(lines, whole);
    };
    if nesting >= MAX_NESTING {
        return divide_into_windows(lines, whole);
    }
    let mut pieces = Vec::new();
    let mut at = whole.start;
    // The names of the piece itself go to its first part.
    let mut first = Some(whole);
    let mut rest = blocks;
    while let Some((block, after)) = rest.split_first() {
        let inner = after.iter().take_while(|inner| inner.depth > depth).count();
        let (inner, next) = after.split_at(inner);
        rest = next;
        let start = block.start.clamp(at, whole.end);
        let end = block.end.clamp(start, whole.end);
        if start > at {
            pieces.extend(divide_into_windows(
                lines,
                &build_gap_piece(at, start, whole, first.take()),
            ));
        }
        if end > start {
            pieces.extend(divide_piece(
                lines,
                &piece_of(block, start, end, whole, first.take()),
                inner,
                nesting + 1,
            ));
        } else if let Some(last) = pieces.last_mut() {
            // Several definitions share the same lines.
            add_names(last, std::slice::from_ref(block));
            add_names(last, inner);
        }
        at = end;
    }
    if at < whole.end {
        pieces.extend(divide_into_windows(
            lines,
            &build_gap_piece(at, whole.end, whole, first.take()),
        ));
    }
    merge_pieces(lines, pieces)
}

fn build_gap_piece(start: usize, end: usize, outer: &ChunkDraft, first: Option<&ChunkDraft>) -> ChunkDraft {
    ChunkDraft {
        start,
        end,
        names: first.map(|first| first.names.clone()).unwrap_or_default(),
        title: outer.title.clone(),
        heads: outer.heads.clone(),
    }
}

fn piece_of(
    block: &DefinitionBlock,
    start: usize,
    end: usize,
    outer: &ChunkDraft,
    first: Option<&ChunkDraft>,
) -> ChunkDraft {
    let mut piece = build_gap_piece(start, end, outer, first);
    add_names(&mut piece, std::slice::from_ref(block));
    piece
}

fn add_names(piece: &mut ChunkDraft, blocks: &[DefinitionBlock]) {
    for block in blocks.iter().take(MAX_NAMES.saturating_sub(piece.names.len())) {
        piece.names.push(block.name.clone());
        piece.heads.push(block.head.clone());
    }
}

/// Returns a piece unchanged, or in windows if it is too long. Every window keeps the signature; the names
/// stay with the first.
fn limit_piece(lines: &SharedTextLines<'_>, piece: ChunkDraft) -> Vec<ChunkDraft> {
    if lines.bytes(piece.start, piece.end) <= MAX {
        vec![piece]
    } else {
        divide_into_windows(lines, &piece)
    }
}

fn divide_into_windows(lines: &SharedTextLines<'_>, piece: &ChunkDraft) -> Vec<ChunkDraft> {
    if piece.end - piece.start <= WINDOW && !piece.names.is_empty() {
        return vec![piece.clone()];
    }
    let step = WINDOW.max((piece.end - piece.start).div_ceil(MAX_WINDOWS));
    let starts = (piece.start..piece.end).step_by(step);
    let window = |start: usize| ChunkDraft {
        start,
        end: (start + step).min(piece.end),
        names: if start == piece.start {
            piece.names.clone()
        } else {
            Vec::new()
        },
        title: piece.title.clone(),
        heads: piece.heads.clone(),
    };
    let windows: Vec<ChunkDraft> = starts.map(window).collect();
    debug_assert!(lines.count() >= piece.end);
    windows
}

/// Merges small neighboring pieces. Empty lines belong to the piece before them.
fn merge_pieces(lines: &SharedTextLines<'_>, pieces: Vec<ChunkDraft>) -> Vec<ChunkDraft> {
    let mut merged: Vec<ChunkDraft> = Vec::new();
    for piece in pieces {
        match merged.last_mut() {
            Some(last) if lines.is_blank(piece.start, piece.end) => last.end = piece.end,
            Some(last) if lines.bytes(last.start, piece.end) <= TARGET => last.take(piece),
            Some(_) | None => merged.push(piece),
        }
    }
    merged
}

fn is_markdown(path: &str) -> bool {
    let end = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    matches!(end.as_str(), "md" | "markdown" | "mdx")
}

/// Returns one piece per heading, and one for the lines before the first.
fn divide_sections(lines: &SharedTextLines<'_>) -> Vec<ChunkDraft> {
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
    (is_heading && !title.is_empty()).then_some(truncate_text(title, 120))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn build_definition(name: &str, line: usize, end: usize, depth: usize) -> CodeDefinition {
        CodeDefinition {
            name: name.to_owned(),
            line,
            end,
            depth,
            signature: format!("fn {name}()"),
        }
    }

    fn build_function_body(lines: usize) -> String {
        (0..lines)
            .map(|at| format!("    let value_{at} = compute({at}) + offset;\n"))
            .collect()
    }

    #[test]
    fn definition_forms_chunk_with_comment() {
        let big = build_function_body(50);
        let text = format!(
            "use a;\n\n/// Adds.\nfn add() {{\n{big}}}\n\nfn sub() {{\n{big}}}\n\nfn one() {{}}\nfn two() {{}}\n"
        );
        let found = [
            build_definition("add", 4, 55, 0),
            build_definition("sub", 57, 108, 0),
            build_definition("one", 110, 110, 0),
            build_definition("two", 111, 111, 0),
        ];
        let found = divide_file("a.rs", &text, &found);
        let shown: Vec<_> = found
            .iter()
            .map(|chunk| (chunk.start, chunk.end, chunk.names.join(" ")))
            .collect();
        let wanted = [
            (1, 2, ""),
            (3, 56, "add"),
            (57, 109, "sub"),
            (110, 111, "one two"),
        ];
        let wanted = wanted.map(|(start, end, names)| (start, end, names.to_owned()));
        assert_eq!(shown, wanted);
        assert!(found[1].head.contains("/// Adds."), "{}", found[1].head);
    }

    #[test]
    fn long_class_is_divided_at_methods() {
        let text = format!(
            "class Cart {{\n  m1() {{\n{}  }}\n  m2() {{\n{}  }}\n}}\n",
            build_function_body(50),
            build_function_body(150)
        );
        let found = divide_file(
            "a.ts",
            &text,
            &[
                build_definition("Cart", 1, 206, 0),
                build_definition("m1", 2, 53, 1),
                build_definition("m2", 54, 205, 1),
            ],
        );
        let names: Vec<String> = found.iter().map(|chunk| chunk.names.join(" ")).collect();
        assert_eq!(&names[..3], ["Cart", "m1", "m2"]);
        assert!(
            found
                .iter()
                .skip(2)
                .take(3)
                .all(|chunk| chunk.head.contains("fn m2()") && chunk.head.contains("fn Cart()"))
        );
        assert!(names[3].is_empty(), "only its first lines define it: {names:?}");
    }

    #[test]
    fn markdown_is_cut_at_its_headings() {
        let text = format!(
            "# Shop\n\nIntro.\n\n## Refunds\n\n{}\n```\n# not a heading\n```\n## Taxes\n\n{}",
            build_function_body(50),
            build_function_body(50)
        );
        let titles: Vec<String> = divide_file("README.md", &text, &[])
            .into_iter()
            .map(|chunk| chunk.title)
            .collect();
        assert_eq!(titles, ["Shop", "Refunds", "Taxes"]);
    }

    proptest! {
        #[test]
        fn every_line_is_in_one_chunk(
            lines in prop::collection::vec("[ a-z#@/{}*]{0,90}", 0..200),
            found in prop::collection::vec((0..220_usize, 0..220_usize, 0..5_usize), 0..30),
            end in "\n?",
            name in prop::sample::select(vec!["a.rs", "b.md", "c.txt"]),
        ) {
            let text = lines.join("\n") + &end;
            let definitions: Vec<CodeDefinition> = found
                .into_iter()
                .map(|(line, end, depth)| build_definition("f", line, end, depth))
                .collect();
            let chunks = divide_file(name, &text, &definitions);
            let mut next = 1;
            for chunk in &chunks {
                prop_assert_eq!(chunk.start, next);
                prop_assert!(chunk.end >= chunk.start);
                next = chunk.end + 1;
            }
            let lines = SharedTextLines::new(&text);
            prop_assert_eq!(next - 1, lines.count());
            // The lines together contain all bytes.
            let all: usize = (0..lines.count()).map(|at| lines.bytes(at, at + 1)).sum();
            prop_assert_eq!(all, text.len());
        }
    }
}
