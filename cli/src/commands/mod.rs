//! Commands by subject: their arguments and their code.

/// Declares the commands. A file contains the arguments of each of its commands, described for `--help`, and the
/// function that runs it.
macro_rules! commands {
    ($visible:vis enum Command {
        $($(#[$attribute:meta])* $name:ident: $file:ident::$arguments:ident => $run:ident,)*
    }) => {
        /// The command to run.
        #[derive(Debug, Subcommand)]
        $visible enum Command {
            $($(#[$attribute])* $name($file::$arguments),)*
        }

        impl Command {
            $visible async fn run(self) -> anyhow::Result<ExitCode> {
                match self {
                    $($(#[$attribute])* Self::$name(asked) => Box::pin($file::$run(asked)).await,)*
                }
            }
        }
    };
}

mod api_token;
mod backup;
mod certs;
mod command_groups;
mod command_suggestions;
mod confirmation;
mod dead;
mod decision;
mod dispatch;
mod follow;
#[cfg(feature = "local")]
mod local;
mod manual;
mod open;
mod pools;
#[cfg_attr(
    not(feature = "local"),
    expect(dead_code, reason = "only the set-up asks for more than yes or no")
)]
mod prompt;
mod runs;
mod service_keys;
mod spend;
mod stop;
mod ticket;

use std::{path::PathBuf, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};
use domain::cause::format_error_chain;

use crate::{
    access,
    args::PagerOptions,
    exit_codes::{EXIT_ARGUMENTS, EXIT_CODES, EXIT_INTERRUPTED, EXIT_PERSON, EXIT_SETTINGS, EXIT_TOKEN},
    pager,
};

#[cfg(feature = "local")]
use self::local::suspend_display;
#[cfg(feature = "local")]
use crate::terminal_line::TerminalLine;

/// Takes a ticket and brings back a pull request that a maintainer would merge.
#[derive(Debug, Parser)]
#[command(
    name = "journeyman",
    version,
    after_help = EXIT_CODES,
    help_template = command_groups::render_help_template(&list_all_commands())
)]
pub struct Arguments {
    /// The command to run.
    #[command(subcommand)]
    command: AnyCommand,
}

// The order of `--help`: the commands of this machine first.
#[derive(Debug, Subcommand)]
enum AnyCommand {
    #[cfg(feature = "local")]
    #[command(flatten)]
    Local(local::Command),
    #[command(flatten)]
    Client(Command),
}

commands! {
    enum Command {
        Dispatch: dispatch::Arguments => run_command,
        ShowTicket: ticket::ShowTicketArguments => run_show_ticket,
        Follow: follow::FollowArguments => run_follow,
        Open: open::Arguments => run_command,
        Journal: follow::JournalArguments => run_journal,
        Runs: runs::RunsArguments => list_runs,
        Pending: runs::PendingArguments => list_pending,
        Say: ticket::SayArguments => run_say,
        Spend: spend::Arguments => run_command,
        Pools: pools::Arguments => run_command,
        Stop: stop::StopArguments => run_stop,
        Retry: ticket::RetryArguments => run_retry,
        Dead: dead::Arguments => run_command,
        Purge: ticket::PurgeArguments => run_purge,
        StopAll: stop::StopAllArguments => run_stop_all,
        Diff: decision::DiffArguments => run_diff,
        Decide: decision::DecideArguments => run_decide,
        Approve: decision::ApproveArguments => run_approve,
        Reject: decision::RejectArguments => run_reject,
        Feedback: decision::FeedbackArguments => run_feedback,
        Backup: backup::BackupArguments => run_backup,
        Restore: backup::RestoreArguments => run_restore,
        Login: api_token::LoginArguments => run_login,
        Token: api_token::TokenArguments => run_token,
        GrantKey: service_keys::GrantKeyArguments => run_grant_key,
        ServiceKeys: service_keys::ServiceKeysArguments => run_service_keys,
        Certs: certs::Arguments => run_command,
        NatsUsers: service_keys::NatsUsersArguments => run_nats_users,
        Completions: manual::CompletionsArguments => run_completions,
        Man: manual::ManArguments => run_man,
    }
}

/// Root command without the settings of [`Arguments`].
fn list_all_commands() -> clap::Command {
    AnyCommand::augment_subcommands(clap::Command::new("journeyman"))
}

/// Parses the arguments of the process. Invalid ones end the process, with the nearest command for a mistyped one.
pub fn parse_command_line() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|mut error| {
        command_suggestions::suggest_commands(&mut error, &Arguments::command(), std::env::args_os());
        error.exit()
    })
}

/// Runs a command line and returns its exit code.
pub fn run_command_line(arguments: Arguments) -> ExitCode {
    bootstrap::install_tls_provider();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return report_error(&error.into()),
    };
    let outcome = runtime.block_on(async {
        match arguments.command {
            #[cfg(feature = "local")]
            AnyCommand::Local(command) => command.run().await,
            AnyCommand::Client(command) => command.run().await,
        }
    });
    // Threads that read the terminal may block forever, so the runtime is not awaited.
    runtime.shutdown_background();
    outcome.unwrap_or_else(|error| report_error(&error))
}

/// Named settings file, or `journeyman.toml` when it exists.
fn find_settings_file(named: Option<PathBuf>) -> Option<PathBuf> {
    named.or_else(|| Some(PathBuf::from("journeyman.toml")).filter(|path| path.exists()))
}

/// Reports invalid arguments, with the exit code of the argument parser.
fn report_wrong_arguments(problem: &str) -> ExitCode {
    print_error(&format!("journeyman: {problem}"));
    ExitCode::from(EXIT_ARGUMENTS)
}

/// Refuses one JSON value as the form of entries that are printed as they come.
fn refuse_single_json() -> ExitCode {
    report_wrong_arguments("-o json prints one value, and the entries of a run come one by one: use -o jsonl")
}

fn report_error(error: &anyhow::Error) -> ExitCode {
    let is_setting = error
        .chain()
        .any(|cause| cause.is::<bootstrap::settings::Error>());
    let is_token = error.chain().any(|cause| {
        cause.is::<access::NoToken>() || cause.downcast_ref().is_some_and(api::Error::refuses_token)
    });
    print_error(&format!("journeyman: {}", format_error_chain(error.as_ref())));
    ExitCode::from(match (is_setting, is_token) {
        (true, _) => EXIT_SETTINGS,
        (_, true) => EXIT_TOKEN,
        _ => 1,
    })
}

/// Prints a result. Other people wrote much of it, so characters that control the terminal are spelled out.
fn print_result(line: &str) {
    print_line(&domain::text::escape_hidden(line));
}

/// Prints a line with emphasis, in color where the terminal has it and `NO_COLOR` is not set.
#[cfg(feature = "local")]
fn print_styled(line: &TerminalLine) {
    // The parts of the line are escaped, and only our own sequences are added here.
    print_line(&line.render(console::colors_enabled()));
}

/// Shows a prompt on standard error. The cursor stays behind it.
#[cfg(feature = "local")]
fn print_prompt(text: &str) {
    write_error(&domain::text::escape_hidden(text));
}

/// Prints possibly many lines, through a pager on a terminal.
fn print_long(lines: impl IntoIterator<Item = impl AsRef<str>>, paging: PagerOptions) {
    let lines: Vec<_> = lines.into_iter().collect();
    let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
    if !lines.is_empty() && !pager::show_in_pager(&lines.join("\n"), paging) {
        lines.iter().for_each(|line| print_result(line));
    }
}

/// Prints a list: one JSON element per line, or all as one array.
fn print_list<T: serde::Serialize>(list: &[T], is_one: bool) -> anyhow::Result<()> {
    if is_one {
        print_json(&list)
    } else {
        list.iter().try_for_each(print_json)
    }
}

/// Prints a value as one line of JSON. Hidden characters are escaped, which does not change the value.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print_line(&escape_hidden_characters(&serde_json::to_string(value)?));
    Ok(())
}

/// JSON with hidden characters as `\uXXXX`. They only occur in strings.
fn escape_hidden_characters(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if domain::text::is_hidden(c) {
            // JSON escapes characters outside of the basic plane as two UTF-16 units.
            for unit in c.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// Runs the print directly: a client without local commands has no moving display.
#[cfg(not(feature = "local"))]
fn suspend_display<T>(print: impl FnOnce() -> T) -> T {
    print()
}

fn print_line(line: &str) {
    use std::io::{Write as _, stdout};

    let printed = suspend_display(|| writeln!(stdout(), "{line}"));
    if printed.is_err() {
        // The reader is gone, as after `| head`. The process ends as after SIGTERM, so that cleanup runs.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
    }
}

fn print_error(line: &str) {
    suspend_display(|| write_error(&format!("{}\n", domain::text::escape_hidden(line))));
}

/// Writes to standard error, whatever the log settings are.
fn write_error(text: &str) {
    use std::io::{Write as _, stderr};

    // After `2>&1 | head` the reader is gone. The command still ends in order, and `eprint!` would panic.
    let _ = stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Files that print directly, after they spelled out the characters that control a terminal.
    const PRINTING: [&str; 2] = ["commands/mod.rs", "pager.rs"];

    fn assert_prints_nothing(folder: &Path, root: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                assert_prints_nothing(&path, root);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let code = std::fs::read_to_string(&path).unwrap();
            let code = code.split("#[cfg(test)]").next().unwrap();
            for way in [
                "print!(",
                "println!(",
                "stdout().write",
                "stderr().write",
                "stdout().lock",
            ] {
                assert!(
                    PRINTING.contains(&name.as_str()) || !code.contains(way),
                    "{name} prints by {way}"
                );
            }
        }
    }

    #[test]
    fn commands_print_through_escaping_functions() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert_prints_nothing(&root, &root);
    }

    proptest! {
        #[test]
        fn foreign_text_cannot_control_terminal(text in proptest::collection::vec(any::<char>(), 0..48)) {
            let text: String = text.into_iter().chain("\u{1b}[2J\u{202e}".chars()).collect();
            let shown = domain::text::escape_hidden(&text);
            prop_assert!(!shown.chars().any(domain::text::is_hidden), "{shown:?}");
            let value = json!({ &text: [&text] });
            let json = escape_hidden_characters(&value.to_string());
            prop_assert!(!json.chars().any(domain::text::is_hidden), "{json:?}");
            prop_assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn terminal_json_keeps_value_without_hidden_characters() {
        let value =
            json!({"title": "\u{1b}]0;x\u{7}", "bidi": "a\u{202e}b", "tag": "\u{e0041}", "plain": "Grüße\n"});
        let text = escape_hidden_characters(&value.to_string());
        assert!(!text.chars().any(domain::text::is_hidden), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
