//! Whether a ticket was moved, and how to ask for work again.

use domain::TicketKey;

use super::words::{code, harmless};
use crate::made::Moved;

/// How to ask for the job again. `moved`: what became of the last move; a ticket that never left the status cannot be
/// moved back to it.
pub(crate) fn try_again(ticket: &TicketKey, again: &str, moved: Option<&Moved>) -> String {
    let again = harmless(again);
    match (ticket, moved) {
        (TicketKey::Jira { .. }, Some(Moved::Unavailable { .. } | Moved::Refused { .. })) => {
            format!("To try again, move the ticket to another status and then to **{again}**.")
        }
        (TicketKey::Jira { .. }, Some(Moved::To(_)) | None) => {
            format!("To try again, move the ticket back to **{again}**.")
        }
        (TicketKey::Discussion { .. }, _) => "To try again, ask once more in a comment.".to_owned(),
        (TicketKey::GitHub { .. }, _) => {
            "To try again, assign the issue once more, or put its label on it again.".to_owned()
        }
        (TicketKey::Folder { .. }, _) => "To try again, ask for the job once more on this ticket.".to_owned(),
    }
}

/// That a ticket reached its last status.
pub(super) fn done(moved: &Moved) -> Option<String> {
    match moved {
        Moved::To(status) => Some(format!("The ticket is now **{}**.", harmless(status))),
        Moved::Unavailable { .. } | Moved::Refused { .. } => None,
    }
}

/// That a ticket was not moved, and what a person has to do.
pub(super) fn not_moved(moved: &Moved) -> Option<String> {
    match moved {
        Moved::To(_) => None,
        Moved::Unavailable {
            wanted,
            status,
            reachable,
        } => {
            let reachable = bold_list(reachable).unwrap_or_else(|| "no other status".to_owned());
            Some(format!(
                "The ticket is still in **{}**: no transition to **{}** is available from that status. It can be moved \
                 to: {reachable}. Please move it yourself.",
                harmless(status),
                harmless(wanted)
            ))
        }
        Moved::Refused {
            wanted,
            detail,
            asks_for,
        } => Some(format!(
            "The ticket could not be moved to **{}** ({}). Please move it yourself{}.",
            harmless(wanted),
            code(detail),
            bold_list(asks_for).map_or_else(String::new, |fields| format!(" and fill in {fields}"))
        )),
    }
}

fn bold_list(names: &[String]) -> Option<String> {
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("**{}**", harmless(name)))
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}
