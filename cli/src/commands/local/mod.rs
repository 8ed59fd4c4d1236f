//! Commands for this machine: they start services or do a job themselves. A client-only `journeyman` has none of them.

mod branch_folders;
mod commit_signing;
mod console;
#[cfg(feature = "demo")]
mod demo;
mod doctor;
mod documentation;
mod eval;
mod folder;
mod list_tickets;
mod one_shot;
mod pr;
mod process_ticket;
mod progress;
mod repo;
mod rules_files;
mod setup;
mod up;
mod watch;
mod writer_rights;

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    EXIT_ARGUMENTS, EXIT_INTERRUPTED, EXIT_PERSON, dispatch, find_settings_file, follow, print_error,
    print_json, print_line, print_list, print_long, print_prompt, print_result, print_styled, prompt,
    refuse_single_json, report_wrong_arguments, service_keys, ticket,
};

pub(super) use self::progress::suspend_display;

// The order of `--help`.
commands! {
    pub(super) enum Command {
        Setup: setup::Arguments => run_command,
        Repo: repo::Arguments => run_command,
        Up: up::UpArguments => run_up,
        Serve: up::ServeArguments => run_serve,
        Console: console::Arguments => run_command,
        Watch: watch::Arguments => run_command,
        Try: folder::TryArguments => run_try,
        #[cfg(feature = "demo")]
        Demo: demo::DemoArguments => run_command,
        Eval: eval::Arguments => run_command,
        ProcessTicket: process_ticket::Arguments => run_command,
        ListTickets: list_tickets::Arguments => run_command,
        Pr: pr::Arguments => run_command,
        Doctor: doctor::Arguments => run_command,
        Docs: documentation::Arguments => run_command,
    }
}
