//! Determines the indentation of new lines when the model gave the surrounding lines with another indentation
//! than the file's.

/// Possible relation between the given indentation and the file's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndentRelation<'a> {
    Same,
    /// The file's lines have this additional prefix.
    Missing(&'a str),
    /// The given lines have this additional prefix.
    Excess(&'a str),
    /// Only the first given line lost its indentation, which is this.
    FirstLine(&'a str),
    /// A number of given spaces corresponds to one indentation step of the file.
    Steps {
        blanks: usize,
        step: &'a str,
    },
}

/// All relations that explain every given line.
#[derive(Debug)]
pub(in crate::tools) struct IndentRelations<'a>(Vec<IndentRelation<'a>>);

/// Common indentation steps.
const STEPS: [&str; 4] = ["\t", "  ", "    ", "        "];

impl<'a> IndentRelations<'a> {
    /// Finds the relations. `given` and `found` must be the same lines except for white space.
    pub(in crate::tools) fn of(given: &'a [String], found: &'a [String]) -> Self {
        let pairs: Vec<(&str, &str)> = given
            .iter()
            .zip(found)
            .filter(|(given, _)| !given.trim().is_empty())
            .map(|(given, found)| (leading_space(given), leading_space(found)))
            .collect();
        let Some((first_given, first_found)) = pairs.first().copied() else {
            return Self(vec![IndentRelation::Same]);
        };
        let mut readings = vec![IndentRelation::Same];
        if let Some(missing) = first_found.strip_suffix(first_given) {
            readings.push(IndentRelation::Missing(missing));
        }
        if let Some(excess) = first_given.strip_suffix(first_found) {
            readings.push(IndentRelation::Excess(excess));
        }
        if pairs.len() > 1 && first_given.is_empty() {
            readings.push(IndentRelation::FirstLine(first_found));
        }
        for step in STEPS {
            readings.extend([2, 3, 4, 8].map(|blanks| IndentRelation::Steps { blanks, step }));
        }
        let explains = |reading: &IndentRelation<'_>| {
            pairs
                .iter()
                .enumerate()
                .all(|(at, (given, found))| reading.indent(given, at == 0).as_deref() == Some(*found))
        };
        readings.retain(explains);
        // Without a difference, the new lines stay unchanged, whatever other relations would also fit.
        readings.truncate(if readings.first() == Some(&IndentRelation::Same) {
            1
        } else {
            readings.len()
        });
        Self(readings)
    }

    /// Returns the new lines with the file's indentation; `None` when no relation exists or two relations
    /// disagree. `is_first`: the first new line replaces the first given one.
    pub(in crate::tools) fn apply(&self, new: &[String], is_first: bool) -> Option<Vec<String>> {
        let mut read = self.0.iter().map(|reading| reading.lines(new, is_first));
        let first = read.next()??;
        read.all(|other| other.is_none_or(|other| other == first))
            .then_some(first)
    }
}

impl IndentRelation<'_> {
    fn lines(&self, new: &[String], is_first: bool) -> Option<Vec<String>> {
        let line = |(at, line): (usize, &String)| {
            if line.trim().is_empty() {
                return Some(line.clone());
            }
            let indent = self.indent(leading_space(line), is_first && at == 0)?;
            Some(indent + line.trim_start())
        };
        new.iter().enumerate().map(line).collect()
    }

    /// Returns the file's indentation for a given one.
    fn indent(&self, given: &str, is_first: bool) -> Option<String> {
        match self {
            Self::Same => Some(given.to_owned()),
            Self::Missing(missing) => Some(format!("{missing}{given}")),
            Self::Excess(excess) => given.strip_prefix(excess).map(str::to_owned),
            Self::FirstLine(indent) if is_first && given.is_empty() => Some((*indent).to_owned()),
            Self::FirstLine(_) => Some(given.to_owned()),
            Self::Steps { blanks, step } => {
                let is_whole = given.bytes().all(|byte| byte == b' ') && given.len().is_multiple_of(*blanks);
                is_whole.then(|| step.repeat(given.len() / blanks))
            }
        }
    }
}

fn leading_space(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy_lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn apply_indent_relations(given: &[&str], found: &[&str], new: &[&str]) -> Option<Vec<String>> {
        let (given, found) = (copy_lines(given), copy_lines(found));
        IndentRelations::of(&given, &found).apply(&copy_lines(new), true)
    }

    #[test]
    fn consistent_indentation_shift_is_applied() {
        let found = ["    def f():", "        return 0"];
        for (given, new, wanted) in [
            (
                ["def f():", "    return 0"],
                ["def f():", "    return 1"],
                ["    def f():", "        return 1"],
            ),
            (
                ["        def f():", "            return 0"],
                ["        def f():", "            return 1"],
                ["    def f():", "        return 1"],
            ),
            // Case: the first line lost its indentation, the others did not.
            (
                ["def f():", "        return 0"],
                ["def f():", "        return 1"],
                ["    def f():", "        return 1"],
            ),
            (
                ["  def f():", "    return 0"],
                ["  def f():", "    return 1"],
                ["    def f():", "        return 1"],
            ),
        ] {
            assert_eq!(
                apply_indent_relations(&given, &found, &new).unwrap(),
                wanted,
                "{given:?}"
            );
        }
        let tabs = apply_indent_relations(
            &["if x {", "    y()"],
            &["if x {", "\ty()"],
            &["if x {", "    if z {", "        y()"],
        );
        assert_eq!(tabs.unwrap(), ["if x {", "\tif z {", "\t\ty()"]);
    }

    #[test]
    fn ambiguous_indentation_is_not_guessed() {
        // Two spaces may be missing, or may stand for four.
        assert_eq!(
            apply_indent_relations(&["  a"], &["    a"], &["  b", "    c"]),
            None
        );
        // If all relations agree, the result is unambiguous.
        assert_eq!(
            apply_indent_relations(&["  a"], &["    a"], &["  b"]),
            Some(copy_lines(&["    b"]))
        );
        // No shift fits both lines.
        assert_eq!(
            apply_indent_relations(&[" a", "   b"], &["  a", "  b"], &[" c", "   b"]),
            None
        );
        // The new line lacks the additional prefix.
        assert_eq!(
            apply_indent_relations(&["    a", "      b"], &["a", "  b"], &["  c"]),
            None
        );
    }
}
