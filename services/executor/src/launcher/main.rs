//! Starts one command and ends it with everything that it started: once the command has ended, or once standard input
//! closes, because then nobody waits for it any more.
//!
//! `launcher` reads a policy from standard input, splits into a half that supervises and one that confines itself, and
//! starts the command once that is told too; `launcher probe` prints what this kernel offers; `launcher runner`
//! starts commands for an executor under another user, and `launcher alive` tells whether that one listens.

#[path = "../sandbox/beneath.rs"]
mod beneath;
mod command;
mod confine;
mod files;
mod group;
mod leftovers;
mod mounts;
mod namespaces;
#[path = "../sandbox/policy.rs"]
mod policy;
mod reach;
mod root;
mod runner;
mod seccomp;
mod show;
#[path = "../sandbox/stage.rs"]
mod stage;
mod supervise;
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
        "" => supervise::run(),
        "probe" => command::probe(),
        "alive" => runner::alive(&std::env::args().nth(2).unwrap_or_default()),
        "runner" => runner::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        other => Err(format!("unknown mode {other:?}")),
    };
    outcome.unwrap_or_else(|problem| {
        // The reader of this stream is the only one who can be told.
        let _ = writeln!(std::io::stderr(), "launcher: {problem}");
        ExitCode::from(126)
    })
}
