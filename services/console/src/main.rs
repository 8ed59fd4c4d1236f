//! Process of the console.

use std::process::ExitCode;

fn main() -> ExitCode {
    bootstrap::run_service(
        "console",
        "Shows pages about tickets, runs and decisions to people.",
        bootstrap::serve_app::<pages::ConsoleApp>,
    )
}
