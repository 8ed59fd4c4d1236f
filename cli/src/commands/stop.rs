//! `journeyman stop`: one run, or all of a ticket.

use std::process::ExitCode;

use domain::RunId;

use super::say;
use crate::{api::Client, args};

pub(super) async fn run(target: &str, api: &args::Api) -> anyhow::Result<ExitCode> {
    let client = Client::from_args(api)?;
    match target.parse::<RunId>() {
        Ok(run) => client.stop_run(&run).await?,
        Err(_) => {
            client
                .stop_ticket(&args::ticket(target).map_err(anyhow::Error::msg)?)
                .await?
        }
    }
    say(&format!("stop asked for: {target}"));
    Ok(ExitCode::SUCCESS)
}
