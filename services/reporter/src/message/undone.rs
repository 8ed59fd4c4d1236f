//! Why an effect failed, for people.

use domain::{Instance, TicketKey};

/// The settings do not name the folder.
pub(crate) fn no_such_folder(folder: &Instance) -> String {
    format!("the settings have no section [folder.{folder}]")
}

/// Something was to be said on a ticket of a folder.
pub(crate) fn no_tracker(ticket: &TicketKey) -> String {
    format!("{ticket} is in no tracker: nothing can be written on it")
}

/// A report names a ticket, thread or comment that is not its ticket's.
pub(crate) fn foreign_target(ticket: &TicketKey) -> String {
    format!("what was to be written to does not belong to {ticket}")
}

/// An effect came without the check of its target.
pub(crate) fn unchecked_effect() -> String {
    "the reporter did not check what this writes to".to_owned()
}

/// Neither rules nor records know the ticket.
pub(crate) fn unknown_ticket(ticket: &TicketKey) -> String {
    format!("no rules cover {ticket}, and nobody asked for work on it")
}

/// GitHub or Jira do not know us.
pub(crate) fn credentials_refused() -> String {
    "the reporter's credentials are refused; an operator must look into it".to_owned()
}

/// The request cannot be read.
pub(crate) fn unreadable_request() -> String {
    "the reporter could not read what it was asked for".to_owned()
}

/// Detail of a report that was given up because each attempt at it ended the reporter.
pub(crate) fn poison_request() -> String {
    "the reporter stopped unexpectedly at each of five attempts; an operator finds the request among the dead letters \
     (`journeyman dead list`)"
        .to_owned()
}

/// What the ledger holds is not the id of a comment.
pub(crate) fn replies_stay() -> String {
    "A reply in a review stays as it was written.".to_owned()
}

pub(crate) fn no_comment_of_github() -> String {
    "the ledger names no comment of GitHub".to_owned()
}

/// A push that no run asked for.
pub(crate) fn no_run() -> String {
    "a push needs a run".to_owned()
}

/// A link without a pull request.
pub(crate) fn nothing_to_link() -> String {
    "there is no pull request to link".to_owned()
}

/// The inspection passed and shows nothing.
pub(crate) fn no_difference() -> String {
    "the inspector gave no difference".to_owned()
}

/// The work with git did not come to its end.
pub(crate) fn work_was_cut() -> String {
    "the work on the repository was cut".to_owned()
}
