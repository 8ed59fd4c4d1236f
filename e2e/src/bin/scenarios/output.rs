//! Output of the scenarios: lines for people and for tests that read them, and the exit code.

use std::process::ExitCode;

/// Exit code of a scenario that was played to its end.
pub(crate) fn exit_code(is_good: bool) -> ExitCode {
    ExitCode::from(u8::from(!is_good))
}

/// Prints a line to standard output. Hidden characters are spelled out.
#[expect(clippy::print_stdout, reason = "a scenario is its output")]
pub(crate) fn print_line(line: &str) {
    println!("{}", domain::text::escape_hidden(line));
}

/// Prints a line to standard error, which is also the log of services that a scenario shows.
#[expect(clippy::print_stderr, reason = "a scenario is its output")]
pub(crate) fn print_error(line: &str) {
    eprintln!("{}", domain::text::escape_hidden(line));
}
