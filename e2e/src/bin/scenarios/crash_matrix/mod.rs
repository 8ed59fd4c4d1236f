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

pub(crate) async fn run(arguments: Arguments) -> ExitCode {
    let [stop, _] = bootstrap::listen_for_signals();
    let done = match &arguments.role {
        Some(MatrixRole::Services { data, watch }) => {
            Box::pin(child::serve_services(data, watch.clone())).await
        }
        None => tokio::select! {
            done = Box::pin(matrix::run_matrix(&arguments)) => done,
            // Dropping the future ends everything that it started.
            () = stop.cancelled() => Ok(ExitCode::from(130)),
        },
    };
    done.unwrap_or_else(|error| {
        print_error(&format!("crash-matrix failed: {error:#}"));
        ExitCode::FAILURE
    })
}

#[expect(clippy::print_stdout, reason = "the matrix is its output")]
fn print_line(line: &str) {
    println!("{line}");
}

/// Writes to standard error, which is the services' log that the matrix shows.
#[expect(clippy::print_stderr, reason = "the matrix is its output")]
fn print_error(line: &str) {
    eprintln!("{line}");
}
