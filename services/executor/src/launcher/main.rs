//! Starts one command and ends it with everything that it started: once the command has ended, or once standard input
//! closes, because then nobody waits for it any more.
//!
//! `launcher` reads a policy from standard input and supervises; `launcher confined` is the half that confines itself
//! and becomes the command; `launcher probe` prints what this kernel offers.

mod confine;
#[path = "../sandbox/policy.rs"]
mod policy;
mod tree;

use std::{
    io::{BufRead, Write, stdin},
    process::{Command, ExitCode, Stdio},
};

use policy::Policy;

fn main() -> ExitCode {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let outcome = match mode.as_str() {
        "" => supervise(),
        "confined" => confine::become_command(),
        "probe" => confine::probe(),
        other => Err(format!("unknown mode {other:?}")),
    };
    outcome.unwrap_or_else(|problem| {
        // The reader of this stream is the only one who can be told.
        let _ = writeln!(std::io::stderr(), "launcher: {problem}");
        ExitCode::from(126)
    })
}

fn supervise() -> Result<ExitCode, String> {
    let mut line = String::new();
    stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| format!("no policy: {error}"))?;
    let policy: Policy = serde_json::from_str(&line).map_err(|error| format!("bad policy: {error}"))?;
    // Refused when already a session leader; then there is one already.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| error.to_string())?;
    confine::set_limits(&policy)?;
    let launcher = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(launcher)
        .arg("confined")
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start the command: {error}"))?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(line.as_bytes())
            .map_err(|error| error.to_string())?;
    }
    tree::wait(child.id())
}
