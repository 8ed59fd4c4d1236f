//! Progress display at the end of the terminal. Without a terminal on standard error nothing is shown.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::terminal_line::flatten_text;

const TICK: Duration = Duration::from_millis(100);
// `wide_msg` ends at the edge of the terminal. A longer line would wrap, and each tick would print it again.
const SPINNER: &str = "{spinner} {elapsed} {wide_msg}";
const BAR: &str = "{bar:30} {pos}/{len} {elapsed} {msg}";

static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Visible progress display, removed on drop. Only one exists at a time.
pub(super) struct ProgressDisplay(ProgressBar);

impl ProgressDisplay {
    /// Display of work with unknown length that has taken `elapsed` so far.
    pub(super) fn spinner(elapsed: Duration) -> Self {
        Self::start(ProgressBar::new_spinner().with_elapsed(elapsed), SPINNER)
    }

    /// Display of work with this number of parts.
    pub(super) fn bar(parts: usize) -> Self {
        Self::start(ProgressBar::new(parts as u64), BAR)
    }

    fn start(bar: ProgressBar, template: &str) -> Self {
        // A template that does not parse costs only the layout.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        *SHOWN.lock() = Some(bar.clone());
        Self(bar)
    }

    /// Shows the current activity on one line.
    pub(super) fn show_activity(&self, words: &str) {
        self.0.set_message(flatten_text(words));
    }

    /// Marks one part as finished.
    pub(super) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        *SHOWN.lock() = None;
        self.0.finish_and_clear();
    }
}

/// Prints above the progress display.
pub(in crate::commands) fn suspend_display<T>(print: impl FnOnce() -> T) -> T {
    // The clone releases the lock before `print` runs, so that a nested print cannot deadlock.
    let bar = SHOWN.lock().clone();
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_print_with_or_without_display() {
        let mut printed = 0;
        suspend_display(|| printed += 1);
        let progress = ProgressDisplay::bar(2);
        progress.show_activity("one");
        progress.step();
        suspend_display(|| printed += 1);
        drop(progress);
        suspend_display(|| printed += 1);
        assert_eq!(printed, 3);
    }
}
