//! Reader for JSON of external services with deeper nesting than the 128 levels that `serde_json` accepts.
//! Each nested list in a Jira document takes four levels.

use std::borrow::Cow;

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error as _, IgnoredAny, Visitor},
    forward_to_deserialize_any,
};
use serde_json::{Value, de::SliceRead};

/// Maximum nesting depth. A value of this depth fits into the stack of a thread (2 MiB) with a margin.
pub const MAX_DEPTH: usize = 256;

/// Error of reading a JSON text. It contains the position but never the content, because the content may be
/// confidential.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is nested too deeply. No legitimate document reaches the limit, and reading it could exhaust
    /// the stack.
    #[error("the JSON is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// The text is not JSON, or its shape differs from the expected type.
    #[error("line {} column {}", .0.line(), .0.column())]
    Unreadable(#[source] serde_json::Error),
}

/// Parses a JSON text of at most [`MAX_DEPTH`] levels.
///
/// # Errors
/// [`Error`] for deeper nesting, a syntax error, a shape error, or text after the value.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    let mut deserializer = create_deserializer(text)?;
    let value = T::deserialize(&mut deserializer).map_err(Error::Unreadable)?;
    deserializer.end().map_err(Error::Unreadable)?;
    Ok(value)
}

/// Creates a deserializer for custom readers, e.g. for those that track the path to an error. The caller has
/// to call `end`.
///
/// # Errors
/// [`Error::TooDeep`] for more than [`MAX_DEPTH`] levels.
pub fn create_deserializer(text: &[u8]) -> Result<serde_json::Deserializer<SliceRead<'_>>, Error> {
    if measure_depth(text) > MAX_DEPTH {
        return Err(Error::TooDeep);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    // The depth check above protects the stack in place of this limit.
    deserializer.disable_recursion_limit();
    Ok(deserializer)
}

/// Returns true when a text is one complete JSON value of any shape. The check needs no stack or memory in
/// proportion to the value.
pub fn is_whole(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Returns the reason why a successful answer does not come from the API.
///
/// Such an answer is a page of a proxy, a login or a maintenance window, or it is truncated. `None`: the body
/// is JSON of any shape. An answer without a content type is judged by its body.
pub fn find_foreign_answer(content_type: &str, body: &[u8]) -> Option<&'static str> {
    if !content_type.is_empty() && !content_type.to_ascii_lowercase().contains("json") {
        return Some("a content type that is not JSON");
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Some("an empty body");
    }
    (!is_whole(body)).then_some("a body that is not JSON")
}

/// Returns true when a text that is not a `T` is an object without any field of `T`.
///
/// Such an object is not an answer of the API in another shape, but an answer of a gateway, such as
/// `{"message": "Service Unavailable"}`.
pub fn is_foreign_object<T: DeserializeOwned>(text: &[u8]) -> bool {
    let Ok(Value::Object(object)) = from_slice(text) else {
        return false;
    };
    let mut known = None;
    // The probe notes the fields and then returns an error, because it has no value.
    drop(T::deserialize(FieldProbe(&mut known)));
    known.is_some_and(|fields| !fields.iter().any(|field| object.contains_key(*field)))
}

/// Deserializer without a value that notes the fields of a type: an empty list for a sequence, `None` for a
/// type of any shape.
struct FieldProbe<'a>(&'a mut Option<&'static [&'static str]>);

type ProbeError = serde::de::value::Error;

impl<'de> Deserializer<'de> for FieldProbe<'_> {
    type Error = ProbeError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeError> {
        Err(ProbeError::custom("a type of any shape"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ProbeError> {
        *self.0 = Some(fields);
        Err(ProbeError::custom("an object"))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeError> {
        *self.0 = Some(&[]);
        Err(ProbeError::custom("a list"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ProbeError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple tuple_struct map enum identifier ignored_any
    }
}

/// Returns true when the content type is HTML.
pub fn is_page(content_type: &str) -> bool {
    content_type
        .trim_start()
        .to_ascii_lowercase()
        .starts_with("text/html")
}

/// Replaces each escape of an unpaired surrogate (`\ud83d`) and each invalid UTF-8 byte by U+FFFD.
///
/// A text that was truncated within an emoji contains an unpaired surrogate, and `serde_json` rejects the
/// whole document because of it.
pub fn replace_broken_characters(text: &[u8]) -> Cow<'_, [u8]> {
    let whole = match String::from_utf8_lossy(text) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(replaced) => Cow::Owned(replaced.into_bytes()),
    };
    let halves = find_lone_surrogates(&whole);
    if halves.is_empty() {
        return whole;
    }
    let mut replaced = whole.into_owned();
    for at in halves {
        replaced[at..at + ESCAPE].copy_from_slice(b"\\ufffd");
    }
    Cow::Owned(replaced)
}

// Bytes of an escape such as `\ud83d`. The replacement `\ufffd` has the same length, so later positions stay
// valid.
const ESCAPE: usize = 6;

/// Returns the positions of escaped surrogates without a partner. Backslashes outside of strings are ignored,
/// because such a text is not JSON.
fn find_lone_surrogates(text: &[u8]) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(next) = text[at..].iter().position(|byte| *byte == b'\\') {
        at += next;
        at += match (
            escaped_unit(&text[at..]),
            text.get(at + ESCAPE..).and_then(escaped_unit),
        ) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 2 * ESCAPE,
            (Some(0xD800..=0xDFFF), _) => {
                found.push(at);
                ESCAPE
            }
            (Some(_), _) => ESCAPE,
            // The escaped character may be a backslash, so both bytes are skipped.
            (None, _) => 2.min(text.len() - at),
        };
    }
    found
}

/// Returns the UTF-16 unit of the escape at the start of a text.
fn escaped_unit(text: &[u8]) -> Option<u16> {
    let digits = text.get(..ESCAPE)?.strip_prefix(b"\\u")?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u16::from_str_radix(digits, 16).ok()
}

/// Returns the maximum nesting depth of arrays and objects.
fn measure_depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            // Brackets inside of strings do not nest.
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    fn nest_arrays(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn json_beyond_maximum_depth_is_rejected() {
        let deep: Value = from_slice(nest_arrays(MAX_DEPTH).as_bytes()).unwrap();
        assert!(deep.is_array());
        let error = from_slice::<Value>(nest_arrays(MAX_DEPTH + 1).as_bytes()).unwrap_err();
        assert!(matches!(error, Error::TooDeep), "{error:?}");
        let endless = from_slice::<Value>("[".repeat(10_000_000).as_bytes()).unwrap_err();
        assert!(matches!(endless, Error::TooDeep));
    }

    #[test]
    fn broken_characters_become_replacements_and_pairs_stay() {
        for (given, expected) in [
            (&br#""cut \ud83d""#[..], "cut \u{fffd}"),
            (br#""\uDE00 first""#, "\u{fffd} first"),
            (br#""\ud83d\ude00""#, "\u{1f600}"),
            (br#""\uD83D\uDE00\ud83d""#, "\u{1f600}\u{fffd}"),
            (br#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (br#""\ud83dx\ude00""#, "\u{fffd}x\u{fffd}"),
            (br#""\\ud83d""#, "\\ud83d"),
            (br#""\\\ud83d""#, "\\\u{fffd}"),
            (br#""\u00e4\n\"\ud800\"""#, "\u{e4}\n\"\u{fffd}\""),
            (b"\"\xed\xa0\xbd\"", "\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            let text = replace_broken_characters(given);
            let read: String = from_slice(&text).unwrap();
            assert_eq!(read, expected, "{}", String::from_utf8_lossy(given));
        }
        for given in [
            &br#""\ud8"#[..],
            br#""\u"#,
            b"\\",
            br#""\ud83d\u""#,
            br#"["\u12"]"#,
        ] {
            let text = replace_broken_characters(given);
            assert!(from_slice::<Value>(&text).is_err(), "{given:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn character_replacement_keeps_valid_json(value in ".*", unit in 0_u16..=u16::MAX) {
            let text = serde_json::to_string(&value).unwrap();
            proptest::prop_assert_eq!(&*replace_broken_characters(text.as_bytes()), text.as_bytes());
            let half = format!("{{\"a\": [\"\\u{unit:04x}\"], \"b\": {text}}}");
            let read: Value = from_slice(&replace_broken_characters(half.as_bytes())).unwrap();
            proptest::prop_assert_eq!(&read["b"], &Value::String(value));
        }
    }

    #[test]
    fn foreign_answers_differ_from_any_json() {
        for (content_type, body) in [
            ("application/json", "<html>Site temporarily unavailable</html>"),
            ("text/html; charset=utf-8", "<html></html>"),
            ("TEXT/HTML", "{}"),
            ("text/plain", "{}"),
            ("application/json", ""),
            ("application/json", " \n"),
            ("application/json; charset=utf-8", "{\"key\": \"ENG"),
            ("", "OK"),
        ] {
            assert!(
                find_foreign_answer(content_type, body.as_bytes()).is_some(),
                "{content_type} {body}"
            );
        }
        for content_type in [
            "",
            "application/json",
            "Application/JSON;charset=UTF-8",
            "application/vnd.github+json",
        ] {
            for body in ["{}", "[1]", "null", "\"text\"", " {\"a\": 1} "] {
                assert_eq!(
                    find_foreign_answer(content_type, body.as_bytes()),
                    None,
                    "{content_type} {body}"
                );
            }
        }
    }

    #[test]
    fn object_without_known_field_is_foreign() {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[expect(dead_code, reason = "only the names of the fields are read")]
        struct IssueAnswer {
            key: String,
            issue_type: Option<String>,
        }
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only the names of the fields are read")]
        struct WrappedIssue(IssueAnswer);

        let is_foreign = |text: &str| is_foreign_object::<IssueAnswer>(text.as_bytes());
        for text in [
            "{}",
            r#"{"message":"Service Unavailable"}"#,
            r#"{"status":503,"error":{"key":1}}"#,
        ] {
            assert!(is_foreign(text), "{text}");
            assert!(is_foreign_object::<WrappedIssue>(text.as_bytes()), "{text}");
            assert!(
                is_foreign_object::<Option<IssueAnswer>>(text.as_bytes()),
                "{text}"
            );
            assert!(is_foreign_object::<Vec<IssueAnswer>>(text.as_bytes()), "{text}");
            assert!(!is_foreign_object::<Value>(text.as_bytes()), "{text}");
            assert!(
                !is_foreign_object::<BTreeMap<String, u64>>(text.as_bytes()),
                "{text}"
            );
        }
        for text in [
            r#"{"key":1}"#,
            r#"{"message":"x","issueType":[]}"#,
            "[]",
            "null",
            "\"Service Unavailable\"",
            "{",
        ] {
            assert!(!is_foreign(text), "{text}");
        }
    }

    #[test]
    fn truncated_json_value_is_detected() {
        for whole in [
            "null",
            " {} \n",
            "[1, {\"a\": \"\\ud800\"}]",
            &nest_arrays(100_000),
        ] {
            assert!(is_whole(whole.as_bytes()), "{}", whole.len());
        }
        for broken in [
            "",
            " ",
            "<html></html>",
            "{\"a\": 1",
            "{} {}",
            "ok",
            "[1,",
            &"[".repeat(100_000),
        ] {
            assert!(!is_whole(broken.as_bytes()), "{}", broken.len());
        }
    }

    #[test]
    fn brackets_within_texts_do_not_count() {
        let text = format!(r#"{{"a\"{{": "{}\\", "b": [1]}}"#, "[{".repeat(500));
        assert_eq!(measure_depth(text.as_bytes()), 2);
        assert_eq!(from_slice::<Value>(text.as_bytes()).unwrap()["b"][0], 1);
    }

    #[test]
    fn json_error_contains_position_without_content() {
        let error = from_slice::<u32>(b"\n \"secret\"").unwrap_err();
        assert_eq!(error.to_string(), "line 2 column 9");
        assert!(matches!(from_slice::<u32>(b"1 2"), Err(Error::Unreadable(_))));
    }
}
