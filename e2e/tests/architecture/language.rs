//! Readability of names and comments, held by ceilings that only fall.
//!
//! A type has two words unless it is a term or the conventional name inside its module, a free function is a verb with an object, a
//! comment opens with a noun or a verb, and actors have names. Product crates alone are measured, without their tests.

use std::{collections::BTreeMap, path::Path};

use regex::Regex;

use crate::{find_repository_root, production_lines, rust_files};

/// Share of types of one word, in percent of the types of the workspace.
const ONE_WORD_TYPES: f64 = 8.0;
/// Share of free functions of one word, in percent.
const ONE_WORD_FUNCTIONS: f64 = 1.0;
/// Share of types whose name is that of another type, in percent.
const SHARED_TYPES: f64 = 7.0;
/// Doc comments that open with a question word, per 1,000 lines of docs.
const QUESTIONS: f64 = 2.0;
/// Lines of docs with a word for speech, per 1,000.
const SPEECH: f64 = 2.0;
/// Lines of docs with an actor without a name, per 1,000.
const UNNAMED_ACTORS: f64 = 1.0;
/// Share of docs that open with three words or fewer, in percent.
const SHORT_DOCS: f64 = 4.0;
/// Median of the words in names of tests.
const TEST_WORDS: usize = 7;
/// Least share of comments that give a reason, in percent of lines.
const REASONS: f64 = 1.7;

#[derive(Default)]
struct LanguageFigures {
    lines: usize,
    types: BTreeMap<String, usize>,
    functions: Vec<String>,
    doc_lines: usize,
    doc_openings: usize,
    short_docs: usize,
    questions: usize,
    speech: usize,
    unnamed_actors: usize,
    reasons: usize,
}

struct LanguagePatterns {
    types: Regex,
    function: Regex,
    question: Regex,
    speech: Regex,
    unnamed_actor: Regex,
}

impl LanguagePatterns {
    fn new() -> Self {
        let pattern = |text| Regex::new(text).unwrap();
        Self {
            // The trait names an associated type, so only aliases at the start of a line count.
            types: pattern(
                r"^(?:\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|trait|union)|(?:pub(?:\([^)]*\))?\s+)?type)\s+([A-Z]\w*)",
            ),
            function: pattern(r"^(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|async|unsafe)\s+)*fn\s+(\w+)"),
            question: pattern(r"^(?:What|Who|Whoever|Whose|Whom|How|Why|Where|Whether|Which)\b"),
            speech: pattern(r"(?i)\b(?:tells?|told|telling|hears?|heard)\b"),
            unnamed_actor: pattern(r"(?i)\b(?:somebody|nobody|whoever|anybody)\b"),
        }
    }
}

impl LanguageFigures {
    fn add(&mut self, lines: &[String], patterns: &LanguagePatterns) {
        let mut is_in_doc = false;
        for line in lines {
            self.lines += 1;
            if let Some(found) = patterns.types.captures(line) {
                *self.types.entry(found[1].to_owned()).or_default() += 1;
            }
            if let Some(found) = patterns.function.captures(line)
                && &found[1] != "main"
            {
                self.functions.push(found[1].to_owned());
            }
            let text = line.trim();
            let doc = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
            if let Some(doc) = doc {
                self.add_doc(doc.trim(), !is_in_doc, patterns);
            } else if text.starts_with("//") {
                self.reasons += 1;
            }
            is_in_doc = doc.is_some();
        }
    }

    fn add_doc(&mut self, doc: &str, is_opening: bool, patterns: &LanguagePatterns) {
        if doc.is_empty() || doc.starts_with('#') {
            return;
        }
        self.doc_lines += 1;
        self.speech += usize::from(patterns.speech.is_match(doc));
        self.unnamed_actors += usize::from(patterns.unnamed_actor.is_match(doc));
        if is_opening {
            self.doc_openings += 1;
            self.questions += usize::from(patterns.question.is_match(doc));
            self.short_docs += usize::from(doc.split_whitespace().count() <= 3);
        }
    }

    fn breaches(&self) -> Vec<String> {
        let types = self.types.values().sum();
        let one_word = self.types.iter().filter(|(name, _)| count_words(name) == 1);
        let shared = self.types.values().filter(|count| **count > 1);
        let functions = self.functions.iter().filter(|name| count_words(name) == 1);
        let ceilings = [
            (
                "% types of one word",
                compute_percent(one_word.map(|(_, count)| count).sum(), types),
                ONE_WORD_TYPES,
            ),
            (
                "% functions of one word",
                compute_percent(functions.count(), self.functions.len()),
                ONE_WORD_FUNCTIONS,
            ),
            (
                "% types that share a name",
                compute_percent(shared.sum(), types),
                SHARED_TYPES,
            ),
            (
                "question words per 1,000",
                10.0 * compute_percent(self.questions, self.doc_lines),
                QUESTIONS,
            ),
            (
                "words for speech per 1,000",
                10.0 * compute_percent(self.speech, self.doc_lines),
                SPEECH,
            ),
            (
                "unnamed actors per 1,000",
                10.0 * compute_percent(self.unnamed_actors, self.doc_lines),
                UNNAMED_ACTORS,
            ),
            (
                "% docs of three words",
                compute_percent(self.short_docs, self.doc_openings),
                SHORT_DOCS,
            ),
        ];
        let mut breaches = list_breaches(&ceilings);
        let reasons = compute_percent(self.reasons, self.lines);
        if reasons < REASONS {
            breaches.push(format!(
                "% comments with a reason: {reasons:.1}, at least {REASONS}"
            ));
        }
        breaches
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a source tree are small")]
pub(crate) fn compute_percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Returns a line for each name whose value is above its ceiling.
pub(crate) fn list_breaches(ceilings: &[(&str, f64, f64)]) -> Vec<String> {
    ceilings
        .iter()
        .filter(|(_, value, ceiling)| value > ceiling)
        .map(|(name, value, ceiling)| format!("{name}: {value:.1}, at most {ceiling}"))
        .collect()
}

/// Words of a name in camel case or snake case.
fn count_words(name: &str) -> usize {
    if name.starts_with(char::is_uppercase) {
        let letters: Vec<char> = name.chars().collect();
        let starts = (1..letters.len()).filter(|at| {
            letters[*at].is_uppercase()
                && (!letters[at - 1].is_uppercase()
                    || letters.get(at + 1).is_some_and(|next| next.is_lowercase()))
        });
        1 + starts.count()
    } else {
        name.split('_').filter(|word| !word.is_empty()).count()
    }
}

fn is_product(file: &Path) -> bool {
    let name = file
        .strip_prefix(find_repository_root())
        .unwrap()
        .display()
        .to_string();
    let is_test = name.contains("/tests/") || name.ends_with("tests.rs");
    !is_test && !name.starts_with("e2e/") && !name.starts_with("crates/testkit/")
}

#[test]
fn names_and_comments_stay_below_ceilings() {
    let patterns = LanguagePatterns::new();
    let mut measured = LanguageFigures::default();
    for file in rust_files(&find_repository_root())
        .iter()
        .filter(|file| is_product(file))
    {
        measured.add(&production_lines(file), &patterns);
    }
    assert!(measured.lines > 80_000, "the sources are not read as expected");
    let breaches = measured.breaches();
    assert!(breaches.is_empty(), "{breaches:#?}");
}

#[test]
fn names_of_tests_have_few_words() {
    let test =
        Regex::new(r"#\[(?:tokio::)?test[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:async\s+)?fn\s+(\w+)").unwrap();
    let mut words = Vec::new();
    for file in rust_files(&find_repository_root()) {
        let text = std::fs::read_to_string(file).unwrap();
        words.extend(test.captures_iter(&text).map(|found| count_words(&found[1])));
    }
    words.sort_unstable();
    assert!(
        words.len() > 1_500,
        "the tests are not read as expected: {}",
        words.len()
    );
    assert!(
        words[words.len() / 2] <= TEST_WORDS,
        "median {}",
        words[words.len() / 2]
    );
}

#[test]
fn figures_find_what_they_name() {
    let patterns = LanguagePatterns::new();
    let lines = [
        "//! Whoever reads this.",
        "",
        "/// Short one.",
        "pub struct Place;",
        "/// It is told to nobody.",
        "pub(crate) enum TicketPlace {}",
        "pub async fn look() {}",
        "    // Redis forgets keys after a day.",
        "fn read_place() {}",
        "    fn method() {}",
        "type Place = u8;",
    ];
    let mut measured = LanguageFigures::default();
    measured.add(&lines.map(str::to_owned), &patterns);
    let counts = (
        measured.questions,
        measured.speech,
        measured.unnamed_actors,
        measured.short_docs,
        measured.reasons,
    );
    assert_eq!(counts, (1, 1, 2, 2, 1));
    assert_eq!(measured.functions, ["look", "read_place"]);
    assert_eq!(measured.types["Place"], 2);
    assert_eq!(measured.breaches().len(), 7);
    assert_eq!(
        ["JSONPath", "HttpClient", "Place", "read_place", "of"].map(count_words),
        [2, 2, 1, 2, 1]
    );
}
