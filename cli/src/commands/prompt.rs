//! Questions to the user at the terminal. Each has a flag, which the error names when there is no terminal.

use std::io::IsTerminal;

use anyhow::Context;
use dialoguer::{Confirm, Input, console::Term, theme::SimpleTheme};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use secrecy::SecretString;
use tokio::sync::mpsc;

/// Missing answer without a terminal, with the flag that supplies it.
#[derive(Debug, thiserror::Error)]
#[error("{0} is missing, and there is no terminal to ask at")]
pub(super) struct MissingAnswer(pub(super) String);

/// True when standard input and standard error are terminals.
pub(super) fn can_ask() -> bool {
    // Questions go to standard error, so that standard output contains results only.
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Value of the flag, or the user's answer.
pub(super) async fn ask_text(given: Option<String>, flag: &str, question: &str) -> anyhow::Result<String> {
    if let Some(given) = given {
        return Ok(given);
    }
    let question = question.to_owned();
    ask_at_terminal(flag, move || {
        let input = Input::<String>::with_theme(&SimpleTheme).with_prompt(question);
        Ok(input.interact_text_on(&Term::stderr())?.trim().to_owned())
    })
    .await
}

/// Variant of [`ask_text`] with a proposal, which an empty answer accepts.
pub(super) async fn ask_text_with_default(
    given: Option<String>,
    flag: &str,
    question: &str,
    proposal: Option<String>,
) -> anyhow::Result<String> {
    let (None, Some(proposal)) = (&given, proposal) else {
        return ask_text(given, flag, question).await;
    };
    let question = question.to_owned();
    ask_at_terminal(flag, move || {
        let input = Input::<String>::with_theme(&SimpleTheme).with_prompt(question);
        let input = input.default(proposal);
        Ok(input.interact_text_on(&Term::stderr())?.trim().to_owned())
    })
    .await
}

/// Variant of [`ask_text_with_default`] for a text that `check` accepts. The terminal asks again for an answer that it refuses;
/// a flag with such a value is an error.
pub(super) async fn ask_checked_text(
    given: Option<String>,
    flag: &str,
    question: &str,
    proposal: Option<String>,
    check: impl Fn(&str) -> Result<(), String> + Send + 'static,
) -> anyhow::Result<String> {
    if let Some(given) = given {
        let given = given.trim();
        check(given).map_err(|problem| anyhow::anyhow!("{flag}: {problem}"))?;
        return Ok(given.to_owned());
    }
    let question = question.to_owned();
    ask_at_terminal(flag, move || {
        let input = Input::<String>::with_theme(&SimpleTheme).with_prompt(question);
        let input = input.validate_with(move |answer: &String| check(answer.trim()));
        let input = match proposal {
            Some(proposal) => input.default(proposal),
            None => input,
        };
        Ok(input.interact_text_on(&Term::stderr())?.trim().to_owned())
    })
    .await
}

/// Variant of [`ask_text`] that accepts an empty answer, and returns an empty text without a terminal.
pub(super) async fn ask_optional_text(given: Option<String>, question: &str) -> anyhow::Result<String> {
    match given {
        Some(given) => Ok(given),
        None if !can_ask() => Ok(String::new()),
        None => {
            let question = question.to_owned();
            ask_at_terminal("", move || {
                let input = Input::<String>::with_theme(&SimpleTheme).with_prompt(question);
                let answer = input.allow_empty(true).interact_text_on(&Term::stderr())?;
                Ok(answer.trim().to_owned())
            })
            .await
        }
    }
}

/// Content of the flag's file, or hidden input of the user. An empty line is asked again.
pub(super) async fn ask_secret(
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
            ask_at_terminal(flag, move || read_unseen_text(&question)).await?
        }
    };
    let text = text.trim().to_owned();
    anyhow::ensure!(!text.is_empty(), "{question}: it is empty");
    Ok(text.into())
}

/// Hidden input of the user; `None` for an empty line.
pub(super) async fn ask_optional_secret(flag: &str, question: &str) -> anyhow::Result<Option<SecretString>> {
    let question = question.to_owned();
    let text = ask_at_terminal(flag, move || read_unseen_line(&question)).await?;
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned().into()))
}

/// Reads the first line that is not empty.
fn read_unseen_text(question: &str) -> anyhow::Result<String> {
    loop {
        let line = read_unseen_line(question)?;
        if !line.trim().is_empty() {
            return Ok(line);
        }
        super::print_error("error: this answer is empty");
    }
}

/// Reads a line without echo; an error at the end of the input. The echo is switched off before the question appears, so that
/// text pasted early stays hidden.
fn read_unseen_line(question: &str) -> anyhow::Result<String> {
    let terminal = Term::stderr();
    let before = tcgetattr(std::io::stdin())?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet)?;
    let mut line = String::new();
    let asked = terminal.write_str(&format!("{question} (not shown): "));
    let read = asked.and_then(|()| std::io::stdin().read_line(&mut line));
    // The settings of the terminal are restored before any error returns.
    tcsetattr(std::io::stdin(), OptionalActions::Now, &before)?;
    terminal.write_line("")?;
    anyhow::ensure!(read? > 0, "the input ended");
    Ok(line)
}

/// Option that an answer names by its number, from 1; any other answer itself.
pub(super) fn resolve_numbered_option<'a>(answer: &'a str, options: &'a [String]) -> &'a str {
    let number: Option<usize> = answer.parse().ok();
    let option = number.and_then(|number| options.get(number.checked_sub(1)?));
    option.map_or(answer, String::as_str)
}

/// Asks for yes or no; `default` is the meaning of an empty answer.
pub(super) async fn ask_confirmation(question: &str, default: bool) -> anyhow::Result<bool> {
    let question = question.to_owned();
    ask_at_terminal("", move || {
        let confirm = Confirm::with_theme(&SimpleTheme).with_prompt(question);
        Ok(confirm.default(default).interact_on(&Term::stderr())?)
    })
    .await
}

/// Lines that the user types while other events may come first; no lines without a terminal. The reading thread ends with the
/// process, because a blocked read cannot be canceled.
pub(super) fn read_typed_lines() -> mpsc::Receiver<String> {
    let (typed, lines) = mpsc::channel(1);
    if can_ask() {
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

async fn ask_at_terminal<T: Send + 'static>(
    flag: &str,
    ask: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    if !can_ask() {
        return Err(MissingAnswer(flag.to_owned()).into());
    }
    // A read from the terminal blocks its thread, and the runtime must still handle signals.
    tokio::task::spawn_blocking(ask)
        .await?
        .context("no answer was given")
}
