//! Lines for a terminal: parts with an emphasis, in color where the terminal has it.

use console::{Style, truncate_str};
use domain::text::escape_hidden;

// Columns of the label at the start of a line.
const LABEL_COLUMNS: usize = 9;

/// Emphasis of a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextEmphasis {
    Plain,
    Faint,
    Strong,
    Good,
    Warning,
    Bad,
}

impl TextEmphasis {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Faint => Style::new().dim(),
            Self::Strong => Style::new().bold(),
            Self::Good => Style::new().green(),
            Self::Warning => Style::new().yellow(),
            Self::Bad => Style::new().red(),
        }
    }
}

/// One line of a terminal. Its texts may be by others: characters that control the terminal are spelled out, and line
/// feeds become spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TerminalLine {
    parts: Vec<(TextEmphasis, String)>,
}

impl TerminalLine {
    /// Line that starts with a label, in a column of its own.
    pub(crate) fn labeled(label: &str) -> Self {
        Self::default().with(TextEmphasis::Faint, &format!("{label:<LABEL_COLUMNS$}"))
    }

    /// Adds a part.
    pub(crate) fn with(mut self, emphasis: TextEmphasis, text: &str) -> Self {
        self.parts.push((emphasis, flatten_text(text)));
        self
    }

    /// Adds a part of at most this many columns.
    pub(crate) fn with_truncated(self, emphasis: TextEmphasis, text: &str, columns: usize) -> Self {
        let flat = escape_hidden(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        self.with(emphasis, &truncate_str(&flat, columns, "…"))
    }

    /// Text of the line, with the sequences for colors if the terminal has them.
    pub(crate) fn render(&self, is_colored: bool) -> String {
        let parts = self.parts.iter().map(|(emphasis, text)| match emphasis {
            TextEmphasis::Plain => text.clone(),
            TextEmphasis::Faint
            | TextEmphasis::Strong
            | TextEmphasis::Good
            | TextEmphasis::Warning
            | TextEmphasis::Bad => {
                let style = emphasis.style().force_styling(is_colored);
                style.apply_to(text).to_string()
            }
        });
        // A label without a text would leave spaces at the end.
        parts.collect::<String>().trim_end().to_owned()
    }
}

/// Text on one line. Commands of a model have several lines, and each would move a display at the end of the terminal.
pub(crate) fn flatten_text(text: &str) -> String {
    escape_hidden(&text.replace(['\n', '\t'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_several_lines_is_one() {
        assert_eq!(
            flatten_text("cat <<E\n\tone\u{1b}[2J\nE"),
            "cat <<E  one<U+001B>[2J E"
        );
    }

    #[test]
    fn color_appears_only_where_terminal_has_it() {
        let line = TerminalLine::labeled("run")
            .with(TextEmphasis::Good, "✓ ")
            .with(TextEmphasis::Plain, "pytest");
        assert_eq!(line.render(false), "run      ✓ pytest");
        let colored = line.render(true);
        assert!(
            colored.contains("\u{1b}[32m") && colored.ends_with("pytest"),
            "{colored:?}"
        );
        assert_eq!(console::strip_ansi_codes(&colored), line.render(false));
    }

    #[test]
    fn foreign_text_cannot_start_line_or_sequence() {
        let line = TerminalLine::default().with(TextEmphasis::Strong, "a\u{1b}[2J\nb\u{202e}");
        let text = line.render(false);
        assert_eq!(text, "a<U+001B>[2J b<U+202E>");
        assert!(!text.chars().any(domain::text::is_hidden));
    }

    #[test]
    fn long_text_ends_within_its_columns() {
        let line = TerminalLine::default().with_truncated(TextEmphasis::Plain, "one  two\nthree", 8);
        assert_eq!(line.render(false), "one two…");
    }
}
