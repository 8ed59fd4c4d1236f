//! Executor service: runs tools and holds checkouts. It holds no secret.

use std::process::ExitCode;

fn main() -> ExitCode {
    executor::run_command_line().unwrap_or_else(|| {
        bootstrap::run_service::<executor::ExecutorApp>(
            "executor",
            "Runs tools in workspaces for planners. By hand: `executor doctor`, `executor exec`, `executor tool`, `executor index`",
        )
    })
}
