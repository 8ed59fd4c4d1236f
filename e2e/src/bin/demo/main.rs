//! The demo: one ticket from a person's move on Jira to a merged pull request, over real parts, with a live timeline.

mod arguments;
mod play;

use std::process::ExitCode;

use arguments::{Arguments, Role};
use clap::Parser;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    bootstrap::install_tls_provider();
    let arguments = Arguments::parse();
    if let Some(Role::StandIns { repository }) = arguments.role {
        let served = e2e::standins::serve(repository).await;
        return ExitCode::from(u8::from(served.is_err()));
    }
    perform(&arguments).await.unwrap_or_else(|error| {
        say(&format!("demo failed: {error:#}"));
        ExitCode::FAILURE
    })
}

/// Plays, and ends everything that was started, whatever came of it. A second signal cuts the drain short.
async fn perform(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut signals = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
    let mut stage = None;
    let played = tokio::select! {
        played = Box::pin(play::play(arguments, &mut stage)) => Some(played),
        () = interrupted(&mut signals) => None,
    };
    let ended = match stage {
        Some(play) => tokio::select! {
            ended = Box::pin(play.end()) => ended,
            () = interrupted(&mut signals) => Ok(()),
        },
        None => Ok(()),
    };
    let Some(verdict) = played else {
        say("interrupted; everything that was started is ended");
        return Ok(ExitCode::from(130));
    };
    let verdict = verdict?;
    ended?;
    say(&verdict);
    Ok(ExitCode::SUCCESS)
}

async fn interrupted([interrupt, terminate]: &mut [Signal; 2]) {
    tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
}

#[expect(clippy::print_stdout, reason = "the demo is its output")]
fn say(line: &str) {
    println!("{line}");
}
