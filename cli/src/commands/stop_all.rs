//! `journeyman stop-all`: the switch for every planner.

use std::process::ExitCode;

use ingest::api::types::StopAllView;

use super::say;
use crate::{
    api::Client,
    args::{self, Switch},
};

pub(super) async fn run(switch: Switch, api: &args::Api) -> anyhow::Result<ExitCode> {
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
