//! Step that a run performs now, how long it has run, and the end of its output.

use domain::{LiveOutput, Timestamp, text};
use maud::{Markup, html};

use crate::{
    stages::CurrentStep,
    words::{format_elapsed, make_visible},
};

// Longest output that the page shows, in characters.
const OUTPUT_CHARS: usize = 4_000;

/// Renders the current step with its time.
pub(super) fn render_step(step: Option<&CurrentStep>, now: Timestamp) -> Markup {
    html! {
        @if let Some(step) = step {
            p { strong { "now: " } (make_visible(&step.words)) " … " (format_elapsed(step.since, now)) }
        }
    }
}

/// End of the output of the running command.
#[derive(Default)]
pub(super) struct OutputTail {
    call: String,
    text: String,
}

impl OutputTail {
    /// Adds a piece of output. The first piece of another call replaces the text.
    pub(super) fn push(&mut self, output: &LiveOutput) {
        if self.call != output.call.as_str() {
            self.call = output.call.as_str().to_owned();
            self.text.clear();
        }
        self.text.push_str(&text::sanitize_output(&output.text));
        if self.text.chars().count() > OUTPUT_CHARS {
            self.text = text::take_tail(&self.text, OUTPUT_CHARS);
        }
    }

    /// Removes the text if its call is not the current one. Returns true if there was a text.
    pub(super) fn clear_unless(&mut self, current: Option<&CurrentStep>) -> bool {
        let is_current = current.is_some_and(|step| step.call == self.call);
        if is_current || self.text.is_empty() {
            return false;
        }
        *self = Self::default();
        true
    }

    /// Renders the text.
    pub(super) fn render(&self) -> Markup {
        html! { (make_visible(&self.text)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        sample_journal::{build_run_id, build_run_journal},
        stages::CurrentSteps,
    };

    fn build_output(position: u64, text: &str) -> LiveOutput {
        LiveOutput {
            call: build_run_id().call(position),
            text: text.to_owned(),
        }
    }

    #[test]
    fn step_shows_command_and_elapsed_time() {
        let steps = CurrentSteps::of(&build_run_journal()[..8]);
        let line = render_step(steps.current(), Timestamp::from_unix_ms(15_400)).into_string();
        assert_eq!(line, "<p><strong>now: </strong>run_command cart.py … 8.4 s</p>");
        assert_eq!(render_step(None, Timestamp::default()).into_string(), "");
    }

    #[test]
    fn output_is_end_of_current_call() {
        let mut tail = OutputTail::default();
        tail.push(&build_output(3, "part 1\n"));
        tail.push(&build_output(3, "\u{1b}[1m<b>\u{202e}\r50%"));
        assert_eq!(
            tail.render().into_string(),
            "part 1\n&lt;b&gt;&lt;U+202E&gt;\n50%"
        );
        tail.push(&build_output(7, &"x".repeat(5_000)));
        assert_eq!(tail.render().into_string(), "x".repeat(OUTPUT_CHARS));
        let steps = CurrentSteps::of(&build_run_journal()[..8]);
        assert!(!tail.clear_unless(steps.current()));
        assert!(tail.clear_unless(None) && !tail.clear_unless(None));
        assert_eq!(tail.render().into_string(), "");
    }
}
