//! Process of the planner service.

use std::process::ExitCode;

fn main() -> ExitCode {
    bootstrap::run_service(
        "planner",
        "Plans the work on tickets and talks to the model.",
        bootstrap::serve_app::<planner::PlannerApp>,
    )
}
