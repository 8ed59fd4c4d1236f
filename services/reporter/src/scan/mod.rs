//! Credential scanner: finds credentials in text by a list of rules, and those of the settings by value.
//!
//! Text that a page renders is scanned as the page shows it. Credentials in base64, or split over lines, are not
//! found. The scan catches accidents and direct leaks; sandboxes keep credentials out by other means.

use std::{borrow::Cow, collections::BTreeSet, ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use parking_lot::RwLock;
use percent_encoding::percent_decode_str;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::bytes::{Regex, RegexBuilder};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

// Parts of the placeholders that documentation and tests use instead of credentials.
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

// Length of a document that is searched for credentials over several lines, in bytes. Manifests are shorter, and large
// data would take long.
const MAX_MULTILINE_BYTES: usize = 256 * 1024;

// Compiled rules. The rules file is part of the binary, and a test reads all rules.
static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::parse(include_str!("rules.toml")));

/// Returns the kind of the first credential in a text. It never returns the credential.
pub(crate) fn find_credential(text: &str) -> Option<&'static str> {
    let clean = strip_hidden(text);
    let mut rules = RULES.matching(&clean);
    let found = rules.find(|rule| rule.secrets(&clean).next().is_some());
    let found = found.map(|rule| rule.description.as_str());
    found.or_else(|| (!configured_ranges(&clean).is_empty()).then_some(CONFIGURED_KIND))
}

/// Returns the kind of the first credential of a file whose words are on several lines.
pub(crate) fn find_multiline(text: &str) -> Option<&'static str> {
    let clean = strip_hidden(text);
    // Each document of a YAML file has its own kind.
    let documents = clean.split("\n---");
    let mut documents = documents.filter(|document| document.len() <= MAX_MULTILINE_BYTES);
    documents.find_map(|document| {
        let mut rules = RULES.matching(document).filter(|rule| rule.multiline);
        let found = rules.find(|rule| rule.secrets(document).next().is_some());
        found.map(|rule| rule.description.as_str())
    })
}

/// Finds credentials in Markdown that a page renders: entities, percent signs, marks and escapes are decoded, too.
pub(crate) fn find_rendered(text: &str) -> Option<&'static str> {
    find_credential(text).or_else(|| render_page_text(text).and_then(|shown| find_credential(&shown)))
}

/// Returns the text and the link targets that a page shows of Markdown, percent-decoded; `None` if the text has
/// nothing to decode.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "other parts of a page have no text"
)]
fn render_page_text(text: &str) -> Option<String> {
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
    // Targets come last, on separate lines, so that they do not join two parts of a text.
    shown.push_str(&addresses);
    let decoded = percent_decode_str(&shown).decode_utf8_lossy();
    Some(decoded.into_owned())
}

/// Redacts credentials. If only the page would show one, the result is the text of the page.
pub(crate) fn redact_rendered(text: &str) -> Cow<'_, str> {
    match render_page_text(text)
        .filter(|shown| find_credential(text).is_none() && find_credential(shown).is_some())
    {
        Some(shown) => Cow::Owned(redact_credentials(&shown).into_owned()),
        None => redact_credentials(text),
    }
}

// Credentials of the settings, which are found by value in any form.
static CONFIGURED: RwLock<Vec<String>> = RwLock::new(Vec::new());
// Shortest credential that is found by value. A shorter one would match ordinary words.
const SHORTEST_CONFIGURED: usize = 8;
const CONFIGURED_KIND: &str = "configured credential";

/// Registers credentials of the settings.
pub(crate) fn add_configured<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) {
    let mut known = CONFIGURED.write();
    for secret in secrets {
        let secret = secret.expose_secret().trim();
        if secret.len() >= SHORTEST_CONFIGURED && !known.iter().any(|one| one == secret) {
            known.push(secret.to_owned());
        }
    }
}

/// Returns the positions of configured credentials in a text.
fn configured_ranges(text: &str) -> Vec<Range<usize>> {
    let known = CONFIGURED.read();
    let of = |secret: &String| {
        let found = text.match_indices(secret.as_str());
        found.map(|(at, found)| at..at + found.len()).collect::<Vec<_>>()
    };
    known.iter().flat_map(of).collect()
}

/// Removes user and password from addresses. Messages of a remote repeat the address that git received.
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

/// Replaces each credential by its kind in brackets.
pub(crate) fn redact_credentials(text: &str) -> Cow<'_, str> {
    let clean = strip_hidden(text);
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
    // Ranges of several rules may overlap. They are merged, so that no part of a credential remains.
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

/// Removes invisible characters, which could separate the characters of a credential.
fn strip_hidden(text: &str) -> Cow<'_, str> {
    if text.contains(domain::text::is_hidden) {
        Cow::Owned(domain::text::remove_invisible(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// One rule of the rules file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScanRule {
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
    #[serde(default = "default_true")]
    digit: bool,
    #[serde(default)]
    joined: bool,
    #[serde(default)]
    multiline: bool,
    #[serde(skip)]
    compiled: std::sync::OnceLock<Option<Regex>>,
}

const fn default_true() -> bool {
    true
}

#[derive(Deserialize)]
struct RuleFile {
    rules: Vec<ScanRule>,
}

struct RuleSet {
    rules: Vec<ScanRule>,
    keywords: Option<AhoCorasick>,
    /// Index of the rule of each keyword.
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
        // Keywords select the rules to try, so most texts run no regex at all.
        let mut builder = AhoCorasickBuilder::new();
        let keywords = builder.ascii_case_insensitive(true).build(keywords).ok();
        Self {
            rules,
            keywords,
            owners,
        }
    }

    /// Returns the rules whose keywords occur in the text, in the order of the file.
    fn matching<'a>(&'a self, text: &str) -> impl Iterator<Item = &'a ScanRule> + use<'a> {
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

impl ScanRule {
    fn regex(&self) -> Option<&Regex> {
        let compile = || RegexBuilder::new(&self.regex).unicode(false).build().ok();
        self.compiled.get_or_init(compile).as_ref()
    }

    /// Returns the positions of the rule's secrets.
    fn secrets<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let found = self.regex().into_iter();
        found
            .flat_map(|regex| regex.captures_iter(text.as_bytes()))
            .filter_map(|found| {
                let whole = found.get(0)?;
                let secret = found.name("secret").unwrap_or(whole);
                // A match inside of a word is part of something else, unless the rule permits it.
                let is_start = self.joined || !follows_a_word(text, whole.start());
                (is_start && self.is_secret(secret.as_bytes())).then(|| secret.range())
            })
            .filter(|range| text.is_char_boundary(range.start) && text.is_char_boundary(range.end))
    }

    fn is_secret(&self, secret: &[u8]) -> bool {
        let lower = String::from_utf8_lossy(secret).to_ascii_lowercase();
        (!self.digit || secret.iter().any(u8::is_ascii_digit))
            && (self.entropy <= 0.0 || shannon_entropy(secret) >= self.entropy)
            && !PLACEHOLDERS.iter().any(|word| lower.contains(word))
    }
}

fn follows_a_word(text: &str, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Shannon entropy in bits per byte.
fn shannon_entropy(bytes: &[u8]) -> f64 {
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
