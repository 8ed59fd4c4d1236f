//! Choice of the comments that a prompt has room for: the newest of each kind of author.
//!
//! So no author fills a conversation, and users without rights take no room from those who have them.

use domain::TicketComment;

/// Characters of one text by another author.
pub(super) const COMMENT_CHARS: usize = 8 * 1024;
// Characters of one comment by an author without rights.
const STRANGER_CHARS: usize = 2_000;

/// Room for the comments of one kind of author.
struct CommentShare {
    comments: usize,
    chars: usize,
}

/// Room for the comments of one message.
pub(super) struct CommentRoom {
    instructors: CommentShare,
    strangers: CommentShare,
}

/// Room for comments next to the ticket's text.
pub(super) const TICKET_ROOM: CommentRoom = CommentRoom {
    instructors: CommentShare {
        comments: 50,
        chars: 96 * 1024,
    },
    strangers: CommentShare {
        comments: 20,
        chars: 24 * 1024,
    },
};
/// Room for comments between two turns.
pub(super) const NEWS_ROOM: CommentRoom = CommentRoom {
    instructors: CommentShare {
        comments: 50,
        chars: 32 * 1024,
    },
    strangers: CommentShare {
        comments: 20,
        chars: 16 * 1024,
    },
};

/// Comments of which a part is shown.
#[derive(Debug)]
pub(super) struct CommentChoice<'a> {
    /// Shown comments, in order of time.
    pub(super) shown: Vec<&'a TicketComment>,
    /// Number of omitted comments by authors who may instruct.
    instructions: usize,
    /// Number of omitted comments by other authors.
    others: usize,
}

/// Returns the characters of a comment that are shown.
pub(super) const fn shown_chars(comment: &TicketComment) -> usize {
    if comment.may_instruct {
        COMMENT_CHARS
    } else {
        STRANGER_CHARS
    }
}

/// Chooses the newest comments that fit, at least one of each kind of author.
pub(super) fn choose_comments<'a>(comments: Vec<&'a TicketComment>, room: &CommentRoom) -> CommentChoice<'a> {
    let instructions = count_omitted(&comments, true, &room.instructors);
    let others = count_omitted(&comments, false, &room.strangers);
    let mut skipped = [instructions, others];
    let is_shown = |comment: &&TicketComment| {
        let skipped = &mut skipped[usize::from(!comment.may_instruct)];
        let is_skipped = *skipped > 0;
        *skipped = skipped.saturating_sub(1);
        !is_skipped
    };
    CommentChoice {
        shown: comments.into_iter().filter(is_shown).collect(),
        instructions,
        others,
    }
}

/// Returns the number of the oldest comments by one kind of author that do not fit.
fn count_omitted(comments: &[&TicketComment], may_instruct: bool, share: &CommentShare) -> usize {
    let theirs: Vec<_> = comments
        .iter()
        .filter(|comment| comment.may_instruct == may_instruct)
        .collect();
    let (mut count, mut chars) = (0, 0);
    for comment in theirs.iter().rev() {
        chars += comment.text.chars().take(shown_chars(comment)).count();
        // The first one always fits: `most_chars` limits it.
        if count > 0 && (chars > share.chars || count >= share.comments) {
            break;
        }
        count += 1;
    }
    theirs.len() - count
}

/// Renders the note about omitted comments; empty if all are shown.
pub(super) fn render_omitted(choice: &CommentChoice<'_>) -> String {
    let note = |count: usize, of: &str| match count {
        0 => String::new(),
        1 => format!("1 older comment {of} is left out here for its length; it is on the ticket.\n"),
        many => format!(
            "{many} older comments {of} are left out here for their length; they are on the ticket.\n"
        ),
    };
    note(choice.instructions, "by people who may instruct")
        + &note(choice.others, "by people who may not instruct")
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    fn build_comments(may_instruct: bool, count: usize, chars: usize) -> Vec<TicketComment> {
        let one = |number: usize| TicketComment {
            author: "ada".to_owned(),
            at: Timestamp::from_unix_ms(1),
            text: format!("{number:04}{}", "x".repeat(chars.saturating_sub(4))),
            may_instruct,
            is_new: false,
        };
        (0..count).map(one).collect()
    }

    fn list_chosen_comments(comments: &[TicketComment], room: &CommentRoom) -> (Vec<String>, String) {
        let choice = choose_comments(comments.iter().collect(), room);
        let numbers = choice.shown.iter().map(|comment| comment.text[..4].to_owned());
        (numbers.collect(), render_omitted(&choice))
    }

    #[test]
    fn strangers_push_no_instruction_out() {
        let mut all = build_comments(true, 3, 100);
        all.extend(build_comments(false, 500, 5_000));
        let (shown, note) = list_chosen_comments(&all, &TICKET_ROOM);
        assert_eq!(shown[..3], ["0000", "0001", "0002"]);
        assert_eq!(shown.len(), 3 + 12);
        assert_eq!(shown.last().unwrap(), "0499");
        assert_eq!(
            note,
            "488 older comments by people who may not instruct are left out here for their length; they are on the ticket.\n"
        );
    }

    #[test]
    fn newest_instructions_within_limit_are_shown() {
        let (shown, note) = list_chosen_comments(&build_comments(true, 200, 8_000), &NEWS_ROOM);
        assert_eq!(shown, ["0196", "0197", "0198", "0199"]);
        assert!(
            note.starts_with("196 older comments by people who may instruct"),
            "{note}"
        );
        let (shown, note) = list_chosen_comments(&build_comments(true, 50, 10), &NEWS_ROOM);
        assert_eq!((shown.len(), note.as_str()), (50, ""));
        let (shown, note) = list_chosen_comments(&build_comments(true, 1, 1_000_000), &NEWS_ROOM);
        assert_eq!((shown.len(), note.as_str()), (1, ""));
    }
}
