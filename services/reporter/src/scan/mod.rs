//! Finds credentials in text by a list of rules that is kept as data, and those of the settings by value. What a page renders
//! is scanned as the page shows it. Credentials in base64, or split over lines, pass: this catches
//! accidents and the direct way out, and is not the boundary that keeps credentials away from a sandbox.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    ops::Range,
    sync::{LazyLock, PoisonError, RwLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use percent_encoding::percent_decode_str;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::bytes::{Regex, RegexBuilder};
use secrecy::{ExposeSecret as _, SecretString};
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
    let found = found.map(|rule| rule.description.as_str());
    found.or_else(|| (!configured_ranges(&clean).is_empty()).then_some(CONFIGURED_KIND))
}

/// The same for Markdown that a page renders: what entities, percent signs, marks and escapes spell counts too.
pub(crate) fn find_rendered(text: &str) -> Option<&'static str> {
    find(text).or_else(|| rendered(text).and_then(|shown| find(&shown)))
}

/// What a page shows of Markdown and where its links lead, with percent signs decoded; absent where the text itself says it.
fn rendered(text: &str) -> Option<String> {
    if !text.contains(['&', '%', '\\', '*', '_', '<', '`']) {
        return None;
    }
    let mut shown = String::with_capacity(text.len());
    let mut addresses = String::new();
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES) {
        match event {
            Event::Text(words) | Event::Code(words) | Event::Html(words) | Event::InlineHtml(words) => {
                shown.push_str(&words);
            }
            Event::Start(Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. }) => {
                addresses.push_str(&format!("\n{dest_url}\n{title}"));
            }
            Event::SoftBreak
            | Event::HardBreak
            | Event::End(TagEnd::Paragraph | TagEnd::TableCell | TagEnd::Item) => {
                shown.push('\n');
            }
            _ => {}
        }
    }
    shown.push_str(&addresses);
    let decoded = percent_decode_str(&shown).decode_utf8_lossy();
    Some(decoded.into_owned())
}

/// The text with each credential replaced by its kind in brackets. Where only the page would show one, the text becomes what
/// the page shows.
pub(crate) fn redact_rendered(text: &str) -> Cow<'_, str> {
    match rendered(text).filter(|shown| find(text).is_none() && find(shown).is_some()) {
        Some(shown) => Cow::Owned(redact(&shown).into_owned()),
        None => redact(text),
    }
}

/// Credentials of the settings, which are known by value whatever they look like.
static CONFIGURED: RwLock<Vec<String>> = RwLock::new(Vec::new());
/// A shorter one would be found in ordinary words.
const SHORTEST_CONFIGURED: usize = 8;
const CONFIGURED_KIND: &str = "configured credential";

/// Adds credentials of the settings.
pub(crate) fn add_configured<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) {
    let mut known = CONFIGURED.write().unwrap_or_else(PoisonError::into_inner);
    for secret in secrets {
        let secret = secret.expose_secret().trim();
        if secret.len() >= SHORTEST_CONFIGURED && !known.iter().any(|one| one == secret) {
            known.push(secret.to_owned());
        }
    }
}

/// Where credentials of the settings are in a text.
fn configured_ranges(text: &str) -> Vec<Range<usize>> {
    let known = CONFIGURED.read().unwrap_or_else(PoisonError::into_inner);
    let of = |secret: &String| {
        let found = text.match_indices(secret.as_str());
        found.map(|(at, found)| at..at + found.len()).collect::<Vec<_>>()
    };
    known.iter().flat_map(of).collect()
}

/// The text without user and password of addresses, for words of a remote, which repeat the address that git was given.
pub(crate) fn without_logins(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after
            .find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c))
            .unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(sign) => {
                shown.push_str("[credentials removed]");
                &after[sign..]
            }
            None => after,
        };
    }
    shown.push_str(rest);
    shown
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
    ranges.extend(
        configured_ranges(&clean)
            .into_iter()
            .map(|range| (range, CONFIGURED_KIND)),
    );
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
