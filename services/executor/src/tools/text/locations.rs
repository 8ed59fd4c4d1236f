//! Finds the location of lines that a model wrote from memory.

/// Limit of line comparisons in one search.
const MAX_WORK: usize = 50_000_000;
/// Limits of the comparison when nothing matches: lines of the file, and lines of the search.
const MAX_COMPARED: usize = 20_000;
const MAX_WINDOW: usize = 50;
/// Limits of the shown nearest text: lines, and bytes of each.
const SHOWN_LINES: usize = 20;
const SHOWN_BYTES: usize = 300;

/// Strictness of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tools) enum MatchStrictness {
    Exact,
    /// Equal except for trailing white space.
    TrailingSpace,
    /// Equal except for indentation.
    Indentation,
    /// Equal except for indentation and typographic quotes, dashes and spaces.
    Typography,
}

impl MatchStrictness {
    const ALL: [Self; 4] = [
        Self::Exact,
        Self::TrailingSpace,
        Self::Indentation,
        Self::Typography,
    ];

    fn is(self, line: &str, wanted: &str) -> bool {
        match self {
            Self::Exact => line == wanted,
            Self::TrailingSpace => line.trim_end() == wanted.trim_end(),
            Self::Indentation => line.trim() == wanted.trim(),
            Self::Typography => replace_typography(line.trim()).eq(replace_typography(wanted.trim())),
        }
    }
}

/// Replaces typographic characters by their ASCII equivalents.
fn replace_typography(line: &str) -> impl Iterator<Item = char> {
    line.chars().map(|c| match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2009}' | '\u{202f}' => ' ',
        c => c,
    })
}

/// All locations of lines, by the strictest rule that finds one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tools) struct MatchLocations {
    /// Indexes of the first lines, from 0, in ascending order.
    pub(in crate::tools) at: Vec<usize>,
    pub(in crate::tools) by: MatchStrictness,
}

/// Finds all locations of lines; `None` when they do not occur.
///
/// # Errors
/// Returns a text for the model when the search would take too many comparisons.
pub(in crate::tools) fn find_locations(
    lines: &[String],
    wanted: &[String],
) -> Result<Option<MatchLocations>, String> {
    if wanted.is_empty() || wanted.len() > lines.len() {
        return Ok(None);
    }
    let mut work = 0_usize;
    // The strictest rule with a match decides, so that a looser one adds no locations.
    for by in MatchStrictness::ALL {
        let mut at = Vec::new();
        for start in 0..=lines.len() - wanted.len() {
            let same = lines[start..]
                .iter()
                .zip(wanted)
                .take_while(|(line, wanted)| by.is(line, wanted));
            let count = same.count();
            work += count + 1;
            if work > MAX_WORK {
                return Err("there are too many similar lines. Name fewer lines.".to_owned());
            }
            if count == wanted.len() {
                at.push(start);
            }
        }
        if !at.is_empty() {
            return Ok(Some(MatchLocations { at, by }));
        }
    }
    Ok(None)
}

/// Renders the part of the file that is most similar to the searched lines.
pub(in crate::tools) fn render_nearest_text(lines: &[String], wanted: &[String]) -> String {
    let wanted: Vec<&str> = wanted
        .iter()
        .take(MAX_WINDOW)
        .map(|line| line_head(line.trim()))
        .collect();
    let score = |start: usize| -> usize {
        let window = lines.iter().skip(start).take(wanted.len());
        window
            .zip(&wanted)
            .map(|(line, wanted)| similar_bytes(line_head(line.trim()), wanted))
            .sum()
    };
    let scored = (0..lines.len().min(MAX_COMPARED)).map(|start| (score(start), start));
    // Of equal scores, the first one in the file.
    let best = scored.max_by_key(|(score, start)| (*score, usize::MAX - start));
    let Some((_, best)) = best.filter(|(score, _)| *score > 0) else {
        return "Read the file again.".to_owned();
    };
    let end = (best + wanted.len().clamp(1, SHOWN_LINES)).min(lines.len());
    format!(
        "The nearest text is:\n{}",
        super::render_numbered_lines(lines, best..end)
    )
}

fn line_head(line: &str) -> &str {
    domain::text::truncate_bytes(line, SHOWN_BYTES)
}

/// Counts the equal bytes at both ends. This is fast, and sufficient to find the intended location.
fn similar_bytes(line: &str, wanted: &str) -> usize {
    let same = |a: &mut dyn Iterator<Item = (u8, u8)>| a.take_while(|(a, b)| a == b).count();
    let front = same(&mut line.bytes().zip(wanted.bytes()));
    let back = same(&mut line.bytes().rev().zip(wanted.bytes().rev()));
    (front + back).min(line.len()).min(wanted.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect_lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn find_text_lines(text: &str, wanted: &str) -> Option<(Vec<usize>, MatchStrictness)> {
        find_locations(&collect_lines(text), &collect_lines(wanted))
            .unwrap()
            .map(|places| (places.at, places.by))
    }

    #[test]
    fn the_strictest_rule_that_finds_lines_counts() {
        assert_eq!(
            find_text_lines("a\n a\na", "a"),
            Some((vec![0, 2], MatchStrictness::Exact))
        );
        assert_eq!(
            find_text_lines("a \n  a", "a"),
            Some((vec![0], MatchStrictness::TrailingSpace))
        );
        assert_eq!(
            find_text_lines("\ta", "a"),
            Some((vec![0], MatchStrictness::Indentation))
        );
        assert_eq!(
            find_text_lines("say \u{201c}hi\u{201d}", "say \"hi\""),
            Some((vec![0], MatchStrictness::Typography))
        );
        assert_eq!(find_text_lines("a", "b"), None);
        assert_eq!(find_text_lines("a", "a\nb"), None);
    }

    #[test]
    fn expensive_line_search_is_refused() {
        let (many, some) = (vec!["a".to_owned(); 40_000], vec!["a".to_owned(); 20_000]);
        find_locations(&many, &some).unwrap_err();
        let shown = render_nearest_text(&["x".repeat(15_000_000)], &["xx".to_owned()]);
        assert!(shown.len() < 1000, "{}", shown.len());
        render_nearest_text(&vec!["abc".repeat(100); 20_000], &vec!["abd".repeat(100); 5000]);
    }
}
