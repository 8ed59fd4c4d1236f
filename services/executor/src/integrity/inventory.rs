//! Inventory of the tests in a source file: name, location, body and assertions. Indentation or braces
//! delimit bodies, which is exact enough to compare two versions of one file.

use std::collections::BTreeSet;

use super::paths::SourceLanguage;
use crate::pattern::LazyPattern;

// Limits in lines for malformed files, in which a closing brace or bracket is missing.
const MAX_BODY: usize = 2000;

// The longest list of decorators or table rows before a test.
const MAX_MARKS: usize = 200;

/// A test of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedTest {
    pub(super) name: String,
    /// First line with decorators, first line of the test itself, and last line; all from 1.
    pub(super) start: usize,
    pub(super) line: usize,
    pub(super) end: usize,
    /// Lines without indentation; blank lines are omitted.
    pub(super) body: Vec<String>,
    pub(super) assertions: usize,
    pub(super) is_skipped: bool,
}

static PYTHON: LazyPattern = LazyPattern::new(r"^\s*(?:async\s+)?def\s+(test\w*)\s*\(");
static SCRIPT: LazyPattern = LazyPattern::new(
    r#"^\s*(?:Deno\.)?(?:it|test|specify|xit|xtest|fit)(?:\.(?:only|skip|todo|each|failing|concurrent|fails)\b)*(?:\([^'"`]*\)|`[^`]*`)?\(\s*(?:'([^']*)'|"([^"]*)"|`([^`]*)`)"#,
);
/// Last line of a table that spans several lines, with the name of the test that reads it.
static SCRIPT_TABLE_END: LazyPattern =
    LazyPattern::new(r#"^\s*[\])`]+\)?\(\s*(?:'([^']*)'|"([^"]*)"|`([^`]*)`)\s*,"#);
static TABLE_BEGIN: LazyPattern = LazyPattern::new(r"^(?:it|test|specify|describe)(?:\.\w+)*\.each\s*[(`]");
static GO: LazyPattern = LazyPattern::new(r"^func\s+((?:Test|Fuzz|Example)\w*)\s*\(");
static RUST_MARK: LazyPattern = LazyPattern::new(
    r"^\s*#\[(?:\w+::)*(?:test|rstest|test_case|proptest|tokio::test|wasm_bindgen_test)\b.*\]",
);
static RUST: LazyPattern =
    LazyPattern::new(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:async\s+)?(?:unsafe\s+)?fn\s+(\w+)");
static JVM_MARK: LazyPattern =
    LazyPattern::new(r"@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b");
static JVM: LazyPattern = LazyPattern::new(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:[\w<>\[\],.?]+\s+)*(?:fun\s+)?(`[^`]+`|\w+)\s*\([^;]*$",
);
static RUBY: LazyPattern = LazyPattern::new(
    r#"^\s*(?:x|f|p)?(?:it|specify|example|test|scenario)\s+(?:'([^']*)'|"([^"]*)")|^\s*def\s+(test_\w+)"#,
);
static PHP: LazyPattern = LazyPattern::new(r"^\s*(?:public\s+)?function\s+(test\w*)\s*\(");
static CSHARP_MARK: LazyPattern =
    LazyPattern::new(r"^\s*\[(?:Fact|Theory|Test|TestMethod|TestCase|DataTestMethod)\b");
static CSHARP: LazyPattern = LazyPattern::new(
    r"^\s*(?:(?:public|private|internal|async|static|override|virtual)\s+)+[\w<>\[\]]+\s+(\w+)\s*\(",
);
static CPP: LazyPattern = LazyPattern::new(
    r#"^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST)\s*\(\s*(\w+\s*,\s*\w+)|^\s*(?:TEST_CASE|SCENARIO|SECTION)\s*\(\s*"([^"]*)""#,
);
static SHELL: LazyPattern =
    LazyPattern::new(r#"^\s*@test\s+["'](.+)["']\s*\{|^\s*(?:function\s+)?(test_?\w+)\s*\(\)"#);
/// Test of a column or model in a dbt properties file.
static DBT: LazyPattern = LazyPattern::new(
    r"^\s*-\s+((?:[\w]+\.)?(?:not_null|unique|accepted_values|relationships|expect_\w+|[a-z_]*_test))\b",
);

static ASSERTION: LazyPattern = LazyPattern::new(
    r"(?x)\bassert\w*\b | \bself\.fail\b | \bpytest\.(?:raises|approx|fail|warns)\b | \bexpect\s*\( | \bexpect\w*!? | \.should\b | \bmust_\w+ | \bt\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\b
    | \brequire\.\w+ | \bverify\w*\s*\( | \.assert_\w+\( | \bflunk\b | \brefute\w*\b | \bt\.(?:is|true|false|deepEqual|like|throws\w*|regex|equal|ok|not|same|notOk|error)\( | \$this->assert\w+ | \bAssert\.\w+ | \bShould\w*\( | \b(?:EXPECT|ASSERT|CHECK|REQUIRE)_?\w*\s*\( | \braise_error\b | \bassume!? | \bmatches!",
);
/// Definition of a function that is not a test.
static FUNCTION: LazyPattern = LazyPattern::new(
    r"^\s*(?:export\s+)?(?:public\s+|private\s+|protected\s+|static\s+|async\s+|pub(?:\([^)]*\))?\s+)*(?:def|fn|func|function|fun)\s+(?:self\.)?(?:\([^)]*\)\s*)?(\w+)|^\s*(?:export\s+)?const\s+(\w+)\s*=\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*=>|^\s*(?:(?:public|private|protected|static|final|async|void|override)\s+)+[\w<>\[\], ]*\s(\w+)\s*\(",
);
static CALL: LazyPattern = LazyPattern::new(r"\b([A-Za-z_]\w*)!?\s*\(");
static EXPECTS_ERROR: LazyPattern =
    LazyPattern::new(r"\b(?:raises|assertRaises\w*|warns)\(.*\)\s*(?:as\s+\w+\s*)?:\s*$");
/// Marks by which a runner skips a test.
static SKIPPED: LazyPattern = LazyPattern::new(
    r"(?x)@(?:unittest\.)?skip\w* | @pytest\.mark\.(?:skip|skipif|xfail)\b | \bpytest\.(?:skip|xfail|importorskip)\( | \bself\.skipTest\(
    | \b(?:it|test|describe|specify)\.(?:skip|todo|failing|fails)\b | ^\s*x(?:it|test|describe|specify)\b | \bt\.Skip(?:f|Now)?\( | \#\[ignore\b
    | @(?:Disabled|Ignore)\b | ^\s*(?:skip|pending)\b | \bmarkTest(?:Skipped|Incomplete)\( | \[Ignore\b | \bSkip\s*= | \bDISABLED_\w+ | \bGTEST_SKIP\b",
);

/// Syntax of tests in a language.
struct TestSyntax {
    /// First line of a test; one of the groups captures the name.
    heading: &'static LazyPattern,
    /// Line before the heading that makes a function a test; `None` when the heading alone does.
    mark: Option<&'static LazyPattern>,
    is_indented: bool,
}

fn test_syntax(language: SourceLanguage) -> Option<TestSyntax> {
    let braced = |heading, mark| TestSyntax {
        heading,
        mark,
        is_indented: false,
    };
    let indented = |heading| TestSyntax {
        heading,
        mark: None,
        is_indented: true,
    };
    Some(match language {
        SourceLanguage::Python => indented(&PYTHON),
        SourceLanguage::Ruby => indented(&RUBY),
        SourceLanguage::Yaml => indented(&DBT),
        SourceLanguage::Script => braced(&SCRIPT, None),
        SourceLanguage::Go => braced(&GO, None),
        SourceLanguage::Rust => braced(&RUST, Some(&RUST_MARK)),
        SourceLanguage::Jvm => braced(&JVM, Some(&JVM_MARK)),
        SourceLanguage::Php => braced(&PHP, None),
        SourceLanguage::CSharp => braced(&CSHARP, Some(&CSHARP_MARK)),
        SourceLanguage::Cpp => braced(&CPP, None),
        SourceLanguage::Shell => braced(&SHELL, None),
        SourceLanguage::Sql | SourceLanguage::Other => return None,
    })
}

/// Returns every test in a text.
pub(super) fn list_test_cases(language: SourceLanguage, text: &str) -> Vec<ListedTest> {
    let Some(shape) = test_syntax(language) else {
        return Vec::new();
    };
    let lines: Vec<&str> = text.lines().collect();
    let helpers = asserting_helpers(&shape, &lines);
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let continued = SCRIPT_TABLE_END
            .captures(line)
            .filter(|_| language == SourceLanguage::Script);
        let Some(captures) = shape.heading.captures(line).or(continued) else {
            continue;
        };
        let name = captures
            .iter()
            .skip(1)
            .flatten()
            .next()
            .map_or("", |name| name.as_str());
        let start = first_decorator_line(&lines, at);
        let marks = lines.get(start..=at).unwrap_or_default();
        if shape
            .mark
            .is_some_and(|mark| !marks.iter().any(|line| mark.is_match(line)))
        {
            continue;
        }
        let end = if shape.is_indented {
            end_by_indentation(&lines, at)
        } else {
            end_by_braces(&lines, at)
        };
        found.push(build_test_case(name, &lines, [start, at, end], &helpers));
    }
    found
}

/// Returns the functions of the file that are not tests but assert something. A call of such a helper counts
/// as an assertion.
fn asserting_helpers(shape: &TestSyntax, lines: &[&str]) -> BTreeSet<String> {
    let mut bodies: Vec<(String, &[&str])> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if shape.heading.is_match(line) && shape.mark.is_none() {
            continue;
        }
        let Some(found) = FUNCTION.captures(line) else {
            continue;
        };
        let name = found
            .iter()
            .skip(1)
            .flatten()
            .next()
            .map_or("", |name| name.as_str());
        let end = if shape.is_indented {
            end_by_indentation(lines, at)
        } else {
            end_by_braces(lines, at)
        };
        let is_test = shape.mark.is_some_and(|mark| {
            let start = first_decorator_line(lines, at);
            lines
                .get(start..=at)
                .unwrap_or_default()
                .iter()
                .any(|line| mark.is_match(line))
        });
        if !is_test && !name.is_empty() {
            bodies.push((name.to_owned(), lines.get(at + 1..=end).unwrap_or_default()));
        }
    }
    let mut helpers = BTreeSet::new();
    // A helper may call another helper. Three rounds cover chains of three calls.
    for _ in 0..3 {
        for (name, body) in &bodies {
            let is_one = body.iter().any(|line| {
                !is_comment(line) && (ASSERTION.is_match(line) || count_helper_calls(line, &helpers) > 0)
            });
            if is_one {
                helpers.insert(name.clone());
            }
        }
    }
    helpers
}

fn count_helper_calls(line: &str, helpers: &BTreeSet<String>) -> usize {
    if helpers.is_empty() {
        return 0;
    }
    let calls = CALL.all(line).filter(|call| helpers.contains(&call[1]));
    // A helper whose name matches the pattern of assertions is already counted as one.
    calls.filter(|call| !ASSERTION.is_match(&call[0])).count()
}

/// Returns true when a line asserts something, as far as one line shows.
pub(super) fn is_assertion(line: &str) -> bool {
    !is_comment(line) && ASSERTION.is_match(line)
}

fn build_test_case(
    name: &str,
    lines: &[&str],
    [start, at, end]: [usize; 3],
    helpers: &BTreeSet<String>,
) -> ListedTest {
    let own = lines.get(start..=end).unwrap_or_default();
    let body = lines.get(at + 1..=end).unwrap_or_default();
    ListedTest {
        name: name.split_whitespace().collect::<Vec<_>>().join(" "),
        start: start + 1,
        line: at + 1,
        end: end + 1,
        body: body
            .iter()
            .map(|line| line.trim())
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect(),
        assertions: count_assertions(own, helpers),
        is_skipped: own.iter().any(|line| !is_comment(line) && SKIPPED.is_match(line)),
    }
}

/// Counts assertions. A helper call inside a block that expects an error belongs to that assertion, so it
/// does not count.
fn count_assertions(own: &[&str], helpers: &BTreeSet<String>) -> usize {
    let mut count = 0;
    let mut expects_error = false;
    for line in own.iter().filter(|line| !is_comment(line)) {
        count += ASSERTION.all(line).count();
        if !expects_error {
            count += count_helper_calls(line, helpers);
        }
        expects_error = EXPECTS_ERROR.is_match(line);
    }
    count
}

pub(super) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with('#') && !line.starts_with("#["))
        || line.starts_with("//")
        || line.starts_with('*')
        || line.starts_with("--")
}

/// Returns true when a line contains only a comment, by the syntax of its language.
pub(super) fn is_comment_in(language: SourceLanguage, line: &str) -> bool {
    let line = line.trim_start();
    // A line of a block comment or of a list. Without a space, the mark is an operator.
    let is_item = |mark: &str| {
        let rest = line.strip_prefix(mark);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    // Code may follow the end of a block comment in its line.
    let is_block = || {
        let is_item = is_item("*") || is_item("**");
        line.split_once("*/").map_or(is_item, |(before, after)| {
            after.trim().is_empty() && (is_item || before.trim_matches('*').is_empty())
        })
    };
    match language {
        // Lists in documentation strings begin with these marks.
        SourceLanguage::Python | SourceLanguage::Ruby => {
            line.starts_with('#') || is_item("*") || is_item("--")
        }
        SourceLanguage::Shell | SourceLanguage::Yaml => line.starts_with('#'),
        SourceLanguage::Php => {
            line.starts_with("//") || (line.starts_with('#') && !line.starts_with("#[")) || is_block()
        }
        SourceLanguage::Script
        | SourceLanguage::Go
        | SourceLanguage::Rust
        | SourceLanguage::Jvm
        | SourceLanguage::CSharp
        | SourceLanguage::Cpp => line.starts_with("//") || is_block(),
        SourceLanguage::Sql | SourceLanguage::Other => is_comment(line),
    }
}

/// Returns the first line of the decorators, attributes, annotations or table rows directly before a heading.
/// Each may span several lines.
fn first_decorator_line(lines: &[&str], at: usize) -> usize {
    let is_mark = |line: &str| {
        let line = line.trim_start();
        line.starts_with('@')
            || line.starts_with("#[")
            || (line.starts_with('[') && line.trim_end().ends_with(']'))
            || TABLE_BEGIN.is_match(line)
    };
    let balance = |line: &str| -> i64 {
        without_strings(line)
            .map(|c| match c {
                ')' | ']' | '}' => 1,
                '(' | '[' | '{' => -1,
                _ => 0,
            })
            .sum()
    };
    let heading = lines.get(at).copied().unwrap_or_default();
    // The search goes upward, so a closing bracket opens a construct: a positive balance means that its first
    // line is further up.
    let mut open = if SCRIPT_TABLE_END.is_match(heading) { 1 } else { 0 };
    let (mut start, mut place) = (at, at);
    while let Some(before) = place.checked_sub(1).filter(|before| at - before <= MAX_MARKS) {
        let line = lines.get(before).copied().unwrap_or_default();
        open += balance(line);
        place = before;
        if open > 0 {
            continue;
        }
        if !is_mark(line) {
            break;
        }
        (start, open) = (before, 0);
    }
    start
}

pub(super) fn measure_indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the last line of an indented block.
pub(super) fn end_by_indentation(lines: &[&str], at: usize) -> usize {
    let own = lines.get(at).map_or(0, |line| measure_indentation(line));
    let mut end = at;
    for (place, line) in lines.iter().enumerate().skip(at + 1).take(MAX_BODY) {
        if line.trim().is_empty() {
            continue;
        }
        if measure_indentation(line) <= own {
            break;
        }
        end = place;
    }
    end
}

/// Returns the last line of a block in braces. Braces in strings do not count if the string ends in the same
/// line.
pub(super) fn end_by_braces(lines: &[&str], at: usize) -> usize {
    let (mut depth, mut has_begun) = (0_i64, false);
    for (place, line) in lines.iter().enumerate().skip(at).take(MAX_BODY) {
        for c in without_strings(line) {
            match c {
                '{' => (depth, has_begun) = (depth + 1, true),
                '}' => depth -= 1,
                _ => {}
            }
        }
        let is_one_line = !has_begun && line.trim_end().ends_with(';');
        if (has_begun && depth <= 0) || is_one_line {
            return place;
        }
    }
    // An unclosed block ends at the limit or at the end of the file.
    (at + MAX_BODY).min(lines.len()).saturating_sub(1).max(at)
}

fn without_strings(line: &str) -> impl Iterator<Item = char> {
    let (mut quote, mut is_escaped) = (None, false);
    line.chars().filter(move |c| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match (quote, *c) {
            (Some(_), '\\') => is_escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '`') => quote = Some(*c),
            (None, _) => return true,
            _ => {}
        }
        false
    })
}
