//! Finds credentials in text by a list of rules that is kept as data. Encoded or split credentials pass: this catches
//! accidents and the direct way out, and is not the boundary that keeps credentials away from a sandbox.

use std::{borrow::Cow, collections::BTreeSet, ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

/// Parts of what stands in documentation and tests in a credential's place.
const PLACEHOLDERS: [&str; 8] = [
    "example",
    "placeholder",
    "changeme",
    "redacted",
    "xxxxxxxx",
    "your-",
    "your_",
    "dummy",
];

/// The rules, ready to be applied. They are part of the program and a test reads all of them.
static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::parse(include_str!("rules.toml")));

/// The kind of the first credential in a text, in words; the credential itself is never returned.
pub(crate) fn find(text: &str) -> Option<&'static str> {
    let clean = readable(text);
    let mut rules = RULES.matching(&clean);
    let found = rules.find(|rule| rule.secrets(&clean).next().is_some());
    found.map(|rule| rule.description.as_str())
}

/// The text with each credential replaced by its kind in brackets.
pub(crate) fn redact(text: &str) -> Cow<'_, str> {
    let clean = readable(text);
    let mut ranges: Vec<(Range<usize>, &'static str)> = RULES
        .matching(&clean)
        .flat_map(|rule| {
            let found = rule.secrets(&clean);
            found.map(|range| (range, rule.description.as_str()))
        })
        .collect();
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    ranges.sort_by_key(|(range, _)| range.start);
    let (mut shown, mut copied) = (String::with_capacity(clean.len()), 0);
    for (range, kind) in ranges {
        if range.start >= copied {
            shown.push_str(&clean[copied..range.start]);
            shown.push_str(&format!("[{kind} removed]"));
        }
        copied = copied.max(range.end);
    }
    shown.push_str(&clean[copied..]);
    Cow::Owned(shown)
}

/// Without what may stand between the characters of a credential and is not seen.
fn readable(text: &str) -> Cow<'_, str> {
    if text.contains(domain::text::is_hidden) {
        Cow::Owned(domain::text::without_hidden(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// One rule as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for people who keep the file, and for its test")
    )]
    id: String,
    description: String,
    regex: String,
    keywords: Vec<String>,
    #[serde(default)]
    entropy: f64,
    #[serde(default = "yes")]
    digit: bool,
    #[serde(default)]
    joined: bool,
    #[serde(skip)]
    compiled: std::sync::OnceLock<Option<Regex>>,
}

const fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct RuleFile {
    rules: Vec<Rule>,
}

struct RuleSet {
    rules: Vec<Rule>,
    keywords: Option<AhoCorasick>,
    /// The rule of each keyword.
    owners: Vec<usize>,
}

impl RuleSet {
    fn parse(text: &str) -> Self {
        let rules = toml::from_str::<RuleFile>(text).map_or_else(|_| Vec::new(), |file| file.rules);
        let pairs = rules
            .iter()
            .enumerate()
            .flat_map(|(index, rule)| rule.keywords.iter().map(move |keyword| (index, keyword)));
        let (owners, keywords): (Vec<usize>, Vec<&String>) = pairs.unzip();
        let mut builder = AhoCorasickBuilder::new();
        let keywords = builder.ascii_case_insensitive(true).build(keywords).ok();
        Self {
            rules,
            keywords,
            owners,
        }
    }

    /// The rules that may apply, in the file's order.
    fn matching<'a>(&'a self, text: &str) -> impl Iterator<Item = &'a Rule> + use<'a> {
        let found = self
            .keywords
            .iter()
            .flat_map(|all| all.find_overlapping_iter(text));
        let owners: BTreeSet<usize> = found
            .filter_map(|found| self.owners.get(found.pattern().as_usize()).copied())
            .collect();
        owners.into_iter().filter_map(|index| self.rules.get(index))
    }
}

impl Rule {
    fn regex(&self) -> Option<&Regex> {
        let compile = || RegexBuilder::new(&self.regex).unicode(false).build().ok();
        self.compiled.get_or_init(compile).as_ref()
    }

    /// Where the rule's secrets are.
    fn secrets<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let found = self.regex().into_iter();
        found
            .flat_map(|regex| regex.captures_iter(text.as_bytes()))
            .filter_map(|found| {
                let whole = found.get(0)?;
                let secret = found.name("secret").unwrap_or(whole);
                let is_start = self.joined || !follows_a_word(text, whole.start());
                (is_start && self.is_secret(secret.as_bytes())).then(|| secret.range())
            })
            .filter(|range| text.is_char_boundary(range.start) && text.is_char_boundary(range.end))
    }

    fn is_secret(&self, secret: &[u8]) -> bool {
        let lower = String::from_utf8_lossy(secret).to_ascii_lowercase();
        (!self.digit || secret.iter().any(u8::is_ascii_digit))
            && (self.entropy <= 0.0 || entropy(secret) >= self.entropy)
            && !PLACEHOLDERS.iter().any(|word| lower.contains(word))
    }
}

fn follows_a_word(text: &str, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Shannon entropy in bits per byte.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let length = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX)).max(1.0);
    let shares = counts.iter().filter(|count| **count > 0);
    shares
        .map(|count| {
            let share = f64::from(*count) / length;
            -share * share.log2()
        })
        .sum()
}

#[cfg(test)]
mod tests;
