//! Finds lines of tests inside product files: modules of unit tests, and examples in documentation that run
//! as tests.

use super::{
    inventory::end_by_braces,
    paths::{FilePurpose, SourceLanguage, classify_path, detect_language},
};
use crate::pattern::LazyPattern;

static RUST_TESTS: LazyPattern = LazyPattern::new(
    r"^\s*#\[(?:cfg\(\s*(?:all\(\s*)?test\b.*|(?:\w+::)*(?:test|rstest|test_case|proptest|bench)\b.*)\]",
);
static RUST_DOCS: LazyPattern = LazyPattern::new(r"^\s*//[/!](.*)$");
/// In-source tests, which vitest collects from files of the product.
static SCRIPT_TESTS: LazyPattern = LazyPattern::new(r"\bif\s*\(\s*import\.meta\.vitest\b");
static PYTHON_EXAMPLE: LazyPattern = LazyPattern::new(r"^\s*(?:>>>|\.\.\.)(?:\s|$)");
static ELIXIR_EXAMPLE: LazyPattern = LazyPattern::new(r"^\s*(?:iex|\.\.\.)(?:\(\d+\))?>");

/// Part of a file that a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinePart {
    /// Code of the product.
    Product,
    /// A test, or an example in documentation that runs as one.
    Test,
    /// A blank line or a comment, which belongs to the lines around it.
    Neutral,
}

/// Returns the part of each line of a file.
pub(crate) fn divide_lines(path: &str, text: &str) -> Vec<LinePart> {
    let is_test_file = classify_path(path) == FilePurpose::Test;
    let comment = comment_mark(detect_language(path));
    let part = |(line, is_test): (&str, bool)| {
        let line = line.trim_start();
        if is_test || is_test_file {
            LinePart::Test
        } else if line.is_empty() || comment.is_some_and(|mark| line.starts_with(mark)) {
            LinePart::Neutral
        } else {
            LinePart::Product
        }
    };
    text.lines().zip(test_lines(path, text)).map(part).collect()
}

/// Returns the mark of a comment that takes a whole line, for languages with tests in product files.
const fn comment_mark(language: SourceLanguage) -> Option<&'static str> {
    match language {
        SourceLanguage::Rust | SourceLanguage::Script => Some("//"),
        SourceLanguage::Python => Some("#"),
        SourceLanguage::Go
        | SourceLanguage::Jvm
        | SourceLanguage::Ruby
        | SourceLanguage::Php
        | SourceLanguage::CSharp
        | SourceLanguage::Cpp
        | SourceLanguage::Sql
        | SourceLanguage::Shell
        | SourceLanguage::Yaml
        | SourceLanguage::Other => None,
    }
}

/// Returns one flag per line: true when the line belongs to a test.
pub(super) fn test_lines(path: &str, text: &str) -> Vec<bool> {
    let lines: Vec<&str> = text.lines().collect();
    let mut marked = vec![false; lines.len()];
    match detect_language(path) {
        SourceLanguage::Rust => {
            mark_blocks(&lines, &RUST_TESTS, &mut marked);
            mark_rust_examples(&lines, &mut marked);
        }
        SourceLanguage::Script => mark_blocks(&lines, &SCRIPT_TESTS, &mut marked),
        SourceLanguage::Python => mark_examples(&lines, &PYTHON_EXAMPLE, &mut marked),
        SourceLanguage::Other if path.ends_with(".ex") => mark_examples(&lines, &ELIXIR_EXAMPLE, &mut marked),
        SourceLanguage::Go
        | SourceLanguage::Jvm
        | SourceLanguage::Ruby
        | SourceLanguage::Php
        | SourceLanguage::CSharp
        | SourceLanguage::Cpp
        | SourceLanguage::Sql
        | SourceLanguage::Shell
        | SourceLanguage::Yaml
        | SourceLanguage::Other => {}
    }
    marked
}

/// Marks each line that matches `heading`, up to the end of its braces.
fn mark_blocks(lines: &[&str], heading: &LazyPattern, marked: &mut [bool]) {
    let mut next = 0;
    for (at, line) in lines.iter().enumerate() {
        if at < next || !heading.is_match(line) {
            continue;
        }
        let end = end_by_braces(lines, at);
        next = end + 1;
        if let Some(block) = marked.get_mut(at..=end.min(lines.len().saturating_sub(1))) {
            block.fill(true);
        }
    }
}

/// Marks fenced code in documentation comments, which rustdoc runs.
fn mark_rust_examples(lines: &[&str], marked: &mut [bool]) {
    let mut is_code = false;
    for (at, line) in lines.iter().enumerate() {
        let Some(comment) = RUST_DOCS.captures(line) else {
            is_code = false;
            continue;
        };
        let is_fence = comment
            .get(1)
            .is_some_and(|text| text.as_str().trim_start().starts_with("```"));
        if (is_code || is_fence)
            && let Some(mark) = marked.get_mut(at)
        {
            *mark = true;
        }
        is_code ^= is_fence;
    }
}

/// Marks the input lines of an interpreter session and their expected output, up to the next empty line.
fn mark_examples(lines: &[&str], example: &LazyPattern, marked: &mut [bool]) {
    let mut is_example = false;
    for (at, line) in lines.iter().enumerate() {
        let is_end = line.trim().is_empty() || line.contains("\"\"\"") || line.contains("'''");
        // A prompt of three dots continues an example but cannot begin one.
        let is_begin = example.is_match(line) && (is_example || !line.trim_start().starts_with("..."));
        is_example = is_begin || (is_example && !is_end);
        if let Some(mark) = marked.get_mut(at) {
            *mark = is_example;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_test_lines(path: &str, text: &str) -> Vec<usize> {
        let flags = test_lines(path, text);
        (1..)
            .zip(flags)
            .filter(|(_, is_test)| *is_test)
            .map(|(line, _)| line)
            .collect()
    }

    #[test]
    fn rust_module_of_tests_is_marked() {
        let text = "pub fn a() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {\n    }\n}\n\npub fn c() {}\n";
        assert_eq!(list_test_lines("src/lib.rs", text), [3, 4, 5, 6, 7, 8]);
        let bare = "pub fn a() {}\n#[tokio::test]\nasync fn b() {\n    a();\n}\npub fn c() {}\n";
        assert_eq!(list_test_lines("src/lib.rs", bare), [2, 3, 4, 5]);
    }

    #[test]
    fn examples_in_documentation_are_marked() {
        let rust = "/// Adds.\n///\n/// ```\n/// assert_eq!(add(1), 2);\n/// ```\npub fn add() {}\n";
        assert_eq!(list_test_lines("src/lib.rs", rust), [3, 4, 5]);
        let python = "def add(a):\n    \"\"\"Adds.\n\n    >>> add(1)\n    2\n\n    More.\n    \"\"\"\n    return a + 1\n";
        assert_eq!(list_test_lines("shop/add.py", python), [4, 5]);
        assert_eq!(list_test_lines("shop/add.py", "x = [\n    ...\n]\n"), [0; 0]);
    }

    #[test]
    fn lines_between_parts_are_neutral() {
        use LinePart::{Neutral, Product, Test};
        let text = "/// Adds.\n/// ```\n/// assert!(true);\n/// ```\nfn a() {}\n\n#[test]\nfn b() {\n\n}\n";
        assert_eq!(
            divide_lines("src/lib.rs", text),
            [
                Neutral, Test, Test, Test, Product, Neutral, Test, Test, Test, Test
            ]
        );
        assert_eq!(
            divide_lines("src/a.rs", "*x = 1;\n#![no_std]\n"),
            [Product, Product]
        );
        assert_eq!(divide_lines("tests/a.rs", "fn a() {}\n\n"), [Test, Test]);
    }

    #[test]
    fn product_lines_are_not_marked() {
        let script = "export const a = 1\nif (import.meta.vitest) {\n  it('x', () => {})\n}\n";
        assert_eq!(list_test_lines("src/a.ts", script), [2, 3, 4]);
        assert_eq!(list_test_lines("src/a.go", "func A() {}\n"), [0; 0]);
        for pattern in [
            &RUST_TESTS,
            &RUST_DOCS,
            &SCRIPT_TESTS,
            &PYTHON_EXAMPLE,
            &ELIXIR_EXAMPLE,
        ] {
            assert!(pattern.is_sound());
        }
    }
}
