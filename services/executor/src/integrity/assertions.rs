//! Detects assertions that are always true, and tests whose assertions are no longer reached.

use domain::check::{ChangeFinding, FindingSeverity};

use super::{
    inventory::{ListedTest, is_assertion, is_comment, measure_indentation},
    new_finding,
    paths::SourceLanguage,
    truncate_line,
};
use crate::pattern::LazyPattern;

/// A string literal as a statement that contains an assertion. It is always true.
static STRING_STATEMENT: LazyPattern = LazyPattern::new(
    r#"^\s*[rbuf]?(?:"[^"]*(?:\bassert|\bexpect|==)[^"]*"|'[^']*(?:\bassert|\bexpect|==)[^']*')\s*;?\s*$"#,
);
/// A Python assertion on a tuple. A nonempty tuple is always true.
static TUPLE: LazyPattern = LazyPattern::new(
    r#"^\s*assert\s*\((?:[^()\[\]{}'",]|\([^()]*\)|\[[^\]]*\]|\{[^}]*\}|'[^']*'|"[^"]*")*,(?:[^()\[\]{}'"]|\([^()]*\)|\[[^\]]*\]|\{[^}]*\}|'[^']*'|"[^"]*")*\)\s*(?:#.*)?$"#,
);
static PYTHON_EQUAL: LazyPattern =
    LazyPattern::new(r"^\s*assert\s+(.+?)\s*(?:==|\bis\b)\s*(.+?)\s*(?:,\s*f?['\x22].*)?(?:#.*)?$");
static CALLED_EQUAL: LazyPattern = LazyPattern::new(
    r"\b(?:assertEqual|assertIs|assertEquals|assertSame|assertDictEqual|assertListEqual|assert_eq!|assert\.(?:strictEqual|deepStrictEqual|deepEqual|equal|Equal|Same)|require\.Equal|Assert\.(?:Equal|AreEqual|Same)|(?:EXPECT|ASSERT)_(?:EQ|STREQ)|assert_equal)[ (](.*?)\)?\s*;?\s*$",
);
static EXPECT_EQUAL: LazyPattern = LazyPattern::new(
    r"\bexpect\((.*)\)\s*\.(?:toBe|toEqual|toStrictEqual|to\.equal|to\.eql|to eq|to eql)\s*\(?(.*?)\)?\s*;?\s*$",
);
/// Named function inside a test.
static LOCAL_FUNCTION: LazyPattern = LazyPattern::new(
    r"^(?:(?:const|let|var)\s+(\w+)\s*=\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*=>|(?:async\s+)?function\s+(\w+)\s*\(|(?:async\s+)?def\s+(\w+)\s*\(?|(\w+)\s*=\s*(?:lambda|->|proc|Proc\.new)\b|(\w+)\s*:?=\s*func\(|let\s+(?:mut\s+)?(\w+)\s*=\s*(?:move\s*)?\|)",
);
static ANONYMOUS: LazyPattern = LazyPattern::new(
    r"^\(?(?:async\s*)?\(\s*\)\s*=>\s*\{?\s*(?:return\s+)?(?:await\s+)?(?:expect|assert)\b.*$|^(?:lambda|->)\s*:?.*\bassert|^func\(\)\s*\{.*\bt\.(?:Error|Fatal).*\}$",
);
static RETURN: LazyPattern = LazyPattern::new(
    r"^return(?:\s+(?:None|nil|null|undefined|true|True|\(\)))?\s*;?\s*$|^return if true\b|^next\s*$",
);
// The patterns cover constants that are always false in their language; `TYPE_CHECKING` is false at run time
// (Python's `typing`).
static DEAD_BRANCH: LazyPattern = LazyPattern::new(
    r"^(?:if|while|elif|unless)\s*\(?\s*(?:False|false|0|not True|!true|TYPE_CHECKING|nil|cfg!\(any\(\)\))\s*\)?\s*[:{]?\s*$|^for\s+\w+\s+in\s+(?:\[\]|\(\)|range\(0\))\s*:|^(?:if|elif)\s+.*\band\s+(?:False|0)\s*:|^if\s+.*&&\s*false\s*\)?\s*\{",
);
static AWAITED: LazyPattern = LazyPattern::new(r"(?:^|\s)(?:await|return)\s+(?:expect|assert)\b");
static PROMISE: LazyPattern =
    LazyPattern::new(r"^\s*expect\(.*\)\s*\.(?:resolves|rejects)\b|^\s*assert\.(?:rejects|doesNotReject)\(");
static BRACKETS: LazyPattern = LazyPattern::new(r"[()\[\]{}]");

/// Returns the kind of finding for a new line of a test that asserts nothing.
pub(super) fn empty_assertion(language: SourceLanguage, line: &str) -> Option<&'static str> {
    if is_comment(line) {
        return None;
    }
    let is_empty = match language {
        SourceLanguage::Python => {
            TUPLE.is_match(line)
                || STRING_STATEMENT.is_match(line)
                || PYTHON_EQUAL
                    .captures(line)
                    .is_some_and(|sides| sides[1] == sides[2])
        }
        SourceLanguage::Script | SourceLanguage::Ruby => {
            STRING_STATEMENT.is_match(line)
                || EXPECT_EQUAL
                    .captures(line)
                    .is_some_and(|sides| is_same(&sides[1], &sides[2]))
        }
        SourceLanguage::Go
        | SourceLanguage::Rust
        | SourceLanguage::Jvm
        | SourceLanguage::Php
        | SourceLanguage::CSharp
        | SourceLanguage::Cpp
        | SourceLanguage::Sql
        | SourceLanguage::Shell
        | SourceLanguage::Yaml
        | SourceLanguage::Other => false,
    };
    let is_same_twice = CALLED_EQUAL.first(line).is_some_and(|arguments| {
        let arguments = split_arguments(arguments);
        matches!(arguments[..], [one, other, ..] if is_same(one, other))
    });
    if is_empty || is_same_twice {
        return Some("assertion_empty");
    }
    if language == SourceLanguage::Script && PROMISE.is_match(line) && !AWAITED.is_match(line) {
        return Some("promise_not_awaited");
    }
    None
}

fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim(), other.trim());
    // A comparison of a constant with itself also asserts nothing.
    !one.is_empty() && one == other
}

/// Splits the arguments at the top level of a call.
fn split_arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start) = (0_i32, None, 0);
    let mut found = Vec::new();
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                found.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.extend(text.get(start..));
    found
}

/// Finds a new line of a test after which its assertions are no longer reached.
pub(super) fn find_unreachable_assertion(
    path: &str,
    text: &str,
    before: Option<&ListedTest>,
    after: &ListedTest,
) -> Option<ChangeFinding> {
    let is_old = |line: &str| before.is_some_and(|before| before.body.iter().any(|known| known == line));
    let raw: Vec<&str> = text.lines().collect();
    let own: Vec<(usize, &str)> = (after.line..after.end)
        .filter_map(|at| Some((at + 1, *raw.get(at)?)))
        .filter(|(_, line)| !line.trim().is_empty())
        .collect();
    let outer = own
        .iter()
        .map(|(_, line)| measure_indentation(line))
        .min()
        .unwrap_or_default();
    // The first line of the body has the indentation of the test's own statements. Later lines may be less
    // indented, such as continued strings.
    let outer = own.first().map_or(outer, |(_, line)| measure_indentation(line));
    for (place, (number, line)) in own.iter().enumerate() {
        let words = line.trim();
        if is_old(words) {
            continue;
        }
        let rest = own.get(place + 1..).unwrap_or_default();
        let asserts_later = rest.iter().any(|(_, line)| is_assertion(line));
        let ends_early = RETURN.is_match(words) && measure_indentation(line) == outer && asserts_later;
        let is_dead = DEAD_BRANCH.is_match(words) && asserts_later;
        let is_never_called = LOCAL_FUNCTION.captures(words).is_some_and(|found| {
            let name = found
                .iter()
                .skip(1)
                .flatten()
                .next()
                .map_or("", |name| name.as_str());
            let uses = after
                .body
                .iter()
                .map(|line| count_word(line, name))
                .sum::<usize>();
            // The runner calls fixtures and other decorated functions, so a single mention of their name is
            // enough.
            let is_fixture = place > 0
                && own
                    .get(place - 1)
                    .is_some_and(|(_, line)| line.trim_start().starts_with('@'));
            let inner: Vec<&&str> = rest
                .iter()
                .map(|(_, line)| line)
                .take_while(|inner| measure_indentation(inner) > measure_indentation(line))
                .collect();
            // One use is the definition itself.
            uses == 1 && !is_fixture && (is_assertion(words) || inner.iter().any(|line| is_assertion(line)))
        });
        let is_anonymous = ANONYMOUS.is_match(words) && is_statement(&own, place);
        if ends_early || is_dead || is_never_called || is_anonymous {
            let words = format!(
                "{} no longer reaches what it asserts: {}",
                after.name,
                truncate_line(line)
            );
            return Some(new_finding(
                path,
                *number,
                "assertion_unreachable",
                FindingSeverity::Block,
                words,
            ));
        }
    }
    None
}

/// Returns true when a line begins a statement, because the previous line is complete.
fn is_statement(own: &[(usize, &str)], place: usize) -> bool {
    let Some((_, before)) = place.checked_sub(1).and_then(|at| own.get(at)) else {
        return true;
    };
    let before = before.trim_end();
    !before.ends_with(['(', ',', '=', '[', ':']) || !BRACKETS.is_match(before)
}

fn count_word(line: &str, word: &str) -> usize {
    if word.is_empty() {
        return 0;
    }
    line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|part| *part == word)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_can_be_read() {
        for pattern in [
            &STRING_STATEMENT,
            &TUPLE,
            &PYTHON_EQUAL,
            &CALLED_EQUAL,
            &EXPECT_EQUAL,
            &LOCAL_FUNCTION,
            &ANONYMOUS,
            &RETURN,
            &DEAD_BRANCH,
            &AWAITED,
            &PROMISE,
            &BRACKETS,
        ] {
            assert!(pattern.is_sound());
        }
    }

    #[test]
    fn empty_assertions_differ_from_real_ones() {
        use SourceLanguage::{Go, Python, Rust, Script};
        for (language, line) in [
            (Python, "    assert (total == 3, 'wrong')"),
            (Python, "    \"assert total() == 3\""),
            (Python, "    assert total() == total()"),
            (Python, "    self.assertEqual(total(), total())"),
            (Script, "  expect(total()).toBe(total());"),
            (Script, "  'expect(total()).toBe(3)';"),
            (Script, "  expect(load()).resolves.toBe(3);"),
            (Rust, "    assert_eq!(total(), total());"),
            (Go, "\tassert.Equal(t, t)"),
        ] {
            assert!(empty_assertion(language, line).is_some(), "{line}");
        }
        for (language, line) in [
            (Python, "    assert (total == 3)"),
            (Python, "    assert (total in (1, 2))"),
            (Python, "    assert f(1, 2) == [1, 2], 'x'"),
            (Python, "    \"\"\"The total.\"\"\""),
            (Python, "    self.assertEqual(total(), 3)"),
            (Script, "  await expect(load()).resolves.toBe(3);"),
            (Script, "  return expect(load()).rejects.toThrow();"),
            (Script, "  expect(total(a)).toBe(total(b));"),
            (Rust, "    assert_eq!(total(1), total(2));"),
        ] {
            assert_eq!(empty_assertion(language, line), None, "{line}");
        }
    }
}
