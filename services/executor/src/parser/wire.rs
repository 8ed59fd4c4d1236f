//! What executor and parser say to each other: frames of a length (4 bytes, little endian) and so many bytes of JSON.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::grammar::Language;

/// The largest frame, in bytes: two texts of the largest size, each byte escaped.
const MAX_FRAME: usize = 16 * 1024 * 1024;

/// A request to the parser.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Whether a text has a syntax error that it did not have before.
    Check {
        language: Language,
        before: Option<String>,
        after: String,
    },
    /// What a text defines.
    Symbols { language: Language, text: String },
}

/// The answer to each.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Checked(Option<SyntaxError>),
    Symbols(Vec<Symbol>),
}

/// The first place at which a text cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SyntaxError {
    /// From 1.
    pub(crate) line: usize,
    /// In bytes, from 1.
    pub(crate) column: usize,
    /// What the grammar misses there, when it knows.
    pub(crate) missing: Option<String>,
}

/// A function, class or type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    /// From 1.
    pub(crate) line: usize,
    /// Its last line.
    pub(crate) end: usize,
    /// How many symbols it lies in.
    pub(crate) depth: usize,
    /// How its definition begins.
    pub(crate) text: String,
}

/// Sends a value.
pub(super) fn send(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(value)?;
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_FRAME);
    let length = length.ok_or(io::ErrorKind::FileTooLarge)?;
    to.write_all(&[length.to_le_bytes().as_slice(), &body].concat())
}

/// The next value; nothing once the other side has closed.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    let count = from.read(&mut length)?;
    if count == 0 {
        return Ok(None);
    }
    from.read_exact(length.get_mut(count..).unwrap_or_default())?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_through_and_a_frame_above_the_limit_is_refused() {
        let mut bytes = Vec::new();
        send(&mut bytes, &"text").unwrap();
        let mut reader = bytes.as_slice();
        assert_eq!(receive::<String>(&mut reader).unwrap().unwrap(), "text");
        assert!(receive::<String>(&mut reader).unwrap().is_none());
        receive::<String>(&mut u32::MAX.to_le_bytes().as_slice()).unwrap_err();
        send(&mut Vec::new(), &"x".repeat(MAX_FRAME)).unwrap_err();
        assert!(receive::<String>(&mut [1_u8, 0, 0].as_slice()).is_err(), "cut");
    }
}
