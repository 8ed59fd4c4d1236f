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
mod tree;
mod usage;
mod watch;
#[path = "../sandbox/wire.rs"]
mod wire;

use std::{ffi::OsString, io::Write, process::ExitCode};

fn main() -> ExitCode {
    // `std::env::args` would panic for an argument that is not UTF-8.
    let outcome = read_arguments(std::env::args_os().skip(1)).and_then(|arguments| run_mode(&arguments));
    outcome.unwrap_or_else(|problem| {
        // The error is ignored: the reader of this stream is the only recipient of the message.
        let _ = writeln!(std::io::stderr(), "launcher: {problem}");
        ExitCode::from(126)
    })
}

fn run_mode(arguments: &[String]) -> Result<ExitCode, String> {
    let (mode, rest) = match arguments {
        [] => ("", arguments),
        [mode, rest @ ..] => (mode.as_str(), rest),
    };
    match mode {
        "" => supervisor::supervise_command(),
        "probe" => command::print_probe(),
        "alive" => runner::check_alive(rest.first().map_or("", String::as_str)),
        "runner" => runner::serve_runner(rest),
        other => Err(format!("unknown mode {other:?}")),
    }
}

/// Arguments as text. A path with other bytes is refused, because its text would name another file.
fn read_arguments(arguments: impl Iterator<Item = OsString>) -> Result<Vec<String>, String> {
    let read = |(place, argument): (usize, OsString)| {
        let text = argument.into_string();
        text.map_err(|argument| format!("argument {} is not UTF-8: {argument:?}", place + 1))
    };
    arguments.enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn argument_without_utf8_is_refused() {
        let read = |arguments: &[&[u8]]| {
            let arguments = arguments.iter().map(|bytes| OsString::from_vec(bytes.to_vec()));
            read_arguments(arguments)
        };
        assert_eq!(read(&[b"runner", b"/s"]).unwrap(), ["runner", "/s"]);
        assert_eq!(
            read(&[b"runner", b"/s\xff"]).unwrap_err(),
            r#"argument 2 is not UTF-8: "/s\xFF""#
        );
        assert_eq!(
            run_mode(&["fly".to_owned()]).unwrap_err(),
            r#"unknown mode "fly""#
        );
    }
}
