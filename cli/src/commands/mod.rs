//! One file a command.

mod alone;
mod dead;
mod decide;
mod dispatch;
mod doctor;
mod eval;
mod folder;
mod follow;
mod journal;
mod keys;
mod list_tickets;
mod pr;
mod process_ticket;
mod progress;
mod purge;
mod retry;
mod runs;
mod show_ticket;
mod spend;
mod stop;
mod stop_all;
mod up;
mod watch;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use domain::cause::chain;

use crate::args::{Arguments, Command, Verdict};

/// Exit code for a wrong or missing setting (`EX_USAGE` of sysexits.h).
const EXIT_SETTINGS: u8 = 64;

/// Runs one command line to its exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    bootstrap::install_tls_provider();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error.into()),
    };
    let outcome = runtime.block_on(Box::pin(obey(arguments.command)));
    runtime.shutdown_background();
    outcome.unwrap_or_else(|error| complain(&error))
}

async fn obey(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(settings) => up::run(settings).await,
        Command::Serve(asked) => up::serve(asked).await,
        Command::Watch(asked) => watch::run(asked).await,
        Command::Try { text, asked } => folder::run(folder::ticket_of(&text)?, asked).await,
        Command::Eval(asked) => eval::run(asked).await,
        Command::ProcessTicket { ticket, asked } if asked.repository.is_some() => {
            folder::run(folder::ticket_in(Path::new(&ticket))?, asked).await
        }
        Command::ProcessTicket { ticket, asked } => process_ticket::run(&ticket, asked).await,
        Command::ListTickets(asked) => list_tickets::run(asked).await,
        Command::ShowTicket(of) => show_ticket::run(of).await,
        Command::Dispatch(asked) => dispatch::run(asked).await,
        Command::Pr(asked) => pr::run(asked).await,
        Command::Journal {
            run,
            json,
            follow,
            api,
        } => journal::run(&run, json, follow, &api).await,
        Command::Runs { ticket, api } => runs::run(ticket.as_ref(), &api).await,
        Command::Spend(asked) => spend::run(asked).await,
        Command::Stop { target, api } => stop::run(&target, &api).await,
        Command::Retry(of) => retry::run(&of.ticket, &of.api).await,
        Command::Dead { action } => dead::run(action).await,
        Command::Purge(of) => purge::run(&of.ticket, &of.api).await,
        Command::StopAll { switch, api } => stop_all::run(switch, &api).await,
        Command::Diff { run, api } => decide::diff(&run, &api).await,
        Command::Decide {
            run,
            verdict,
            head,
            feedback,
            api,
        } => {
            let head = head.unwrap_or_default();
            decide::decide(&run, verdict, &head, &feedback, &api).await
        }
        Command::Approve { of, head } => decide::decide_about(&of, Verdict::Approve, &head, "").await,
        Command::Reject(of) => decide::decide_about(&of, Verdict::Reject, "", "").await,
        Command::Feedback { of, text } => decide::decide_about(&of, Verdict::Revise, "", &text).await,
        Command::Doctor(settings) => doctor::run(settings_file(settings.settings)).await,
        Command::Token { name, role } => keys::token(&name, &role),
        Command::GrantKey => Ok(keys::grant_key()),
        Command::ServiceKeys => Ok(keys::service_keys()),
        Command::NatsUsers => Ok(keys::nats_users()),
    }
}

/// The named file, or `journeyman.toml` when it exists.
fn settings_file(named: Option<PathBuf>) -> Option<PathBuf> {
    named.or_else(|| Some(PathBuf::from("journeyman.toml")).filter(|path| path.exists()))
}

fn complain(error: &anyhow::Error) -> ExitCode {
    let is_setting = error
        .chain()
        .any(|cause| cause.is::<bootstrap::settings::Error>());
    say_error(&format!("journeyman: {}", chain(error.as_ref())));
    ExitCode::from(if is_setting { EXIT_SETTINGS } else { 1 })
}

/// Prints a result. Much of it was written by strangers, so characters that would steer the terminal are spelled out.
fn say(line: &str) {
    print_line(&domain::text::visible(line));
}

/// Prints a value as one line of JSON, in which such characters are escaped: it stays the same value.
fn say_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print_line(&escaped(&serde_json::to_string(value)?));
    Ok(())
}

/// JSON whose hidden characters are written as `\uXXXX`. Outside of strings there are none.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if domain::text::is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(c);
        }
    }
    text
}

#[expect(clippy::print_stdout, reason = "what a command prints is its result")]
fn print_line(line: &str) {
    progress::beside(|| println!("{line}"));
}

#[expect(
    clippy::print_stderr,
    reason = "the operator must hear it whatever the log settings are"
)]
fn say_error(line: &str) {
    progress::beside(|| eprintln!("{}", domain::text::visible(line)));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn json_for_a_terminal_is_the_same_value_without_a_hidden_character() {
        let value =
            json!({"title": "\u{1b}]0;x\u{7}", "bidi": "a\u{202e}b", "tag": "\u{e0041}", "plain": "Grüße\n"});
        let text = escaped(&value.to_string());
        assert!(!text.chars().any(domain::text::is_hidden), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
