//! Launcher of commands. It runs a command and ends it with all of its descendants: when the command ends, or
//! when standard input closes, because then no caller waits for it.
//!
//! Without arguments, `launcher` reads a policy from standard input, splits into a supervising and a confined
//! process, and runs the commands that follow. `launcher probe` prints the confinement that the kernel
//! supports. `launcher runner` runs commands for an executor of another user. `launcher alive` tests whether
//! a runner listens.

// The launcher does not link the executor's library, so it includes shared files by their path.
mod command;
#[path = "../sandbox/confined_dir.rs"]
mod confined_dir;
mod confinement;
mod files;
mod group;
mod leftovers;
mod mounts;
mod namespaces;
#[path = "../sandbox/policy.rs"]
mod policy;
mod reachability;
mod root;
mod runner;
mod seccomp;
mod supervisor;
#[path = "../sandbox/swap_folders.rs"]
mod swap_folders;
mod sys;
mod toolchain;
mod traces;
mod tree;
mod usage;
mod watch;
#[path = "../sandbox/wire.rs"]
mod wire;

use std::{io::Write, process::ExitCode};

fn main() -> ExitCode {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let outcome = match mode.as_str() {
        "" => supervisor::supervise_command(),
        "probe" => command::print_probe(),
        "alive" => runner::check_alive(&std::env::args().nth(2).unwrap_or_default()),
        "runner" => runner::serve_runner(&std::env::args().skip(2).collect::<Vec<_>>()),
        other => Err(format!("unknown mode {other:?}")),
    };
    outcome.unwrap_or_else(|problem| {
        // The error is ignored: the reader of this stream is the only recipient of the message.
        let _ = writeln!(std::io::stderr(), "launcher: {problem}");
        ExitCode::from(126)
    })
}
