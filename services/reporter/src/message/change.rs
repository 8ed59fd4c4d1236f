//! Texts about the size of a change: one line per changed file, and warnings for its reviewers.

use domain::{ChangeDescription, ChangeStatistics, ChangedFileSize, FileNote, text::truncate_text};

use super::words::{format_code, format_count, group_digits, one_line};

// Number of files that are named.
const FILES: usize = 40;
// Length of the model's note about one file, in characters.
const NOTE_CHARS: usize = 200;
// Number of written lines above which a change is hard to review.
const MOST_LINES: u32 = 300;
// Number of modules above which a change may be two changes.
const MOST_MODULES: usize = 2;
// Number of modules that are named.
const MODULES: usize = 10;

/// Lists the files of the change. The model's notes about other files are false, so they are omitted.
pub(super) fn list_files(description: &ChangeDescription) -> Option<String> {
    let notes = &description.handover.files;
    let Some(change) = &description.change else {
        let noted = notes.iter().take(FILES);
        let lines = noted.map(|note| format!("- {}: {}", format_code(&note.path), format_note(note)));
        return build_file_list(lines.collect(), notes.len());
    };
    let lines = change
        .files
        .iter()
        .take(FILES)
        .map(|file| format_file(file, notes));
    build_file_list(lines.collect(), change.total as usize)
}

fn build_file_list(lines: Vec<String>, total: usize) -> Option<String> {
    let more = match total.saturating_sub(lines.len()) {
        0 => String::new(),
        more => format!("\n- and {} more", group_digits(more as u64)),
    };
    (!lines.is_empty()).then(|| format!("**What changed**\n\n{}{more}", lines.join("\n")))
}

fn format_file(file: &ChangedFileSize, notes: &[FileNote]) -> String {
    let path = file.path.as_str();
    let note = notes
        .iter()
        .find(|note| note.path.trim_start_matches("./") == path);
    let note = note.map_or_else(String::new, |note| format!(": {}", format_note(note)));
    format!(
        "- {}{note} (+{} -{})",
        format_code(path),
        group_digits(file.added.into()),
        group_digits(file.removed.into())
    )
}

fn format_note(note: &FileNote) -> String {
    truncate_text(&one_line(&note.change), NOTE_CHARS)
}

/// Renders the size of the change.
pub(super) fn render_size(change: &ChangeStatistics) -> String {
    format!(
        "{}: {} added, {} removed.",
        format_count(change.total.into(), "file"),
        format_count(change.added.into(), "line"),
        group_digits(change.removed.into())
    )
}

/// Renders warnings about a large change.
pub(super) fn render_warnings(change: &ChangeStatistics) -> Vec<String> {
    let mut parts = Vec::new();
    if change.written > MOST_LINES {
        parts.push(format!(
            "**Large change:** {} in {}, without lock files, generated files and snapshots. Please review it with extra \
             care.",
            format_count(change.written.into(), "line"),
            format_count(change.total.into(), "file")
        ));
    }
    if change.modules.len() > MOST_MODULES {
        let named: Vec<String> = change
            .modules
            .iter()
            .take(MODULES)
            .map(|name| format_code(name))
            .collect();
        let more = match change.modules.len().saturating_sub(MODULES) {
            0 => String::new(),
            more => format!(" and {} more", group_digits(more as u64)),
        };
        parts.push(format!(
            "**{} modules:** {}{more}. Please check that the ticket needs a change in each of them.",
            change.modules.len(),
            named.join(", ")
        ));
    }
    parts
}
