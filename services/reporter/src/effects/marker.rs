//! Marker at the end of a comment. It names the effect that wrote the comment, so that a repeated effect finds it.

use crate::cleared_text::ClearedText;

pub(super) const MARKER_START: &str = "<!-- journeyman:effect=";
pub(super) const MARKER_END: &str = " -->";

/// Appends the marker of an effect to a text.
pub(super) fn append_marker(text: &ClearedText, id: &str) -> String {
    format!("{}\n\n{MARKER_START}{id}{MARKER_END}", text.as_str())
}

/// Reads the marker at the very end of a comment. Text before it may quote other comments with their markers.
pub(super) fn read_marker(body: &str) -> Option<&str> {
    let body = body.trim_end().strip_suffix(MARKER_END)?;
    let start = body.rfind(MARKER_START)?;
    Some(&body[start + MARKER_START.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append_marker(text: &str, id: &str) -> String {
        super::append_marker(&ClearedText::without_credentials(text), id)
    }

    #[test]
    fn only_marker_at_end_of_text_counts() {
        let id = "status:github:acme/shop--x#7";
        assert_eq!(read_marker(&append_marker("Text", id)), Some(id));
        let quoted = append_marker(&append_marker("Quoted", "other"), id);
        assert_eq!(read_marker(&quoted), Some(id));
        assert_eq!(
            read_marker(&format!("{}\n\nMore text", append_marker("Text", id))),
            None
        );
        assert_eq!(read_marker("Text"), None);
    }
}
