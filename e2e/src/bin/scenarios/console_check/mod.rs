//! The console in a real Chromium: every page in five states, at two widths and in both color schemes; a live run to
//! its end, an approval by click, and the keyboard.

mod browser;
mod gallery;
mod page_check;
mod session;
mod stand_in_api;
mod state_records;
mod tour;

use std::{path::PathBuf, process::ExitCode};

use crate::output::{exit_code, print_line};
use anyhow::Context;
use clap::Args;

/// Checks every page of the console as a browser shows it; prints one line for each: `console PAGE STATE LOOK OUTCOME`.
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
    let driver = browser::ChromiumDriver::start().await?;
    let found = Box::pin(check_pages(&driver, &axe, &arguments.screenshots)).await;
    driver.end().await?;
    found
}

async fn check_pages(
    driver: &browser::ChromiumDriver,
    axe: &str,
    screenshots: &std::path::Path,
) -> anyhow::Result<usize> {
    let of_states = Box::pin(gallery::check_states(driver, axe, screenshots)).await?;
    let world = e2e::TestWorld::start(e2e::Options {
        rules: "agent:\n  approval: before_push\n".to_owned(),
        ..e2e::Options::default()
    });
    let world = world.await?;
    let console = e2e::ConsoleProcess::start(&world.url).await?;
    let tour = tour::ConsoleTour {
        world: &world,
        driver,
        checker: page_check::PageChecker {
            console_url: &console.url,
            axe,
            screenshots,
        },
    };
    let of_tour = Box::pin(tour.take()).await;
    drop(console);
    world.stop().await?;
    Ok(of_states + of_tour?)
}
