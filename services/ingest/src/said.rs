//! What people say in comments, as every door hands it over: an order, or words.

use domain::{Source, TicketKey, Timestamp, TriggerKey};

/// An order in a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// End every live run of the ticket.
    Stop,
    /// Try again.
    Retry,
}

impl Command {
    /// The order that a comment gives: its first line is the command and nothing else.
    pub(crate) fn of(comment: &str) -> Option<Self> {
        match comment.trim().lines().next()?.trim() {
            "/stop" => Some(Self::Stop),
            "/retry" => Some(Self::Retry),
            _ => None,
        }
    }
}

/// The key of what a comment asks for; every door derives it.
pub(crate) fn comment_key(id: impl std::fmt::Display) -> TriggerKey {
    TriggerKey::new(format!("comment:{id}"))
}

/// Who gives an order, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) ticket: TicketKey,
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) actor: String,
    pub(crate) source: Source,
}

/// What a comment is to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    /// An order.
    Order(Command),
    /// Anything else, as Markdown.
    Words(String),
}

impl Remark {
    /// What a comment's text is.
    pub(crate) fn of(text: &str) -> Self {
        Command::of(text).map_or_else(|| Self::Words(text.to_owned()), Self::Order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_order_is_words() {
        assert_eq!(Remark::of("/stop"), Remark::Order(Command::Stop));
        assert_eq!(
            Remark::of("Mind the tax."),
            Remark::Words("Mind the tax.".to_owned())
        );
    }

    #[test]
    fn an_order_stands_alone_on_the_first_line() {
        assert_eq!(Command::of("  /stop\nit goes nowhere"), Some(Command::Stop));
        assert_eq!(Command::of("/retry "), Some(Command::Retry));
        for text in ["please /stop", "/stopper", "/retry now", "", "`/stop`"] {
            assert_eq!(Command::of(text), None, "{text}");
        }
    }
}
