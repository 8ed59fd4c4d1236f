//! `journeyman process-ticket`: one ticket, now, to the end of its run.

use std::{path::PathBuf, process::ExitCode};

use domain::{Job, TicketKey};
use tokio_util::sync::CancellationToken;

use super::{
    alone::Alone,
    follow::{exit_code, show},
    say, say_error, settings_file,
};
use crate::{
    api::Client,
    args::{self, InFolder},
};

pub(super) async fn run(ticket: &str, asked: InFolder) -> anyhow::Result<ExitCode> {
    if asked.accept || asked.dry_run || asked.model.is_some() || asked.base_url.is_some() {
        return Ok(wrong(
            "--accept, --dry-run, --model and --base-url go with --repository",
        ));
    }
    let ticket = match args::ticket(ticket) {
        Ok(ticket) => ticket,
        Err(problem) => return Ok(wrong(&problem)),
    };
    let Some(rules) = asked.rules else {
        return Ok(wrong(
            "name the repository's rules file by --config, or a folder by --repository",
        ));
    };
    let data = asked.data.unwrap_or_else(|| PathBuf::from(".journeyman"));
    let alone = Alone {
        rules: Some(rules),
        file: settings_file(asked.settings),
        data,
        more: Vec::new(),
    };
    alone
        .run(async |client, shutdown| work(&client, &ticket, shutdown).await)
        .await
}

/// Wrong arguments, as the parser of the command line would end it.
fn wrong(problem: &str) -> ExitCode {
    say_error(&format!("journeyman: {problem}"));
    ExitCode::from(2)
}

async fn work(client: &Client, ticket: &TicketKey, shutdown: CancellationToken) -> anyhow::Result<ExitCode> {
    let run: domain::RunId = client.dispatch(ticket, Job::Implement).await?.run.parse()?;
    say(&format!("run {run}"));
    let events = client.follow(&run).await?;
    match shutdown.run_until_cancelled(show(events)).await {
        Some(reason) => Ok(exit_code(&reason?)),
        None => {
            say_error("stopped; the run carries on when journeyman starts again");
            Ok(ExitCode::from(130))
        }
    }
}
