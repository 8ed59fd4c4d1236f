//! `journeyman`: start everything on one machine, or talk to a running Journeyman.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    journeyman::run(journeyman::Arguments::parse())
}
