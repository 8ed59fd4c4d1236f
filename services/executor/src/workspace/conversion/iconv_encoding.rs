//! Encodings of files in a worktree (`working-tree-encoding` in `.gitattributes`). The tree has the text in UTF-8.
//!
//! Git converts with the iconv of its system. The tables here are those of the WHATWG, which differ in a few
//! characters. A file with such a character is refused, unless the difference is one of [`Charset::swaps`].

use std::borrow::Cow;

use encoding_rs::Encoding;

/// Reason why a file is not text in its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::workspace) enum EncodingProblem {
    #[error("the file has no byte order mark, which this encoding requires")]
    MarkMissing,
    #[error("the file has a byte order mark, which this encoding prohibits")]
    MarkProhibited,
    #[error("the file has bytes or characters that this encoding does not have")]
    Invalid,
}

/// Encoding by a name of iconv, as attributes give it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum IconvEncoding {
    Wide(WideForm),
    Ascii,
    Latin1,
    Charset(Charset),
}

/// UTF-16 or UTF-32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WideForm {
    is_32_bit: bool,
    is_big_endian: bool,
    mark: MarkRule,
}

/// Byte order mark of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkRule {
    Required,
    Prohibited,
    /// Written at each checkout; a file may lack it.
    Written,
}

/// Encoding by tables.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Charset {
    encoding: &'static Encoding,
    /// Characters of our tables, with the characters of git.
    swaps: &'static [(char, char)],
    /// Ranges of two-byte characters, and of bytes, that git does not have or reads differently.
    pairs: &'static [(u16, u16)],
    bytes: &'static [(u8, u8)],
    /// True when the characters U+0080 to U+009F belong to the encoding. Otherwise they stand for bytes that git
    /// does not have.
    has_c1: bool,
}

/// Signs of JIS X 0208 that iconv reads as the standard says, and the WHATWG as Windows does.
const JIS_SWAPS: &[(char, char)] = &[
    ('\u{ff5e}', '\u{301c}'),
    ('\u{2225}', '\u{2016}'),
    ('\u{ff0d}', '\u{2212}'),
    ('\u{ffe0}', '\u{a2}'),
    ('\u{ffe1}', '\u{a3}'),
    ('\u{ffe2}', '\u{ac}'),
];
const SHIFT_JIS_SWAPS: &[(char, char)] = &[
    ('\\', '\u{a5}'),
    ('~', '\u{203e}'),
    ('\u{ff5e}', '\u{301c}'),
    ('\u{2225}', '\u{2016}'),
    ('\u{ff0d}', '\u{2212}'),
    ('\u{ffe0}', '\u{a2}'),
    ('\u{ffe1}', '\u{a3}'),
    ('\u{ffe2}', '\u{ac}'),
];
// Characters of NEC and IBM.
const SHIFT_JIS_PAIRS: &[(u16, u16)] = &[(0x8740, 0x879c), (0xed40, 0xfcfc)];
const EUC_JP_PAIRS: &[(u16, u16)] = &[(0xada1, 0xadfe), (0xf9a1, 0xfcfe)];
// Symbols and characters that only GB18030 has.
const GBK_PAIRS: &[(u16, u16)] = &[
    (0xa2e3, 0xa2e4),
    (0xa6d9, 0xa6df),
    (0xa6ec, 0xa6ed),
    (0xa6f3, 0xa6f3),
    (0xa8bc, 0xa8bf),
    (0xa989, 0xa995),
    (0xfe50, 0xfefe),
];
// Characters of Hong Kong, and signs of several makers at the same places.
const BIG5_PAIRS: &[(u16, u16)] = &[
    (0x8140, 0xa0fe),
    (0xa3c0, 0xa3e0),
    (0xc6a1, 0xc8fe),
    (0xf9fe, 0xfefe),
];
/// End of a text in ISO-2022-JP that does not end in ASCII. Git does not write it.
const ASCII_ESCAPE: &[u8] = b"\x1b(B";

impl IconvEncoding {
    /// Finds an encoding by a name of iconv; `None` if it is not supported.
    pub(super) fn find(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        if let Some(wide) = find_wide(&name) {
            return Some(Self::Wide(wide));
        }
        match name.as_str() {
            "ASCII" | "US-ASCII" | "ANSI_X3.4-1968" => Some(Self::Ascii),
            "ISO-8859-1" | "ISO8859-1" | "ISO_8859-1" | "ISO88591" | "LATIN1" | "LATIN-1" | "L1" => {
                Some(Self::Latin1)
            }
            other => find_charset(other).map(Self::Charset),
        }
    }

    /// Reads a file of the worktree.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<String, EncodingProblem> {
        match self {
            Self::Wide(wide) => wide.decode(bytes),
            Self::Ascii if bytes.is_ascii() => {
                String::from_utf8(bytes.to_vec()).map_err(|_| EncodingProblem::Invalid)
            }
            Self::Ascii => Err(EncodingProblem::Invalid),
            Self::Latin1 => Ok(bytes.iter().copied().map(char::from).collect()),
            Self::Charset(charset) => charset.decode(bytes),
        }
    }

    /// Writes the text of a tree.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u8>, EncodingProblem> {
        match self {
            Self::Wide(wide) => Ok(wide.encode(text)),
            Self::Ascii if text.is_ascii() => Ok(text.as_bytes().to_vec()),
            Self::Ascii => Err(EncodingProblem::Invalid),
            Self::Latin1 => text
                .chars()
                .map(|c| u8::try_from(u32::from(c)).map_err(|_| EncodingProblem::Invalid))
                .collect(),
            Self::Charset(charset) => charset.encode(text),
        }
    }
}

impl WideForm {
    fn decode(self, bytes: &[u8]) -> Result<String, EncodingProblem> {
        let big_mark = self.mark_bytes(true);
        let little_mark = self.mark_bytes(false);
        let (body, is_big_endian) = if let Some(body) = bytes.strip_prefix(big_mark) {
            (body, Some(true))
        } else if let Some(body) = bytes.strip_prefix(little_mark) {
            (body, Some(false))
        } else {
            (bytes, None)
        };
        match (self.mark, is_big_endian) {
            (MarkRule::Required, None) => return Err(EncodingProblem::MarkMissing),
            (MarkRule::Prohibited, Some(_)) => return Err(EncodingProblem::MarkProhibited),
            (MarkRule::Required | MarkRule::Written, Some(_))
            | (MarkRule::Prohibited | MarkRule::Written, None) => {}
        }
        // Iconv reads a file without mark in the order of the machine.
        let is_big = match self.mark {
            MarkRule::Prohibited => self.is_big_endian,
            MarkRule::Required | MarkRule::Written => is_big_endian.unwrap_or(false),
        };
        if self.is_32_bit {
            return decode_32(body, is_big);
        }
        let (units, rest) = body.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(EncodingProblem::Invalid);
        }
        let units = units.iter().map(|unit| {
            if is_big {
                u16::from_be_bytes(*unit)
            } else {
                u16::from_le_bytes(*unit)
            }
        });
        char::decode_utf16(units)
            .collect::<Result<String, _>>()
            .map_err(|_| EncodingProblem::Invalid)
    }

    fn encode(self, text: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(text.len() * 2 + 4);
        if self.mark != MarkRule::Prohibited {
            bytes.extend(self.mark_bytes(self.is_big_endian));
        }
        for c in text.chars() {
            if self.is_32_bit {
                let unit = u32::from(c);
                bytes.extend(if self.is_big_endian {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                });
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                bytes.extend(if self.is_big_endian {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                });
            }
        }
        bytes
    }

    const fn mark_bytes(self, is_big_endian: bool) -> &'static [u8] {
        match (self.is_32_bit, is_big_endian) {
            (false, false) => &[0xff, 0xfe],
            (false, true) => &[0xfe, 0xff],
            (true, false) => &[0xff, 0xfe, 0, 0],
            (true, true) => &[0, 0, 0xfe, 0xff],
        }
    }
}

fn decode_32(body: &[u8], is_big_endian: bool) -> Result<String, EncodingProblem> {
    let (units, rest) = body.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(EncodingProblem::Invalid);
    }
    let units = units.iter().map(|unit| {
        if is_big_endian {
            u32::from_be_bytes(*unit)
        } else {
            u32::from_le_bytes(*unit)
        }
    });
    units
        .map(|unit| char::from_u32(unit).ok_or(EncodingProblem::Invalid))
        .collect()
}

impl Charset {
    fn decode(&self, bytes: &[u8]) -> Result<String, EncodingProblem> {
        let text = self
            .encoding
            .decode_without_bom_handling_and_without_replacement(bytes)
            .ok_or(EncodingProblem::Invalid)?;
        if !self.is_shared(bytes, &text) {
            return Err(EncodingProblem::Invalid);
        }
        let text: String = text
            .chars()
            .map(|c| self.swap(c, |(ours, gits)| (ours, gits)))
            .collect();
        // Otherwise the next checkout would write other bytes.
        let back = self.encode(&text)?;
        let is_same = back == bytes || bytes.strip_suffix(ASCII_ESCAPE).is_some_and(|body| back == body);
        if is_same {
            Ok(text)
        } else {
            Err(EncodingProblem::Invalid)
        }
    }

    fn encode(&self, text: &str) -> Result<Vec<u8>, EncodingProblem> {
        // Git has another character at the place of this one.
        let is_foreign = |c: char| !c.is_ascii() && self.swaps.iter().any(|(ours, _)| *ours == c);
        if text.contains(is_foreign) {
            return Err(EncodingProblem::Invalid);
        }
        let ours: String = text
            .chars()
            .map(|c| self.swap(c, |(ours, gits)| (gits, ours)))
            .collect();
        let (bytes, _, is_lossy) = self.encoding.encode(&ours);
        if is_lossy || !self.is_shared(&bytes, &ours) {
            return Err(EncodingProblem::Invalid);
        }
        let mut bytes = bytes.into_owned();
        if self.encoding == encoding_rs::ISO_2022_JP && bytes.ends_with(ASCII_ESCAPE) {
            bytes.truncate(bytes.len() - ASCII_ESCAPE.len());
        }
        Ok(bytes)
    }

    fn swap(&self, c: char, order: fn((char, char)) -> (char, char)) -> char {
        let mut swaps = self.swaps.iter().copied().map(order);
        swaps.find(|(from, _)| *from == c).map_or(c, |(_, to)| to)
    }

    /// True when git has all of these characters.
    fn is_shared(&self, bytes: &[u8], text: &str) -> bool {
        let is_missing = |c: char| matches!(c, '\u{80}'..='\u{9f}') && !self.has_c1;
        // The private characters of a table are different in each implementation.
        let is_private = |c: char| matches!(c, '\u{e000}'..='\u{f8ff}') && !self.has_private_characters();
        if text.contains(|c| is_missing(c) || is_private(c)) {
            return false;
        }
        let is_in = |byte: &u8| self.bytes.iter().any(|(low, high)| (*low..=*high).contains(byte));
        if bytes.iter().any(is_in) {
            return false;
        }
        if self.pairs.is_empty() {
            return true;
        }
        // The escapes of ISO-2022-JP would have to be read; the same characters are in EUC-JP.
        let plain: Cow<'_, [u8]> = if self.encoding == encoding_rs::ISO_2022_JP {
            encoding_rs::EUC_JP.encode(text).0
        } else {
            Cow::Borrowed(bytes)
        };
        !self.has_refused_pair(&plain)
    }

    fn has_private_characters(&self) -> bool {
        // Windows' table of Japanese has the same private characters everywhere.
        self.encoding == encoding_rs::SHIFT_JIS && self.swaps.is_empty()
    }

    fn has_refused_pair(&self, bytes: &[u8]) -> bool {
        let mut bytes = bytes.iter().copied();
        while let Some(first) = bytes.next() {
            let is_single =
                first < 0x81 || (self.encoding == encoding_rs::SHIFT_JIS && matches!(first, 0xa0..=0xdf));
            if is_single {
                continue;
            }
            let pair = u16::from_be_bytes([first, bytes.next().unwrap_or_default()]);
            if self
                .pairs
                .iter()
                .any(|(low, high)| (*low..=*high).contains(&pair))
            {
                return true;
            }
        }
        false
    }
}

/// Finds UTF-16 and UTF-32. Git accepts these names with and without the first hyphen.
// Git writes UTF-16BE-BOM and cannot read it (`reencode_string_len` in utf8.c), so files of it are always modified there.
fn find_wide(name: &str) -> Option<WideForm> {
    let name = name.strip_prefix("UTF")?;
    let name = name.strip_prefix('-').unwrap_or(name);
    let (is_32_bit, rest) = match name.strip_prefix("16") {
        Some(rest) => (false, rest),
        None => (true, name.strip_prefix("32")?),
    };
    let (is_big_endian, mark) = match rest {
        "" => (false, MarkRule::Required),
        "LE" => (false, MarkRule::Prohibited),
        "BE" => (true, MarkRule::Prohibited),
        "LE-BOM" if !is_32_bit => (false, MarkRule::Written),
        _ => return None,
    };
    Some(WideForm {
        is_32_bit,
        is_big_endian,
        mark,
    })
}

/// Finds an encoding by tables.
fn find_charset(name: &str) -> Option<Charset> {
    let plain = |encoding| Charset {
        encoding,
        swaps: &[],
        pairs: &[],
        bytes: &[],
        has_c1: false,
    };
    let charset = match name {
        "SHIFT-JIS" | "SHIFT_JIS" | "SJIS" | "MS_KANJI" => Charset {
            swaps: SHIFT_JIS_SWAPS,
            pairs: SHIFT_JIS_PAIRS,
            ..plain(encoding_rs::SHIFT_JIS)
        },
        "CP932" | "MS932" | "SJIS-WIN" | "WINDOWS-31J" => plain(encoding_rs::SHIFT_JIS),
        "EUC-JP" | "EUCJP" | "UJIS" => Charset {
            swaps: JIS_SWAPS,
            pairs: EUC_JP_PAIRS,
            ..plain(encoding_rs::EUC_JP)
        },
        "ISO-2022-JP" | "ISO2022JP" => Charset {
            swaps: JIS_SWAPS,
            pairs: EUC_JP_PAIRS,
            ..plain(encoding_rs::ISO_2022_JP)
        },
        "BIG5" | "BIG-5" | "BIG-FIVE" | "BIGFIVE" | "CN-BIG5" | "CP950" => Charset {
            pairs: BIG5_PAIRS,
            ..plain(encoding_rs::BIG5)
        },
        "GBK" | "CP936" | "MS936" | "WINDOWS-936" => Charset {
            pairs: GBK_PAIRS,
            ..plain(encoding_rs::GBK)
        },
        "CP949" | "UHC" => plain(encoding_rs::EUC_KR),
        "KOI8-R" | "KOI8R" => plain(encoding_rs::KOI8_R),
        "KOI8-U" | "KOI8U" => Charset {
            // Belarusian letters at the places of two lines.
            bytes: &[(0xae, 0xae), (0xbe, 0xbe)],
            ..plain(encoding_rs::KOI8_U)
        },
        "IBM866" | "CP866" | "866" => plain(encoding_rs::IBM866),
        // Without 1255 and 1258: iconv joins their accents with the letters.
        "WINDOWS-1250" | "CP1250" | "MS-EE" => plain(encoding_rs::WINDOWS_1250),
        "WINDOWS-1251" | "CP1251" | "MS-CYRL" => plain(encoding_rs::WINDOWS_1251),
        "WINDOWS-1252" | "CP1252" | "MS-ANSI" => plain(encoding_rs::WINDOWS_1252),
        "WINDOWS-1253" | "CP1253" | "MS-GREEK" => plain(encoding_rs::WINDOWS_1253),
        "WINDOWS-1254" | "CP1254" | "MS-TURK" => plain(encoding_rs::WINDOWS_1254),
        "WINDOWS-1256" | "CP1256" | "MS-ARAB" => plain(encoding_rs::WINDOWS_1256),
        "WINDOWS-1257" | "CP1257" | "WINBALTRIM" => plain(encoding_rs::WINDOWS_1257),
        other => return find_iso_8859(other),
    };
    Some(charset)
}

/// Finds a part of ISO 8859 other than the first.
fn find_iso_8859(name: &str) -> Option<Charset> {
    let part = match name {
        "LATIN2" | "LATIN-2" | "L2" => "2",
        "LATIN9" | "LATIN-9" => "15",
        other => ["ISO-8859-", "ISO8859-", "ISO_8859-"]
            .into_iter()
            .find_map(|prefix| other.strip_prefix(prefix))?,
    };
    let encoding = match part {
        "2" => encoding_rs::ISO_8859_2,
        "3" => encoding_rs::ISO_8859_3,
        "4" => encoding_rs::ISO_8859_4,
        "5" => encoding_rs::ISO_8859_5,
        "6" => encoding_rs::ISO_8859_6,
        "7" => encoding_rs::ISO_8859_7,
        "8" => encoding_rs::ISO_8859_8,
        "10" => encoding_rs::ISO_8859_10,
        "13" => encoding_rs::ISO_8859_13,
        "14" => encoding_rs::ISO_8859_14,
        "15" => encoding_rs::ISO_8859_15,
        "16" => encoding_rs::ISO_8859_16,
        _ => return None,
    };
    Some(Charset {
        encoding,
        swaps: &[],
        pairs: &[],
        bytes: &[],
        has_c1: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> IconvEncoding {
        IconvEncoding::find(name).unwrap()
    }

    #[test]
    fn names_are_those_of_git() {
        for name in [
            "UTF-16",
            "utf16le",
            "UTF-16LE-BOM",
            "Shift_JIS",
            "koi8-r",
            "ISO-8859-15",
            "cp1252",
            "GBK",
        ] {
            assert!(IconvEncoding::find(name).is_some(), "{name}");
        }
        for name in [
            "UTF-8-BOM",
            "UTF-16BE-BOM",
            "UTF-7",
            "GB18030",
            "windows-1258",
            "EBCDIC-US",
            "",
            "true",
        ] {
            assert_eq!(IconvEncoding::find(name), None, "{name}");
        }
    }

    #[test]
    fn byte_order_marks_are_checked() {
        let cases: &[(&str, &[u8], Result<&str, EncodingProblem>)] = &[
            ("UTF-16", b"\xff\xfea\0", Ok("a")),
            ("UTF-16", b"\xfe\xff\0a", Ok("a")),
            ("UTF-16", b"a\0", Err(EncodingProblem::MarkMissing)),
            ("UTF-16LE", b"a\0", Ok("a")),
            ("UTF-16LE", b"\xff\xfea\0", Err(EncodingProblem::MarkProhibited)),
            ("UTF-16BE", b"\0a", Ok("a")),
            ("UTF-16LE-BOM", b"\xff\xfea\0", Ok("a")),
            ("UTF-16LE", b"a\0b", Err(EncodingProblem::Invalid)),
            ("UTF-16LE", b"\x00\xd8", Err(EncodingProblem::Invalid)),
            ("UTF-32", b"\xff\xfe\0\0a\0\0\0", Ok("a")),
            ("UTF-32BE", b"\0\x11\0\0", Err(EncodingProblem::Invalid)),
        ];
        for (name, bytes, expected) in cases {
            let text = find(name).decode(bytes);
            assert_eq!(text, expected.map(str::to_owned), "{name} {bytes:?}");
        }
        assert_eq!(find("UTF-16").encode("a").unwrap(), b"\xff\xfea\0");
        assert_eq!(find("UTF-16LE-BOM").encode("a").unwrap(), b"\xff\xfea\0");
    }

    #[test]
    fn characters_of_git_are_kept_apart() {
        let sjis = find("SHIFT-JIS");
        assert_eq!(sjis.decode(b"a\\n~\x81\x60").unwrap(), "a\u{a5}n\u{203e}\u{301c}");
        assert_eq!(sjis.encode("\u{a5}\\\u{301c}").unwrap(), b"\\\\\x81\x60");
        assert_eq!(sjis.encode("\u{ff5e}"), Err(EncodingProblem::Invalid));
        assert_eq!(sjis.decode(b"\x87\x40"), Err(EncodingProblem::Invalid));
        assert_eq!(
            find("CP932").decode(b"\x81\x60\x87\x40").unwrap(),
            "\u{ff5e}\u{2460}"
        );
        assert_eq!(find("EUC-JP").decode(b"\xa1\xc1").unwrap(), "\u{301c}");
        assert_eq!(find("ISO-8859-1").decode(b"\x93").unwrap(), "\u{93}");
        assert_eq!(find("CP1252").decode(b"\x81"), Err(EncodingProblem::Invalid));
        assert_eq!(find("BIG5").decode(b"\xc6\xa1"), Err(EncodingProblem::Invalid));
    }

    #[test]
    fn last_escape_of_iso_2022_jp_is_not_written() {
        let jis = find("ISO-2022-JP");
        assert_eq!(jis.encode("\u{4e9c}").unwrap(), b"\x1b$B0!");
        assert_eq!(jis.encode("\u{4e9c}\n").unwrap(), b"\x1b$B0!\x1b(B\n");
        for bytes in [&b"\x1b$B0!"[..], b"\x1b$B0!\x1b(B"] {
            assert_eq!(jis.decode(bytes).unwrap(), "\u{4e9c}");
        }
    }

    proptest::proptest! {
        #[test]
        fn fuzz_decoded_bytes_are_written_again(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..40),
            name in proptest::sample::select(vec![
                "UTF-16LE", "UTF-16BE", "UTF-32LE", "SHIFT-JIS", "CP932", "EUC-JP", "ISO-2022-JP", "BIG5", "GBK",
                "CP949", "CP1252", "KOI8-R", "KOI8-U", "ISO-8859-1", "ISO-8859-15",
            ]),
        ) {
            let encoding = find(name);
            if let Ok(text) = encoding.decode(&bytes) {
                let back = encoding.encode(&text).unwrap();
                proptest::prop_assert!(bytes.starts_with(&back), "{name}: {text:?}");
                proptest::prop_assert!(bytes.len() - back.len() <= ASCII_ESCAPE.len());
            }
        }
    }
}
