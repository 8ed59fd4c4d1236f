//! Finds the sentence of a ticket that asks for a finding, to quote it with the finding. Pure: computed from
//! the words of the finding and the ticket.

use domain::{check::ChangeFinding, text::truncate_bytes};

use crate::pattern::LazyPattern;

/// Limit of a quoted sentence, in characters.
const MAX_SENTENCE: usize = 240;
/// Limit of the ticket's text that is read, in bytes.
const MAX_TICKET: usize = 64 * 1024;
// Shorter names occur in many sentences by chance.
const MIN_NAME: usize = 4;

/// Kinds of findings that a ticket may ask for. Kinds that let a change decide its own results are missing on
/// purpose: a reviewer must see them as blocking.
const LOWERED: [&str; 25] = [
    "ambient_settings_changed",
    "check_removed",
    "checker_silenced",
    "config_changed",
    "dependency_added",
    "equality_defined",
    "exception_hidden",
    "exit_called",
    "job_narrowed",
    "job_removed",
    "lockfile_changed",
    "migration_added",
    "module_replaced",
    "permissions_widened",
    "pin_loosened",
    "review_hidden",
    "rows_left_out",
    "severity_lowered",
    "snapshots_changed",
    "test_file_removed",
    "test_left_out",
    "test_removed",
    "test_skipped",
    "tests_left_out",
    "tests_retried",
];

static ASKS: LazyPattern = LazyPattern::new(
    r"(?i)\b(?:add|allow|bump|change|configure|create|define|delete|disable|drop|edit|enable|exclude|extend|fix|grant|ignore|implement|increase|introduce|lower|make|mark|migrate|move|pin|raise|reduce|relax|remove|rename|replace|retire|retry|run|set|skip|stop|switch|turn|unpin|update|upgrade|use|write)(?:s|d|ed|ing)?\b|\bget rid of\b|\bno longer\b|\bshould be\b|\bmust be\b",
);
static TAKES_AWAY: LazyPattern = LazyPattern::new(
    r"(?i)\b(?:delete|drop|remove|retire|kill|deprecate|discontinue)(?:s|d|ed|ing)?\b|\bremoving\b|\bget rid of\b|\btake out\b|\bno longer (?:needed|supported|offered)\b",
);
static FORBIDS: LazyPattern = LazyPattern::new(
    r"(?i)\b(?:do not|don't|must not|mustn't|never|should not|shouldn't|without|cannot|may not|avoid|instead of|rather than|not to)\b|\b(?:leave|keep)\b.*\b(?:alone|unchanged|as (?:it is|they are|is)|untouched)\b|\bunchanged\b|\buntouched\b",
);
/// The key in the words of a finding about a manifest.
static KEY: LazyPattern = LazyPattern::new(r"differ: (\S+) is ");
/// The name of a test or dependency at the beginning of a finding's words.
static SUBJECT: LazyPattern =
    LazyPattern::new(r"^(\S+) is (?:gone|left out|a new dependency|\S+ instead of)");
static PART: LazyPattern = LazyPattern::new(r"[A-Za-z][a-z]+|[A-Z]+|\d+");
/// Identifiers in a line of code, as a ticket would name them.
static CODE_NAME: LazyPattern = LazyPattern::new(r"[A-Za-z_][\w-]*[_-][\w-]*\w|__\w+__|[a-z]+[A-Z]\w*");

/// Returns the sentence of a ticket that asks for a finding; `None` when no sentence names its file, key or
/// subject.
pub(crate) fn find_request(finding: &ChangeFinding, ticket: &str) -> Option<String> {
    if !LOWERED.contains(&finding.kind.as_str()) {
        return None;
    }
    let sentences = split_sentences(truncate_bytes(ticket, MAX_TICKET));
    let asking = sentences
        .into_iter()
        .filter(|sentence| ASKS.is_match(sentence) && !FORBIDS.is_match(sentence));
    let found = asking
        .into_iter()
        .find(|sentence| names_file(finding, sentence) || names_subject(finding, sentence))?;
    Some(found.chars().take(MAX_SENTENCE).collect())
}

/// Splits a text into lines and their sentences. A dot inside a name does not end a sentence.
fn split_sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        for (at, mark) in line
            .char_indices()
            .filter(|(_, c)| matches!(c, '.' | '!' | '?' | ';'))
        {
            let end = at + mark.len_utf8();
            let ends = line
                .get(end..)
                .is_none_or(|rest| rest.is_empty() || rest.starts_with(' '));
            if ends {
                found.extend(line.get(start..end));
                start = end;
            }
        }
        found.extend(line.get(start..));
    }
    found
        .into_iter()
        .map(str::trim)
        .filter(|sentence| !sentence.is_empty())
        .collect()
}

fn names_file(finding: &ChangeFinding, sentence: &str) -> bool {
    let name = finding.path.rsplit('/').next().unwrap_or(&finding.path);
    let is_telling = name.len() > MIN_NAME && (name.contains('.') || name.chars().any(char::is_uppercase));
    has_word(sentence, &finding.path) || (is_telling && has_word(sentence, name))
}

fn names_subject(finding: &ChangeFinding, sentence: &str) -> bool {
    if let Some(key) = KEY.first(&finding.words) {
        return names_key(key, sentence);
    }
    if let Some(subject) = SUBJECT.first(&finding.words) {
        let last = subject.rsplit('.').next().unwrap_or(subject);
        if [subject, last]
            .iter()
            .any(|name| name.len() >= MIN_NAME && has_word(sentence, name))
        {
            return true;
        }
        // Removal of a feature includes its tests, even if the ticket does not name them.
        let is_removal = matches!(finding.kind.as_str(), "test_removed" | "test_file_removed");
        return is_removal && TAKES_AWAY.is_match(sentence) && names_part(last, sentence);
    }
    let names = CODE_NAME.all(&finding.words);
    names
        .map(|name| name[0].to_owned())
        .any(|name| has_word(sentence, &name))
}

/// Returns true when a sentence names a key: by its whole path, by a last part that is not a plain word, or
/// by its last part and its table.
fn names_key(key: &str, sentence: &str) -> bool {
    let parts: Vec<&str> = key
        .split('.')
        .filter(|part| part.parse::<usize>().is_err())
        .collect();
    let Some(last) = parts.last() else { return false };
    let is_telling = last.contains(['_', '-']) || last.chars().skip(1).any(char::is_uppercase);
    let table = parts
        .iter()
        .rev()
        .skip(1)
        .filter(|part| !matches!(**part, "tool" | "scripts" | "ini_options" | "lint"));
    let names_table = table.into_iter().any(|part| has_word(sentence, part));
    has_word(sentence, key)
        || (has_word(sentence, last) && (is_telling || names_table || parts.first() == Some(&"scripts")))
}

/// Returns true when a sentence contains a distinctive part of a test's name, also in the plural.
fn names_part(name: &str, sentence: &str) -> bool {
    const COMMON: [&str; 12] = [
        "test", "tests", "with", "when", "that", "does", "should", "from", "returns", "works", "case",
        "without",
    ];
    let parts = PART.all(name).map(|part| part[0].to_ascii_lowercase());
    parts
        .filter(|part| part.len() >= MIN_NAME && !COMMON.contains(&part.as_str()))
        .any(|part| has_word(sentence, &part) || has_word(sentence, &format!("{part}s")))
}

fn has_word(sentence: &str, word: &str) -> bool {
    let (sentence, word) = (sentence.to_lowercase(), word.to_lowercase());
    let is_edge = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == '-'));
    !word.is_empty()
        && sentence.match_indices(&word).any(|(at, _)| {
            let before = sentence.get(..at).and_then(|text| text.chars().next_back());
            let after = sentence
                .get(at + word.len()..)
                .and_then(|text| text.chars().next());
            is_edge(before) && is_edge(after)
        })
}

#[cfg(test)]
mod tests {
    use domain::check::FindingSeverity;
    use proptest::prelude::*;

    use super::*;

    fn build_finding(path: &str, kind: &str, words: &str) -> ChangeFinding {
        crate::integrity::new_finding(path, 1, kind, FindingSeverity::Block, words)
    }

    #[test]
    fn ticket_sentence_naming_file_is_quoted() {
        let strict = "settings of a runner or checker differ: tool.mypy.strict is false instead of true";
        for (found, ticket, quoted) in [
            (
                build_finding("pytest.ini", "config_changed", "settings differ"),
                "Tests are slow. Please add `-n auto` to pytest.ini. Thanks!",
                "Please add `-n auto` to pytest.ini.",
            ),
            (
                build_finding("pyproject.toml", "config_changed", strict),
                "Turn off mypy strict mode for now",
                "Turn off mypy strict mode for now",
            ),
            (
                build_finding(
                    "pyproject.toml",
                    "config_changed",
                    "differ: tool.coverage.report.fail_under is 80 instead of 90",
                ),
                "Lower fail_under to 80.",
                "Lower fail_under to 80.",
            ),
            (
                build_finding("tests/test_gift.py", "test_removed", "test_gift_card is gone"),
                "We retire gift cards.\nRemove the code.",
                "We retire gift cards.",
            ),
            (
                build_finding("tests/test_a.py", "test_removed", "test_gift_card is gone"),
                "Delete test_gift_card, it is wrong.",
                "Delete test_gift_card, it is wrong.",
            ),
            (
                build_finding(".github/workflows/ci.yml", "job_removed", "no longer run: lint"),
                "Remove the lint job from ci.yml",
                "Remove the lint job from ci.yml",
            ),
            (
                build_finding("shop/cart.py", "equality_defined", "def __eq__(self, other):"),
                "Carts need `__eq__`: add it.",
                "Carts need `__eq__`: add it.",
            ),
        ] {
            assert_eq!(find_request(&found, ticket).as_deref(), Some(quoted), "{ticket}");
        }
    }

    #[test]
    fn forbidding_sentence_lowers_no_finding() {
        let config = build_finding("pytest.ini", "config_changed", "settings differ");
        for ticket in [
            "",
            "The total is wrong.",
            "Do not change pytest.ini.",
            "Fix the total without touching pytest.ini",
            "Leave pytest.ini unchanged and fix the total",
            "It fails with the options of pytest.ini",
        ] {
            assert_eq!(find_request(&config, ticket), None, "{ticket}");
        }
        let strict = build_finding(
            "pyproject.toml",
            "config_changed",
            "differ: tool.mypy.strict is false instead of true",
        );
        assert_eq!(find_request(&strict, "Make the parser strict"), None);
        let hook = build_finding("conftest.py", "runner_hooked", "def pytest_runtest_call(item):");
        assert_eq!(
            find_request(&hook, "Add a hook pytest_runtest_call to conftest.py"),
            None,
            "a person looks at it"
        );
        let removed = build_finding("tests/test_a.py", "test_removed", "test_total is gone");
        assert_eq!(find_request(&removed, "Fix the total of the cart"), None);
    }

    #[test]
    fn every_pattern_can_be_read() {
        for pattern in [&ASKS, &TAKES_AWAY, &FORBIDS, &KEY, &SUBJECT, &PART, &CODE_NAME] {
            assert!(pattern.is_sound());
        }
    }

    proptest! {
        #[test]
        fn no_ticket_stops_the_search(ticket in "\\PC{0,400}", words in "\\PC{0,60}") {
            let found = find_request(&build_finding("a/pytest.ini", "config_changed", &words), &ticket);
            prop_assert!(found.is_none_or(|sentence| sentence.chars().count() <= MAX_SENTENCE));
        }
    }
}
