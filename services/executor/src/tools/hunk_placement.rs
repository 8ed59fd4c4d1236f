//! Placement of the hunks and chunks of a patch in the lines of a file.

use super::{
    patch::{HunkLine, PatchHunk},
    patch_envelope::{self, PatchChunk},
    text::{
        IndentRelations, LineSplice, MatchLocations, MatchStrictness, TextLines, find_locations,
        render_nearest_text, render_numbered_lines, strip_numbers, strip_numbers_in,
    },
};

/// Location of a hunk, with the lines for it.
struct PlacedHunk {
    splice: LineSplice,
    by: MatchStrictness,
}

/// Applies chunks, each after the previous one where it occurs there. Returns a note for the model about
/// inexact matches.
pub(super) fn apply_chunks(lines: &mut TextLines, chunks: &[PatchChunk]) -> Result<&'static str, String> {
    let (mut placed, mut from) = (Vec::new(), 0);
    for (number, chunk) in chunks.iter().enumerate() {
        let named = |why: String| format!("change {}: {why}", number + 1);
        let start = patch_envelope::search_start(lines, chunk, from).map_err(named)?;
        let place = place_chunk(lines, chunk, start).map_err(named)?;
        from = place.splice.at + place.splice.count;
        placed.push(place);
    }
    splice_all(lines, placed)
}

fn place_chunk(lines: &TextLines, chunk: &PatchChunk, start: usize) -> Result<PlacedHunk, String> {
    let length = lines.texts().len();
    let unnumbered = remove_numbers(lines, &chunk.hunk)?;
    let whole = unnumbered.as_ref().unwrap_or(&chunk.hunk);
    if whole.old().is_empty() || whole.trimmed().is_some_and(|trimmed| trimmed.old().is_empty()) {
        let at = if chunk.anchors.is_empty() || chunk.is_at_end {
            length
        } else {
            start
        };
        return Ok(PlacedHunk {
            splice: LineSplice {
                at,
                count: 0,
                new: added_lines(whole),
                ends: (at == length).then_some(true),
            },
            by: MatchStrictness::Exact,
        });
    }
    // A blank line at the end of a chunk is usually the separator to the next part of the patch.
    let mut readings = Vec::new();
    for hunk in std::iter::once(whole.clone()).chain(whole.trimmed()) {
        if let Some(found) = find_locations(lines.texts(), &hunk.old())? {
            readings.push((hunk, found));
        }
    }
    let is_later = |(_, found): &(PatchHunk, MatchLocations)| found.at.iter().any(|at| *at >= start);
    let reading = readings.iter().position(is_later).unwrap_or(0);
    if readings.is_empty() {
        return Err(format!(
            "its lines do not occur. {}",
            render_nearest_text(lines.texts(), &whole.old())
        ));
    }
    let (hunk, found) = readings.swap_remove(reading);
    let count = hunk.old().len();
    let later: Vec<usize> = found.at.iter().copied().filter(|at| *at >= start).collect();
    let at = match (later.as_slice(), found.at.as_slice()) {
        _ if chunk.is_at_end && found.at.contains(&length.saturating_sub(count)) => length - count,
        ([at], _) => *at,
        ([at, ..], _) if !chunk.anchors.is_empty() => *at,
        ([], [at]) => *at,
        _ => {
            let shown: Vec<String> = found.at.iter().take(5).map(|at| (at + 1).to_string()).collect();
            return Err(format!(
                "its lines occur {} times (lines {}). Add context, or a line `@@ def name` that is above the place.",
                found.at.len(),
                shown.join(", ")
            ));
        }
    };
    Ok(PlacedHunk {
        splice: LineSplice {
            at,
            count,
            new: rewrite_hunk(lines, &hunk, at, found.by)?,
            ends: (at + count == length).then_some(!hunk.open.1),
        },
        by: found.by,
    })
}

/// Applies hunks to the file as it is before the first of them. Returns a note for the model about inexact
/// matches.
pub(super) fn apply_hunks(lines: &mut TextLines, hunks: &[PatchHunk]) -> Result<&'static str, String> {
    let mut placed: Vec<PlacedHunk> = Vec::new();
    for (number, hunk) in hunks.iter().enumerate() {
        let place = place_hunk(lines, hunk).map_err(|why| format!("hunk {}: {why}", number + 1))?;
        placed.push(place);
    }
    splice_all(lines, placed)
}

/// Applies all changes to the file as it is before the first of them. Returns a note for the model about
/// inexact matches.
fn splice_all(lines: &mut TextLines, mut placed: Vec<PlacedHunk>) -> Result<&'static str, String> {
    placed.sort_by_key(|place| place.splice.at);
    let overlap = |pair: &[PlacedHunk]| pair[0].splice.at + pair[0].splice.count > pair[1].splice.at;
    if placed.windows(2).any(overlap) {
        return Err("two hunks change the same lines. Put them into one.".to_owned());
    }
    let is_loose = placed.iter().any(|place| {
        matches!(
            place.by,
            MatchStrictness::Indentation | MatchStrictness::Typography
        )
    });
    // From the last to the first, because a splice moves the lines after it.
    for place in placed.into_iter().rev() {
        lines.splice(place.splice);
    }
    Ok(if is_loose {
        "[found with other white space or quotes than the patch has; check the lines above]\n"
    } else {
        ""
    })
}

fn place_hunk(lines: &TextLines, hunk: &PatchHunk) -> Result<PlacedHunk, String> {
    if hunk.old().is_empty() {
        return place_insertion(lines, hunk);
    }
    let unnumbered = remove_numbers(lines, hunk)?;
    let hunk = unnumbered.as_ref().unwrap_or(hunk);
    let whole = find_locations(lines.texts(), &hunk.old())?;
    // A blank line at the end of a hunk is usually the separator to the next part of the patch.
    let trimmed = hunk.trimmed().filter(|_| whole.is_none());
    let (hunk, found) = match &trimmed {
        Some(trimmed) if trimmed.old().is_empty() => return place_insertion(lines, trimmed),
        Some(trimmed) => (trimmed, find_locations(lines.texts(), &trimmed.old())?),
        None => (hunk, whole),
    };
    let found = found.ok_or_else(|| {
        let near = render_nearest_text(lines.texts(), &hunk.old());
        format!("its lines do not occur. {near}")
    })?;
    let at = select_location(lines, hunk, &found)?;
    let count = hunk.old().len();
    let reaches_end = at + count == lines.texts().len();
    Ok(PlacedHunk {
        splice: LineSplice {
            at,
            count,
            new: rewrite_hunk(lines, hunk, at, found.by)?,
            // Without a marker in the patch, the line end of the file's last line stays unchanged.
            ends: (reaches_end && hunk.open != (false, false)).then_some(!hunk.open.1),
        },
        by: found.by,
    })
}

/// Returns a hunk without the line numbers that `read_file` shows; `None` when it has none, or when its lines
/// occur with them.
fn remove_numbers(lines: &TextLines, hunk: &PatchHunk) -> Result<Option<PatchHunk>, String> {
    let old = hunk.old();
    let Some(numbered) = strip_numbers(&old) else {
        return Ok(None);
    };
    if find_locations(lines.texts(), &old)?.is_some()
        || find_locations(lines.texts(), &numbered.texts)?.is_none()
    {
        return Ok(None);
    }
    let range = numbered.first..numbered.first + hunk.lines.len();
    let mut texts = numbered.texts.into_iter();
    let mut next = || texts.next().unwrap_or_default();
    let mut unnumbered = hunk.clone();
    for line in &mut unnumbered.lines {
        match line {
            HunkLine::Context(text) | HunkLine::Removed(text) => *text = next(),
            HunkLine::Blank => drop(next()),
            HunkLine::Added(text) => {
                let added = strip_numbers_in(std::slice::from_ref(text), &range);
                *text = added.concat();
            }
        }
    }
    unnumbered.start.get_or_insert(numbered.first);
    Ok(Some(unnumbered))
}

/// Places lines without context after the line that the header's numbers name.
fn place_insertion(lines: &TextLines, hunk: &PatchHunk) -> Result<PlacedHunk, String> {
    let at = match hunk.start {
        Some(start) if start <= lines.texts().len() => start,
        None if lines.texts().is_empty() => 0,
        Some(_) | None => {
            return Err(
                "it has no line of context, so its place is not known. Add lines around the change."
                    .to_owned(),
            );
        }
    };
    Ok(PlacedHunk {
        splice: LineSplice {
            at,
            count: 0,
            new: added_lines(hunk),
            ends: hunk.open.1.then_some(false),
        },
        by: MatchStrictness::Exact,
    })
}

fn added_lines(hunk: &PatchHunk) -> Vec<String> {
    let added = hunk.lines.iter().filter_map(|line| match line {
        HunkLine::Added(text) => Some(text.clone()),
        HunkLine::Context(_) | HunkLine::Blank | HunkLine::Removed(_) => None,
    });
    added.collect()
}

/// Selects one location: the only one, the one that the numbers name, or the first one below the heading.
fn select_location(lines: &TextLines, hunk: &PatchHunk, found: &MatchLocations) -> Result<usize, String> {
    let named = hunk.start.and_then(|start| start.checked_sub(1));
    match (found.at.as_slice(), named) {
        ([at], _) => return Ok(*at),
        (at, Some(named)) if at.contains(&named) => return Ok(named),
        (at, None) if !hunk.heading.is_empty() => {
            let is_heading = |line: &String| line.trim() == hunk.heading;
            let mut headings = (0..lines.texts().len()).filter(|line| is_heading(&lines.texts()[*line]));
            if let (Some(heading), None) = (headings.next(), headings.next())
                && let Some(at) = at.iter().find(|at| **at >= heading)
            {
                return Ok(*at);
            }
        }
        _ => {}
    }
    let shown: Vec<String> = found.at.iter().take(5).map(|at| (at + 1).to_string()).collect();
    Err(format!(
        "its lines occur {} times (lines {}), and its numbers name none of these places. Add context or give the exact numbers.",
        found.at.len(),
        shown.join(", ")
    ))
}

/// Returns the new lines: context as in the file, and added lines with the file's indentation.
fn rewrite_hunk(
    lines: &TextLines,
    hunk: &PatchHunk,
    at: usize,
    by: MatchStrictness,
) -> Result<Vec<String>, String> {
    let old = hunk.old();
    let found = &lines.texts()[at..at + old.len()];
    let fresh = match by {
        MatchStrictness::Exact | MatchStrictness::TrailingSpace => added_lines(hunk),
        MatchStrictness::Indentation | MatchStrictness::Typography => {
            let starts_new = matches!(
                hunk.lines.first(),
                Some(HunkLine::Removed(_) | HunkLine::Added(_))
            );
            IndentRelations::of(&old, found).apply(&added_lines(hunk), starts_new).ok_or_else(|| {
                format!(
                    "its indentation differs from the file's, and it is not clear how the new lines should be indented. Give the lines \
                     exactly as the file has them:\n{}",
                    render_numbered_lines(lines.texts(), at..at + old.len())
                )
            })?
        }
    };
    let (mut found, mut fresh) = (found.iter(), fresh.into_iter());
    let mut new = Vec::new();
    for line in &hunk.lines {
        match line {
            HunkLine::Context(_) | HunkLine::Blank => new.extend(found.next().cloned()),
            HunkLine::Removed(_) => drop(found.next()),
            HunkLine::Added(_) => new.extend(fresh.next()),
        }
    }
    Ok(new)
}
