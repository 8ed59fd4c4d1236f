//! Commands in comments: a first line that starts with a slash.

use domain::DiscussionTask;

/// Shortest accepted abbreviation of a commit, in hexadecimal characters.
pub(crate) const SHORTEST: usize = 12;

/// Command in a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommentCommand {
    /// Stops every live run of the ticket.
    Stop,
    /// Retries the last request.
    Retry,
    /// Reports the cost of the ticket.
    Cost,
    /// Replies with the ways to steer the work.
    Help,
    /// Runs a task in the discussion.
    Discuss(DiscussionTask),
    /// Approves a commit or plan. `head` may be abbreviated; empty: the only open decision.
    Approve { head: String },
    /// Stops the run that waits for this decision. `head` may be empty.
    Reject { head: String },
    /// Requests changes before the approval.
    Feedback { head: String, text: String },
}

impl CommentCommand {
    /// Parses the command of a comment; `None` for a comment without one.
    pub(crate) fn of(comment: &str) -> Option<Self> {
        let comment = comment.trim();
        let line = comment.lines().next()?.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("/stop", "") => Some(Self::Stop),
            ("/retry", "") => Some(Self::Retry),
            ("/cost", "") => Some(Self::Cost),
            ("/help", "") => Some(Self::Help),
            ("/summarize", "") => Some(Self::Discuss(DiscussionTask::Summarize)),
            ("/plan", "") => Some(Self::Discuss(DiscussionTask::Plan)),
            ("/complete", "") => Some(Self::Discuss(DiscussionTask::Complete)),
            ("/approve", rest) => {
                let (head, rest) = split_head(rest);
                // A short or malformed abbreviation stays a command without a head. The user then
                // gets an answer instead of silence.
                (rest.is_empty() || is_hexadecimal(rest)).then_some(Self::Approve { head })
            }
            ("/reject", rest) => Some(Self::Reject {
                head: split_head(rest).0,
            }),
            ("/feedback", _) => {
                let (head, text) = split_head(comment.strip_prefix("/feedback")?);
                let text = text.to_owned();
                (!text.is_empty()).then_some(Self::Feedback { head, text })
            }
            _ => None,
        }
    }
}

/// Splits a text into the commit at its start and the rest. The commit is empty when the first word
/// is none.
fn split_head(text: &str) -> (String, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let head = word.trim_matches('`');
    let is_head = (SHORTEST..=40).contains(&head.len()) && is_hexadecimal(head);
    match is_head {
        true => (head.to_ascii_lowercase(), rest.trim()),
        false => (String::new(), text),
    }
}

fn is_hexadecimal(word: &str) -> bool {
    word.trim_matches('`').chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_stands_on_the_first_line() {
        assert_eq!(
            CommentCommand::of("  /stop\nit goes nowhere"),
            Some(CommentCommand::Stop)
        );
        assert_eq!(CommentCommand::of("/retry "), Some(CommentCommand::Retry));
        assert_eq!(CommentCommand::of("/cost"), Some(CommentCommand::Cost));
        assert_eq!(CommentCommand::of("/help"), Some(CommentCommand::Help));
        let plan = CommentCommand::Discuss(DiscussionTask::Plan);
        assert_eq!(CommentCommand::of("/plan\nin small steps"), Some(plan));
        for text in [
            "please /stop",
            "/stopper",
            "/retry now",
            "",
            "`/stop`",
            "/feedback",
            "/approve of it",
        ] {
            assert_eq!(CommentCommand::of(text), None, "{text}");
        }
    }

    #[test]
    fn decision_commands_name_commit_or_feedback() {
        let head = |head: &str| {
            Some(CommentCommand::Approve {
                head: head.to_owned(),
            })
        };
        assert_eq!(
            CommentCommand::of("/approve `1A2B3c4d5e6f`"),
            head("1a2b3c4d5e6f")
        );
        assert_eq!(CommentCommand::of("/approve"), head(""));
        assert_eq!(CommentCommand::of("/approve 1a2b3c4"), head(""));
        assert_eq!(CommentCommand::of("/reject, it is wrong"), None);
        let (head, none) = ("1a2b3c4d5e6f".to_owned(), String::new());
        let reject = CommentCommand::of("/reject it is wrong");
        assert_eq!(reject, Some(CommentCommand::Reject { head: none.clone() }));
        let reject = CommentCommand::of("/reject 1a2b3c4d5e6f");
        assert_eq!(reject, Some(CommentCommand::Reject { head: head.clone() }));
        let text = "Use cents.\nAnd round down.".to_owned();
        let feedback = Some(CommentCommand::Feedback { head: none, text });
        assert_eq!(
            CommentCommand::of("/feedback Use cents.\nAnd round down."),
            feedback
        );
        let text = "Use cents.".to_owned();
        let feedback = Some(CommentCommand::Feedback { head, text });
        assert_eq!(CommentCommand::of("/feedback 1A2B3C4D5E6F\nUse cents."), feedback);
    }
}
