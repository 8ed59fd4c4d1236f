//! Journal of a run as terminal lines (elapsed time, actor, event), and the output of its tools between them.

use api::view::{EntryView, Tone};
use domain::{
    ChangePlan, JournalEntry, Timestamp,
    text::{escape_hidden, remove_hidden},
};

pub use api::view::format_dollars;

// Longest text of the last column, in characters.
const WIDTH: usize = 110;
// Longest line of output, in characters.
const OUTPUT_WIDTH: usize = 200;

/// Line of an entry, without a line feed: `  1234 ms  executor  ok: 3 passed`. `None` for entries that are of no
/// interest to people.
pub fn render_entry_line(entry: &JournalEntry, start: Timestamp) -> Option<String> {
    let view = EntryView::from(entry);
    let elapsed_ms = entry.at.unix_ms() - start.unix_ms();
    (view.tone != Tone::Quiet).then(|| render_row(elapsed_ms, view.who.as_str(), &view.head))
}

/// Line of a timeline, without characters that control the terminal.
pub fn render_row(elapsed_ms: i64, who: &str, what: &str) -> String {
    format!("{elapsed_ms:>7} ms  {who:<9} {}", shorten_text(what))
}

/// Text of a plan for the user who decides about it.
pub fn render_plan(plan: &ChangePlan) -> String {
    let mut lines = vec![
        format!("goal: {}", plan.goal),
        format!("approach: {}", plan.approach),
    ];
    let steps = plan.steps.iter().zip(1..);
    lines.extend(steps.map(|(step, number)| format!("  {number}. {} {}", step.what, step.files.join(" "))));
    for (name, items) in [
        ("test", &plan.tests),
        ("risk", &plan.risks),
        ("not done", &plan.not_doing),
    ] {
        lines.extend(items.iter().map(|item| format!("{name}: {item}")));
    }
    lines.join("\n")
}

fn shorten_text(text: &str) -> String {
    // A line feed in the text would look like the next entry.
    let flat = escape_hidden(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    match flat.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &flat[..end]),
        None => flat,
    }
}

/// Output of tools in chunks, split into lines.
#[derive(Default)]
pub(crate) struct OutputLines {
    begun: String,
}

impl OutputLines {
    /// Adds a chunk and returns the lines that it completes.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<String> {
        // A progress bar rewrites its line with carriage returns. Each state becomes a line.
        self.begun
            .push_str(&piece.replace("\r\n", "\n").replace('\r', "\n"));
        // A chunk may end within a line. The rest waits for the next chunk.
        let Some(end) = self.begun.rfind('\n') else {
            return Vec::new();
        };
        let rest = self.begun.split_off(end + 1);
        let ended = std::mem::replace(&mut self.begun, rest);
        ended.lines().filter_map(clean_line).collect()
    }

    /// Returns the incomplete last line.
    pub(crate) fn end(&mut self) -> Option<String> {
        clean_line(&std::mem::take(&mut self.begun))
    }
}

/// Line without characters that control the terminal; `None` for an empty one.
fn clean_line(line: &str) -> Option<String> {
    let line: String = remove_hidden(line)
        .trim_end()
        .chars()
        .take(OUTPUT_WIDTH)
        .collect();
    (!line.is_empty()).then(|| format!("{:>12}| {line}", ""))
}

#[cfg(test)]
mod tests {
    use domain::{Fact, RunFence, WaitCondition};

    use super::*;

    fn build_entry(fact: Fact) -> JournalEntry {
        let at = Timestamp::from_unix_ms(1_500);
        JournalEntry {
            position: 0,
            nonce: String::new(),
            fence: RunFence::default(),
            at,
            fact,
        }
    }

    #[test]
    fn timeline_line_shows_time_actor_event() {
        let stopped = build_entry(Fact::StopRequested { by: "ada".to_owned() });
        assert_eq!(
            render_entry_line(&stopped, Timestamp::from_unix_ms(1_000)).unwrap(),
            "    500 ms  person    ada asked to stop"
        );
    }

    #[test]
    fn timeline_omits_transient_entries_keeps_waits() {
        let parked =
            |waits_for| render_entry_line(&build_entry(Fact::Parked { waits_for }), Timestamp::default());
        assert_eq!(parked(WaitCondition::Report), None);
        let waits = parked(WaitCondition::Decision).unwrap();
        assert!(
            waits.ends_with("planner   waits for a person's decision"),
            "{waits}"
        );
    }

    #[test]
    fn timeline_escapes_and_truncates_foreign_text() {
        let by = "ada\u{1b}[2J\u{202e}\n".repeat(400);
        let line = render_entry_line(&build_entry(Fact::StopRequested { by }), Timestamp::default()).unwrap();
        assert!(!line.chars().any(domain::text::is_hidden), "{line:?}");
        assert!(line.ends_with('…') && !line.contains('\n'), "{line}");
    }

    #[test]
    fn pieces_become_lines_without_control_characters() {
        let mut lines = OutputLines::default();
        assert_eq!(lines.push("one\ntw"), ["            | one"]);
        assert_eq!(
            lines.push("o\u{1b}]0;title\u{7}\r\n10%\r20%"),
            ["            | two]0;title", "            | 10%"]
        );
        assert_eq!(lines.end().unwrap(), "            | 20%");
        assert_eq!(lines.end(), None);
        assert_eq!(
            lines.push(&format!("{}\n", "x".repeat(5000)))[0].len(),
            OUTPUT_WIDTH + 14
        );
    }
}
