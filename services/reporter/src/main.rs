//! Process of the reporter.

use std::process::ExitCode;

fn main() -> ExitCode {
    bootstrap::run_service::<reporter::ReporterApp>(
        "reporter",
        "Journeyman's reporter: the only service that writes to GitHub and Jira",
    )
}
