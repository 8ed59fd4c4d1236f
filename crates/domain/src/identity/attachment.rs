//! Attachments of tickets as ingest pinned them: names, contents in the object store, and reasons for absent ones.

use serde::{Deserialize, Serialize};

use crate::identity::object::ObjectRef;

/// An attachment of a ticket, pinned with its text: a later change at the tracker never reaches an active job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketAttachment {
    /// Name of the file, sanitized; no other attachment of the ticket has it.
    pub name: String,
    /// Identity at the tracker: the id of an attachment, or its address.
    pub source: String,
    /// Alternative text of an image; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub alt: String,
    /// Size at the tracker in bytes; 0: unknown.
    #[serde(default)]
    pub size_bytes: u64,
    /// The content, or the reason for its absence.
    pub content: AttachmentContent,
}

/// Content of an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AttachmentContent {
    /// Text in UTF-8, without hidden characters and credentials.
    Text {
        /// The whole text.
        object: ObjectRef,
        /// Number of its lines.
        lines: u64,
        /// First lines of the text, or all of them; empty: the excerpts of the ticket had no room left.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        head: String,
        /// Last lines of a text of which a middle part is omitted.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
    },
    /// Image in a format that models accept.
    Image {
        /// Bytes of the image.
        object: ObjectRef,
        /// Format by its content.
        format: ImageFormat,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// No content: ingest did not read the attachment, or not to its end.
    Unread {
        /// Reason for the absence.
        why: UnreadReason,
    },
}

/// Format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageFormat {
    /// Portable Network Graphics.
    Png,
    /// JPEG.
    Jpeg,
    /// Graphics Interchange Format.
    Gif,
    /// WebP.
    Webp,
}

impl ImageFormat {
    /// Media type, as models name it.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// Kind of a file that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// Archive or compressed file.
    Archive,
    /// PDF document.
    Pdf,
    /// Document of an office program.
    Office,
    /// SVG image, which may contain scripts and links.
    Svg,
    /// Image in a format that models do not accept.
    OtherImage,
    /// Video or audio recording.
    Recording,
    /// Program or library.
    Program,
    /// Binary file of an unknown kind.
    Binary,
    /// Empty file.
    Empty,
}

impl FileKind {
    /// Returns the kind with its article, for a sentence.
    pub const fn as_words(self) -> &'static str {
        match self {
            Self::Archive => "an archive",
            Self::Pdf => "a PDF document",
            Self::Office => "an office document",
            Self::Svg => "an SVG image",
            Self::OtherImage => "an image in a format that models do not accept",
            Self::Recording => "a recording",
            Self::Program => "a program",
            Self::Binary => "a binary file",
            Self::Empty => "an empty file",
        }
    }
}

/// Reason for which the content of an attachment is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum UnreadReason {
    /// It is larger than the limit for one attachment.
    TooLarge {
        /// The limit in bytes.
        most_bytes: u64,
    },
    /// The ticket has more attachments than the limit.
    TooMany {
        /// The limit.
        most: u64,
    },
    /// The attachments before it reached the limit for all attachments of a ticket.
    TotalReached {
        /// The limit in bytes.
        most_bytes: u64,
    },
    /// An image with more pixels on a side than models accept.
    TooManyPixels {
        /// The limit for each side.
        most: u32,
    },
    /// A kind of file that is not read, such as an archive.
    Kind {
        /// The kind by the content.
        kind: FileKind,
    },
    /// The header of the image is damaged.
    Broken,
    /// It is at an address outside of the tracker.
    Elsewhere,
    /// It was removed, or the reader account cannot see it.
    Missing,
    /// It was not read within the time limit.
    Late {
        /// The limit in seconds.
        seconds: u64,
    },
    /// The tracker or the store did not answer.
    Unavailable,
    /// The store has no room for it.
    NoRoom,
    /// The settings or the rules of the repository exclude it.
    Excluded,
}

impl UnreadReason {
    /// Returns true if the requester can do something about it, or relied on the content. Images at other addresses are
    /// mostly logos, and an exclusion is intended.
    pub const fn concerns_requester(&self) -> bool {
        match self {
            Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::TotalReached { .. }
            | Self::TooManyPixels { .. }
            | Self::Kind { .. }
            | Self::Broken
            | Self::Missing
            | Self::Late { .. }
            | Self::Unavailable
            | Self::NoRoom => true,
            Self::Elsewhere | Self::Excluded => false,
        }
    }
}

/// An attachment that the work does without, for the requester.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedAttachment {
    /// Name of the file.
    pub name: String,
    /// Reason for the absence.
    pub why: UnreadReason,
}

/// Returns the attachments without content that the requester should know about.
pub fn list_omitted(attachments: &[TicketAttachment]) -> Vec<OmittedAttachment> {
    let omitted = attachments
        .iter()
        .filter_map(|attachment| match &attachment.content {
            AttachmentContent::Unread { why } if why.concerns_requester() => Some(OmittedAttachment {
                name: attachment.name.clone(),
                why: why.clone(),
            }),
            AttachmentContent::Unread { .. }
            | AttachmentContent::Text { .. }
            | AttachmentContent::Image { .. } => None,
        });
    omitted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_unread(name: &str, why: UnreadReason) -> TicketAttachment {
        TicketAttachment {
            name: name.to_owned(),
            source: name.to_owned(),
            alt: String::new(),
            size_bytes: 0,
            content: AttachmentContent::Unread { why },
        }
    }

    #[test]
    fn omitted_list_leaves_out_intended_ones() {
        let large = UnreadReason::TooLarge { most_bytes: 5 };
        let all = [
            build_unread("a.zip", large.clone()),
            build_unread("badge.svg", UnreadReason::Elsewhere),
            build_unread("b.log", UnreadReason::Excluded),
        ];
        let omitted = list_omitted(&all);
        let expected = OmittedAttachment {
            name: "a.zip".to_owned(),
            why: large,
        };
        assert_eq!(omitted, [expected]);
    }

    #[test]
    fn stored_names_of_content_stay() {
        for stored in [
            r#"{"name":"trace.log","source":"10001","size_bytes":9,"content":{"type":"text","object":{"sha256":"aa","size_bytes":9},"lines":2,"head":"a\nb"}}"#,
            r#"{"name":"x.png","source":"10002","alt":"the dialog","size_bytes":9,"content":{"type":"image","object":{"sha256":"aa","size_bytes":9},"format":"png","width":1,"height":2}}"#,
            r#"{"name":"x.zip","source":"10003","size_bytes":9,"content":{"type":"unread","why":{"reason":"kind","kind":"archive"}}}"#,
            r#"{"name":"x.log","source":"10004","size_bytes":9,"content":{"type":"unread","why":{"reason":"too_large","most_bytes":5}}}"#,
        ] {
            let read: TicketAttachment = serde_json::from_str(stored).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), stored);
        }
    }
}
