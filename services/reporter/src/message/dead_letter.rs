//! Texts about parts of a ticket that moved to the dead letters.

use super::words::format_code;

pub(crate) fn render_quarantine(reason: &str) -> Vec<String> {
    vec![
        format!(
            "Journeyman has paused this ticket: {}. Nothing more happens here until an operator reviews it.",
            format_code(reason)
        ),
        "To try again from where it stands, comment `/retry`.".to_owned(),
    ]
}

pub(crate) fn render_unreadable(what: &str, is_poison: bool) -> Vec<String> {
    let what = format_code(what);
    let first = if is_poison {
        format!("Journeyman failed to handle a {what} about this ticket five times and has set it aside.")
    } else {
        format!("Journeyman could not read a {what} about this ticket and has set it aside.")
    };
    vec![
        first,
        "Everything else goes on. If something that you asked for does not happen, ask for it once more; an operator \
         finds what was set aside among the dead letters (`journeyman dead list`)."
            .to_owned(),
    ]
}
