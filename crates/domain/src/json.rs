//! JSON from outside, which may be nested deeper than `serde_json` reads by itself: a document of Jira takes four levels
//! for each list within a list.

use serde::de::DeserializeOwned;
use serde_json::de::SliceRead;

/// The deepest nesting that is read. It fits into the stack of a thread (2 MiB) with room to spare.
pub const MAX_DEPTH: usize = 256;

/// Why a JSON text was not read. Says where, never what: a text may hold anything.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody writes such a text by hand; reading it could exhaust the stack.
    #[error("the JSON is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// Not JSON, or not of the expected shape.
    #[error("line {} column {}", .0.line(), .0.column())]
    Unreadable(#[source] serde_json::Error),
}

/// Reads a JSON text of at most [`MAX_DEPTH`] levels.
///
/// # Errors
/// [`Error`].
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    let mut deserializer = deserializer(text)?;
    let value = T::deserialize(&mut deserializer).map_err(Error::Unreadable)?;
    deserializer.end().map_err(Error::Unreadable)?;
    Ok(value)
}

/// For readers of their own, e.g. such that keep the path to what is wrong. The caller asks for the end as well.
///
/// # Errors
/// [`Error::TooDeep`].
pub fn deserializer(text: &[u8]) -> Result<serde_json::Deserializer<SliceRead<'_>>, Error> {
    if depth(text) > MAX_DEPTH {
        return Err(Error::TooDeep);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    // What that limit protects, the stack, the check above protects.
    deserializer.disable_recursion_limit();
    Ok(deserializer)
}

/// How deep arrays and objects are nested.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
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
    use serde_json::Value;

    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn a_text_as_deep_as_allowed_is_read_and_a_deeper_one_is_an_error_of_its_own() {
        let deep: Value = from_slice(nested(MAX_DEPTH).as_bytes()).unwrap();
        assert!(deep.is_array());
        let error = from_slice::<Value>(nested(MAX_DEPTH + 1).as_bytes()).unwrap_err();
        assert!(matches!(error, Error::TooDeep), "{error:?}");
        let endless = from_slice::<Value>("[".repeat(10_000_000).as_bytes()).unwrap_err();
        assert!(matches!(endless, Error::TooDeep));
    }

    #[test]
    fn brackets_within_texts_do_not_count() {
        let text = format!(r#"{{"a\"{{": "{}\\", "b": [1]}}"#, "[{".repeat(500));
        assert_eq!(depth(text.as_bytes()), 2);
        assert_eq!(from_slice::<Value>(text.as_bytes()).unwrap()["b"][0], 1);
    }

    #[test]
    fn an_error_tells_the_place_and_not_the_content() {
        let error = from_slice::<u32>(b"\n \"secret\"").unwrap_err();
        assert_eq!(error.to_string(), "line 2 column 9");
        assert!(matches!(from_slice::<u32>(b"1 2"), Err(Error::Unreadable(_))));
    }
}
