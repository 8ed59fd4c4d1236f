//! The ingest service.

use std::process::ExitCode;

fn main() -> ExitCode {
    bootstrap::run_service::<ingest::IngestApp>("ingest", "Listens to Jira and GitHub and serves the API.")
}
