//! `journeyman stop-all`: global stop of the planners.

use std::process::ExitCode;

use api::{ApiAction, types::StopAllView};
use clap::{Args, ValueEnum};

use super::{
    confirmation::{ConfirmationOption, DryRun, print_effects},
    print_result,
};
use crate::{access, args::ApiArguments};

/// Stop every planner, or let them continue (needs an admin's token)
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// on, off, or status
    #[arg(value_enum, default_value = "status")]
    switch: StopAllSwitch,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    sure: ConfirmationOption,
    #[command(flatten)]
    api: ApiArguments,
}

/// Positions of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StopAllSwitch {
    /// Stop every planner.
    On,
    /// Let the planners continue.
    Off,
    /// Show the current position.
    Status,
}

impl StopAllSwitch {
    /// New position; `None` for a query.
    fn turned(self) -> Option<bool> {
        match self {
            Self::On => Some(true),
            Self::Off => Some(false),
            Self::Status => None,
        }
    }
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments {
        switch,
        dry,
        sure,
        api,
    } = asked;
    // Only stopping interrupts work, so only stopping needs a confirmation.
    let asks = switch == StopAllSwitch::On;
    if asks && let Some(refused) = sure.refused(dry) {
        return Ok(refused);
    }
    let client = access::build_client(&api)?;
    if let (true, Some(on)) = (dry.dry_run, switch.turned()) {
        print_effects(&client.would(ApiAction::StopAll(on)).await?);
        return Ok(ExitCode::SUCCESS);
    }
    if asks && !sure.is_meant(&client, ApiAction::StopAll(true)).await? {
        return Ok(ExitCode::FAILURE);
    }
    let StopAllView { on, by, at } = match switch.turned() {
        Some(on) => client.stop_all(on).await?,
        None => client.is_stopped().await?,
    };
    let since = by
        .zip(at)
        .map(|(by, at)| format!(" (by {by}, {at})"))
        .unwrap_or_default();
    print_result(&format!("stop-all is {}{since}", if on { "on" } else { "off" }));
    Ok(ExitCode::SUCCESS)
}
