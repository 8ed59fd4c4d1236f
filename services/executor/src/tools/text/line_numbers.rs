//! Line numbers that a model copies from the answer of `read_file` into its edit.

use std::ops::Range;

/// Lines without their copied numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tools) struct UnnumberedLines {
    /// Number of the first line, from 1.
    pub(in crate::tools) first: usize,
    pub(in crate::tools) texts: Vec<String>,
}

/// Width of a number in the answer of `read_file`.
const WIDTH: usize = 6;
// Longer numbers count no lines, and would exceed the type.
const MOST_DIGITS: usize = 9;
// Fewer numbered lines may be the content of a file.
const LEAST_RUN: usize = 3;

/// Removes the numbers of lines; `None` if they are not consecutive, or a line has none.
pub(in crate::tools) fn strip_numbers(lines: &[String]) -> Option<UnnumberedLines> {
    let (mut first, mut texts) = (None, Vec::new());
    for (place, line) in lines.iter().enumerate() {
        if line.trim().is_empty() {
            texts.push(String::new());
            continue;
        }
        let (number, text) = split_number(line)?;
        let begin = *first.get_or_insert(number.checked_sub(place)?);
        if number != begin + place {
            return None;
        }
        texts.push(text.to_owned());
    }
    let first = first.filter(|first| *first > 0)?;
    Some(UnnumberedLines { first, texts })
}

/// Removes the numbers of new lines, as far as they are in this range. Lines without one stay.
pub(in crate::tools) fn strip_numbers_in(lines: &[String], range: &Range<usize>) -> Vec<String> {
    let strip = |line: &String| match split_number(line) {
        Some((number, text)) if range.contains(&number) => text.to_owned(),
        Some(_) | None => line.clone(),
    };
    lines.iter().map(strip).collect()
}

/// Returns the index of the first of several lines that begin with consecutive numbers, as `read_file` shows
/// them.
pub(in crate::tools) fn find_numbered_run(text: &str) -> Option<usize> {
    let (mut run, mut expected) = (0, 0);
    for (place, line) in text.lines().enumerate() {
        let number = split_number(line).filter(|(_, text)| line.len() - text.len() > WIDTH);
        match number {
            Some((number, _)) if run > 0 && number == expected => run += 1,
            Some(_) => run = 1,
            None => run = 0,
        }
        expected = number.map_or(0, |(number, _)| number + 1);
        if run == LEAST_RUN {
            return Some(place + 1 - LEAST_RUN);
        }
    }
    None
}

/// Splits a number with the blank after it from a line.
fn split_number(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches(' ');
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, text) = rest.split_at(end);
    let number = digits.parse().ok().filter(|_| digits.len() <= MOST_DIGITS)?;
    match text.strip_prefix([' ', '\t']) {
        Some(text) => Some((number, text)),
        None => text.is_empty().then_some((number, text)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect_lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn number_without_successor_is_text() {
        let text = format!("{0} a\n{0} b\n{0} c\n", usize::MAX);
        assert_eq!(find_numbered_run(&text), None);
        assert_eq!(strip_numbers(&[format!("{} a", usize::MAX)]), None);
    }

    #[test]
    fn consecutive_numbers_are_removed() {
        let strip = |text: &str| strip_numbers(&collect_lines(text)).map(|lines| (lines.first, lines.texts));
        assert_eq!(
            strip("     9 def a():\n    10     return 0"),
            Some((9, collect_lines("def a():\n    return 0")))
        );
        assert_eq!(
            strip("9 def a():\n\n    11     return 0"),
            Some((9, collect_lines("def a():\n\n    return 0")))
        );
        assert_eq!(strip("     3 \n     4 x"), Some((3, collect_lines("\nx"))));
        for other in ["def a():", "1 a\n3 b", "1. a\n2. b", "", "\n", "0 a", "12a"] {
            assert_eq!(strip(other), None, "{other:?}");
        }
    }

    #[test]
    fn numbers_outside_of_range_stay() {
        let lines = collect_lines("     4 a\n5 apples\nb\n     9 c");
        assert_eq!(
            strip_numbers_in(&lines, &(4..6)),
            collect_lines("a\napples\nb\n     9 c")
        );
    }

    #[test]
    fn numbered_run_needs_three_lines_of_layout() {
        assert_eq!(find_numbered_run("x\n     7 a\n     8 b\n     9 c\n"), Some(1));
        for other in [
            "     7 a\n     8 b\n",
            "7 a\n8 b\n9 c\n",
            "     7 a\n     9 b\n    10 c\n",
        ] {
            assert_eq!(find_numbered_run(other), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn fuzz_numbered_text_is_restored(lines in prop::collection::vec("[a-z][a-z ]{0,8}", 1..12), first in 1_usize..2_000_000) {
            let shown: Vec<String> =
                lines.iter().enumerate().map(|(at, line)| format!("{:>6} {line}", first + at)).collect();
            let stripped = strip_numbers(&shown).unwrap();
            prop_assert_eq!((stripped.first, stripped.texts), (first, lines));
        }
    }
}
