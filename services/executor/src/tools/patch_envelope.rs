//! Parser of the patch format between `*** Begin Patch` and `*** End Patch`, which some models write for
//! `apply_patch`.
//!
//! The format names files by headers, locates lines by context alone, and narrows the location by `@@` lines.

use super::{
    patch::{EXAMPLE, HunkLine, PatchHunk},
    text::{TextLines, render_nearest_text},
};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Operation on one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileOperation {
    Add {
        path: String,
        lines: Vec<String>,
    },
    Delete {
        path: String,
    },
    Update {
        path: String,
        moved_to: Option<String>,
        chunks: Vec<PatchChunk>,
    },
}

/// Lines that change together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PatchChunk {
    /// Lines of the file above the location, the outermost first.
    pub(super) anchors: Vec<String>,
    pub(super) hunk: PatchHunk,
    /// True when its last line is the last one of the file.
    pub(super) is_at_end: bool,
}

/// Returns true when a text is a patch of this format.
pub(super) fn is_envelope(text: &str) -> bool {
    let starts = |line: &str, header: &str| line.trim_start().starts_with(header);
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    // After the header of a unified diff, the marker is a line of the file.
    let mut outer = text.lines().take_while(|line| !line.starts_with("+++ "));
    outer.any(|line| line.trim() == BEGIN) || [ADD, DELETE, UPDATE].iter().any(|header| starts(first, header))
}

/// Parses the operations of a patch, in order.
///
/// # Errors
/// Returns a text for the model.
pub(super) fn parse_envelope(text: &str) -> Result<Vec<FileOperation>, String> {
    let lines = envelope_body(text)?;
    let mut operations: Vec<FileOperation> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        // Inside a change, a space before a header makes it a context line of the file.
        let is_open = operations.last().is_some_and(FileOperation::has_lines);
        let header = if is_open { line } else { line.trim_start() };
        if let Some(operation) = parse_header(header)? {
            if let Some(FileOperation::Update {
                path,
                chunks,
                moved_to,
            }) = operations.last()
                && (chunks.iter().any(PatchChunk::is_empty) || (chunks.is_empty() && moved_to.is_none()))
            {
                return Err(empty_part_error(path));
            }
            operations.push(operation);
            continue;
        }
        let Some(operation) = operations.last_mut() else {
            if line.trim().is_empty() {
                continue;
            }
            return Err(format!(
                "Line {} of the patch ({:?}) stands before any file. A patch begins with `{UPDATE} path`, `{ADD} path` or \
                 `{DELETE} path`.",
                number + 1,
                domain::text::truncate_bytes(line, 80)
            ));
        };
        operation.add(line, header)?;
    }
    match operations.last() {
        None => Err(format!("The patch changes nothing. {EXAMPLE}")),
        Some(FileOperation::Update {
            path,
            chunks,
            moved_to,
        }) if chunks.iter().any(PatchChunk::is_empty) || (chunks.is_empty() && moved_to.is_none()) => {
            Err(empty_part_error(path))
        }
        Some(_) => Ok(operations),
    }
}

/// Returns the lines between the markers. Text of a shell or of Markdown around them is ignored.
fn envelope_body(text: &str) -> Result<Vec<&str>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines
        .iter()
        .position(|line| line.trim() == BEGIN)
        .map_or(0, |at| at + 1);
    let end = lines.iter().rposition(|line| line.trim() == END);
    match end.filter(|end| *end >= begin) {
        Some(end) => Ok(lines[begin..end].to_vec()),
        None => Err(format!(
            "The patch has no `{END}` line, so it may be incomplete. Nothing was changed. Send it again with that line at its end."
        )),
    }
}

fn parse_header(header: &str) -> Result<Option<FileOperation>, String> {
    let named = |start: &str| header.strip_prefix(start).map(|path| path.trim().to_owned());
    let operation = if let Some(path) = named(ADD) {
        FileOperation::Add {
            path,
            lines: Vec::new(),
        }
    } else if let Some(path) = named(DELETE) {
        FileOperation::Delete { path }
    } else if let Some(path) = named(UPDATE) {
        FileOperation::Update {
            path,
            moved_to: None,
            chunks: Vec::new(),
        }
    } else {
        return Ok(None);
    };
    if operation.path().is_empty() {
        return Err("A file of the patch has no name.".to_owned());
    }
    Ok(Some(operation))
}

fn empty_part_error(path: &str) -> String {
    format!("{path}: its part of the patch changes nothing. Lines that change begin with '-' or '+'.")
}

impl PatchChunk {
    fn is_empty(&self) -> bool {
        !self
            .hunk
            .lines
            .iter()
            .any(|line| matches!(line, HunkLine::Added(_) | HunkLine::Removed(_)))
    }
}

impl FileOperation {
    fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path } | Self::Update { path, .. } => path,
        }
    }

    /// Returns true while lines of a file are expected.
    fn has_lines(&self) -> bool {
        match self {
            Self::Update { chunks, .. } => chunks
                .last()
                .is_some_and(|chunk| !chunk.hunk.lines.is_empty() && !chunk.is_at_end),
            Self::Add { .. } | Self::Delete { .. } => false,
        }
    }

    fn add(&mut self, line: &str, header: &str) -> Result<(), String> {
        match self {
            Self::Add { path, lines } => match line.strip_prefix('+') {
                Some(text) => lines.push(text.to_owned()),
                None if line.trim().is_empty() => {}
                None => {
                    return Err(format!(
                        "{path}: every line of a new file begins with '+', but there is {:?}.",
                        domain::text::truncate_bytes(line, 80)
                    ));
                }
            },
            Self::Delete { path } if !line.trim().is_empty() => {
                return Err(format!(
                    "{path}: a deletion has no lines, but there is {:?}.",
                    domain::text::truncate_bytes(line, 80)
                ));
            }
            Self::Delete { .. } => {}
            Self::Update {
                path,
                moved_to,
                chunks,
            } => {
                if let Some(to) = header.strip_prefix(MOVE).filter(|_| chunks.is_empty()) {
                    *moved_to = Some(to.trim().to_owned()).filter(|to| !to.is_empty());
                } else if header.trim_end() == END_OF_FILE {
                    chunks.last_mut().ok_or_else(|| empty_part_error(path))?.is_at_end = true;
                } else if header.starts_with("***") {
                    return Err(format!(
                        "{path}: {:?} is not a header of a patch.",
                        domain::text::truncate_bytes(header, 80)
                    ));
                } else if let Some(anchor) = line.strip_prefix("@@") {
                    begin_chunk(chunks, anchor);
                } else {
                    add_chunk_line(path, chunks, line)?;
                }
            }
        }
        Ok(())
    }
}

/// Begins a chunk with an `@@` line. Several in a row narrow one location from the outside to the inside.
fn begin_chunk(chunks: &mut Vec<PatchChunk>, anchor: &str) {
    let opened = PatchHunk::opened(anchor);
    // Git truncates the function after the numbers, so it is not used as an anchor.
    let anchor = if opened.start.is_some() {
        ""
    } else {
        anchor.trim().trim_end_matches("@@").trim()
    };
    if chunks
        .last()
        .is_none_or(|chunk| !chunk.hunk.lines.is_empty() || chunk.is_at_end)
    {
        chunks.push(PatchChunk::default());
    }
    if let (Some(chunk), false) = (chunks.last_mut(), anchor.is_empty()) {
        chunk.anchors.push(anchor.to_owned());
    }
}

fn add_chunk_line(path: &str, chunks: &mut Vec<PatchChunk>, line: &str) -> Result<(), String> {
    let is_blank = line.trim().is_empty();
    match chunks.last_mut() {
        // Headers of a unified diff, or blank lines around the content.
        None if line.starts_with("--- ") || line.starts_with("+++ ") || is_blank => return Ok(()),
        Some(chunk) if chunk.is_at_end && is_blank => return Ok(()),
        Some(chunk) if chunk.is_at_end => chunks.push(PatchChunk::default()),
        None => chunks.push(PatchChunk::default()),
        Some(_) => {}
    }
    let Some(chunk) = chunks.last_mut() else {
        return Ok(());
    };
    chunk.hunk.add(line).map_err(|why| format!("{path}: {why}"))
}

/// Returns the first line for the search of a chunk: the line after its last anchor.
///
/// # Errors
/// Returns a text for the model that shows the most similar line.
pub(super) fn search_start(lines: &TextLines, chunk: &PatchChunk, from: usize) -> Result<usize, String> {
    let texts = lines.texts();
    let find = |anchor: &str, from: usize| {
        let is_exact = |line: &String| line == anchor;
        let is_like = |line: &String| line.trim() == anchor.trim();
        let after = || texts.iter().enumerate().skip(from);
        let exact = after().find(|(_, line)| is_exact(line));
        exact
            .or_else(|| after().find(|(_, line)| is_like(line)))
            .map(|(at, _)| at)
    };
    let mut start = from;
    for (number, anchor) in chunk.anchors.iter().enumerate() {
        // Chunks usually follow the order of the file, so the search begins after the previous one.
        let found = find(anchor, start).or_else(|| find(anchor, 0).filter(|_| number == 0));
        let Some(at) = found else {
            let near = render_nearest_text(texts, std::slice::from_ref(anchor));
            return Err(format!("the line {anchor:?} behind @@ does not occur. {near}"));
        };
        // If the chunk itself begins with the anchor, the search must include it.
        let repeats = chunk
            .hunk
            .old()
            .first()
            .is_some_and(|line| line.trim() == anchor.trim());
        let is_last = number + 1 == chunk.anchors.len();
        start = if is_last && repeats { at } else { at + 1 };
    }
    Ok(start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_operation_is_read() {
        let text = "*** Begin Patch\n*** Add File: a/new.txt\n+one\n+\n*** Delete File: old.txt\n*** Update File: b.py\n*** Move to: \
                    c.py\n@@ class A:\n@@ def f():\n-x\n+y\n z\n*** End of File\n*** End Patch\n";
        let operations = parse_envelope(text).unwrap();
        assert_eq!(
            operations[..2],
            [
                FileOperation::Add {
                    path: "a/new.txt".to_owned(),
                    lines: vec!["one".to_owned(), String::new()]
                },
                FileOperation::Delete {
                    path: "old.txt".to_owned()
                },
            ]
        );
        let FileOperation::Update {
            path,
            moved_to,
            chunks,
        } = &operations[2]
        else {
            panic!("{operations:?}");
        };
        assert_eq!((path.as_str(), moved_to.as_deref()), ("b.py", Some("c.py")));
        assert_eq!(chunks[0].anchors, ["class A:", "def f():"]);
        assert!(chunks[0].is_at_end && chunks[0].hunk.old() == ["x", "z"]);
    }

    #[test]
    fn malformed_envelope_is_refused_with_reason() {
        for (text, words) in [
            ("*** Begin Patch\n*** End Patch", "changes nothing"),
            (
                "*** Begin Patch\n*** Update File: a\n*** End Patch",
                "a: its part of the patch changes nothing",
            ),
            (
                "*** Begin Patch\n*** Update File: a\n@@\n x\n*** End Patch",
                "a: its part of the patch changes nothing",
            ),
            (
                "*** Begin Patch\n*** Frobnicate File: a\n*** End Patch",
                "Frobnicate",
            ),
            ("*** Begin Patch\n*** Update File: a\n@@\n-x\n+y", "*** End Patch"),
            (
                "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
                "begins with '+'",
            ),
            ("*** Begin Patch\n*** Add File:\n+x\n*** End Patch", "no name"),
        ] {
            let error = parse_envelope(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(\\*\\*\\* (Begin Patch|End Patch|Add File: a|Update File: é|Move to: b|End of File|x)|@@( f)?|[-+ ]{0,2}[a-c]{0,2}|\\\\ No){1,12}(\n(\\*\\*\\* End Patch|[-+ @]{0,3}x)){0,8}") {
            let _ = is_envelope(&text);
            let _ = parse_envelope(&text);
        }
    }
}
