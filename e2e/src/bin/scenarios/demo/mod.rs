//! Demo: one ticket from a user's status change in Jira to a merged pull request, with real services and a
//! live timeline.

mod arguments;
mod console;
mod play;

use std::process::ExitCode;

pub(crate) use arguments::Arguments;
use arguments::DemoRole;

pub(crate) async fn run(arguments: Arguments) -> ExitCode {
    if let Some(DemoRole::StandIns { repository }) = arguments.role {
        let served = e2e::stand_in_process::serve_stand_ins(repository).await;
        return ExitCode::from(u8::from(served.is_err()));
    }
    perform_demo(&arguments).await.unwrap_or_else(|error| {
        print_line(&format!("demo failed: {error:#}"));
        ExitCode::FAILURE
    })
}

/// Plays the demo and ends everything that it started, with any result. The first signal interrupts the play,
/// the second one the shutdown.
async fn perform_demo(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let [first, second] = bootstrap::listen_for_signals();
    let mut stage = None;
    let played = tokio::select! {
        played = Box::pin(play::play_demo(arguments, &mut stage)) => Some(played),
        () = first.cancelled() => None,
    };
    if let (true, Some(Ok(verdict))) = (arguments.stay, &played) {
        print_line(verdict);
        print_line("\neverything keeps running: look around in the console; Ctrl-C ends it");
        first.cancelled().await;
    }
    // The next signal interrupts the shutdown.
    let at_once = if first.is_cancelled() { second } else { first };
    let ended = match stage {
        Some(play) => tokio::select! {
            ended = Box::pin(play.end()) => ended,
            () = at_once.cancelled() => Ok(()),
        },
        None => Ok(()),
    };
    let Some(verdict) = played else {
        print_line("interrupted; everything that was started is ended");
        return Ok(ExitCode::from(130));
    };
    let verdict = verdict?;
    ended?;
    if !arguments.stay {
        print_line(&verdict);
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stdout, reason = "the demo is its output")]
fn print_line(line: &str) {
    println!("{}", domain::text::escape_hidden(line));
}
