//! Text that stands for an attachment within a text, in Markdown.

use domain::is_safe_link;

// Limit of a name or description, in characters. Jira's own limit for file names is 255.
const MAX_CHARS: usize = 300;
// Extensions of files that the texts call images.
const IMAGES: [&str; 10] = [
    "png", "jpg", "jpeg", "gif", "webp", "bmp", "svg", "tif", "tiff", "heic",
];

/// Kind of an attachment, as far as its place in the text shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttachmentPlace {
    /// The text shows its content.
    Shown,
    /// The text only names it.
    Named,
}

/// Renders an attachment: "(image `shot.png`: the dialog)" or "(file `trace.log`)". Name and description may be empty.
pub(crate) fn render_attachment(name: &str, description: &str, place: AttachmentPlace) -> String {
    let (name, description) = (clean_words(name), clean_words(description));
    let is_image = match (name.as_str(), place) {
        ("", AttachmentPlace::Shown) => true,
        ("", AttachmentPlace::Named) => false,
        (name, _) => has_image_name(name),
    };
    let word = if is_image { "image" } else { "file" };
    let name = match name.as_str() {
        "" => String::new(),
        name => format!(" `{name}`"),
    };
    match description.as_str() {
        "" => format!("({word}{name})"),
        description => format!("({word}{name}: {description})"),
    }
}

/// Renders an image at another address; `None` for an address that no link may have.
pub(crate) fn render_remote_image(address: &str, description: &str) -> Option<String> {
    if !is_safe_link(address) {
        return None;
    }
    let description = clean_words(description).replace(['[', ']'], "");
    Some(if address.contains([' ', '(', ')']) {
        format!("![{description}](<{address}>)")
    } else {
        format!("![{description}]({address})")
    })
}

/// True for a text that is the name of a file rather than a description.
pub(crate) fn is_file_name(text: &str) -> bool {
    let Some((stem, extension)) = text.trim().rsplit_once('.') else {
        return false;
    };
    !stem.is_empty()
        && (1..=5).contains(&extension.len())
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
        && !text.contains('\n')
}

fn has_image_name(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    IMAGES.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Text on one line, without a backtick that would end the name.
fn clean_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let joined = words.join(" ").replace('`', "'");
    joined.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachment_text_has_kind_name_description() {
        let shown = AttachmentPlace::Shown;
        for (name, description, place, text) in [
            ("shot.png", "", shown, "(image `shot.png`)"),
            ("shot.PNG", "", AttachmentPlace::Named, "(image `shot.PNG`)"),
            ("shot.png", "the dialog", shown, "(image `shot.png`: the dialog)"),
            ("trace.log", "", AttachmentPlace::Named, "(file `trace.log`)"),
            ("clip.mp4", "", shown, "(file `clip.mp4`)"),
            ("", "the dialog", shown, "(image: the dialog)"),
            ("", "", shown, "(image)"),
            ("", "", AttachmentPlace::Named, "(file)"),
            ("a`b\n.log", "", AttachmentPlace::Named, "(file `a'b .log`)"),
        ] {
            assert_eq!(render_attachment(name, description, place), text);
        }
    }

    #[test]
    fn remote_image_needs_safe_address() {
        assert_eq!(
            render_remote_image("https://a.example/x.png", "a [b]").as_deref(),
            Some("![a b](https://a.example/x.png)")
        );
        assert_eq!(
            render_remote_image("https://a.example/x(1).png", "").as_deref(),
            Some("![](<https://a.example/x(1).png>)")
        );
        assert_eq!(render_remote_image("javascript:x", "a"), None);
    }

    #[test]
    fn file_name_differs_from_description() {
        for name in ["image-20260101.png", "my shot.png", "a.b.log", "x.7z"] {
            assert!(is_file_name(name), "{name}");
        }
        for text in ["", "The dialog.", "after 3.", ".png", "see above", "a.\nb"] {
            assert!(!is_file_name(text), "{text}");
        }
    }
}
