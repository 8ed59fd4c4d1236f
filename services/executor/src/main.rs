//! Executor service: runs tools and holds checkouts. It holds no secret.

use std::process::ExitCode;

fn main() -> ExitCode {
    executor::by_hand().unwrap_or_else(|| {
        bootstrap::run(
            "executor",
            "Runs tools in workspaces for planners. By hand: `executor doctor`, `executor exec`, `executor tool`, `executor index`",
            executor::serve,
        )
    })
}
