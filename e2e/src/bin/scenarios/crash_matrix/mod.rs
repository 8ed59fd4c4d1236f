//! Crash matrix: stories from the request to the end, once for each failpoint. The process aborts there and
//! restarts, and the story must end as it does without a crash.

mod arguments;
mod case;
mod child;
mod ending;
mod matrix;
mod people;
mod stage;

use std::process::ExitCode;

pub(crate) use arguments::Arguments;
use arguments::MatrixRole;

/// Plays the scenario.
pub(crate) async fn run_scenario(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let [stop, _] = bootstrap::listen_for_signals();
    match &arguments.role {
        Some(MatrixRole::Services { data, watch }) => {
            Box::pin(child::serve_services(data, watch.clone())).await
        }
        None => tokio::select! {
            done = Box::pin(matrix::run_matrix(&arguments)) => done,
            // Dropping the future ends everything that it started.
            () = stop.cancelled() => Ok(ExitCode::from(130)),
        },
    }
}
