//! The one comment that says how a ticket stands, as a pure function of its board.

use super::{
    moved::not_moved,
    words::{code, one_line},
};
use crate::board::{Board, Entry};

/// The status comment: the latest in full, then what was said before, one line each.
pub(crate) fn status(board: &Board) -> String {
    let Some((latest, earlier)) = board.entries.split_first() else {
        return String::new();
    };
    let mut paragraphs = vec![latest.text.clone()];
    paragraphs.extend(board.unmoved.as_ref().and_then(not_moved));
    paragraphs.push(signature(latest, board));
    let lasting = [&board.lasting.done, &board.lasting.changed]
        .into_iter()
        .flatten();
    paragraphs.extend(lasting.filter(|text| !text.is_empty()).cloned());
    if !earlier.is_empty() {
        paragraphs.push("Before that:".to_owned());
        let lines: Vec<String> = earlier.iter().map(earlier_line).collect();
        paragraphs.push(lines.join("\n"));
    }
    paragraphs.join("\n\n")
}

fn signature(latest: &Entry, board: &Board) -> String {
    let run = latest.run.as_ref();
    let run = run.map_or_else(String::new, |run| format!(", run {}", code(&run.to_string())));
    let elapsed = board
        .started_at
        .map(|start| latest.at.unix_s() - start.unix_s())
        .filter(|seconds| *seconds > 0)
        .map_or_else(String::new, |seconds| {
            format!(", {} after the start", duration(seconds))
        });
    format!("Journeyman{run}, {}{elapsed}", minute(latest))
}

fn earlier_line(entry: &Entry) -> String {
    let first = entry.text.split("\n\n").next().unwrap_or_default();
    format!("- {}: {}", minute(entry), one_line(first))
}

/// `2026-11-21 10:00 UTC`.
fn minute(entry: &Entry) -> String {
    let instant = entry.at.to_string();
    let minute = instant.get(..16).unwrap_or(&instant);
    format!("{} UTC", minute.replace('T', " "))
}

fn duration(seconds: i64) -> String {
    match (
        seconds / 86_400,
        seconds / 3_600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    ) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
