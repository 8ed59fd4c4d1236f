//! Questions to the person at the terminal.

use anyhow::Context;
use dialoguer::{Confirm, Select, console::Term, theme::SimpleTheme};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio_util::sync::CancellationToken;

/// Lines of a list that are shown at once.
const SHOWN: usize = 20;

const CANCEL: &str = "Cancel";

/// The place of what is chosen; absent: nothing, by Escape or the last line.
pub(super) async fn choose(
    shutdown: &CancellationToken,
    question: &'static str,
    mut lines: Vec<String>,
    from: usize,
) -> anyhow::Result<Option<usize>> {
    let cancel = lines.len();
    lines.push(CANCEL.to_owned());
    let asked = move || {
        let select = Select::with_theme(&SimpleTheme)
            .with_prompt(question)
            .items(&lines);
        select
            .default(from)
            .max_length(SHOWN)
            .interact_on_opt(&Term::stderr())
    };
    let chosen = at_terminal(shutdown, asked).await?;
    Ok(chosen.filter(|chosen| *chosen != cancel))
}

/// Whether the answer is yes; Escape is no.
pub(super) async fn confirm(shutdown: &CancellationToken, question: String) -> anyhow::Result<bool> {
    let asked = move || {
        let confirm = Confirm::with_theme(&SimpleTheme).with_prompt(question);
        confirm.default(true).interact_on_opt(&Term::stderr())
    };
    Ok(at_terminal(shutdown, asked).await?.unwrap_or(false))
}

/// A signal ends the process here: nothing can end the thread that waits for a key. Between two keys the terminal is not
/// raw, and Ctrl-C is a signal then.
async fn at_terminal<T: Send + 'static>(
    shutdown: &CancellationToken,
    ask: impl FnOnce() -> dialoguer::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let before = tcgetattr(std::io::stderr());
    let asked = tokio::task::spawn_blocking(ask);
    let Some(answer) = shutdown.run_until_cancelled(asked).await else {
        if let Ok(before) = before {
            // Nobody is left to hear that it did not work.
            let _ = tcsetattr(std::io::stderr(), OptionalActions::Now, &before);
        }
        drop(Term::stderr().show_cursor());
        std::process::exit(130);
    };
    answer?
        .inspect_err(|_| drop(Term::stderr().show_cursor()))
        .context("no choice was made")
}
