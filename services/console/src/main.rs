//! Process of the console.

use std::process::ExitCode;

fn main() -> ExitCode {
    bootstrap::run_service::<pages::ConsoleApp>(
        "console",
        "Shows pages about tickets, runs and decisions to people.",
    )
}
