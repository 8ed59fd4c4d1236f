//! Query from the text of a ticket: paths, names, messages, words.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::{stop_words::is_stop_word, text::truncate_text, tokens};

/// Maximum length of the text that is read, in bytes.
const MAX_TEXT: usize = 64 * 1024;
const MAX_PATHS: usize = 30;
const MAX_IDENTIFIERS: usize = 60;
const MAX_ERRORS: usize = 5;
const MAX_WORDS: usize = 400;
/// Minimum length of a quoted text that counts as a message, in bytes.
const MIN_MESSAGE: usize = 12;
const MAX_MESSAGE: usize = 200;

/// Search terms of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// Files, with the line if the text has one.
    pub paths: Vec<PathMention>,
    /// Names of code, spelled as in the text.
    pub identifiers: Vec<String>,
    /// Messages that the code should contain literally.
    pub messages: Vec<String>,
    /// Words of prose in lower case, each as often as it occurs.
    pub words: Vec<String>,
}

/// File that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMention {
    /// Path, spelled as in the text.
    pub path: String,
    /// Line, from 1.
    pub line: Option<u32>,
}

/// Compiles a pattern. An invalid one matches nothing, which the tests below would detect.
fn compile_pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

static URL: LazyLock<Option<Regex>> = LazyLock::new(|| compile_pattern(r"https?://[^\s<>)\]]+"));
static BLOB: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile_pattern(r"/(?:blob|src|raw)/[^/\s]+/([^\s?#]+)(?:#L([0-9]+))?"));
static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile_pattern(concat!(
        r"((?:[A-Za-z0-9_.@+\[\]-]*/)*[A-Za-z0-9_.@+\[\]-]*(?:\.[A-Za-z][A-Za-z0-9]{0,9}|Makefile|Dockerfile|Jenkinsfile|Gemfile|Rakefile))",
        // Lines as in tracebacks of Python, messages of compilers, links of GitHub, and messages of MSBuild.
        r#"(?:"?,? (?:on )?line ([0-9]{1,7})|:([0-9]{1,7})|#L([0-9]{1,7})|\(([0-9]{1,7})[,)])?"#
    ))
});
static SPAN: LazyLock<Option<Regex>> = LazyLock::new(|| compile_pattern(r"`([^`\n]{1,200})`"));
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile_pattern(r"[A-Za-z_$][A-Za-z0-9_$]*(?:(?:::|\.|->|#)[A-Za-z_$][A-Za-z0-9_$]*)*(\()?")
});
static QUOTE: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile_pattern(r#""([^"\n]{12,200})"|“([^”\n]{12,200})”|'([^'\n]{12,200})'"#));
static ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile_pattern(
        r"(?m)(?:\b[A-Za-z.]*(?:Error|Exception)\b|\bpanic(?:ked)?\b[^:\n]*|\b[Ee]rror|\bFATAL|\bERROR)\s*:\s*([^\n]{12,300})",
    )
});

impl SearchQuery {
    /// Builds the query of a text.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let text = truncate_text(text, MAX_TEXT);
        let mut query = Self::default();
        query.read_urls(text);
        // URLs are removed after their paths were read, so that their parts do not become names and words.
        let text = URL
            .as_ref()
            .map_or_else(|| text.into(), |url| url.replace_all(text, " "));
        query.read_paths(&text);
        query.read_messages(&text);
        query.read_spans(&text);
        query.read_names(&text);
        query.read_words(&text);
        query
    }

    /// True when the text contains no search term.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
            && self.identifiers.is_empty()
            && self.messages.is_empty()
            && self.words.is_empty()
    }

    fn read_urls(&mut self, text: &str) {
        for found in BLOB.iter().flat_map(|blob| blob.captures_iter(text)) {
            self.mention(&found[1], parse_line_number(&found, &[2]));
        }
    }

    fn read_paths(&mut self, text: &str) {
        for found in PATH.iter().flat_map(|path| path.captures_iter(text)) {
            self.mention(&found[1], parse_line_number(&found, &[2, 3, 4, 5]));
        }
    }

    fn mention(&mut self, path: &str, line: Option<u32>) {
        let path = path.trim_start_matches("./").trim_end_matches('.');
        if let Some(known) = self.paths.iter_mut().find(|known| known.path == path) {
            known.line = known.line.or(line);
        } else if path.len() > 2 && self.paths.len() < MAX_PATHS {
            let path = path.to_owned();
            self.paths.push(PathMention { path, line });
        }
    }

    fn read_messages(&mut self, text: &str) {
        let quoted = QUOTE.iter().flat_map(|quote| quote.captures_iter(text));
        let quoted =
            quoted.filter_map(|found| (1..=3).find_map(|at| found.get(at)).map(|text| text.as_str()));
        let errors = ERROR.iter().flat_map(|error| error.captures_iter(text));
        let errors = errors.filter_map(|found| found.get(1).map(|text| text.as_str()));
        // Errors first: the number of messages is limited, and a quotation may be plain prose.
        for message in errors.chain(quoted) {
            let message = fixed_part(message);
            let is_known = self
                .messages
                .iter()
                .any(|known| known.contains(message) || message.contains(known.as_str()));
            if message.len() >= MIN_MESSAGE
                && message.contains(' ')
                && !is_known
                && self.messages.len() < MAX_ERRORS
            {
                self.messages.push(truncate_text(message, MAX_MESSAGE).to_owned());
            }
        }
    }

    fn read_spans(&mut self, text: &str) {
        for span in SPAN.iter().flat_map(|span| span.captures_iter(text)) {
            let names: Vec<&str> = names_in(&span[1]).map(|(name, _)| name).collect();
            // A span with a whole sentence or command is not a list of names.
            if names.len() <= 4 {
                names.into_iter().for_each(|name| self.name(name));
            }
        }
    }

    fn read_names(&mut self, text: &str) {
        for (name, is_called) in names_in(text) {
            if is_called || is_compound(name) {
                self.name(name);
            }
        }
    }

    /// Adds a name, or the parts of a qualified name.
    fn name(&mut self, name: &str) {
        let last = name
            .split([':', '.', '-', '>', '#'])
            .filter(|part| !part.is_empty());
        for part in last {
            let is_name = part.len() >= 3 && !is_stop_word(&part.to_lowercase());
            let is_new = !self
                .identifiers
                .iter()
                .any(|known| known.eq_ignore_ascii_case(part));
            if is_name && is_new && self.identifiers.len() < MAX_IDENTIFIERS {
                self.identifiers.push(part.to_owned());
            }
        }
    }

    fn read_words(&mut self, text: &str) {
        let words = tokens::collect_words(text).into_iter();
        let is_searched = |word: &String| {
            word.len() >= 3 && !is_stop_word(word) && !word.bytes().all(|byte| byte.is_ascii_digit())
        };
        self.words = words.filter(is_searched).take(MAX_WORDS).collect();
    }
}

fn parse_line_number(found: &Captures<'_>, groups: &[usize]) -> Option<u32> {
    let text = groups.iter().find_map(|group| found.get(*group))?;
    text.as_str().parse().ok().filter(|line| *line > 0)
}

fn names_in(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let names = NAME.iter().flat_map(|name| name.captures_iter(text));
    names.filter_map(|found| {
        let is_called = found.get(1).is_some();
        Some((found.get(0)?.as_str().trim_end_matches('('), is_called))
    })
}

/// True for names such as `cartTotal`, `cart_total`, `Cart::total` and `MAX_ITEMS`; false for `Cart` and for
/// the last word of a sentence.
fn is_compound(name: &str) -> bool {
    let inner = name.trim_matches(['_', '$']);
    let is_camel = inner.as_bytes().windows(2).any(|pair| {
        matches!(pair, [a, b] if (a.is_ascii_lowercase() || a.is_ascii_digit()) && b.is_ascii_uppercase())
    });
    is_camel || inner.contains('_') || inner.contains("::") || inner.contains("->") || is_dotted(inner)
}

/// Extensions of files: the text before one is not a name of code.
const FILE_ENDS: &[&str] = &[
    "bash", "c", "cc", "cpp", "cs", "css", "cxx", "go", "h", "hh", "hpp", "html", "hxx", "java", "js",
    "json", "jsx", "kt", "kts", "lock", "log", "md", "php", "proto", "py", "rake", "rb", "rs", "scala", "sh",
    "sql", "swift", "toml", "ts", "tsx", "txt", "vue", "xml", "yaml", "yml",
];

/// True for `cart.total`; false for `cart.py`, `e.g` and `this.That`, where a space is missing after a
/// sentence.
fn is_dotted(name: &str) -> bool {
    let end = name.rsplit('.').next().unwrap_or_default();
    name.contains('.')
        && !FILE_ENDS.contains(&end)
        && name
            .split('.')
            .all(|part| part.len() > 1 && part.starts_with(|c: char| c.is_ascii_lowercase() || c == '_'))
}

/// Longest part of a message without values. The code contains placeholders instead of values.
fn fixed_part(message: &str) -> &str {
    let is_value = |c: char| {
        c.is_ascii_digit()
            || matches!(
                c,
                '"' | '\'' | '`' | '“' | '”' | '<' | '>' | '{' | '}' | '[' | ']'
            )
    };
    let parts = message
        .split(is_value)
        .map(|part| part.trim_matches(|c: char| !c.is_alphanumeric()));
    parts.max_by_key(|part| part.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract_paths(text: &str) -> Vec<(String, Option<u32>)> {
        let query = SearchQuery::from_text(text);
        query
            .paths
            .into_iter()
            .map(|mention| (mention.path, mention.line))
            .collect()
    }

    #[test]
    fn every_pattern_is_one() {
        for pattern in [&URL, &BLOB, &PATH, &SPAN, &NAME, &QUOTE, &ERROR] {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn stack_frames_yield_file_and_line() {
        for (text, path, line) in [
            (
                "  File \"/app/shop/cart.py\", line 12, in total",
                "/app/shop/cart.py",
                Some(12),
            ),
            (
                "\tat com.acme.Cart.total(CartService.java:42)",
                "CartService.java",
                Some(42),
            ),
            (
                "    at total (/srv/web/src/cart.ts:3:14)",
                "/srv/web/src/cart.ts",
                Some(3),
            ),
            ("  at ./src/cart.rs:77:9", "src/cart.rs", Some(77)),
            ("/go/src/shop/cart.go:9 +0x1d", "/go/src/shop/cart.go", Some(9)),
            (
                "see https://host/acme/shop/blob/main/src/a%20b/cart.rs#L5",
                "src/a%20b/cart.rs",
                Some(5),
            ),
            ("in Makefile the target", "Makefile", None),
            ("in shop/cart.py, please", "shop/cart.py", None),
        ] {
            assert!(
                extract_paths(text).contains(&(path.to_owned(), line)),
                "{text}: {:?}",
                extract_paths(text)
            );
        }
    }

    #[test]
    fn names_come_from_spans_and_spelling() {
        let query = SearchQuery::from_text(
            "When `Cart` is empty, total_price() fails in CartService.applyDiscount of cart.py. Checkout shows nothing, e.g. for guests.",
        );
        assert_eq!(
            query.identifiers,
            ["Cart", "total_price", "CartService", "applyDiscount"]
        );
        assert!(query.words.contains(&"guests".to_owned()) && !query.words.contains(&"when".to_owned()));
    }

    #[test]
    fn messages_lose_their_values() {
        let query = SearchQuery::from_text(
            "ValueError: cannot apply discount of 17 to an empty cart\nIt also says \"connection refused by upstream 10.0.0.1:80\".",
        );
        assert_eq!(
            query.messages,
            ["cannot apply discount of", "connection refused by upstream"]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_read_within_bounds(text in "(\\PC|\n|`|/|\\.|:|[0-9]|\"){0,400}") {
            let query = SearchQuery::from_text(&text);
            proptest::prop_assert!(query.paths.len() <= MAX_PATHS && query.identifiers.len() <= MAX_IDENTIFIERS);
            proptest::prop_assert!(query.messages.len() <= MAX_ERRORS && query.words.len() <= MAX_WORDS);
        }
    }
}
