//! Program that inspects changes for the reporter, confined and without credentials.

use std::process::ExitCode;

fn main() -> ExitCode {
    reporter::run_inspector()
}
