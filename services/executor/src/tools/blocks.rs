//! Parser of SEARCH/REPLACE blocks in a text.

pub(super) const SEARCH: &str = "<<<<<<< SEARCH";
pub(super) const DIVIDER: &str = "=======";
pub(super) const REPLACE: &str = ">>>>>>> REPLACE";

/// A SEARCH/REPLACE block. If its content contains lines like the divider, the dividing line is determined
/// later, against the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditBlock {
    lines: Vec<String>,
    dividers: Vec<usize>,
}

impl EditBlock {
    /// Creates a block with a single divider.
    pub(super) fn plain(search: &str, replace: &str) -> Self {
        let search: Vec<String> = search.lines().map(str::to_owned).collect();
        let divider = search.len();
        let lines = search.into_iter().chain([DIVIDER.to_owned()]);
        Self {
            lines: lines.chain(replace.lines().map(str::to_owned)).collect(),
            dividers: vec![divider],
        }
    }

    /// Returns the searched and the replacing lines for each possible divider. A divider inside conflict
    /// markers belongs to the conflict if the block has another one.
    pub(super) fn readings(&self) -> impl Iterator<Item = (&[String], &[String])> {
        let is_whole = |at: &&usize| are_conflicts_whole(&self.lines[..**at]);
        let has_whole = self.dividers.iter().any(|at| is_whole(&at));
        let dividers = self.dividers.iter().filter(move |at| !has_whole || is_whole(at));
        dividers.map(|at| (&self.lines[..*at], &self.lines[at + 1..]))
    }
}

/// Parses a text that consists of blocks for the file at `path`.
///
/// # Errors
/// Returns a text for the model that names the invalid line.
pub(super) fn parse_blocks(edits: &str, path: &str) -> Result<Vec<EditBlock>, String> {
    let edits = edits.strip_prefix('\u{feff}').unwrap_or(edits);
    let mut blocks = Vec::new();
    let mut lines = edits.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        match line.trim() {
            SEARCH => blocks.push(parse_block(&mut lines, number, line)?),
            "" => {}
            // Models put Markdown fences around blocks, and the name of the file before them. Neither has a
            // meaning.
            trimmed if trimmed.starts_with("```") || is_name_of(trimmed, path) => {}
            _ => {
                return Err(format!(
                    "line {} of `edits` is outside of every block: {:?}. A block starts with a line {SEARCH:?}, has one line \
                     {DIVIDER:?}, and ends with a line {REPLACE:?}; nothing else stands between blocks.",
                    number + 1,
                    domain::text::truncate_bytes(line, 80)
                ));
            }
        }
    }
    if blocks.is_empty() {
        return Err(format!(
            "`edits` has no block. Each starts with a line {SEARCH:?}."
        ));
    }
    Ok(blocks)
}

/// Returns true for a line with nothing but a path, or the end of it. A line with more folders may name another
/// file.
fn is_name_of(line: &str, path: &str) -> bool {
    let plain = line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '*' | '#' | ':'));
    let name = plain.strip_prefix("./").unwrap_or(plain);
    let folder = path.strip_suffix(name).filter(|_| !name.is_empty());
    folder.is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
}

/// Parses the block after its first line, `first`. Its other markers may have the same indentation.
fn parse_block<'a>(
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    start: usize,
    first: &str,
) -> Result<EditBlock, String> {
    let indentation = &first[..first.len() - first.trim_start().len()];
    let (mut content, mut dividers) = (Vec::new(), Vec::new());
    for (number, line) in lines {
        match line.strip_prefix(indentation).unwrap_or(line).trim_end() {
            REPLACE if dividers.is_empty() => break,
            REPLACE => {
                return Ok(EditBlock {
                    lines: content,
                    dividers,
                });
            }
            marker if is_misspelt(marker) => {
                return Err(format!(
                    "line {} of `edits`, {marker:?}, stands inside the block that starts at line {}. If it shall end the block, it must be \
                     {REPLACE:?}; if it is content, give old_string and new_string instead of edits.",
                    number + 1,
                    start + 1
                ));
            }
            DIVIDER => dividers.push(content.len()),
            _ => {}
        }
        content.push(line.to_owned());
    }
    let missing = if dividers.is_empty() { DIVIDER } else { REPLACE };
    Err(format!(
        "the block that starts at line {} of `edits` lacks its line {missing:?}.",
        start + 1
    ))
}

/// Returns true when every conflict that begins in these lines also ends in them.
fn are_conflicts_whole(lines: &[String]) -> bool {
    let count = |marker: &str| lines.iter().filter(|line| line.starts_with(marker)).count();
    count("<<<<<<<") == count(">>>>>>>")
}

/// Returns true for a marker of the next block, or a misspelled one. Other conflict markers are content.
fn is_misspelt(line: &str) -> bool {
    let upper = line.to_ascii_uppercase();
    let is_marker = upper.starts_with("<<<") || upper.starts_with(">>>");
    is_marker && (upper.contains("SEARCH") || upper.contains("REPLACE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_parse_with_any_content() {
        let text = "```\n<<<<<<< SEARCH\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n=======\nc\n>>>>>>> REPLACE\n\n```\n";
        let blocks = parse_blocks(text, "a.py").unwrap();
        let readings: Vec<_> = blocks[0].readings().collect();
        assert_eq!(readings.len(), 1, "the divider within the conflict is content");
        assert_eq!(readings[0].1, ["c"]);
        assert_eq!(readings[0].0.len(), 5);
    }

    #[test]
    fn indented_markers_and_file_name_are_accepted() {
        for before in [
            "",
            "shop/cart.py\n",
            "`cart.py`:\n```python\n",
            "### ./shop/cart.py\n",
        ] {
            let text = format!(
                "{before}    <<<<<<< SEARCH\n    a\n      =======\n    =======\n    b\n    >>>>>>> REPLACE\n"
            );
            let blocks = parse_blocks(&text, "shop/cart.py").unwrap();
            let readings: Vec<_> = blocks[0].readings().collect();
            assert_eq!(readings.len(), 1, "another indentation is content");
            assert_eq!(readings[0].0, ["    a", "      ======="]);
            assert_eq!(readings[0].1, ["    b"]);
        }
        for other in [
            "shop/user.py\n",
            "art.py\n",
            "old/shop/cart.py\n",
            "In shop/cart.py:\n",
        ] {
            let text = format!("{other}<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n");
            let error = parse_blocks(&text, "shop/cart.py").unwrap_err();
            assert!(error.contains("outside of every block"), "{other}: {error}");
        }
    }

    #[test]
    fn lost_and_misspelt_markers_are_errors() {
        for (text, words) in [
            ("x\n", "line 1 of `edits` is outside"),
            ("", "has no block"),
            ("<<<<<<< SEARCH\na\n", "lacks its line \"=======\""),
            (
                "<<<<<<< SEARCH\na\n=======\nb\n",
                "lacks its line \">>>>>>> REPLACE\"",
            ),
            (
                "<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n",
                "lacks its line \"=======\"",
            ),
            (
                "<<<<<<< SEARCH\na\n=======\nb\n<<<<<<< SEARCH\nc\n=======\nd\n>>>>>>> REPLACE\n",
                "line 5 of `edits`",
            ),
            (
                "<<<<<<< SEARCH\na\n=======\nb\n>>>>>> REPLACE\n",
                "must be \">>>>>>> REPLACE\"",
            ),
            (
                "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n<<<<<<< Search\nc\n",
                "line 6 of `edits` is outside",
            ),
        ] {
            let error = parse_blocks(text, "a.py").unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
