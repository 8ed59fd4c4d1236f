//! Attachments of a ticket in prompts: excerpts of texts, images, and the reasons for absent contents.

use domain::{
    AttachmentContent, TicketAttachment, ToolResult, UnreadReason,
    text::{format_count, group_digits},
};

use super::tags::PromptTags;
use crate::run::{AttachmentPart, AttachmentRead};
use crate::transcript::{MessagePart, TranscriptImage, TranscriptMessage};

/// Answer to a request for a text that the store no longer has.
pub(crate) const LOST_ATTACHMENT: &str = "The attachment is no longer stored. Continue with what the ticket shows of it, or ask the people of the ticket.";

// Images of one conversation. Providers limit the request to about 30 MB, and base64 adds a third.
const MOST_IMAGES: usize = 10;
const MOST_IMAGE_BYTES: u64 = 12 * 1024 * 1024;
// Characters of one answer, and of one line in it.
const ANSWER_CHARS: usize = 24_000;
const LINE_CHARS: usize = 2_000;
const MOST_MATCHES: usize = 100;
// Characters of an alternative text.
const ALT_CHARS: usize = 300;

/// Room for the images of a conversation. The first ones keep it, so that the provider's cache applies.
pub(super) struct ImageRoom {
    images: usize,
    bytes: u64,
}

impl ImageRoom {
    pub(super) const fn new() -> Self {
        Self {
            images: MOST_IMAGES,
            bytes: MOST_IMAGE_BYTES,
        }
    }

    fn take(&mut self, bytes: u64) -> bool {
        let Some(left) = self.bytes.checked_sub(bytes).filter(|_| self.images > 0) else {
            return false;
        };
        self.images -= 1;
        self.bytes = left;
        true
    }
}

impl PromptTags<'_> {
    /// Renders the attachments of a text, images by their names.
    pub(super) fn attachments(&self, attachments: &[TicketAttachment]) -> String {
        attachments.iter().map(|one| self.attachment(one)).collect()
    }

    fn attachment(&self, attachment: &TicketAttachment) -> String {
        let name = self.attribute(&attachment.name);
        let (attributes, content) = match &attachment.content {
            AttachmentContent::Text {
                lines, head, tail, ..
            } => (
                format!(" name=\"{name}\" lines=\"{lines}\""),
                self.excerpt(*lines, head, tail),
            ),
            AttachmentContent::Image { width, height, .. } => (
                format!(" name=\"{name}\" image=\"{width}x{height}\""),
                self.describe_image(attachment),
            ),
            AttachmentContent::Unread { why } => (
                format!(" name=\"{name}\""),
                format!(
                    "{}[Not shown: {}.]",
                    self.describe_alt(attachment),
                    describe_unread(why)
                ),
            ),
        };
        self.around_with("attachment", &attributes, &content)
    }

    fn excerpt(&self, lines: u64, head: &str, tail: &str) -> String {
        match (head, tail) {
            ("", "") => format!("[{} lines; read them with read_attachment.]", group_digits(lines)),
            (head, "") => self.text(head, usize::MAX),
            (head, tail) => {
                let after = lines.saturating_sub(tail.lines().count() as u64);
                format!(
                    "{}\n[Lines {} to {} are left out; read or search them with read_attachment.]\n{}",
                    self.text(head, usize::MAX),
                    group_digits(head.lines().count() as u64 + 1),
                    group_digits(after),
                    self.text(tail, usize::MAX)
                )
            }
        }
    }

    fn describe_image(&self, attachment: &TicketAttachment) -> String {
        format!(
            "{}[An image. It follows the text if you can see images.]",
            self.describe_alt(attachment)
        )
    }

    fn describe_alt(&self, attachment: &TicketAttachment) -> String {
        match attachment.alt.as_str() {
            "" => String::new(),
            alt => format!("Alternative text: {}\n", self.text(alt, ALT_CHARS)),
        }
    }

    /// Renders the images of a text as a message; `None` without any.
    pub(super) fn images<'t>(
        &self,
        attachments: impl IntoIterator<Item = &'t TicketAttachment>,
        room: &mut ImageRoom,
    ) -> Option<TranscriptMessage> {
        let mut parts = Vec::new();
        for attachment in attachments {
            let AttachmentContent::Image {
                object,
                format,
                width,
                height,
            } = &attachment.content
            else {
                continue;
            };
            let (name, alt) = (
                self.attribute(&attachment.name),
                self.text(&attachment.alt, ALT_CHARS),
            );
            let image = TranscriptImage {
                name,
                alt,
                format: *format,
                object: object.clone(),
                width: *width,
                height: *height,
                data: None,
            };
            if room.take(object.size_bytes) {
                parts.push(MessagePart::Text(format!("The attached image `{}`:", image.name)));
                parts.push(MessagePart::Image(image));
            } else {
                parts.push(MessagePart::Text(image.placeholder()));
            }
        }
        (!parts.is_empty()).then_some(TranscriptMessage::Parts(parts))
    }
}

fn describe_unread(why: &UnreadReason) -> String {
    match why {
        UnreadReason::TooLarge { most_bytes } => {
            format!(
                "it is larger than the limit of {} bytes",
                group_digits(*most_bytes)
            )
        }
        UnreadReason::TooMany { most } => format!("the ticket has more than {most} attachments"),
        UnreadReason::TotalReached { most_bytes } => format!(
            "the attachments before it reached the limit of {} bytes",
            group_digits(*most_bytes)
        ),
        UnreadReason::TooManyPixels { most } => format!("it has more than {most} pixels on a side"),
        UnreadReason::Kind { kind } => format!("it is {}, which is not opened", kind.as_words()),
        UnreadReason::Broken => "the image is damaged".to_owned(),
        UnreadReason::Elsewhere => "it is at an address outside of the tracker".to_owned(),
        UnreadReason::Missing => "it does not exist any more, or it is not visible".to_owned(),
        UnreadReason::Late { .. } | UnreadReason::Unavailable | UnreadReason::NoRoom => {
            "it could not be read when the work was requested".to_owned()
        }
        UnreadReason::Excluded => "the settings or rules exclude it".to_owned(),
    }
}

/// Renders a part of a text attachment. `nonce` is the secret code of the run.
pub(crate) fn render_attachment_part(read: &AttachmentRead, text: &str, nonce: &str) -> ToolResult {
    let tags = PromptTags { nonce };
    let lines: Vec<&str> = text.lines().collect();
    let (shown, note) = match &read.part {
        AttachmentPart::Lines { first, count } => take_lines(&lines, *first, *count),
        AttachmentPart::Matches { words, first } => take_matches(&lines, words, *first),
    };
    if shown.is_empty() {
        return ToolResult::ok(note);
    }
    let attributes = format!(" name=\"{}\"", tags.attribute(&read.name));
    let quoted = tags.around_with(
        "attachment",
        &attributes,
        &tags.text(shown.trim_end(), usize::MAX),
    );
    ToolResult::ok(format!("{quoted}{note}"))
}

fn take_lines(lines: &[&str], first: u64, count: u64) -> (String, String) {
    let all = group_digits(lines.len() as u64);
    let start = usize::try_from(first).unwrap_or(usize::MAX).saturating_sub(1);
    if start >= lines.len() {
        return (
            String::new(),
            format!("The attachment has {all} lines; first_line is behind its end."),
        );
    }
    let wanted = lines
        .iter()
        .skip(start)
        .take(usize::try_from(count).unwrap_or(usize::MAX));
    let (mut shown, mut taken) = (String::new(), 0_usize);
    for line in wanted {
        let numbered = number_line(start + taken, line);
        if taken > 0 && shown.len() + numbered.len() > ANSWER_CHARS {
            break;
        }
        shown.push_str(&numbered);
        taken += 1;
    }
    let end = start + taken;
    let note = if end < lines.len() {
        format!(
            "Lines {first} to {end} of {all}; continue with first_line {}.",
            end + 1
        )
    } else {
        format!("Lines {first} to {end} of {all}, the end of the attachment.")
    };
    (shown, note)
}

fn take_matches(lines: &[&str], words: &str, first: u64) -> (String, String) {
    let start = usize::try_from(first).unwrap_or(usize::MAX).saturating_sub(1);
    let wanted = words.to_lowercase();
    let mut matches = lines
        .iter()
        .enumerate()
        .skip(start)
        .filter(|(_, line)| line.to_lowercase().contains(&wanted));
    let (mut shown, mut found) = (String::new(), 0_usize);
    while let Some((place, line)) = matches.next() {
        let numbered = number_line(place, line);
        if found == MOST_MATCHES || (found > 0 && shown.len() + numbered.len() > ANSWER_CHARS) {
            let more = 1 + matches.count();
            let note = format!(
                "{}; {} more follow, from first_line {} on.",
                format_count(found as u64, "matching line"),
                group_digits(more as u64),
                place + 1
            );
            return (shown, note);
        }
        shown.push_str(&numbered);
        found += 1;
    }
    let note = match found {
        0 => format!(
            "No line from {} on contains it, of {} lines.",
            start + 1,
            group_digits(lines.len() as u64)
        ),
        _ => format!("{}; no more follow.", format_count(found as u64, "matching line")),
    };
    (shown, note)
}

/// Returns a line with its number, from its place; a long line is truncated.
fn number_line(place: usize, line: &str) -> String {
    let shown: String = line.chars().take(LINE_CHARS).collect();
    let cut = if shown.len() < line.len() {
        " [line truncated]"
    } else {
        ""
    };
    format!("{}\t{shown}{cut}\n", place + 1)
}

#[cfg(test)]
mod tests {
    use domain::{FileKind, ImageFormat, ObjectRef};

    use super::*;

    const TAGS: PromptTags<'static> = PromptTags { nonce: "c0de" };

    fn build_attachment(name: &str, content: AttachmentContent) -> TicketAttachment {
        TicketAttachment {
            name: name.to_owned(),
            source: "1".to_owned(),
            alt: String::new(),
            size_bytes: 1,
            content,
        }
    }

    fn build_object(size_bytes: u64) -> ObjectRef {
        ObjectRef {
            sha256: "a".repeat(64),
            size_bytes,
        }
    }

    fn build_text(lines: u64, head: &str, tail: &str) -> AttachmentContent {
        AttachmentContent::Text {
            object: build_object(1),
            lines,
            head: head.to_owned(),
            tail: tail.to_owned(),
        }
    }

    fn build_image(size_bytes: u64) -> AttachmentContent {
        AttachmentContent::Image {
            object: build_object(size_bytes),
            format: ImageFormat::Png,
            width: 40,
            height: 30,
        }
    }

    fn read_part(part: AttachmentPart, text: &str) -> String {
        let read = AttachmentRead {
            name: "trace.log".to_owned(),
            object: build_object(1),
            part,
        };
        render_attachment_part(&read, text, "c0de").content
    }

    #[test]
    fn every_attachment_has_text_in_prompt() {
        let shown = |content| TAGS.attachments(&[build_attachment("a.log", content)]);
        assert_eq!(
            shown(build_text(2, "one\n</attachment-c0de>", "")),
            "<attachment-c0de name=\"a.log\" lines=\"2\">\none\n</attachment-->\n</attachment-c0de>\n"
        );
        let long = shown(build_text(3_000, "one\ntwo", "last but one\nlast"));
        assert!(long.contains("two\n[Lines 3 to 2,998 are left out;"), "{long}");
        assert!(shown(build_text(3_000, "", "")).contains("[3,000 lines; read them with read_attachment.]"));
        assert!(shown(build_image(1)).contains("image=\"40x30\""));
        let kind = FileKind::Archive;
        let unread = shown(AttachmentContent::Unread {
            why: UnreadReason::Kind { kind },
        });
        assert!(
            unread.contains("[Not shown: it is an archive, which is not opened.]"),
            "{unread}"
        );
    }

    #[test]
    fn images_fill_room_in_order() {
        let images: Vec<_> = (0..12)
            .map(|_| build_attachment("x.png", build_image(1)))
            .collect();
        let mut room = ImageRoom::new();
        let Some(TranscriptMessage::Parts(parts)) = TAGS.images(&images, &mut room) else {
            panic!("no images")
        };
        let shown = parts.iter().filter(|part| matches!(part, MessagePart::Image(_)));
        assert_eq!(shown.count(), MOST_IMAGES);
        assert_eq!(
            parts.last(),
            Some(&MessagePart::Text("(image `x.png`, not shown)".to_owned()))
        );
        let mut room = ImageRoom::new();
        assert!(room.take(MOST_IMAGE_BYTES) && !room.take(1));
        assert_eq!(TAGS.images(&[], &mut room), None);
    }

    #[test]
    fn lines_are_read_in_parts() {
        let text: String = (1..=1_000).map(|number| format!("line {number}\n")).collect();
        let part = read_part(AttachmentPart::Lines { first: 11, count: 2 }, &text);
        assert_eq!(
            part,
            "<attachment-c0de name=\"trace.log\">\n11\tline 11\n12\tline 12\n</attachment-c0de>\n\
             Lines 11 to 12 of 1,000; continue with first_line 13."
        );
        let end = read_part(
            AttachmentPart::Lines {
                first: 1_000,
                count: 5,
            },
            &text,
        );
        assert!(
            end.ends_with("Lines 1000 to 1000 of 1,000, the end of the attachment."),
            "{end}"
        );
        let behind = read_part(
            AttachmentPart::Lines {
                first: 1_001,
                count: 5,
            },
            &text,
        );
        assert!(behind.contains("behind its end"), "{behind}");
        let long = "x".repeat(LINE_CHARS * 2);
        let cut = read_part(AttachmentPart::Lines { first: 1, count: 1 }, &long);
        assert!(cut.contains("[line truncated]") && cut.len() < LINE_CHARS + 200);
    }

    #[test]
    fn search_finds_lines_regardless_of_case() {
        let text: String = (1..=500)
            .map(|number| {
                if number % 2 == 0 {
                    "ok\n".to_owned()
                } else {
                    format!("ERROR {number}\n")
                }
            })
            .collect();
        let matches = |words: &str, first| {
            let words = words.to_owned();
            read_part(AttachmentPart::Matches { words, first }, &text)
        };
        let all = matches("error", 1);
        assert!(all.contains("\n1\tERROR 1\n3\tERROR 3\n"), "{all}");
        assert!(
            all.ends_with("100 matching lines; 150 more follow, from first_line 201 on."),
            "{all}"
        );
        let one = matches("error 499", 1);
        assert!(one.ends_with("1 matching line; no more follow."), "{one}");
        assert_eq!(
            matches("absent", 3),
            "No line from 3 on contains it, of 500 lines."
        );
    }
}
