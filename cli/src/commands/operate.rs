//! What operators do when something did not work: retries, dead letters, the stop-all switch.

use std::process::ExitCode;

use domain::TicketKey;
use ingest::api::types::{DeadView, StopAllView};

use super::say;
use crate::{
    api::Client,
    args::{self, Dead, Switch},
};

pub(super) async fn retry(ticket: &TicketKey, api: &args::Api) -> anyhow::Result<ExitCode> {
    Client::from_args(api)?.retry_ticket(ticket).await?;
    say(&format!("retry asked for: {ticket}"));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn purge(ticket: &TicketKey, api: &args::Api) -> anyhow::Result<ExitCode> {
    Client::from_args(api)?.purge(ticket).await?;
    say(&format!("purged: {ticket}"));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn dead(action: Dead) -> anyhow::Result<ExitCode> {
    match action {
        Dead::List { api } => {
            for letter in Client::from_args(&api)?.dead_letters().await? {
                say(&line(&letter));
            }
        }
        Dead::Show { sequence, api } => {
            let found = Client::from_args(&api)?.dead_letter(sequence).await?;
            say(&line(&found.letter));
            say(&found.body);
        }
        Dead::Retry { sequence, api } => {
            Client::from_args(&api)?.retry_dead_letter(sequence).await?;
            say(&format!("retry asked for: {sequence}"));
        }
        Dead::Drop { sequence, api } => {
            Client::from_args(&api)?.drop_dead_letter(sequence).await?;
            say(&format!("dropped: {sequence}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn stop_all(switch: Switch, api: &args::Api) -> anyhow::Result<ExitCode> {
    let client = Client::from_args(api)?;
    let StopAllView { on, by, at } = match switch {
        Switch::On => client.stop_all(true).await?,
        Switch::Off => client.stop_all(false).await?,
        Switch::Status => client.is_stopped().await?,
    };
    let since = by
        .zip(at)
        .map(|(by, at)| format!(" (by {by}, {at})"))
        .unwrap_or_default();
    say(&format!("stop-all is {}{since}", if on { "on" } else { "off" }));
    Ok(ExitCode::SUCCESS)
}

fn line(letter: &DeadView) -> String {
    format!(
        "{:>5}  {}  {:<8} {}  {}",
        letter.sequence, letter.at, letter.what, letter.id, letter.reason
    )
}
