//! Starts one command and ends it with everything that it started: once the command has ended, or once standard input
//! closes, because then nobody waits for it any more.
//!
//! `launcher` reads a policy from standard input and supervises; `launcher confined` is the half that confines itself
//! and starts the command; `launcher probe` prints what this kernel offers.

mod command;
mod confine;
mod namespaces;
#[path = "../sandbox/policy.rs"]
mod policy;
mod seccomp;
mod supervise;
mod sys;
mod tree;
mod watch;

use std::{io::Write, process::ExitCode};

fn main() -> ExitCode {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let outcome = match mode.as_str() {
        "" => supervise::run(),
        "confined" => command::run(),
        "probe" => command::probe(),
        other => Err(format!("unknown mode {other:?}")),
    };
    outcome.unwrap_or_else(|problem| {
        // The reader of this stream is the only one who can be told.
        let _ = writeln!(std::io::stderr(), "launcher: {problem}");
        ExitCode::from(126)
    })
}
