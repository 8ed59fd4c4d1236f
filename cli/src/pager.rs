//! Pager for long text on a terminal. Output to a pipe or a file is printed unchanged.

use std::{
    io::{IsTerminal, Write, stdout},
    process::{Command, Stdio},
};

use domain::text::escape_hidden;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::PagerOptions;

// Pager when no variable names one.
const USUAL: &str = "less";
// Exit codes of a shell that could not start the command (POSIX: 126 not executable, 127 not found).
const NOT_STARTED: [i32; 2] = [126, 127];

/// Shows a text in a pager; `false` without a pager or a terminal.
///
/// Characters that control the terminal are spelled out.
pub(crate) fn show_in_pager(text: &str, paging: PagerOptions) -> bool {
    let named = choose_pager(paging, stdout().is_terminal(), |name| {
        std::env::var_os(name)?.into_string().ok()
    });
    // A pager that does not start is no reason to hide the text: after `false` the caller prints it.
    named.is_some_and(|pager| pipe_to_pager(&pager, &escape_hidden(text)).unwrap_or(false))
}

fn choose_pager(
    paging: PagerOptions,
    is_terminal: bool,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let is_able = variable("TERM").is_some_and(|terminal| !terminal.is_empty() && terminal != "dumb");
    if paging.no_pager || !is_terminal || !is_able {
        return None;
    }
    let named = variable("JOURNEYMAN_PAGER").or_else(|| variable("PAGER"));
    let named = named.map_or_else(|| USUAL.to_owned(), |named| named.trim().to_owned());
    // `PAGER=cat` is the usual way to disable paging.
    (!named.is_empty() && named != "cat").then_some(named)
}

fn pipe_to_pager(pager: &str, text: &str) -> std::io::Result<bool> {
    // Ctrl-C belongs to the pager. This process ignores it and waits, so that both leave the terminal
    // together.
    let _interrupts = signal(SignalKind::interrupt())?;
    // The variable may contain arguments, so a shell runs it.
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if pager == USUAL {
        // The exit code shows whether the default pager is installed, so the shell's message is
        // suppressed.
        command.stderr(Stdio::null());
    }
    if std::env::var_os("LESS").is_none() {
        // F: text that fits on the screen is printed without paging. X: the screen is not cleared.
        command.env("LESS", "FX");
    }
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A user who quits early closes the pipe, which is not an error.
        let _ = writeln!(input, "{text}");
    }
    let code = child.wait()?.code();
    Ok(!code.is_some_and(|code| NOT_STARTED.contains(&code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose_pager_name(no_pager: bool, is_terminal: bool, set: &[(&str, &str)]) -> Option<String> {
        choose_pager(PagerOptions { no_pager }, is_terminal, |name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn pager_needs_terminal_and_obeys_variables() {
        let terminal = ("TERM", "xterm");
        assert_eq!(
            choose_pager_name(false, true, &[terminal]).as_deref(),
            Some("less")
        );
        assert_eq!(
            choose_pager_name(false, true, &[terminal, ("PAGER", "more")]).as_deref(),
            Some("more")
        );
        let both = [terminal, ("PAGER", "more"), ("JOURNEYMAN_PAGER", "most -w")];
        assert_eq!(choose_pager_name(false, true, &both).as_deref(), Some("most -w"));
        for (no_pager, is_terminal, set) in [
            (true, true, vec![terminal]),
            (false, false, vec![terminal]),
            (false, true, vec![]),
            (false, true, vec![("TERM", "dumb")]),
            (false, true, vec![terminal, ("PAGER", "cat")]),
            (
                false,
                true,
                vec![terminal, ("PAGER", "more"), ("JOURNEYMAN_PAGER", "")],
            ),
        ] {
            assert_eq!(choose_pager_name(no_pager, is_terminal, &set), None, "{set:?}");
        }
    }

    #[tokio::test]
    async fn missing_pager_differs_from_early_exit() {
        assert!(!pipe_to_pager("no-such-pager-anywhere", "text").unwrap());
        let long = "line\n".repeat(100_000);
        assert!(pipe_to_pager("true", &long).unwrap());
        assert!(pipe_to_pager("cat >/dev/null; exit 1", &long).unwrap());
    }
}
