//! `journeyman`: starts all services on one machine, or is the client of a running Journeyman.

use std::process::ExitCode;

fn main() -> ExitCode {
    journeyman::run_command_line(journeyman::parse_command_line())
}
