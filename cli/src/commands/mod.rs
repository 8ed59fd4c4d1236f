//! One file a command.

mod client;
mod doctor;
mod keys;
mod operate;
mod process_ticket;
mod up;

use std::{path::PathBuf, process::ExitCode};

use crate::args::{Arguments, Command};

/// Exit code for a wrong or missing setting (`EX_USAGE` of sysexits.h).
const EXIT_SETTINGS: u8 = 64;

/// Runs one command line to its exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    bootstrap::install_tls_provider();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error.into()),
    };
    let outcome = runtime.block_on(Box::pin(dispatch(arguments.command)));
    runtime.shutdown_background();
    outcome.unwrap_or_else(|error| complain(&error))
}

async fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(settings) => up::run(settings).await,
        Command::ProcessTicket {
            key,
            rules,
            settings,
            data,
        } => process_ticket::run(key, &rules, settings_file(settings), data).await,
        Command::Journal {
            run,
            json,
            follow,
            api,
        } => client::journal(&run, json, follow, &api).await,
        Command::Runs { ticket, api } => client::runs(ticket.as_ref(), &api).await,
        Command::Stop { target, api } => client::stop(&target, &api).await,
        Command::Retry { ticket, api } => operate::retry(&ticket, &api).await,
        Command::Dead { action } => operate::dead(action).await,
        Command::Purge { ticket, api } => operate::purge(&ticket, &api).await,
        Command::StopAll { switch, api } => operate::stop_all(switch, &api).await,
        Command::Diff { run, api } => client::diff(&run, &api).await,
        Command::Decide {
            run,
            verdict,
            head,
            feedback,
            api,
        } => {
            let head = head.unwrap_or_default();
            client::decide(&run, verdict, &head, &feedback, &api).await
        }
        Command::Doctor(settings) => doctor::run(settings_file(settings.settings)).await,
        Command::Token { name, role } => keys::token(&name, &role),
        Command::GrantKey => Ok(keys::grant_key()),
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
    say_error(&format!("journeyman: {error:#}"));
    ExitCode::from(if is_setting { EXIT_SETTINGS } else { 1 })
}

#[expect(clippy::print_stdout, reason = "what a command prints is its result")]
fn say(line: &str) {
    println!("{line}");
}

#[expect(
    clippy::print_stderr,
    reason = "the operator must hear it whatever the log settings are"
)]
fn say_error(line: &str) {
    eprintln!("{line}");
}
