//! Images and files that a Markdown text refers to.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::text::sanitizer::find_attribute;

// Without smart punctuation, which would change names and alternative texts.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_FOOTNOTES);
// People do not write texts with more references.
const MOST_LINKS: usize = 200;

/// Reference of a text to a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AttachmentLink {
    pub(crate) address: String,
    /// Alternative text of an image, or text of a link.
    pub(crate) text: String,
    /// True when the text shows the file, false when it only links to it.
    pub(crate) is_image: bool,
}

/// Lists images and links of a text in their order, outside of code.
#[expect(clippy::wildcard_enum_match_arm, reason = "other Markdown refers to no file")]
pub(crate) fn list_attachment_links(markdown: &str) -> Vec<AttachmentLink> {
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for (event, range) in Parser::new_ext(markdown, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(Tag::Image { dest_url, .. }) => open.push(build_link(&dest_url, true)),
            Event::Start(Tag::Link { dest_url, .. }) => open.push(build_link(&dest_url, false)),
            Event::End(TagEnd::Image | TagEnd::Link) => found.extend(open.pop()),
            Event::Text(words) | Event::Code(words) => {
                // The text of an image in a link is a text of both.
                for link in &mut open {
                    link.text.push_str(&words);
                }
            }
            Event::Html(_) | Event::InlineHtml(_) => list_html_links(markdown, range, &mut found),
            _ => {}
        }
        if found.len() >= MOST_LINKS {
            break;
        }
    }
    found
}

fn build_link(address: &str, is_image: bool) -> AttachmentLink {
    AttachmentLink {
        address: address.to_owned(),
        text: String::new(),
        is_image,
    }
}

/// Adds the images, videos and links of a piece of HTML.
fn list_html_links(markdown: &str, piece: Range<usize>, found: &mut Vec<AttachmentLink>) {
    for part in markdown[piece].split('<').skip(1) {
        let tag = part.split('>').next().unwrap_or_default();
        let name: String = tag.chars().take_while(char::is_ascii_alphanumeric).collect();
        let attributes = &tag[name.len()..];
        let address = match name.to_ascii_lowercase().as_str() {
            "img" | "video" | "source" => find_attribute(attributes, "src"),
            "a" => find_attribute(attributes, "href"),
            _ => None,
        };
        if let Some(address) = address.filter(|address| !address.is_empty()) {
            found.push(AttachmentLink {
                address: address.replace("&amp;", "&"),
                text: find_attribute(attributes, "alt").unwrap_or_default().to_owned(),
                is_image: name.eq_ignore_ascii_case("img"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_parts(markdown: &str) -> Vec<(String, String, bool)> {
        let links = list_attachment_links(markdown).into_iter();
        links
            .map(|link| (link.address, link.text, link.is_image))
            .collect()
    }

    #[test]
    fn images_and_links_are_listed_in_order() {
        let text = "See ![the *dialog*](a.png \"x\") and [log](b.log).\n\n\
                    <img width=\"10\" alt=\"second picture\" src=\"c.png?x=1&amp;y=2\">\n\n\
                    [![badge](d.svg)](e) ![ref][r]\n\n[r]: g.png\n";
        let part = |address: &str, text: &str, is_image| (address.to_owned(), text.to_owned(), is_image);
        assert_eq!(
            list_parts(text),
            [
                part("a.png", "the dialog", true),
                part("b.log", "log", false),
                part("c.png?x=1&y=2", "second picture", true),
                part("d.svg", "badge", true),
                part("e", "badge", false),
                part("g.png", "ref", true),
            ]
        );
    }

    #[test]
    fn code_refers_to_no_file() {
        for text in [
            "`![a](b.png)`",
            "```\n![a](b.png)\n<img src=\"c.png\">\n```",
            "    ![a](b.png)",
            "<!-- ![a](b.png) -->",
            "\\![a\\](b.png)",
        ] {
            assert!(list_parts(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn list_of_links_is_bounded() {
        assert_eq!(
            list_attachment_links(&"![a](b.png)\n".repeat(1_000)).len(),
            MOST_LINKS
        );
    }
}
