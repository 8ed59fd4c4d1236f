//! `journeyman process-ticket`: one ticket, now, to the end of its run.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use api::{Client, implement, types::JobBody};
use clap::Args;
use domain::{Job, TicketKey};
use ingest::Extent;
use tokio_util::sync::CancellationToken;

use super::{
    EXIT_ARGUMENTS, INTERRUPTED,
    alone::Alone,
    dispatch::{self, told},
    folder,
    follow::{Followed, exit_code, show},
    say, say_error, settings_file,
};
use crate::{args, args::Format};

/// Work on one ticket now and wait for the end of the run
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// The ticket: ENG-12, or jira:ENG-12; with --repository a Markdown file
    #[arg(value_name = "TICKET")]
    ticket: String,
    /// Rehearse the work on a ticket: everything from the request to the reporter, without model, workspace, push and outside
    /// writes; print what it would write
    #[arg(long, conflicts_with_all = ["dry_run", "repository"])]
    mock: bool,
    #[command(flatten)]
    asked: folder::InFolder,
}

pub(super) async fn run(Arguments { ticket, mock, asked }: Arguments) -> anyhow::Result<ExitCode> {
    if asked.repository.is_some() {
        return folder::run(folder::ticket_in(Path::new(&ticket))?, asked).await;
    }
    if asked.accept || asked.model.is_some() || asked.base_url.is_some() {
        return Ok(wrong("--accept, --model and --base-url go with --repository"));
    }
    let ticket = match args::ticket(&ticket) {
        Ok(ticket) => ticket,
        Err(problem) => return Ok(wrong(&problem)),
    };
    let Some(rules) = asked.rules else {
        return Ok(wrong(
            "name the repository's rules file by --config, or a folder by --repository",
        ));
    };
    let alone = Alone {
        rules: Some(rules),
        file: settings_file(asked.settings),
        data: asked.data.unwrap_or_else(|| PathBuf::from(".journeyman")),
        more: Vec::new(),
        extent: Extent::Whole,
    };
    if asked.dry_run {
        return preview(alone, &ticket).await;
    }
    if mock {
        return rehearse(alone, &ticket).await;
    }
    process(alone, &ticket).await
}

/// Works on a ticket with temporary services.
pub(super) async fn process(alone: Alone, ticket: &TicketKey) -> anyhow::Result<ExitCode> {
    let worked = alone.run(async |client, shutdown| work(&client, ticket, shutdown).await);
    Ok(worked.await?.unwrap_or(INTERRUPTED.into()))
}

/// Prints the job that would start. Only the API runs, so that nothing can start it.
async fn preview(alone: Alone, ticket: &TicketKey) -> anyhow::Result<ExitCode> {
    let alone = Alone {
        extent: Extent::Answers,
        ..alone
    };
    let told = alone.run(async |client, _| {
        say(&told(&client.plan(&implement(ticket)).await?));
        Ok(ExitCode::SUCCESS)
    });
    Ok(told.await?.unwrap_or(INTERRUPTED.into()))
}

/// Rehearses in a temporary folder, where no other ticket is queued.
async fn rehearse(alone: Alone, ticket: &TicketKey) -> anyhow::Result<ExitCode> {
    let place = tempfile::tempdir()?;
    let alone = Alone {
        data: place.path().to_owned(),
        extent: Extent::OnRequest,
        ..alone
    };
    let rehearsed = alone.run(async |client, shutdown| {
        let mock = JobBody {
            mock: true,
            ..implement(ticket)
        };
        let accepted = client.dispatch_with(&mock, None).await?;
        say(&format!("run {}", accepted.run));
        let run = accepted.run.parse()?;
        let rehearsed = shutdown.run_until_cancelled(dispatch::rehearse(&client, &run));
        Ok(rehearsed.await.transpose()?.unwrap_or(INTERRUPTED.into()))
    });
    Ok(rehearsed.await?.unwrap_or(INTERRUPTED.into()))
}

/// Reports invalid arguments, with the exit code of the argument parser.
fn wrong(problem: &str) -> ExitCode {
    say_error(&format!("journeyman: {problem}"));
    ExitCode::from(EXIT_ARGUMENTS)
}

async fn work(client: &Client, ticket: &TicketKey, shutdown: CancellationToken) -> anyhow::Result<ExitCode> {
    let run: domain::RunId = client.dispatch(ticket, Job::Implement).await?.run.parse()?;
    say(&format!("run {run}"));
    match shutdown
        .run_until_cancelled(show(client, &run, Format::Text))
        .await
    {
        Some(followed) => {
            let followed = followed?;
            let code = exit_code(&followed);
            if matches!(followed, Followed::Waits(_)) {
                say_error("once it has that, the run carries on when journeyman starts again");
            }
            Ok(code)
        }
        None => {
            say_error("stopped; the run carries on when journeyman starts again");
            Ok(INTERRUPTED.into())
        }
    }
}
