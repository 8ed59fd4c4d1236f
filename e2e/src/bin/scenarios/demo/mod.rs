//! Demo: one ticket from a user's status change in Jira to a merged pull request, with real services and a
//! live timeline.

mod arguments;
mod play;

use std::process::ExitCode;

use crate::output::{exit_code, print_line};
pub(crate) use arguments::Arguments;
use arguments::DemoRole;

/// Plays the scenario.
pub(crate) async fn run_scenario(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(DemoRole::StandIns { repository }) = arguments.role {
        let served = e2e::stand_in_process::serve_stand_ins(repository).await;
        return Ok(exit_code(served.is_ok()));
    }
    perform_demo(&arguments).await
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
