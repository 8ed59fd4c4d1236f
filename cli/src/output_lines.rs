//! Output of tools, as lines between those of a timeline.

use domain::text::remove_hidden;

// Longest printed line, in characters.
const WIDTH: usize = 200;

/// Splits chunks of output into lines.
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
    let line: String = remove_hidden(line).trim_end().chars().take(WIDTH).collect();
    (!line.is_empty()).then(|| format!("{:>12}| {line}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            WIDTH + 14
        );
    }
}
