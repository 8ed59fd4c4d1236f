//! Form of a file beside its content: encoding, byte order mark and line ends.

use super::{
    encoding::{BOM, FileText},
    lines::{MOST_COMPARED, TextLines},
};

/// Line ends of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnds {
    /// The text has one line at most.
    None,
    Lf,
    CrLf,
    Mixed,
}

impl LineEnds {
    fn of(text: &str) -> Self {
        let crlf = text.matches("\r\n").count();
        match (crlf, text.matches('\n').count() - crlf) {
            (0, 0) => Self::None,
            (0, _) => Self::Lf,
            (_, 0) => Self::CrLf,
            _ => Self::Mixed,
        }
    }
}

/// Renders the form of a file for the model; `None` for UTF-8 with line feeds.
pub(in crate::tools) fn describe_form(file: &FileText) -> Option<String> {
    let ends = match LineEnds::of(&file.text) {
        LineEnds::None | LineEnds::Lf => None,
        LineEnds::CrLf => Some("lines end with CRLF".to_owned()),
        LineEnds::Mixed => Some("lines end with CRLF or LF".to_owned()),
    };
    let lossy = file.is_lossy.then(|| {
        format!(
            "not valid {}: U+FFFD is in place of the other bytes, so do not write it back",
            file.encoding.name()
        )
    });
    let encoding = file.encoding.describe().filter(|_| !file.is_lossy);
    let parts: Vec<String> = [lossy, encoding, ends].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns a content with the byte order mark and the line ends of the text that it replaces.
///
/// # Errors
/// Returns a text for the model when mixed line ends cannot be matched to the new lines.
pub(in crate::tools) fn keep_form(before: &str, content: &str) -> Result<String, String> {
    let old = before.strip_prefix(BOM);
    let new = content.strip_prefix(BOM).unwrap_or(content);
    let body = keep_line_ends(old.unwrap_or(before), new)?;
    Ok(match old {
        Some(_) => format!("{BOM}{body}"),
        None => body,
    })
}

fn keep_line_ends(before: &str, content: &str) -> Result<String, String> {
    let plain = || content.replace("\r\n", "\n");
    Ok(match LineEnds::of(before) {
        LineEnds::None => content.to_owned(),
        LineEnds::Lf => plain(),
        LineEnds::CrLf => plain().replace('\n', "\r\n"),
        LineEnds::Mixed => {
            let compared = before.lines().count().saturating_mul(content.lines().count());
            if compared > MOST_COMPARED {
                return Err(
                    "the file is long and has mixed line ends, so it is not clear which lines stay. Change its parts \
                     with edit_file."
                        .to_owned(),
                );
            }
            let mut lines = TextLines::of(before);
            lines.become_body(&plain());
            lines.join()
        }
    })
}

/// Returns what of the form of a file a content would change, in words.
pub(in crate::tools) fn list_form_changes(file: &FileText, content: &str) -> Vec<&'static str> {
    let body = content.strip_prefix(BOM).unwrap_or(content);
    let is_encoding =
        !file.encoding.is_utf8() && file.encoding.encode(body).as_deref() != Ok(body.as_bytes());
    let is_mark = file.text.starts_with(BOM) != content.starts_with(BOM);
    let old = file.text.strip_prefix(BOM).unwrap_or(&file.text);
    let is_end = !keep_line_ends(old, body).is_ok_and(|kept| kept == body);
    let changes = [
        (is_encoding, "encoding"),
        (is_mark && file.encoding.is_utf8(), "byte order mark"),
        (is_end, "line ends"),
    ];
    changes
        .into_iter()
        .filter_map(|(is_changed, name)| is_changed.then_some(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_form_has_old_mark_and_ends() {
        for (before, content, kept) in [
            ("a\nb\n", "a\nx\n", "a\nx\n"),
            ("a\nb\n", "a\r\nx\r\n", "a\nx\n"),
            ("a\r\nb\r\n", "a\nx\n", "a\r\nx\r\n"),
            ("a\r\nb\r\n", "a\r\nx", "a\r\nx"),
            ("\u{feff}a\r\n", "a\n", "\u{feff}a\r\n"),
            ("a\n", "\u{feff}a\n", "a\n"),
            ("a\r\nb\nc\r\n", "a\nb\nx\n", "a\r\nb\nx\r\n"),
            ("a", "b\r\n", "b\r\n"),
            ("a\rb\n", "a\rx\n", "a\rx\n"),
        ] {
            assert_eq!(
                keep_form(before, content).as_deref(),
                Ok(kept),
                "{before:?} {content:?}"
            );
        }
        let long = "a\r\nb\n".repeat(5000);
        assert!(keep_form(&long, &long).unwrap_err().contains("edit_file"));
    }

    #[test]
    fn form_of_file_is_described() {
        let form = |bytes: &[u8]| describe_form(&FileText::decode(bytes).unwrap());
        assert_eq!(form(b"a\nb\n"), None);
        assert_eq!(form(b"a\r\nb\r\n").as_deref(), Some("lines end with CRLF"));
        assert_eq!(
            form(b"# Caf\xe9\r\nb\n").as_deref(),
            Some("windows-1252, detected; lines end with CRLF or LF")
        );
        assert!(
            form(b"caf\xc3\xa9 caf\xe9\n")
                .unwrap()
                .starts_with("not valid UTF-8: U+FFFD")
        );
    }

    #[test]
    fn changes_of_form_are_named() {
        let changes =
            |bytes: &[u8], content: &str| list_form_changes(&FileText::decode(bytes).unwrap(), content);
        assert!(changes(b"a\n", "b\n").is_empty());
        assert!(
            changes(b"# Caf\xe9\n", "# Cafe\n").is_empty(),
            "the bytes are the same in both"
        );
        assert_eq!(changes(b"# Caf\xe9\n", "# Caf\u{e9}s\n"), ["encoding"]);
        assert_eq!(changes(b"\xef\xbb\xbfa\n", "b\n"), ["byte order mark"]);
        assert_eq!(changes(b"a\r\n", "b\n"), ["line ends"]);
        assert_eq!(changes(b"\xff\xfea\0\r\0\n\0", "b\n"), ["encoding", "line ends"]);
    }
}
