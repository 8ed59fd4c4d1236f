//! Protocol between executor and parser: frames of a length (4 bytes, little endian) and a body of that many
//! bytes of JSON.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::grammar::GrammarLanguage;

/// Limit of a frame in bytes. It holds two texts of the largest size, with each byte escaped.
const MAX_FRAME: usize = 16 * 1024 * 1024;

/// Request to the parser.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ParserRequest {
    /// Requests the syntax error that `after` has and `before` has not.
    Check {
        language: GrammarLanguage,
        before: Option<String>,
        after: String,
    },
    /// Requests the symbols of a text.
    Symbols { language: GrammarLanguage, text: String },
}

/// Answer to a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ParserAnswer {
    Checked(Option<SyntaxError>),
    Symbols(Vec<SourceSymbol>),
}

/// First location in a text that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SyntaxError {
    /// Line number, from 1.
    pub(crate) line: usize,
    /// Column in bytes, from 1.
    pub(crate) column: usize,
    /// Token that the grammar expects there, if the parser knows it.
    pub(crate) missing: Option<String>,
}

/// Definition of a function, class, type or constant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceSymbol {
    pub(crate) name: String,
    /// First line, from 1.
    pub(crate) line: usize,
    /// Last line of the definition.
    pub(crate) end: usize,
    /// Number of symbols that enclose this one.
    pub(crate) depth: usize,
    /// First line of the definition.
    pub(crate) text: String,
}

/// Writes a value as one frame.
pub(super) fn send_frame(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(value)?;
    // The receiver closes the connection after a frame beyond the limit, so it is refused here.
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_FRAME);
    let length = length.ok_or(io::ErrorKind::FileTooLarge)?;
    to.write_all(&[length.to_le_bytes().as_slice(), &body].concat())
}

/// Reads the next value; `None` after the peer closed the connection.
pub(super) fn receive_frame<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    let count = from.read(&mut length)?;
    if count == 0 {
        return Ok(None);
    }
    // A read may return a part of the length; only an end before its first byte is a regular close.
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
    fn parser_frame_above_limit_is_refused() {
        let mut bytes = Vec::new();
        send_frame(&mut bytes, &"text").unwrap();
        let mut reader = bytes.as_slice();
        assert_eq!(receive_frame::<String>(&mut reader).unwrap().unwrap(), "text");
        assert!(receive_frame::<String>(&mut reader).unwrap().is_none());
        receive_frame::<String>(&mut u32::MAX.to_le_bytes().as_slice()).unwrap_err();
        send_frame(&mut Vec::new(), &"x".repeat(MAX_FRAME)).unwrap_err();
        assert!(
            receive_frame::<String>(&mut [1_u8, 0, 0].as_slice()).is_err(),
            "cut"
        );
    }
}
