//! Replacement of a registry's own addresses in its responses by the mirror's.

use axum::http::{HeaderMap, HeaderName, header};
use bytes::Bytes;

/// Largest text that is rewritten, in bytes. A larger one passes unchanged.
pub(crate) const MAX_TEXT: usize = 32 * 1024 * 1024;
/// Size of the blocks of a rewritten text, in bytes. The last address may exceed it.
const BLOCK: usize = 64 * 1024;

/// Mapping from the base of a registry to the mirror as its client reached it. Both end with a slash.
pub(crate) struct AddressRewriter {
    from: String,
    to: String,
}

impl AddressRewriter {
    pub(crate) const fn new(from: String, to: String) -> Self {
        Self { from, to }
    }

    /// Replaces every address under the base, also where JSON escapes its slashes. Bytes that are not UTF-8 stay
    /// unchanged.
    pub(crate) fn rewrite(&self, text: Vec<u8>) -> RewrittenText {
        // The result is counted here and made block by block, so it never lies in memory as a whole.
        let escaped = |url: &str| url.replace('/', "\\/");
        let spellings = [
            (self.from.clone(), self.to.clone()),
            (escaped(&self.from), escaped(&self.to)),
        ];
        let (text, spellings) = match String::from_utf8(text) {
            Ok(text) => (text.into_bytes(), spellings.to_vec()),
            Err(error) => (error.into_bytes(), Vec::new()),
        };
        let mut rewritten = RewrittenText {
            nexts: vec![NextMatch::Unknown; spellings.len()],
            text,
            spellings,
            at: 0,
            length: 0,
        };
        rewritten.length = rewritten.count_bytes();
        rewritten
    }

    /// Returns the mirror's address for an absolute address under the base, else the address itself.
    pub(crate) fn address(&self, url: &str) -> String {
        match url.strip_prefix(&self.from) {
            Some(rest) => format!("{}{rest}", self.to),
            None => url.to_owned(),
        }
    }
}

/// Text whose addresses are replaced while it is read.
pub(crate) struct RewrittenText {
    text: Vec<u8>,
    /// Source and replacement, for each spelling.
    spellings: Vec<(String, String)>,
    /// Next position of each spelling.
    nexts: Vec<NextMatch>,
    at: usize,
    length: usize,
}

#[derive(Clone, Copy)]
enum NextMatch {
    Unknown,
    At(usize),
    Never,
}

impl RewrittenText {
    /// The length of the result, in bytes.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    fn count_bytes(&mut self) -> usize {
        let (mut length, mut at) = (0, 0);
        while let Some((start, spelling)) = self.find(at) {
            let (from, to) = &self.spellings[spelling];
            length += start - at + to.len();
            at = start + from.len();
        }
        // The positions belong to the counting pass; iteration starts at the beginning.
        self.nexts.fill(NextMatch::Unknown);
        length + self.text.len() - at
    }

    /// Returns the position of the first address at or after `at`, and its spelling.
    fn find(&mut self, at: usize) -> Option<(usize, usize)> {
        // The positions are kept between calls. Without them, a spelling that never occurs would cost a search of the
        // whole text for each replacement.
        for (next, (from, _)) in self.nexts.iter_mut().zip(&self.spellings) {
            let is_known = match next {
                NextMatch::Unknown => false,
                NextMatch::At(found) => *found >= at,
                NextMatch::Never => true,
            };
            if !is_known {
                let found = memchr::memmem::find(&self.text[at..], from.as_bytes());
                *next = found.map_or(NextMatch::Never, |found| NextMatch::At(at + found));
            }
        }
        let starts = self
            .nexts
            .iter()
            .enumerate()
            .filter_map(|(spelling, next)| match next {
                NextMatch::At(start) => Some((*start, spelling)),
                NextMatch::Unknown | NextMatch::Never => None,
            });
        starts.min()
    }
}

impl Iterator for RewrittenText {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.at == self.text.len() {
            return None;
        }
        let mut block = Vec::with_capacity(BLOCK);
        while block.len() < BLOCK && self.at < self.text.len() {
            let room = BLOCK - block.len();
            let found = self.find(self.at);
            let end = found.map_or(self.text.len(), |(start, _)| start);
            // The block ends inside of plain text, never inside of an address.
            if end - self.at > room {
                block.extend_from_slice(&self.text[self.at..self.at + room]);
                self.at += room;
                continue;
            }
            block.extend_from_slice(&self.text[self.at..end]);
            self.at = end;
            if let Some((_, spelling)) = found {
                let (from, to) = &self.spellings[spelling];
                block.extend_from_slice(to.as_bytes());
                self.at += from.len();
            }
        }
        Some(block.into())
    }
}

/// Returns true if a body may contain addresses of its registry: complete text or JSON without a content encoding.
pub(crate) fn is_text(headers: &HeaderMap) -> bool {
    let of = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_plain =
        of(header::CONTENT_ENCODING).is_none_or(|encoding| encoding.eq_ignore_ascii_case("identity"));
    let kind = of(header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let is_text = kind.starts_with("text/") || kind == "application/json" || kind.ends_with("+json");
    let is_short = content_length(headers).is_none_or(|length| length <= MAX_TEXT as u64);
    is_plain && is_text && is_short
}

/// Returns the headers whose name is kept, with all of their values.
pub(crate) fn filter_headers(headers: &HeaderMap, is_kept: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let mut kept = HeaderMap::new();
    // `collect` would keep only the last one of several values.
    for (name, value) in headers.iter().filter(|(name, _)| is_kept(name)) {
        kept.append(name.clone(), value.clone());
    }
    kept
}

/// Returns the announced length of a body, in bytes.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    let value = headers.get(header::CONTENT_LENGTH)?;
    value.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn build_rewriter() -> AddressRewriter {
        AddressRewriter::new(
            "https://npm.example/acme/".to_owned(),
            "http://proxy:3128/mirror/npm/".to_owned(),
        )
    }

    /// Collects the result and asserts its announced length.
    fn rewrite_text(text: Vec<u8>) -> Vec<u8> {
        let rewritten = build_rewriter().rewrite(text);
        let length = rewritten.length();
        let blocks: Vec<Bytes> = rewritten.collect();
        assert!(
            blocks
                .iter()
                .all(|block| !block.is_empty() && block.len() < 2 * BLOCK)
        );
        let all = blocks.concat();
        assert_eq!(all.len(), length);
        all
    }

    proptest::proptest! {
        #[test]
        fn blocks_together_are_what_replacing_gives(
            parts in proptest::collection::vec(
                proptest::sample::select(vec!["https://npm.example/acme/", "https:\\/\\/npm.example\\/acme\\/", "x", "https://", "/"]),
                0..40,
            ),
            fill in 0..3_usize,
        ) {
            let text = parts.join(&"y".repeat(fill * 30_000));
            let expected = text
                .replace("https://npm.example/acme/", "http://proxy:3128/mirror/npm/")
                .replace("https:\\/\\/npm.example\\/acme\\/", "http:\\/\\/proxy:3128\\/mirror\\/npm\\/");
            proptest::prop_assert_eq!(String::from_utf8(rewrite_text(text.into_bytes())).unwrap(), expected);
        }
    }

    #[test]
    fn only_addresses_under_base_are_rewritten() {
        let text = br#"{"a":"https://npm.example/acme/ui.tgz","b":"https:\/\/npm.example\/acme\/x",
            "c":"https://npm.example/acme-evil/x","d":"https://npm.example/other/"}"#;
        let expected = r#"{"a":"http://proxy:3128/mirror/npm/ui.tgz","b":"http:\/\/proxy:3128\/mirror\/npm\/x",
            "c":"https://npm.example/acme-evil/x","d":"https://npm.example/other/"}"#;
        assert_eq!(String::from_utf8(rewrite_text(text.to_vec())).unwrap(), expected);
        let binary = b"\xff https://npm.example/acme/".to_vec();
        assert_eq!(rewrite_text(binary.clone()), binary);
        assert!(rewrite_text(Vec::new()).is_empty());
        assert_eq!(
            build_rewriter().address("https://npm.example/acme/ui"),
            "http://proxy:3128/mirror/npm/ui"
        );
        assert_eq!(
            build_rewriter().address("https://cdn.example/ui"),
            "https://cdn.example/ui"
        );
    }

    #[test]
    fn only_short_plain_text_is_rewritten() {
        let with = |pairs: &[(header::HeaderName, &'static str)]| {
            let pairs = pairs.iter().cloned();
            is_text(&HeaderMap::from_iter(
                pairs.map(|(name, value)| (name, HeaderValue::from_static(value))),
            ))
        };
        for kind in [
            "text/html; charset=utf-8",
            "application/json",
            "Application/vnd.npm.install-v1+JSON; q=1",
        ] {
            assert!(with(&[(header::CONTENT_TYPE, kind)]), "{kind}");
        }
        for kind in [
            "application/octet-stream",
            "application/gzip",
            "",
            "application/jsonp",
        ] {
            assert!(!with(&[(header::CONTENT_TYPE, kind)]), "{kind}");
        }
        let json = (header::CONTENT_TYPE, "application/json");
        assert!(!with(&[]));
        assert!(!with(&[json.clone(), (header::CONTENT_ENCODING, "gzip")]));
        assert!(with(&[json.clone(), (header::CONTENT_LENGTH, "33554432")]));
        assert!(!with(&[json, (header::CONTENT_LENGTH, "33554433")]));
    }
}
