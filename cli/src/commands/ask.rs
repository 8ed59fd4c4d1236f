//! Questions to whoever sits at the terminal. Each has a flag, which is named where there is no terminal to ask at.

use std::io::IsTerminal;

use anyhow::Context;
use dialoguer::{Confirm, Input, console::Term, theme::SimpleTheme};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use secrecy::SecretString;
use tokio::sync::mpsc;

/// There is nobody to ask: which flag has to say it.
#[derive(Debug, thiserror::Error)]
#[error("{0} is missing, and there is no terminal to ask at")]
pub(super) struct Unasked(pub(super) String);

/// Whether there is somebody to ask.
pub(super) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// What the flag says, or the answer of a person.
pub(super) async fn text(given: Option<String>, flag: &str, question: &str) -> anyhow::Result<String> {
    if let Some(given) = given {
        return Ok(given);
    }
    let question = question.to_owned();
    at_terminal(flag, move || {
        let input = Input::<String>::with_theme(&SimpleTheme).with_prompt(question);
        Ok(input.interact_text_on(&Term::stderr())?.trim().to_owned())
    })
    .await
}

/// The same with a proposal, which an empty answer takes.
pub(super) async fn text_with_default(
    given: Option<String>,
    flag: &str,
    question: &str,
    proposal: Option<String>,
) -> anyhow::Result<String> {
    let (None, Some(proposal)) = (&given, proposal) else {
        return text(given, flag, question).await;
    };
    let question = question.to_owned();
    at_terminal(flag, move || {
        let input = Input::<String>::with_theme(&SimpleTheme).with_prompt(question);
        let input = input.default(proposal);
        Ok(input.interact_text_on(&Term::stderr())?.trim().to_owned())
    })
    .await
}

/// The same, where an empty answer is one.
pub(super) async fn optional(given: Option<String>, question: &str) -> anyhow::Result<String> {
    match given {
        Some(given) => Ok(given),
        None if !is_possible() => Ok(String::new()),
        None => {
            let question = question.to_owned();
            at_terminal("", move || {
                let input = Input::<String>::with_theme(&SimpleTheme).with_prompt(question);
                let answer = input.allow_empty(true).interact_text_on(&Term::stderr())?;
                Ok(answer.trim().to_owned())
            })
            .await
        }
    }
}

/// What the file of the flag holds, or what a person types or pastes unseen.
pub(super) async fn secret(
    file: Option<&std::path::Path>,
    flag: &str,
    question: &str,
) -> anyhow::Result<SecretString> {
    let text = match file {
        Some(file) => {
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?
        }
        None => {
            let question = question.to_owned();
            at_terminal(flag, move || unseen(&question)).await?
        }
    };
    let text = text.trim().to_owned();
    anyhow::ensure!(!text.is_empty(), "{question}: it is empty");
    Ok(text.into())
}

/// A line that the terminal does not echo. The echo ends before the question is there, so that nothing pasted early is seen.
fn unseen(question: &str) -> anyhow::Result<String> {
    let terminal = Term::stderr();
    let before = tcgetattr(std::io::stdin())?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet)?;
    let mut line = String::new();
    let asked = terminal.write_str(&format!("{question} (not shown): "));
    let read = asked.and_then(|()| std::io::stdin().read_line(&mut line));
    tcsetattr(std::io::stdin(), OptionalActions::Now, &before)?;
    terminal.write_line("")?;
    read?;
    Ok(line)
}

/// Yes or no; `default` is what an empty answer means.
pub(super) async fn confirm(question: &str, default: bool) -> anyhow::Result<bool> {
    let question = question.to_owned();
    at_terminal("", move || {
        let confirm = Confirm::with_theme(&SimpleTheme).with_prompt(question);
        Ok(confirm.default(default).interact_on(&Term::stderr())?)
    })
    .await
}

/// Lines that a person types while something else may happen first; nothing where there is nobody. What waits for the next line ends
/// with the process alone.
pub(super) fn lines() -> mpsc::Receiver<String> {
    let (typed, lines) = mpsc::channel(1);
    if is_possible() {
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                if typed.blocking_send(line).is_err() {
                    break;
                }
            }
        });
    }
    lines
}

async fn at_terminal<T: Send + 'static>(
    flag: &str,
    ask: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    if !is_possible() {
        return Err(Unasked(flag.to_owned()).into());
    }
    tokio::task::spawn_blocking(ask)
        .await?
        .context("no answer was given")
}
