//! What a change touches: one line for each file that really differs, and what a person should look at twice.

use domain::{ChangeSize, Description, FileChange, FileNote, TicketKey, text::capped};

use super::words::{code, harmless, one_line};

/// Files that are named.
const FILES: usize = 40;
/// Kept of what the model says of one file, in characters.
const NOTE_CHARS: usize = 200;
/// More written lines than this are hard to review.
const MOST_LINES: u32 = 300;
/// A change to more modules than this may be two changes.
const MOST_MODULES: usize = 2;
/// Modules that are named.
const MODULES: usize = 10;

/// The ticket's key and first line.
pub(super) fn heading(ticket: &TicketKey, description: &Description) -> Option<String> {
    let summary = one_line(&description.ticket);
    (!summary.is_empty()).then(|| format!("## {}: {}", ticket.short(), harmless(&summary)))
}

/// The files of the change. What the model says of others is left out: it is not so.
pub(super) fn files(description: &Description) -> Option<String> {
    let notes = &description.handover.files;
    let Some(change) = &description.change else {
        let noted = notes.iter().take(FILES);
        let lines = noted.map(|note| format!("- {}: {}", code(&note.path), said(note)));
        return listed(lines.collect(), notes.len());
    };
    let lines = change.files.iter().take(FILES).map(|file| line(file, notes));
    listed(lines.collect(), change.total as usize)
}

fn listed(lines: Vec<String>, total: usize) -> Option<String> {
    let more = match total.saturating_sub(lines.len()) {
        0 => String::new(),
        more => format!("\n- and {more} more"),
    };
    (!lines.is_empty()).then(|| format!("**What changed**\n\n{}{more}", lines.join("\n")))
}

fn line(file: &FileChange, notes: &[FileNote]) -> String {
    let path = file.path.as_str();
    let note = notes
        .iter()
        .find(|note| note.path.trim_start_matches("./") == path);
    let note = note.map_or_else(String::new, |note| format!(": {}", said(note)));
    format!("- {}{note} (+{} -{})", code(path), file.added, file.removed)
}

fn said(note: &FileNote) -> String {
    capped(&one_line(&note.change), NOTE_CHARS)
}

/// How much it is, and a warning where that is much.
pub(super) fn size(change: &ChangeSize) -> Vec<String> {
    let mut parts = vec![format!(
        "{}: {} added, {} removed.",
        counted(change.total, "file"),
        counted(change.added, "line"),
        change.removed
    )];
    if change.written > MOST_LINES {
        parts.push(format!(
            "**Large change:** {} in {}, without lock files, generated files and snapshots. Please review it with extra \
             care.",
            counted(change.written, "line"),
            counted(change.total, "file")
        ));
    }
    if change.modules.len() > MOST_MODULES {
        let named: Vec<String> = change
            .modules
            .iter()
            .take(MODULES)
            .map(|name| code(name))
            .collect();
        let more = match change.modules.len().saturating_sub(MODULES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        parts.push(format!(
            "**{} modules:** {}{more}. Please check that the ticket needs a change in each of them.",
            change.modules.len(),
            named.join(", ")
        ));
    }
    parts
}

fn counted(number: u32, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}
