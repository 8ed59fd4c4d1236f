//! Detects examples of the ticket that a change writes into the product as special cases. An answer for one
//! input is not a repair.

use std::collections::BTreeSet;

use domain::{
    check::{ChangeFinding, FindingSeverity},
    text::truncate_bytes,
};

use super::{
    inline::test_lines,
    inventory::is_comment_in,
    new_finding,
    paths::{FilePurpose, SourceLanguage, classify_path, detect_language},
    size::compare_lines,
    truncate_line,
};
use crate::{pattern::LazyPattern, workspace::ChangedFile};

/// Number of lines after a condition that are searched for its answer.
const NEAR: usize = 3;
/// Largest number of the ticket's values that are searched for.
const MOST_VALUES: usize = 200;
/// Limit in bytes of the ticket's text that is read.
const MOST_TEXT: usize = 64 * 1024;

static VALUE: LazyPattern = LazyPattern::new(
    r#""([^"\n]{2,80})"|'([^'\n]{2,80})'|`([^`\n]{2,80})`|(?:^|[^\w.\-])(-?\d[\d_]*(?:\.\d+)?)\b"#,
);
static CONDITION: LazyPattern =
    LazyPattern::new(r"===?|\b(?:case|when|match|in)\b|=>|->|\.equals\(|\.eq\(|\.get\(|\bis\s+\d|\beq\s");
static ANSWER: LazyPattern = LazyPattern::new(r"\breturn\b|=>|->|\?|[^=!<>]=[^=]|\b(?:then|do|yield)\b|:");
static RETURN: LazyPattern = LazyPattern::new(
    r#"^\s*(?:return|yield)\s+(?:"([^"]*)"|'([^']*)'|`([^`]*)`|(-?\d[\d_]*(?:\.\d+)?))[\w]*\s*;?\s*$"#,
);
static RETURNED: LazyPattern = LazyPattern::new(r"^\s*(?:return|yield)\s+(.+?)\s*;?\s*$");
static LITERAL: LazyPattern =
    LazyPattern::new(r#"^(?:"([^"]*)"|'([^']*)'|`([^`]*)`|(-?\d[\d_]*(?:\.\d+)?))\w*$"#);

/// Returns a finding for each line where the product answers an example of the ticket.
pub(super) fn find_copied_answers(files: &[ChangedFile], ticket: &str) -> Vec<ChangeFinding> {
    let values = extract_values(ticket);
    if values.is_empty() {
        return Vec::new();
    }
    let product = files.iter().filter(|file| {
        let is_code = !matches!(
            detect_language(&file.path),
            SourceLanguage::Other | SourceLanguage::Yaml | SourceLanguage::Shell
        );
        classify_path(&file.path) == FilePurpose::Product && is_code
    });
    product
        .flat_map(|file| find_answers_in_file(file, &values))
        .collect()
}

fn find_answers_in_file(file: &ChangedFile, values: &BTreeSet<String>) -> Vec<ChangeFinding> {
    let before = extract_values(file.before.as_deref().unwrap_or_default());
    // A value that the file contained before the change does not come from the ticket.
    let new: BTreeSet<&String> = values.difference(&before).collect();
    let after = file.after.as_deref().unwrap_or_default();
    let flags = test_lines(&file.path, after);
    let language = detect_language(&file.path);
    let added: Vec<(usize, &str)> = compare_lines(file)
        .added
        .into_iter()
        .filter(|(at, line)| {
            !is_comment_in(language, line) && !flags.get(at - 1).copied().unwrap_or_default()
        })
        .collect();
    let mut found = Vec::new();
    for (place, (number, line)) in added.iter().enumerate() {
        let near = added
            .iter()
            .skip(place)
            .take(NEAR)
            .filter(|(other, _)| *other < number + NEAR);
        let window: Vec<&str> = near.map(|(_, line)| *line).collect();
        if is_bare_answer(line, &new) || is_special_case(line, &window, &new) {
            let words = format!(
                "an example of the ticket is answered in the product: {}",
                truncate_line(line)
            );
            found.push(new_finding(
                &file.path,
                *number,
                "ticket_value_in_product",
                FindingSeverity::Flag,
                words,
            ));
        }
    }
    found
}

/// Returns true for a `return` of a value of the ticket, alone or as one branch of a condition. Values below
/// three characters are excluded, because small numbers appear in many places by chance.
fn is_bare_answer(line: &str, values: &BTreeSet<&String>) -> bool {
    let is_answer = |pattern: &LazyPattern, text: &str| {
        let literal = pattern.captures(text).and_then(|found| {
            found
                .iter()
                .skip(1)
                .flatten()
                .next()
                .map(|value| normalize_value(value.as_str()))
        });
        literal.is_some_and(|literal| literal.chars().count() >= 3 && values.contains(&literal))
    };
    let branches = RETURNED.first(line).unwrap_or_default();
    is_answer(&RETURN, line) || split_branches(branches).any(|branch| is_answer(&LITERAL, branch))
}

/// Splits a returned expression into the branches and conditions of `a if b else c`, `a unless b` and
/// `b ? a : c`.
fn split_branches(expression: &str) -> impl Iterator<Item = &str> {
    expression
        .split(" if ")
        .flat_map(|part| part.split(" else "))
        .flat_map(|part| part.split(" unless "))
        .flat_map(|part| part.split(['?', ':']))
        .map(|part| part.trim().trim_matches(['(', ')']).trim())
}

/// Returns true for a condition on one value of the ticket whose result is another one.
fn is_special_case(line: &str, window: &[&str], values: &BTreeSet<&String>) -> bool {
    let known = |text: &str| -> BTreeSet<String> {
        let found = extract_values(text);
        found.into_iter().filter(|value| values.contains(value)).collect()
    };
    let named = known(line);
    if named.is_empty() {
        return false;
    }
    let is_condition = CONDITION.is_match(line);
    // Two values and a colon are an entry of a table: `"input": output`.
    let is_entry = line.contains(':') && named.len() >= 2;
    let all = known(&window.join("\n"));
    let is_answered = window.iter().any(|line| ANSWER.is_match(line));
    (is_condition && is_answered && all.len() >= 2) || is_entry
}

fn extract_values(text: &str) -> BTreeSet<String> {
    let found = VALUE.all(truncate_bytes(text, MOST_TEXT)).filter_map(|value| {
        let value = value.iter().skip(1).flatten().next()?;
        Some(normalize_value(value.as_str()))
    });
    found
        .filter(|value| value.chars().count() >= 2)
        .take(MOST_VALUES)
        .collect()
}

/// Returns one spelling for equal numbers: `1_000` and `1000.0` become `1000`.
fn normalize_value(value: &str) -> String {
    let bare = value.replace('_', "");
    match bare.parse::<f64>() {
        Ok(number) if bare.starts_with(|c: char| c.is_ascii_digit() || c == '-') => number.to_string(),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: &str = "Slug of \"Café Noir\" is wrong: expected 'cafe-noir'. The total of 3 items at 12.50 should be 37.50, \
                          not 20.5. See ENG-4711.";

    fn find_answer_lines(path: &str, before: &str, after: &str) -> Vec<u32> {
        let file = ChangedFile::sample(path, Some(before), Some(after));
        find_copied_answers(&[file], TICKET)
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn answers_of_the_ticket_are_found() {
        for (path, after, line) in [
            (
                "a.py",
                "def f(x):\n    if x == \"Café Noir\":\n        return 'cafe-noir'\n",
                2,
            ),
            ("a.py", "def total(x):\n    return 37.5\n", 2),
            ("a.py", "def total(x):\n    return 37.5 if cart else 0\n", 2),
            (
                "a.py",
                "def total(x):\n    return 0 if not cart else (37.50)\n",
                2,
            ),
            ("a.rb", "def total(x)\n  return 37.5 unless x.empty?\nend\n", 2),
            (
                "a.js",
                "function total(x) {\n  return x.length ? 37.5 : 0;\n}\n",
                2,
            ),
            (
                "a.js",
                "function slug(x) {\n  return x ? '' : 'cafe-noir';\n}\n",
                2,
            ),
            ("a.js", "const t = {\n  'Café Noir': 'cafe-noir',\n}\n", 2),
            (
                "a.rs",
                "match x {\n    \"Café Noir\" => \"cafe-noir\".into(),\n}\n",
                2,
            ),
            ("a.py", "return 37.50 if price == 12.5 else total\n", 1),
            ("a.go", "case \"Café Noir\":\n\treturn \"cafe-noir\"\n", 1),
        ] {
            assert_eq!(find_answer_lines(path, "", after).first(), Some(&line), "{after}");
        }
    }

    #[test]
    fn other_code_answers_nothing() {
        for (path, before, after) in [
            ("a.py", "", "LIMIT = 12.5\nreturn price * count\n"),
            ("a.py", "", "# the total is 37.50\nreturn 3\n"),
            ("a.py", "x = 37.5\n", "x = 37.5\nreturn 37.5\n"),
            ("a.py", "", "return total if total > 37.5 else 0\n"),
            ("a.py", "", "return price * 12.5 if price else 0\n"),
            ("a.js", "", "return x ? total(x) : 3;\n"),
            ("a.py", "", "if x == 4711:\n    return 'cafe'\n"),
            (
                "a.rs",
                "",
                "#[cfg(test)]\nmod tests {\n    fn f() {\n        return 37.5;\n    }\n}\n",
            ),
            ("tests/test_a.py", "", "return 37.5\n"),
        ] {
            assert_eq!(find_answer_lines(path, before, after), [0; 0], "{after}");
        }
        for pattern in [&VALUE, &CONDITION, &ANSWER, &RETURN, &RETURNED, &LITERAL] {
            assert!(pattern.is_sound());
        }
    }
}
