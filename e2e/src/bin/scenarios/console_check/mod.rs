//! The console in a real Chromium: every page in light, dark and narrow windows, a live run to its end, and
//! an approval by click.

mod browser;
mod session;
mod tour;

use std::{path::PathBuf, process::ExitCode};

use crate::output::{exit_code, print_line};
use anyhow::Context;
use clap::Args;

/// Looks at every page of the console as a browser shows it; prints one line for each: `console PAGE LOOK OUTCOME`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// axe.min.js of the npm package axe-core
    #[arg(long, value_name = "FILE")]
    axe: PathBuf,
    /// Folder for one screenshot of each page
    #[arg(long, value_name = "DIR")]
    screenshots: PathBuf,
}

/// Plays the scenario.
pub(crate) async fn run_scenario(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let problems = Box::pin(check_console(&arguments)).await?;
    if problems > 0 {
        print_line(&format!("console {problems} problems"));
    }
    Ok(exit_code(problems == 0))
}

async fn check_console(arguments: &Arguments) -> anyhow::Result<usize> {
    let axe = std::fs::read_to_string(&arguments.axe).context("axe cannot be read")?;
    std::fs::create_dir_all(&arguments.screenshots)?;
    let world = e2e::TestWorld::start(e2e::Options {
        rules: "agent:\n  approval: before_push\n".to_owned(),
        ..e2e::Options::default()
    });
    let world = world.await?;
    let console = e2e::ConsoleProcess::start(&world.url).await?;
    let driver = browser::ChromiumDriver::start().await?;
    let tour = tour::ConsoleTour {
        world: &world,
        console: &console,
        driver: &driver,
        axe: &axe,
        screenshots: &arguments.screenshots,
    };
    let seen = Box::pin(tour.take()).await;
    driver.end().await?;
    drop(console);
    world.stop().await?;
    seen
}
