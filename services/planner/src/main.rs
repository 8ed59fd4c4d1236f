//! Process of the planner service.

use std::process::ExitCode;

fn main() -> ExitCode {
    bootstrap::run_service::<planner::PlannerApp>(
        "planner",
        "Plans the work on tickets and talks to the model.",
    )
}
