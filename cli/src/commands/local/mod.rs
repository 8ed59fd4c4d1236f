//! Commands for this machine: they start services or do a job themselves. A client-only `journeyman` has none of them.

mod branch_folders;
mod console;
mod doctor;
mod eval;
mod folder;
mod jira_group;
mod list_tickets;
mod one_shot;
mod pr;
mod process_ticket;
mod progress;
mod repo;
mod serve;
mod setup;
mod r#try;
mod up;
mod watch;

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    EXIT_ARGUMENTS, EXIT_PERSON, dispatch, find_settings_file, follow, print_error, print_json, print_line,
    print_list, print_long, print_result, prompt, service_keys, show_ticket,
};

pub(super) use self::progress::suspend_display;

// Exit code after a signal: the one of a shell after Ctrl-C.
const INTERRUPTED: u8 = 130;

// The order of `--help`.
commands! {
    pub(super) enum Command {
        Setup in setup,
        Repo in repo,
        Up in up,
        Serve in serve,
        Console in console,
        Watch in watch,
        Try in r#try,
        Eval in eval,
        ProcessTicket in process_ticket,
        ListTickets in list_tickets,
        Pr in pr,
        Doctor in doctor,
    }
}
