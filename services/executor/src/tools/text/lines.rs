//! Lines of a text with their line ends, so that an edit changes no other line.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::encoding::BOM;

/// Limit of compared lines, old times new. The time of a comparison grows with this product.
pub(super) const MOST_COMPARED: usize = 25_000_000;

/// Line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Lf,
    CrLf,
    /// The text ends without a line end.
    None,
}

impl LineEnd {
    const fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::None => "",
        }
    }
}

/// Text as a list of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tools) struct TextLines {
    has_bom: bool,
    texts: Vec<String>,
    ends: Vec<LineEnd>,
}

/// Replacement of consecutive lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tools) struct LineSplice {
    /// Index of the first replaced line, from 0.
    pub(in crate::tools) at: usize,
    /// Number of replaced lines.
    pub(in crate::tools) count: usize,
    pub(in crate::tools) new: Vec<String>,
    /// True when the text ends with a line end, if the new lines include its last line; `None` keeps the
    /// previous state.
    pub(in crate::tools) ends: Option<bool>,
}

impl TextLines {
    /// Splits a text. [`TextLines::join`] restores it exactly.
    pub(in crate::tools) fn of(text: &str) -> Self {
        let body = text.strip_prefix(BOM);
        let (mut texts, mut ends) = (Vec::new(), Vec::new());
        for line in body.unwrap_or(text).split_inclusive('\n') {
            let (line, end) = match (line.strip_suffix("\r\n"), line.strip_suffix('\n')) {
                (Some(line), _) => (line, LineEnd::CrLf),
                (None, Some(line)) => (line, LineEnd::Lf),
                (None, None) => (line, LineEnd::None),
            };
            texts.push(line.to_owned());
            ends.push(end);
        }
        Self {
            has_bom: body.is_some(),
            texts,
            ends,
        }
    }

    /// Returns the lines without their ends.
    pub(in crate::tools) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Replaces lines. An unchanged line keeps its end, a changed line has that of the line that it replaces, and an added
    /// line that of the line before.
    pub(in crate::tools) fn splice(&mut self, splice: LineSplice) {
        let range = splice.at..splice.at + splice.count;
        let neighbour = self.neighbour(splice.at, splice.count);
        let was_last = range.end == self.texts.len();
        let is_open = self.ends.last() == Some(&LineEnd::None);
        let old = &self.ends[range.clone()];
        let mut ends: Vec<LineEnd> = Vec::with_capacity(splice.new.len());
        if old.iter().all(|end| [LineEnd::None, neighbour].contains(end)) {
            // Whatever line a new one replaces, its end is the same.
            ends.resize(splice.new.len(), neighbour);
        } else {
            let mut previous = neighbour;
            for source in match_replaced_lines(&self.texts[range.clone()], &splice.new) {
                let end = source.map_or(previous, |at| old[at]);
                // Only the last line of a text may lack an end, and this one may precede new lines.
                if end != LineEnd::None {
                    previous = end;
                }
                ends.push(previous);
            }
        }
        // Lines that follow a last line without an end require that line to get one.
        if let (Some(before), false) = (range.start.checked_sub(1), splice.new.is_empty())
            && self.ends[before] == LineEnd::None
        {
            self.ends[before] = neighbour;
        }
        if let Some(last) = ends.last_mut().filter(|_| was_last) {
            let has_end = splice.ends.unwrap_or(!is_open);
            if !has_end {
                *last = LineEnd::None;
            }
        }
        if let (Some(before), Some(false), true) = (
            range.start.checked_sub(1),
            splice.ends,
            was_last && ends.is_empty(),
        ) {
            self.ends[before] = LineEnd::None;
        }
        self.texts.splice(range.clone(), splice.new);
        self.ends.splice(range, ends);
    }

    /// Returns all lines with `\n` as line end.
    pub(in crate::tools) fn body(&self) -> String {
        let mut body = self.texts.join("\n");
        if self.ends.last().is_some_and(|end| *end != LineEnd::None) {
            body.push('\n');
        }
        body
    }

    /// Replaces the text by another one, in which all line ends are `\n`.
    pub(in crate::tools) fn become_body(&mut self, body: &str) {
        // A `\r` before a line end belongs to the line, as in a line that ends with `\r\r\n`.
        let new: Vec<String> = body
            .split_inclusive('\n')
            .map(|line| line.strip_suffix('\n').unwrap_or(line).to_owned())
            .collect();
        let same =
            |pairs: &mut dyn Iterator<Item = (&String, &String)>| pairs.take_while(|(a, b)| a == b).count();
        let front = same(&mut self.texts.iter().zip(&new));
        let back = same(&mut self.texts[front..].iter().rev().zip(new[front..].iter().rev()));
        let (mut old_end, mut new_end) = (self.texts.len() - back, new.len() - back);
        let ends = body.is_empty() || body.ends_with('\n');
        if back > 0
            && self
                .ends
                .last()
                .is_some_and(|end| (*end != LineEnd::None) != ends)
        {
            // If only the end of the last line differs, the last line must be replaced too, because its end
            // belongs to it.
            (old_end, new_end) = (self.texts.len(), new.len());
        }
        let front = front.min(old_end.saturating_sub(usize::from(old_end == self.texts.len() && back == 0)));
        self.splice(LineSplice {
            at: front,
            count: old_end - front,
            new: new[front..new_end].to_vec(),
            ends: Some(ends),
        });
    }

    /// Returns the end for a new line: that of the first replaced line, else of the line before, else of the
    /// line after.
    fn neighbour(&self, at: usize, count: usize) -> LineEnd {
        let replaced = self.ends.get(at).filter(|_| count > 0);
        let near = [
            replaced,
            at.checked_sub(1).and_then(|at| self.ends.get(at)),
            self.ends.get(at + count),
        ];
        let end = near
            .into_iter()
            .flatten()
            .chain(&self.ends)
            .find(|end| **end != LineEnd::None);
        end.copied().unwrap_or(LineEnd::Lf)
    }

    /// Returns the whole text.
    pub(in crate::tools) fn join(&self) -> String {
        let mut text = String::new();
        if self.has_bom {
            text.push(BOM);
        }
        for (line, end) in self.texts.iter().zip(&self.ends) {
            text.push_str(line);
            text.push_str(end.text());
        }
        text
    }
}

/// Returns for each new line the index of the equal old line, if there is one.
pub(in crate::tools) fn match_kept_lines<T: Ord + std::hash::Hash + Clone>(
    old: &[T],
    new: &[T],
) -> Vec<Option<usize>> {
    let mut kept = vec![None; new.len()];
    for step in capture_diff_slices(Algorithm::Myers, old, new) {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = step
        {
            for at in 0..len {
                kept[new_index + at] = Some(old_index + at);
            }
        }
    }
    kept
}

/// Returns for each new line the index of the old line that it equals or replaces, if there is one. Above
/// [`MOST_COMPARED`] it is the line at the same place.
fn match_replaced_lines(old: &[String], new: &[String]) -> Vec<Option<usize>> {
    if old.len().saturating_mul(new.len()) > MOST_COMPARED {
        return (0..new.len())
            .map(|at| Some(at).filter(|at| *at < old.len()))
            .collect();
    }
    let mut sources = vec![None; new.len()];
    for step in capture_diff_slices(Algorithm::Myers, old, new) {
        let (old_index, new_index, len) = match step {
            DiffOp::Equal {
                old_index,
                new_index,
                len,
            } => (old_index, new_index, len),
            DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            } => (old_index, new_index, old_len.min(new_len)),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } => continue,
        };
        for at in 0..len {
            sources[new_index + at] = Some(old_index + at);
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splice_text(text: &str, at: usize, count: usize, new: &[&str], ends: Option<bool>) -> String {
        let mut lines = TextLines::of(text);
        lines.splice(LineSplice {
            at,
            count,
            new: new.iter().map(|line| (*line).to_owned()).collect(),
            ends,
        });
        lines.join()
    }

    #[test]
    fn new_lines_take_neighbor_line_end() {
        assert_eq!(
            splice_text("a\r\nb\nc\r\n", 0, 2, &["a", "x", "b"], None),
            "a\r\nx\r\nb\nc\r\n"
        );
        assert_eq!(
            splice_text("a\nb\r\nc\n", 2, 1, &["x", "y"], None),
            "a\nb\r\nx\ny\n"
        );
        assert_eq!(splice_text("a\r\n", 1, 0, &["b"], None), "a\r\nb\r\n");
        assert_eq!(splice_text("", 0, 0, &["a"], None), "a\n");
        assert_eq!(
            splice_text("a\r\nb\nc\n", 0, 3, &["a", "b", "x", "c"], None),
            "a\r\nb\nx\nc\n"
        );
    }

    #[test]
    fn changed_lines_keep_own_line_ends() {
        assert_eq!(
            splice_text("a\r\nb\nc\r\nd\n", 0, 4, &["a", "x", "c", "y"], None),
            "a\r\nx\nc\r\ny\n"
        );
        assert_eq!(splice_text("a\r\nb\nc\r\n", 1, 2, &["b"], None), "a\r\nb\n");
        assert_eq!(
            splice_text("a\r\nb\nc", 0, 3, &["x", "y", "z"], None),
            "x\r\ny\nz"
        );
    }

    #[test]
    fn long_text_is_replaced_without_comparison() {
        for ends in [["\n", "\n"], ["\r\n", "\r\n"], ["\r\n", "\n"]] {
            let text = |word: &str| -> String {
                (0..100_000)
                    .map(|line| format!("{word} {line}{}", ends[line % 2]))
                    .collect()
            };
            let mut lines = TextLines::of(&text("old"));
            let body = lines.body().replace("old", "new");
            lines.become_body(&body);
            assert!(lines.join() == text("new"), "{ends:?}");
        }
    }

    #[test]
    fn text_end_changes_only_on_request() {
        assert_eq!(splice_text("a\nb", 1, 1, &["c"], None), "a\nc");
        assert_eq!(splice_text("a\nb", 2, 0, &["c"], None), "a\nb\nc");
        assert_eq!(splice_text("a\nb", 1, 1, &["b"], Some(true)), "a\nb\n");
        assert_eq!(splice_text("a\nb\n", 1, 1, &["b"], Some(false)), "a\nb");
        assert_eq!(splice_text("a\nb", 0, 1, &["x"], None), "x\nb");
        assert_eq!(splice_text("a\nb", 1, 1, &[], None), "a\n");
    }

    proptest::proptest! {
        #[test]
        fn replaced_body_keeps_unchanged_line_ends(
            old in "(a\n|b\r\n|c\n){0,5}(a|b)?", new in "(a\n|b\n|x\n){0,5}(a|x)?",
        ) {
            let mut lines = TextLines::of(&old);
            lines.become_body(&new);
            proptest::prop_assert_eq!(lines.body(), new);
            let mut same = TextLines::of(&old);
            same.become_body(&TextLines::of(&old).body());
            proptest::prop_assert_eq!(same.join(), old);
        }

        /// Property: a change within lines changes no other byte of the text.
        #[test]
        fn replaced_word_changes_no_other_byte(text in "[abM\r\n]{0,24}") {
            let mut lines = TextLines::of(&text);
            let body = lines.body().replace('M', "N");
            lines.become_body(&body);
            proptest::prop_assert_eq!(lines.join(), text.replace('M', "N"));
        }

        #[test]
        fn split_and_joined_text_is_equal(text in "\u{feff}?[ab\r\n\u{2028}]{0,20}") {
            proptest::prop_assert_eq!(TextLines::of(&text).join(), text);
        }
    }
}
