//! The crash matrix: stories from the request to the end, once for each failpoint, with the process ended there and started
//! again; each must end as the story without a crash ends.

mod arguments;
mod case;
mod child;
mod ending;
mod matrix;
mod people;
mod stage;

use std::process::ExitCode;

pub(crate) use arguments::Arguments;
use arguments::Role;

pub(crate) async fn run(arguments: Arguments) -> ExitCode {
    let [stop, _] = bootstrap::signals();
    let done = match &arguments.role {
        Some(Role::Services { data, watch }) => Box::pin(child::serve(data, watch.clone())).await,
        None => tokio::select! {
            done = Box::pin(matrix::run(&arguments)) => done,
            // What was started ends with the future that is dropped here.
            () = stop.cancelled() => Ok(ExitCode::from(130)),
        },
    };
    done.unwrap_or_else(|error| {
        complain(&format!("crash-matrix failed: {error:#}"));
        ExitCode::FAILURE
    })
}

#[expect(clippy::print_stdout, reason = "the matrix is its output")]
fn say(line: &str) {
    println!("{line}");
}

/// Reports on standard error, which is the log that the matrix shows of services.
#[expect(clippy::print_stderr, reason = "the matrix is its output")]
fn complain(line: &str) {
    eprintln!("{line}");
}
