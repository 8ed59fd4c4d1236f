//! Questions with arrow keys at the terminal.

use anyhow::Context;
use dialoguer::{Confirm, Select, console::Term, theme::SimpleTheme};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio_util::sync::CancellationToken;

// Visible lines of a list.
const SHOWN: usize = 20;

const CANCEL: &str = "Cancel";

/// Index of the choice; `None` after Escape or "Cancel".
pub(super) async fn ask_choice(
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
    let chosen = ask_in_thread(shutdown, asked).await?;
    Ok(chosen.filter(|chosen| *chosen != cancel))
}

/// True for yes; Escape means no.
pub(super) async fn ask_yes_no(shutdown: &CancellationToken, question: String) -> anyhow::Result<bool> {
    let asked = move || {
        let confirm = Confirm::with_theme(&SimpleTheme).with_prompt(question);
        confirm.default(true).interact_on_opt(&Term::stderr())
    };
    Ok(ask_in_thread(shutdown, asked).await?.unwrap_or(false))
}

/// Runs a question on a blocking thread. A signal exits the process here, because nothing can cancel a thread that waits
/// for a key. Between two keys the terminal is not raw, and then Ctrl-C is a signal.
async fn ask_in_thread<T: Send + 'static>(
    shutdown: &CancellationToken,
    ask: impl FnOnce() -> dialoguer::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let before = tcgetattr(std::io::stderr());
    let asked = tokio::task::spawn_blocking(ask);
    let Some(answer) = shutdown.run_until_cancelled(asked).await else {
        if let Ok(before) = before {
            // The process exits, so a failed restore has no one to be reported to.
            let _ = tcsetattr(std::io::stderr(), OptionalActions::Now, &before);
        }
        drop(Term::stderr().show_cursor());
        std::process::exit(130);
    };
    answer?
        .inspect_err(|_| drop(Term::stderr().show_cursor()))
        .context("no choice was made")
}
