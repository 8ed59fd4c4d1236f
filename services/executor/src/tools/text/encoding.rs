//! Encodings of text files, so that a file stays in its encoding when a tool changes it.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Byte order mark at the start of a text.
pub(in crate::tools) const BOM: char = '\u{feff}';
// Git also takes a file with a NUL among its first 8,000 bytes for binary.
const BINARY_CHECKED: usize = 8000;
// A declaration of the encoding is in the first two lines, or in the head of a page.
const DECLARATION_BYTES: usize = 1024;
const DECLARATION_LINES: usize = 2;
// Words before the name of an encoding in Python, Emacs, Vim and XML; in HTML and CSS.
const DECLARING_WORDS: [&str; 2] = ["coding", "charset"];
// Names of Python for encodings, by the name that the Web has for them.
const PYTHON_NAMES: &[(&str, &str)] = &[
    ("cp932", "shift_jis"),
    ("cp936", "gbk"),
    ("cp949", "euc-kr"),
    ("cp950", "big5"),
];
// UTF-32 has no encoder, and its mark begins with the one of UTF-16.
const UTF_32_MARKS: [[u8; 4]; 2] = [[0xFF, 0xFE, 0, 0], [0, 0, 0xFE, 0xFF]];

/// Evidence for an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EncodingSource {
    /// Every byte is valid, or the file says nothing else.
    Content,
    /// Byte order mark.
    Mark,
    /// Declaration in the text, such as `coding: latin-1`.
    Declaration,
    /// Statistics of the bytes.
    Detection,
}

/// Encoding of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tools) struct TextEncoding {
    encoding: &'static Encoding,
    source: EncodingSource,
}

/// Text of a file with its encoding. A byte order mark is the first character of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tools) struct FileText {
    pub(in crate::tools) text: String,
    pub(in crate::tools) encoding: TextEncoding,
    /// True if some bytes are not valid; the text has U+FFFD in their place.
    pub(in crate::tools) is_lossy: bool,
}

impl FileText {
    /// Decodes the bytes of a file; `None` for a binary file.
    pub(in crate::tools) fn decode(bytes: &[u8]) -> Option<Self> {
        let encoding = TextEncoding::of(bytes)?;
        let (text, is_lossy) = encoding.encoding.decode_without_bom_handling(bytes);
        Some(Self {
            text: text.into_owned(),
            encoding,
            is_lossy,
        })
    }

    /// Returns true if writing the text gives exactly these bytes, from which it was decoded.
    pub(in crate::tools) fn is_reversible(&self, bytes: &[u8]) -> bool {
        !self.is_lossy
            && self
                .encoding
                .encode(&self.text)
                .is_ok_and(|written| written == bytes)
    }
}

impl TextEncoding {
    /// Returns the encoding of new files.
    pub(in crate::tools) fn utf8() -> Self {
        Self {
            encoding: UTF_8,
            source: EncodingSource::Content,
        }
    }

    /// Finds the encoding of a file; `None` for a binary file.
    fn of(bytes: &[u8]) -> Option<Self> {
        if UTF_32_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
            return None;
        }
        let found = |encoding, source| Some(Self { encoding, source });
        if let Some((encoding, _)) = Encoding::for_bom(bytes) {
            // A binary file may begin with these two bytes by chance.
            let is_text = encoding == UTF_8 || !encoding.decode_without_bom_handling(bytes).1;
            return found(encoding, EncodingSource::Mark).filter(|_| is_text);
        }
        let head = &bytes[..bytes.len().min(BINARY_CHECKED)];
        if head.contains(&0) {
            let wide = find_wide_encoding(bytes)?;
            return found(wide, EncodingSource::Detection);
        }
        if std::str::from_utf8(bytes).is_ok() {
            return Some(Self::utf8());
        }
        if let Some(declared) = find_declared_encoding(bytes) {
            return found(declared, EncodingSource::Declaration);
        }
        if is_mostly_utf8(bytes) {
            return Some(Self::utf8());
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(bytes, true);
        found(
            detector.guess(None, Utf8Detection::Deny),
            EncodingSource::Detection,
        )
    }

    /// Returns true for UTF-8, with or without a byte order mark.
    pub(in crate::tools) fn is_utf8(self) -> bool {
        self.encoding == UTF_8
    }

    /// Encodes a text.
    ///
    /// # Errors
    /// The first character that the encoding does not have.
    pub(in crate::tools) fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        if self.encoding == UTF_16LE {
            return Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect());
        }
        if self.encoding == UTF_16BE {
            return Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect());
        }
        let (bytes, _, has_unmappable) = self.encoding.encode(text);
        if !has_unmappable {
            return Ok(bytes.into_owned());
        }
        let is_unmappable = |c: &char| self.encoding.encode(c.encode_utf8(&mut [0; 4])).2;
        Err(text
            .chars()
            .find(is_unmappable)
            .unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Renders the encoding for the model; `None` for UTF-8 without a byte order mark.
    pub(in crate::tools) fn describe(self) -> Option<String> {
        let name = self.encoding.name();
        match self.source {
            EncodingSource::Content => None,
            EncodingSource::Mark => Some(format!("{name} with a byte order mark")),
            EncodingSource::Declaration => Some(format!("{name}, as it declares")),
            EncodingSource::Detection => Some(format!("{name}, detected")),
        }
    }

    /// Returns the name of the encoding.
    pub(in crate::tools) fn name(self) -> &'static str {
        self.encoding.name()
    }
}

/// Returns UTF-16 without a mark: half of the bytes of its ASCII characters are zero, all at even or all at
/// odd places.
fn find_wide_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let zeros = |parity: usize| {
        let places = bytes.iter().skip(parity).step_by(2);
        places.filter(|byte| **byte == 0).count()
    };
    // Fewer of them are a text that has hardly any ASCII, or no text.
    let is_most = |count: usize| count * 5 >= bytes.len() / 2 * 4;
    let encoding = match (zeros(0), zeros(1)) {
        (0, odd) if is_most(odd) => UTF_16LE,
        (even, 0) if is_most(even) => UTF_16BE,
        _ => return None,
    };
    (!encoding.decode_without_bom_handling(bytes).1).then_some(encoding)
}

/// Returns the encoding that a text declares, if its bytes are valid in it.
fn find_declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(DECLARATION_BYTES)]).to_ascii_lowercase();
    let is_page = head.contains("<meta");
    let lines = head
        .lines()
        .take(if is_page { usize::MAX } else { DECLARATION_LINES });
    let labels = lines.flat_map(|line| {
        DECLARING_WORDS
            .iter()
            .filter_map(move |word| read_label(line, word))
    });
    let mut known = labels.filter_map(find_encoding_by_name);
    known.find(|encoding| {
        let is_wide = *encoding == UTF_16LE || *encoding == UTF_16BE;
        !is_wide && *encoding != UTF_8 && !encoding.decode_without_bom_handling(bytes).1
    })
}

/// Returns the encoding of a name as the Web or Python spells it: `latin-1` is `latin1`.
fn find_encoding_by_name(name: &str) -> Option<&'static Encoding> {
    let bare: String = name.chars().filter(|c| !matches!(c, '-' | '_')).collect();
    let web = PYTHON_NAMES.iter().find(|(python, _)| *python == bare);
    let web = web.map_or(bare.as_str(), |(_, web)| web);
    [name, web]
        .iter()
        .find_map(|name| Encoding::for_label_no_replacement(name.as_bytes()))
}

/// Returns the label after a word, as in `coding: latin-1` and `encoding="shift_jis"`.
fn read_label<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(word)?;
    let rest = rest.trim_start().strip_prefix([':', '='])?;
    let rest = rest.trim_start_matches([' ', '\t', '"', '\'']);
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let end = rest.find(|c: char| !is_legal(c)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// Returns true if a text is UTF-8 with single bytes of something else, so that another encoding would
/// garble it.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    valid > 0 && valid >= invalid
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn describe_bytes(bytes: &[u8]) -> String {
        match FileText::decode(bytes) {
            None => "binary".to_owned(),
            Some(text) if text.is_lossy => format!("lossy {}", text.encoding.name()),
            Some(text) => text.encoding.describe().unwrap_or_else(|| "plain".to_owned()),
        }
    }

    fn encode_with(encoding: &'static Encoding, text: &str) -> Vec<u8> {
        let (bytes, _, has_unmappable) = encoding.encode(text);
        assert!(!has_unmappable, "{text}");
        bytes.into_owned()
    }

    #[test]
    fn encoding_is_found_by_its_evidence() {
        let japanese = "価格は税込みです。数量を確認してください。\n";
        let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
        for (bytes, wanted) in [
            (b"plain\n".to_vec(), "plain"),
            ("# Café\n".as_bytes().to_vec(), "plain"),
            (b"".to_vec(), "plain"),
            (b"\xef\xbb\xbfa\n".to_vec(), "UTF-8 with a byte order mark"),
            (b"\xff\xfea\0\n\0".to_vec(), "UTF-16LE with a byte order mark"),
            (b"\xfe\xff\0a\0\n".to_vec(), "UTF-16BE with a byte order mark"),
            (wide("price = 5\n"), "UTF-16LE, detected"),
            (b"# Caf\xe9\nprice = 5\n".to_vec(), "windows-1252, detected"),
            (
                encode_with(encoding_rs::SHIFT_JIS, japanese),
                "Shift_JIS, detected",
            ),
            (encode_with(encoding_rs::EUC_JP, japanese), "EUC-JP, detected"),
            (
                b"# -*- coding: latin-1 -*-\n# Caf\xe9\n".to_vec(),
                "windows-1252, as it declares",
            ),
            (
                b"<?xml version=\"1.0\" encoding=\"ISO-8859-2\"?>\n<a>\xb1</a>\n".to_vec(),
                "ISO-8859-2, as it declares",
            ),
            (b"caf\xc3\xa9 caf\xe9\n".to_vec(), "lossy UTF-8"),
            (b"a\0b".to_vec(), "binary"),
            (b"\xff\xfe\0\0a\0\0\0".to_vec(), "binary"),
            (b"\xff\xfe\x00\xd8\x01".to_vec(), "binary"),
        ] {
            assert_eq!(describe_bytes(&bytes), wanted, "{bytes:?}");
        }
    }

    #[test]
    fn unmappable_character_is_named() {
        let latin = FileText::decode(b"# Caf\xe9\n").unwrap();
        assert_eq!(
            latin.encoding.encode("Caf\u{e8} \u{20ac}"),
            Ok(b"Caf\xe8 \x80".to_vec())
        );
        assert_eq!(latin.encoding.encode("a \u{4fa1}"), Err('\u{4fa1}'));
    }

    proptest! {
        #[test]
        fn fuzz_decoded_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(text) = FileText::decode(&bytes) {
                let is_reversible = text.is_reversible(&bytes);
                prop_assert!(!(text.is_lossy && is_reversible));
            }
        }

        #[test]
        fn fuzz_encoded_text_is_reversible(text in "([a-z ]|\u{e9}|\u{fc}|\n){0,40}", which in 0_usize..3) {
            let bytes = match which {
                0 => text.clone().into_bytes(),
                1 => std::iter::once(BOM).chain(text.chars()).collect::<String>().into_bytes(),
                _ => std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect(),
            };
            let decoded = FileText::decode(&bytes).unwrap();
            prop_assert!(decoded.is_reversible(&bytes), "{:?}", decoded);
        }
    }
}
