//! Lines of a text with their line ends, so that an edit changes no other line.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::encoding::BOM;

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

    /// Replaces lines. An unchanged line keeps its end; a new line gets the end of its neighbors.
    pub(in crate::tools) fn splice(&mut self, splice: LineSplice) {
        let range = splice.at..splice.at + splice.count;
        let neighbour = self.neighbour(splice.at, splice.count);
        let was_last = range.end == self.texts.len();
        let last_end = self.ends.last().copied().unwrap_or(neighbour);
        let kept = match_kept_lines(&self.texts[range.clone()], &splice.new);
        let old = self.ends[range.clone()].to_vec();
        let mut ends: Vec<LineEnd> = kept
            .into_iter()
            .map(|kept| kept.map_or(neighbour, |at| old[at]))
            // Only the last line of a text may lack an end, and this one may precede new lines.
            .map(|end| if end == LineEnd::None { neighbour } else { end })
            .collect();
        // Lines that follow a last line without an end require that line to get one.
        if let (Some(before), false) = (range.start.checked_sub(1), splice.new.is_empty())
            && self.ends[before] == LineEnd::None
        {
            self.ends[before] = neighbour;
        }
        if let Some(last) = ends.last_mut().filter(|_| was_last) {
            *last = match splice.ends {
                Some(true) => neighbour,
                Some(false) => LineEnd::None,
                None => last_end,
            };
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
        let new = Self::of(body);
        let same =
            |pairs: &mut dyn Iterator<Item = (&String, &String)>| pairs.take_while(|(a, b)| a == b).count();
        let front = same(&mut self.texts.iter().zip(&new.texts));
        let back = same(
            &mut self.texts[front..]
                .iter()
                .rev()
                .zip(new.texts[front..].iter().rev()),
        );
        let (mut old_end, mut new_end) = (self.texts.len() - back, new.texts.len() - back);
        let ends = new.ends.last().is_none_or(|end| *end != LineEnd::None);
        if back > 0
            && self
                .ends
                .last()
                .is_some_and(|end| (*end != LineEnd::None) != ends)
        {
            // If only the end of the last line differs, the last line must be replaced too, because its end
            // belongs to it.
            (old_end, new_end) = (self.texts.len(), new.texts.len());
        }
        let front = front.min(old_end.saturating_sub(usize::from(old_end == self.texts.len() && back == 0)));
        self.splice(LineSplice {
            at: front,
            count: old_end - front,
            new: new.texts[front..new_end].to_vec(),
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

        #[test]
        fn split_and_joined_text_is_equal(text in "\u{feff}?[ab\r\n\u{2028}]{0,20}") {
            proptest::prop_assert_eq!(TextLines::of(&text).join(), text);
        }
    }
}
