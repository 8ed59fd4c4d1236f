//! Kind of a file by its first bytes, dimensions of images from their headers, and text from bytes. Nothing is
//! decompressed.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use domain::{FileKind, ImageFormat, text};

/// Pixels that models accept on each side of an image.
pub(crate) const MOST_PIXELS: u32 = 8_000;
// Part of a text, in characters per mille, that may be unreadable.
const MOST_UNREADABLE: usize = 20;
// Bytes at the start of a text in which an SVG element is searched.
const SVG_HEAD: usize = 4_096;

/// Content of a file, as far as it can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileContent {
    Text(String),
    Image {
        format: ImageFormat,
        width: u32,
        height: u32,
    },
    /// The header of an image is damaged or truncated.
    BrokenImage,
    Other(FileKind),
}

/// First bytes of kinds of files that are not opened.
const SIGNATURES: &[(&[u8], FileKind)] = &[
    (b"PK\x03\x04", FileKind::Archive),
    (b"PK\x05\x06", FileKind::Archive),
    (b"\x1f\x8b", FileKind::Archive),
    (b"BZh", FileKind::Archive),
    (b"7z\xbc\xaf\x27\x1c", FileKind::Archive),
    (b"\xfd7zXZ\x00", FileKind::Archive),
    (b"\x28\xb5\x2f\xfd", FileKind::Archive),
    (b"Rar!\x1a\x07", FileKind::Archive),
    (b"%PDF-", FileKind::Pdf),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", FileKind::Office),
    (b"BM", FileKind::OtherImage),
    (b"II*\x00", FileKind::OtherImage),
    (b"MM\x00*", FileKind::OtherImage),
    (b"\x00\x00\x01\x00", FileKind::OtherImage),
    (b"8BPS", FileKind::OtherImage),
    (b"\x7fELF", FileKind::Program),
    (b"MZ", FileKind::Program),
    (b"\xca\xfe\xba\xbe", FileKind::Program),
    (b"\xcf\xfa\xed\xfe", FileKind::Program),
    (b"\x00asm", FileKind::Program),
    (b"\x1aE\xdf\xa3", FileKind::Recording),
    (b"OggS", FileKind::Recording),
    (b"ID3", FileKind::Recording),
    (b"fLaC", FileKind::Recording),
];

/// Reads the kind and the usable content of a file. `name` only distinguishes office documents from other archives.
pub(crate) fn inspect_file(name: &str, bytes: &[u8]) -> FileContent {
    if bytes.is_empty() {
        return FileContent::Other(FileKind::Empty);
    }
    if let Some(image) = inspect_image(bytes) {
        return image;
    }
    // Some signatures are also words at the start of a text, so a text is tried first where the signature is printable.
    let signature = SIGNATURES.iter().find(|(start, _)| bytes.starts_with(start));
    let is_printable = |start: &[u8]| start.iter().all(u8::is_ascii_graphic);
    if let Some((start, kind)) = signature
        && (!is_printable(start) || *kind == FileKind::Pdf)
    {
        return FileContent::Other(name_kind(*kind, name));
    }
    // ISO media files have their brand after a length.
    if let Some(b"ftyp") = bytes.get(4..8) {
        let brand = bytes.get(8..12).unwrap_or_default();
        let is_image = [&b"heic"[..], b"heix", b"mif1", b"avif"].contains(&brand);
        return FileContent::Other(if is_image {
            FileKind::OtherImage
        } else {
            FileKind::Recording
        });
    }
    match decode_text(bytes) {
        Some(text) if is_svg(&text) => FileContent::Other(FileKind::Svg),
        Some(text) => FileContent::Text(text),
        None => FileContent::Other(signature.map_or(FileKind::Binary, |(_, kind)| name_kind(*kind, name))),
    }
}

fn name_kind(kind: FileKind, name: &str) -> FileKind {
    const OFFICE: [&str; 9] = [
        "docx", "xlsx", "pptx", "odt", "ods", "odp", "docm", "xlsm", "pptm",
    ];
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_office = OFFICE.iter().any(|known| extension.eq_ignore_ascii_case(known));
    if kind == FileKind::Archive && is_office {
        FileKind::Office
    } else {
        kind
    }
}

fn is_svg(text: &str) -> bool {
    let head = text::truncate_bytes(text, SVG_HEAD).trim_start();
    head.starts_with('<')
        && head.contains("<svg")
        && !head
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("<!doctype html")
}

/// Reads the header of an image; `None` for another file.
fn inspect_image(bytes: &[u8]) -> Option<FileContent> {
    let (format, size) = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        (ImageFormat::Png, read_png_size(bytes))
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        (ImageFormat::Jpeg, read_jpeg_size(bytes))
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        (ImageFormat::Gif, read_gif_size(bytes))
    } else if bytes.starts_with(b"RIFF") && has_at(bytes, 8, b"WEBP") {
        (ImageFormat::Webp, read_webp_size(bytes))
    } else {
        return None;
    };
    Some(match size.filter(|(width, height)| *width > 0 && *height > 0) {
        Some((width, height)) => FileContent::Image {
            format,
            width,
            height,
        },
        None => FileContent::BrokenImage,
    })
}

fn read_number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn read_big_u32(bytes: &[u8], at: usize) -> Option<u32> {
    read_number(bytes, at).map(u32::from_be_bytes)
}

fn read_big_u16(bytes: &[u8], at: usize) -> Option<u32> {
    read_number(bytes, at).map(|two| u32::from(u16::from_be_bytes(two)))
}

fn read_little_u16(bytes: &[u8], at: usize) -> Option<u32> {
    read_number(bytes, at).map(|two| u32::from(u16::from_le_bytes(two)))
}

fn has_at(bytes: &[u8], at: usize, wanted: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(wanted))
}

fn read_png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    // The first chunk is IHDR, and a complete file ends with IEND.
    let is_header = has_at(bytes, 12, b"IHDR") && read_big_u32(bytes, 8) == Some(13);
    let end = bytes.get(bytes.len().saturating_sub(64)..)?;
    if !is_header || !end.windows(4).any(|four| four == b"IEND") {
        return None;
    }
    Some((read_big_u32(bytes, 16)?, read_big_u32(bytes, 20)?))
}

fn read_gif_size(bytes: &[u8]) -> Option<(u32, u32)> {
    // A shorter file ends within its own header.
    bytes.get(13)?;
    Some((read_little_u16(bytes, 6)?, read_little_u16(bytes, 8)?))
}

/// Reads the segments of a JPEG up to the one with the size.
fn read_jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            // Fill bytes may precede a marker.
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            // Frame headers, without the tables and codes in the same range.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((read_big_u16(bytes, at + 7)?, read_big_u16(bytes, at + 5)?));
            }
            // The picture begins or ends without a frame header.
            0xd9 | 0xda => return None,
            _ => {
                let length = usize::try_from(read_big_u16(bytes, at + 2)?).ok()?;
                // The length counts its own two bytes, so a shorter one would loop forever.
                if length < 2 {
                    return None;
                }
                at += 2 + length;
            }
        }
    }
}

fn read_webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let three = |at: usize| {
        let [low, middle, high] = read_number(bytes, at)?;
        Some(u32::from_le_bytes([low, middle, high, 0]))
    };
    match bytes.get(12..16)? {
        b"VP8X" => Some((three(24)? + 1, three(27)? + 1)),
        b"VP8L" if has_at(bytes, 20, &[0x2f]) => {
            let packed = u32::from_le_bytes(read_number(bytes, 21)?);
            Some(((packed & 0x3fff) + 1, ((packed >> 14) & 0x3fff) + 1))
        }
        b"VP8 " if has_at(bytes, 23, &[0x9d, 0x01, 0x2a]) => Some((
            read_little_u16(bytes, 26)? & 0x3fff,
            read_little_u16(bytes, 28)? & 0x3fff,
        )),
        _ => None,
    }
}

/// Decodes a text and removes what a reader does not see; `None` for a binary file.
fn decode_text(bytes: &[u8]) -> Option<String> {
    let decoded = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => decode_utf8(rest)?,
        [0xff, 0xfe, rest @ ..] => decode_utf16(rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => decode_utf16(rest, u16::from_be_bytes)?,
        _ => decode_utf8(bytes).or_else(|| decode_unmarked(bytes))?,
    };
    // Terminal colors of a log would otherwise leave their letters behind.
    let plain = text::sanitize_output(&decoded);
    Some(text::remove_hidden(&plain))
}

fn decode_utf8(bytes: &[u8]) -> Option<String> {
    if bytes.contains(&0) {
        return None;
    }
    let decoded = String::from_utf8_lossy(bytes);
    let unreadable = decoded.chars().filter(|c| is_unreadable(*c)).count();
    let most = decoded.chars().count() * MOST_UNREADABLE / 1_000;
    (unreadable <= most.max(1)).then(|| decoded.into_owned())
}

fn is_unreadable(c: char) -> bool {
    c == char::REPLACEMENT_CHARACTER
        || (c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}' | '\u{8}' | '\u{c}'))
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let units = bytes.chunks_exact(2).map(|two| unit([two[0], two[1]]));
    let decoded: String = char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    let unreadable = decoded.chars().filter(|c| is_unreadable(*c)).count();
    let most = decoded.chars().count() * MOST_UNREADABLE / 1_000;
    (unreadable <= most.max(1)).then_some(decoded)
}

/// Decodes a text in UTF-16 without a byte order mark, or in an encoding older than Unicode. Most bytes are valid in
/// such an encoding, so that a single unreadable character means a binary file.
fn decode_unmarked(bytes: &[u8]) -> Option<String> {
    let decoded = if bytes.contains(&0) {
        decode_wide(bytes)?
    } else {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(bytes, true);
        let encoding = detector.guess(None, Utf8Detection::Deny);
        encoding.decode_without_bom_handling(bytes).0.into_owned()
    };
    (!decoded.chars().any(is_unreadable)).then_some(decoded)
}

/// Decodes UTF-16 without a mark: half of the bytes of its ASCII characters are zero, all at even or all at odd places.
fn decode_wide(bytes: &[u8]) -> Option<String> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let zeros = |parity: usize| {
        let places = bytes.iter().skip(parity).step_by(2);
        places.filter(|byte| **byte == 0).count()
    };
    // Fewer of them are a text that has hardly any ASCII, or no text.
    let is_most = |count: usize| count * 5 >= bytes.len() / 2 * 4;
    match (zeros(0), zeros(1)) {
        (0, odd) if is_most(odd) => decode_utf16(bytes, u16::from_le_bytes),
        (even, 0) if is_most(even) => decode_utf16(bytes, u16::from_be_bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    fn build_png(width: u32, height: u32) -> Vec<u8> {
        let mut png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR".to_vec();
        png.extend(width.to_be_bytes());
        png.extend(height.to_be_bytes());
        png.extend(b"\x08\x02\x00\x00\x00\x00\x00\x00\x00");
        png.extend(b"\x00\x00\x00\x00IDAT\x00\x00\x00\x00\x00\x00\x00\x00IEND\xaeB`\x82");
        png
    }

    const JPEG: &[u8] =
        b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc2\x00\x11\x08\x00\x1e\x00\x28\x03\x01\x22\x00\x02\x11\x01";
    const GIF: &[u8] = b"GIF89a\x28\x00\x1e\x00\x80\x00\x00\x00";
    const WEBP_X: &[u8] =
        b"RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x27\x00\x00\x1d\x00\x00";
    const WEBP_LOSSLESS: &[u8] = b"RIFF\x16\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f\x27\x40\x07\x00\x00";
    const WEBP_LOSSY: &[u8] =
        b"RIFF\x16\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x28\x00\x1e\x00";

    #[test]
    fn image_size_comes_from_header() {
        for (bytes, format) in [
            (build_png(40, 30), ImageFormat::Png),
            (JPEG.to_vec(), ImageFormat::Jpeg),
            (GIF.to_vec(), ImageFormat::Gif),
            (WEBP_X.to_vec(), ImageFormat::Webp),
            (WEBP_LOSSLESS.to_vec(), ImageFormat::Webp),
            (WEBP_LOSSY.to_vec(), ImageFormat::Webp),
        ] {
            let expected = FileContent::Image {
                format,
                width: 40,
                height: 30,
            };
            // The name has no say: an image may be called anything.
            assert_eq!(inspect_file("notes.txt", &bytes), expected);
        }
    }

    #[test]
    fn damaged_image_is_refused() {
        let whole = build_png(40, 30);
        let cases = [
            whole[..20].to_vec(),
            whole[..whole.len() - 12].to_vec(),
            build_png(0, 30),
            JPEG[..9].to_vec(),
            b"\xff\xd8\xff\xe0\x00\x00\x00\x00".to_vec(),
            b"\xff\xd8\xff\xda".to_vec(),
            GIF[..9].to_vec(),
            WEBP_X[..20].to_vec(),
            b"RIFF\x16\x00\x00\x00WEBPVP9 ".to_vec(),
        ];
        for bytes in cases {
            assert_eq!(
                inspect_file("x.png", &bytes),
                FileContent::BrokenImage,
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn other_files_are_named_by_content() {
        for (name, bytes, kind) in [
            ("x.png", &b"PK\x03\x04rest"[..], FileKind::Archive),
            ("plan.docx", b"PK\x03\x04rest", FileKind::Office),
            ("x.txt", b"\x1f\x8b\x08\x00rest", FileKind::Archive),
            ("x.log", b"%PDF-1.7\nrest", FileKind::Pdf),
            ("x", b"\x7fELF\x02\x01\x01\x00", FileKind::Program),
            ("x.exe", b"MZ\x90\x00\x03\x00\x00\x00", FileKind::Program),
            ("x.bmp", b"BM\x00\x00\x00\x00\x00\x00", FileKind::OtherImage),
            ("x.mp4", b"\x00\x00\x00\x18ftypmp42\x00", FileKind::Recording),
            ("x.heic", b"\x00\x00\x00\x18ftypheic\x00", FileKind::OtherImage),
            (
                "x.svg",
                b"<?xml version=\"1.0\"?>\n<svg onload=\"x()\"/>",
                FileKind::Svg,
            ),
            ("x.txt", b"  <svg></svg>", FileKind::Svg),
            ("x.bin", b"\x01\x02\x03\x04\x05\x06\x07", FileKind::Binary),
            ("x.bin", b"\xa0\x01\xe3\x02\xff\x10\xfe\x80", FileKind::Binary),
            ("x.bin", b"\x01\x00\x02\x00\x03\x00\x04\x00", FileKind::Binary),
            ("x.txt", b"", FileKind::Empty),
        ] {
            assert_eq!(inspect_file(name, bytes), FileContent::Other(kind), "{name}");
        }
    }

    #[test]
    fn text_is_decoded_without_hidden_parts() {
        for (bytes, expected) in [
            (&b"MZ is a city code\n"[..], "MZ is a city code\n"),
            (b"BMW totals\r\n2\r\n", "BMW totals\n2\n"),
            (b"\xef\xbb\xbfwith mark", "with mark"),
            (b"\xff\xfeG\x00r\x00\xfc\x00n\x00", "Gr\u{fc}n"),
            (b"\xfe\xff\x00a\x00b", "ab"),
            (
                b"\x1b[31mred\x1b[0m <!-- kept in a log -->",
                "red <!-- kept in a log -->",
            ),
            ("zero\u{200B}width".as_bytes(), "zerowidth"),
            (b"<!DOCTYPE html><svg></svg>", "<!DOCTYPE html><svg></svg>"),
        ] {
            let content = inspect_file("x.png", bytes);
            assert_eq!(content, FileContent::Text(expected.to_owned()));
        }
    }

    #[test]
    fn text_without_mark_is_decoded_by_content() {
        let japanese = "価格は税込みです。数量を確認してください。\n";
        let russian = "Сервер не отвечает. Проверьте соединение и повторите попытку позже.\n";
        let english = "error: the total is wrong\n";
        let encode_wide =
            |split: fn(u16) -> [u8; 2]| -> Vec<u8> { english.encode_utf16().flat_map(split).collect() };
        for (bytes, expected) in [
            (encoding_rs::SHIFT_JIS.encode(japanese).0.into_owned(), japanese),
            (encoding_rs::WINDOWS_1251.encode(russian).0.into_owned(), russian),
            (encode_wide(u16::to_le_bytes), english),
            (encode_wide(u16::to_be_bytes), english),
        ] {
            let content = inspect_file("x.log", &bytes);
            assert_eq!(content, FileContent::Text(expected.to_owned()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(testkit::fuzz_cases()))]

        #[test]
        fn fuzz_any_file_is_inspected(
            start in select(vec![
                &b""[..], b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X", b"RIFF\0\0\0\0WEBPVP8L",
                b"\xff\xfe", b"PK\x03\x04", b"<svg",
            ]),
            rest in vec(any::<u8>(), 0..200),
        ) {
            let bytes = [start, &rest].concat();
            if let FileContent::Text(text) = inspect_file("x", &bytes) {
                prop_assert!(!domain::text::has_hidden(&text));
            }
        }
    }
}
