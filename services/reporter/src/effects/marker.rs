//! Marker at the end of a comment that names the effect it belongs to.

use crate::cleared_text::ClearedText;

pub(super) const MARKER_START: &str = "<!-- journeyman:effect=";
pub(super) const MARKER_END: &str = " -->";

pub(super) fn marked(text: &ClearedText, id: &str) -> String {
    format!("{}\n\n{MARKER_START}{id}{MARKER_END}", text.as_str())
}

/// The marker at the very end: text above it is quoted from others and may hold anything.
pub(super) fn marker_of(body: &str) -> Option<&str> {
    let body = body.trim_end().strip_suffix(MARKER_END)?;
    let start = body.rfind(MARKER_START)?;
    Some(&body[start + MARKER_START.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, id: &str) -> String {
        super::marked(&ClearedText::without_credentials(text), id)
    }

    #[test]
    fn only_marker_at_end_of_text_counts() {
        let id = "status:github:acme/shop--x#7";
        assert_eq!(marker_of(&marked("Text", id)), Some(id));
        let quoted = marked(&marked("Quoted", "other"), id);
        assert_eq!(marker_of(&quoted), Some(id));
        assert_eq!(marker_of(&format!("{}\n\nMore text", marked("Text", id))), None);
        assert_eq!(marker_of("Text"), None);
    }
}
