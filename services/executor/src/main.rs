//! Runs what the model asks and holds the repository; holds no secret.

use std::process::ExitCode;

fn main() -> ExitCode {
    bootstrap::run(
        "executor",
        "Runs tools in workspaces for planners",
        executor::serve,
    )
}
