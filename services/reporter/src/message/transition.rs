//! Texts about transitions of a ticket, and about the way to request work again.

use domain::TicketKey;

use super::words::{format_code, sanitize_line};
use crate::receipt::TransitionResult;

/// Renders the way to request the job again. After a failed transition the ticket is still in the requesting status, so
/// it has to leave it first.
pub(crate) fn try_again(ticket: &TicketKey, again: &str, moved: Option<&TransitionResult>) -> String {
    let again = sanitize_line(again);
    match (ticket, moved) {
        (
            TicketKey::Jira { .. },
            Some(TransitionResult::Unavailable { .. } | TransitionResult::Refused { .. }),
        ) => {
            format!("To try again, move the ticket to another status and then to **{again}**.")
        }
        (TicketKey::Jira { .. }, Some(TransitionResult::To(_)) | None) => {
            format!("To try again, move the ticket back to **{again}**.")
        }
        (TicketKey::Discussion { .. }, _) => "To try again, ask again in a comment.".to_owned(),
        (TicketKey::GitHub { .. }, _) => {
            "To try again, assign the issue again, or remove its label and add it again.".to_owned()
        }
        (TicketKey::Folder { .. }, _) => "To try again, ask for the job again on this ticket.".to_owned(),
    }
}

/// Renders the new status of a ticket.
pub(super) fn render_reached_status(moved: &TransitionResult) -> Option<String> {
    match moved {
        TransitionResult::To(status) => Some(format!("The ticket is now **{}**.", sanitize_line(status))),
        TransitionResult::Unavailable { .. } | TransitionResult::Refused { .. } => None,
    }
}

/// Renders a failed transition, and the required action of a person.
pub(super) fn not_moved(moved: &TransitionResult) -> Option<String> {
    match moved {
        TransitionResult::To(_) => None,
        TransitionResult::Unavailable {
            wanted,
            status,
            reachable,
        } => {
            let reachable = bold_list(reachable).unwrap_or_else(|| "no other status".to_owned());
            Some(format!(
                "The ticket is still in **{}**: no transition to **{}** is available from that status. It can be moved \
                 to: {reachable}. Please move it yourself.",
                sanitize_line(status),
                sanitize_line(wanted)
            ))
        }
        TransitionResult::Refused {
            wanted,
            detail,
            asks_for,
        } => Some(format!(
            "The ticket could not be moved to **{}** ({}). Please move it yourself{}.",
            sanitize_line(wanted),
            format_code(detail),
            bold_list(asks_for).map_or_else(String::new, |fields| format!(" and fill in {fields}"))
        )),
    }
}

fn bold_list(names: &[String]) -> Option<String> {
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("**{}**", sanitize_line(name)))
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}
