//! Pairs the tests of two versions of a file: by name, and by similarity where the bodies under one name
//! differ completely.

use std::collections::{BTreeMap, BTreeSet};

use similar::TextDiff;

use super::inventory::ListedTest;
use crate::pattern::LazyPattern;

// Ratio from which two bodies under different names are one renamed test.
const ALIKE: f32 = 0.6;
// Ratio below which two bodies under one name may be different tests.
const UNLIKE: f32 = 0.5;
// Limit in bytes: longer bodies are not compared, because a line diff takes quadratic time in the worst case.
const MAX_BODY: usize = 20_000;

static LITERAL: LazyPattern = LazyPattern::new(
    r#""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|\b\d[\w.]*\b|\b(?:[Tt]rue|[Ff]alse|[Nn]one|null|nil)\b"#,
);
static TABLE: LazyPattern = LazyPattern::new(
    r"\bparametrize\b|\.each\b|@ParameterizedTest\b|@(?:Csv|Value|Method|Enum)Source\b|@DataProvider\b|dataProvider|\[Theory\]|\[InlineData\b|\[TestCase\b|#\[(?:rstest|case|test_case)\b|\bsubTest\(|\bt\.Run\(|\bfor\b.*\brange\b|\bwhere:|->with\(",
);
static ASSERTED: LazyPattern =
    LazyPattern::new(r"(?i)assert|expect|should|require\.|t\.(?:Error|Fatal)|must_|!=|==");

/// Tests of both versions: pairs, removed and added ones.
pub(super) struct CasePairs<'c> {
    pub(super) both: Vec<(&'c ListedTest, &'c ListedTest)>,
    pub(super) gone: Vec<&'c ListedTest>,
    pub(super) added: Vec<&'c ListedTest>,
}

/// Pairs tests of the same name, in order where a name occurs twice. If the body under a name differs
/// completely, the most similar added test takes its place in the pair.
pub(super) fn pair_cases<'c>(before: &'c [ListedTest], after: &'c [ListedTest]) -> CasePairs<'c> {
    // The tests of a name are pushed in reverse order, so that `pop` returns the first one.
    let mut named: BTreeMap<&str, Vec<&ListedTest>> = BTreeMap::new();
    for case in after.iter().rev() {
        named.entry(&case.name).or_default().push(case);
    }
    let (mut both, mut gone) = (Vec::new(), Vec::new());
    for case in before {
        match named.get_mut(case.name.as_str()).and_then(Vec::pop) {
            Some(other) => both.push((case, other)),
            None => gone.push(case),
        }
    }
    let mut added: Vec<&ListedTest> = named.into_values().flatten().collect();
    for pair in &mut both {
        let (case, other) = *pair;
        // Equal bodies need no diff, and no other test fits better.
        if case.body == other.body {
            continue;
        }
        let own = measure_similarity(case, other);
        if own >= UNLIKE {
            continue;
        }
        let best = (0..added.len())
            .filter_map(|at| Some((at, measure_similarity(case, added.get(at)?))))
            .filter(|(_, likeness)| *likeness >= ALIKE && *likeness > own)
            .max_by(|one, two| one.1.total_cmp(&two.1));
        if let Some((at, _)) = best
            && let Some(place) = added.get_mut(at)
        {
            pair.1 = std::mem::replace(place, other);
        }
    }
    CasePairs { both, gone, added }
}

pub(super) fn are_alike(one: &ListedTest, other: &ListedTest) -> bool {
    measure_similarity(one, other) >= ALIKE
}

/// Returns the similarity of two bodies from 0 to 1. Empty and overlong bodies have no similarity.
fn measure_similarity(one: &ListedTest, other: &ListedTest) -> f32 {
    let text = |case: &ListedTest| {
        case.body
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let (one, other) = (text(one), text(other));
    let longest = one.len().max(other.len());
    if longest == 0 || longest >= MAX_BODY {
        return 0.0;
    }
    TextDiff::from_lines(&one, &other).ratio()
}

/// Returns true when a parameterized test checks everything that this test checked: its text contains every
/// value that the test asserts about.
pub(super) fn is_merged_into(case: &ListedTest, table: &ListedTest, text: &str) -> bool {
    let own: Vec<&str> = text
        .lines()
        .skip(table.start.saturating_sub(1))
        .take(table.end.saturating_sub(table.start) + 1)
        .collect();
    let own = own.join("\n");
    let asserted: Vec<&String> = case.body.iter().filter(|line| ASSERTED.is_match(line)).collect();
    let values: BTreeSet<String> = asserted
        .iter()
        .flat_map(|line| {
            LITERAL
                .all(line)
                .map(|value| value[0].to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    let known: BTreeSet<String> = LITERAL.all(&own).map(|value| value[0].to_owned()).collect();
    let bare = |value: &str| value.trim_matches(['"', '\'', '`']).to_owned();
    // A whole table may be one string, such as `@CsvSource("1, 2")`.
    let parts: BTreeSet<String> = known
        .iter()
        .flat_map(|value| {
            bare(value)
                .split([',', '|'])
                .map(|part| part.trim().trim_matches('\'').to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    let is_there = |value: &String| known.contains(value) || parts.contains(&bare(value));
    TABLE.is_match(&own)
        && table.assertions > 0
        && !table.is_skipped
        && !values.is_empty()
        && values.iter().all(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integrity::{inventory::list_test_cases, paths::SourceLanguage};

    #[test]
    fn reused_test_name_is_not_paired() {
        let before = "def test_default():\n    a = parse('1')\n    assert a.major == 1\n    assert a.minor == 0\n    assert a.patch == 0\n";
        let after = "def test_basic():\n    a = parse('1')\n    assert a.major == 1\n    assert a.minor == 0\n    assert a.patch == 0\n\ndef test_default():\n    assert Version() is not None\n";
        let (before, after) = (
            list_test_cases(SourceLanguage::Python, before),
            list_test_cases(SourceLanguage::Python, after),
        );
        let pairs = pair_cases(&before, &after);
        assert_eq!(pairs.both[0].1.name, "test_basic");
        assert_eq!(pairs.added[0].name, "test_default");
        assert!(pairs.gone.is_empty());
    }
}
