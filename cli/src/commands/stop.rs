//! Stops: `journeyman stop` for a run or ticket, `journeyman stop-all` for the planners.

use std::process::ExitCode;

use api::{ApiAction, types::StopAllView};
use clap::{Args, ValueEnum};

use super::{
    confirmation::{ConfirmationOption, DryRun, perform_act, print_effects},
    print_result,
};
use crate::{
    access,
    args::{ApiArguments, RunOrTicket, parse_run_or_ticket},
};

/// Stop a run, or every live run of a ticket
#[derive(Debug, Args)]
pub(super) struct StopArguments {
    /// jira:ENG-12@57 for one run, jira:ENG-12 or ENG-12 for all of the ticket
    #[arg(value_parser = parse_target)]
    target: StopTarget,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    sure: ConfirmationOption,
    #[command(flatten)]
    api: ApiArguments,
}

/// Run or ticket to stop, and its text on the command line.
#[derive(Clone, Debug)]
struct StopTarget {
    of: RunOrTicket,
    text: String,
}

fn parse_target(text: &str) -> Result<StopTarget, String> {
    Ok(StopTarget {
        of: parse_run_or_ticket(text)?,
        text: text.to_owned(),
    })
}

/// Stops the target. A named run needs no confirmation; the live runs of a ticket may be more than
/// the user expects.
pub(super) async fn run_stop(asked: StopArguments) -> anyhow::Result<ExitCode> {
    let StopArguments {
        target,
        dry,
        sure,
        api,
    } = asked;
    let done = format!("stop asked for: {}", target.text);
    let ticket = match target.of {
        RunOrTicket::Run(run) => {
            return perform_act(&access::build_client(&api)?, ApiAction::StopRun(&run), dry, &done).await;
        }
        RunOrTicket::Ticket(ticket) => ticket,
    };
    if let Some(refused) = sure.refused(dry) {
        return Ok(refused);
    }
    let client = access::build_client(&api)?;
    sure.perform(&client, ApiAction::StopTicket(&ticket), dry, &done)
        .await
}

/// Stop every planner, or let them continue (needs an admin's token)
#[derive(Debug, Args)]
pub(super) struct StopAllArguments {
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

pub(super) async fn run_stop_all(asked: StopAllArguments) -> anyhow::Result<ExitCode> {
    let StopAllArguments {
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
        Some(on) => client.installation().stop_all(on).await?,
        None => client.installation().is_stopped().await?,
    };
    let since = by
        .zip(at)
        .map(|(by, at)| format!(" (by {by}, {at})"))
        .unwrap_or_default();
    print_result(&format!("stop-all is {}{since}", if on { "on" } else { "off" }));
    Ok(ExitCode::SUCCESS)
}
