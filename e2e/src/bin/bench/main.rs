//! The bench: what Journeyman costs beside the model and the tools, one line a figure, with a floor from the same run.

mod durable;
mod hooks;
mod measure;
mod polls;
mod processes;
mod tickets;
mod tools;
mod workspaces;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use e2e::{Mode, Options, World};
use tokio::time::timeout;

use crate::{measure::say, processes::Services, tools::Bench};

/// The whole bench, stopping included.
const LIMIT: Duration = Duration::from_secs(600);
/// How many tickets are worked on at once.
const AT_ONCE: usize = 20;

#[tokio::main]
async fn main() -> ExitCode {
    match timeout(LIMIT, Box::pin(play()))
        .await
        .context("the bench took too long")
    {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) | Err(error) => {
            say(&format!("bench failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn play() -> anyhow::Result<()> {
    // One part alone, for whoever works on it.
    if std::env::args().nth(1).as_deref() == Some("polls") {
        return Box::pin(polls::calls()).await;
    }
    let keys = Arc::new(Bench::keys()?);
    let (_, public_key) = keys.public_key();
    let options = Options {
        mode: Mode::Processes,
        settings: vec![
            ("EXECUTOR__SLOTS", workspaces::SLOTS.to_string()),
            ("EXECUTOR__GRANT_KEYS__BENCH", public_key.clone()),
            ("REPORTER__GRANT_KEYS__BENCH", public_key),
        ],
        ..Options::default()
    };
    let mut world = Box::pin(World::start(options)).await?;
    let services = Services::of(&mut world)?;
    services.idle_memory().await?;
    tickets::first_call(&world).await?;
    let command = tools::round_trips(&world, &keys).await?;
    tickets::turns(&world, command).await?;
    tickets::pull_requests(&world).await?;
    tickets::at_once(&world, &services, AT_ONCE).await?;
    hooks::rate(&world).await?;
    Box::pin(workspaces::all(&world, &services, keys)).await?;
    world.stop().await?;
    Box::pin(polls::calls()).await?;
    durable::appends().await?;
    Box::pin(durable::default_recovery()).await?;
    Box::pin(durable::crashes_and_crowds()).await
}
