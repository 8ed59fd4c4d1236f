//! Attachments that the work does without.

use domain::{OmittedAttachment, UnreadReason};

use super::words::{format_code, format_count};

// Files that are named one by one.
const MOST_NAMED: usize = 10;
const KIB: u64 = 1024;

/// Renders the attachments that were left out, each with its reason; `None` without any.
pub(crate) fn render_omitted_attachments(omitted: &[OmittedAttachment]) -> Option<String> {
    if omitted.is_empty() {
        return None;
    }
    let named = omitted.iter().take(MOST_NAMED);
    let mut lines: Vec<String> = named
        .map(|one| format!("- {}: {}", format_code(&one.name), describe_reason(&one.why)))
        .collect();
    let others = omitted.len().saturating_sub(MOST_NAMED);
    if others > 0 {
        lines.push(format!("- and {}", format_count(others as u64, "other file")));
    }
    Some(format!(
        "The work does without these attachments. If one of them matters, write what it shows in a comment.\n\n{}",
        lines.join("\n")
    ))
}

fn describe_reason(why: &UnreadReason) -> String {
    match why {
        UnreadReason::TooLarge { most_bytes } => {
            format!("larger than {}, the limit for one file", format_size(*most_bytes))
        }
        UnreadReason::TooMany { most } => {
            format!(
                "the ticket has more than {}, the limit",
                format_count(*most, "attachment")
            )
        }
        UnreadReason::TotalReached { most_bytes } => format!(
            "the files before it reached {}, the limit for all files of a ticket",
            format_size(*most_bytes)
        ),
        UnreadReason::TooManyPixels { most } => format!("more than {most} pixels wide or high"),
        UnreadReason::Kind { kind } => format!("{}, which is not opened", kind.as_words()),
        UnreadReason::Broken => "the image is damaged".to_owned(),
        UnreadReason::Elsewhere => "at an address outside of the tracker".to_owned(),
        UnreadReason::Missing => "missing, or not visible to the reader account".to_owned(),
        UnreadReason::Late { seconds } => format!("not read within {}", format_count(*seconds, "second")),
        UnreadReason::Unavailable => "could not be read".to_owned(),
        UnreadReason::NoRoom => "the store of Journeyman has no room for it".to_owned(),
        UnreadReason::Excluded => "excluded by the settings or rules".to_owned(),
    }
}

/// Formats a limit in MiB or KiB.
fn format_size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= KIB * KIB => format!("{} MiB", bytes / (KIB * KIB)),
        bytes => format!("{} KiB", bytes / KIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_omitted(name: &str, why: UnreadReason) -> OmittedAttachment {
        OmittedAttachment {
            name: name.to_owned(),
            why,
        }
    }

    #[test]
    fn omitted_attachment_has_name_and_reason() {
        assert_eq!(render_omitted_attachments(&[]), None);
        let kind = domain::FileKind::Archive;
        let omitted = [
            build_omitted("a`b.log", UnreadReason::TooLarge { most_bytes: 5 << 20 }),
            build_omitted("x.zip", UnreadReason::Kind { kind }),
        ];
        let text = render_omitted_attachments(&omitted).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "- `a'b.log`: larger than 5 MiB, the limit for one file");
        assert_eq!(lines[3], "- `x.zip`: an archive, which is not opened");
    }

    #[test]
    fn long_list_of_omitted_attachments_ends_with_count() {
        let one = build_omitted("x.log", UnreadReason::TooMany { most: 20 });
        let text = render_omitted_attachments(&vec![one; MOST_NAMED + 2]).unwrap();
        assert!(text.ends_with("\n- and 2 other files"), "{text}");
        assert_eq!(text.lines().count(), MOST_NAMED + 3);
    }
}
