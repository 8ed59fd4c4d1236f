//! A registry's own addresses in what it says, turned into the mirror's.

use axum::http::{HeaderMap, header};

/// Largest text that is held to be rewritten; a larger one passes as it is.
pub(crate) const MAX_TEXT: usize = 32 * 1024 * 1024;

/// From the base of a registry to the mirror as its client reached it; both end with a slash.
pub(crate) struct Rewriter {
    from: String,
    to: String,
}

impl Rewriter {
    pub(crate) const fn new(from: String, to: String) -> Self {
        Self { from, to }
    }

    /// The text with every address under the base replaced, also where JSON escapes its slashes. What is not UTF-8
    /// stays as it is.
    pub(crate) fn text(&self, text: Vec<u8>) -> Vec<u8> {
        let text = match String::from_utf8(text) {
            Ok(text) => text,
            Err(error) => return error.into_bytes(),
        };
        let escaped = |url: &str| url.replace('/', "\\/");
        let text = text.replace(&self.from, &self.to);
        let (from, to) = (escaped(&self.from), escaped(&self.to));
        text.replace(&from, &to).into_bytes()
    }

    /// An absolute address: the mirror's when it lies under the base, else itself.
    pub(crate) fn address(&self, url: &str) -> String {
        match url.strip_prefix(&self.from) {
            Some(rest) => format!("{}{rest}", self.to),
            None => url.to_owned(),
        }
    }
}

/// Whether a body may name addresses of its registry: text and JSON, whole and without an encoding.
pub(crate) fn is_text(headers: &HeaderMap) -> bool {
    let of = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_plain =
        of(header::CONTENT_ENCODING).is_none_or(|encoding| encoding.eq_ignore_ascii_case("identity"));
    let kind = of(header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let is_text = kind.starts_with("text/") || kind == "application/json" || kind.ends_with("+json");
    let is_short = content_length(headers).is_none_or(|length| length <= MAX_TEXT as u64);
    is_plain && is_text && is_short
}

/// The announced length of a body, in bytes.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    let value = headers.get(header::CONTENT_LENGTH)?;
    value.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn rewriter() -> Rewriter {
        Rewriter::new(
            "https://npm.example/acme/".to_owned(),
            "http://proxy:3128/mirror/npm/".to_owned(),
        )
    }

    #[test]
    fn addresses_under_the_base_become_the_mirrors_and_others_stay() {
        let text = br#"{"a":"https://npm.example/acme/ui.tgz","b":"https:\/\/npm.example\/acme\/x",
            "c":"https://npm.example/acme-evil/x","d":"https://npm.example/other/"}"#;
        let expected = r#"{"a":"http://proxy:3128/mirror/npm/ui.tgz","b":"http:\/\/proxy:3128\/mirror\/npm\/x",
            "c":"https://npm.example/acme-evil/x","d":"https://npm.example/other/"}"#;
        let rewritten = rewriter().text(text.to_vec());
        assert_eq!(String::from_utf8(rewritten).unwrap(), expected);
        let binary = b"\xff https://npm.example/acme/".to_vec();
        assert_eq!(rewriter().text(binary.clone()), binary);
        assert_eq!(
            rewriter().address("https://npm.example/acme/ui"),
            "http://proxy:3128/mirror/npm/ui"
        );
        assert_eq!(
            rewriter().address("https://cdn.example/ui"),
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
