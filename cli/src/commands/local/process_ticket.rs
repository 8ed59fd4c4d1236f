//! `journeyman process-ticket`: one ticket, now, to the end of its run.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use api::{Client, build_implement_job, types::JobBody};
use clap::Args;
use domain::{Job, RunId, TicketKey};
use ingest::IngestMode;
use tokio_util::sync::CancellationToken;

use super::{
    EXIT_INTERRUPTED,
    dispatch::{self, render_planned_job},
    find_settings_file, folder,
    follow::{FollowOutcome, choose_exit_code, print_journal},
    one_shot::OneShotServices,
    print_error, print_result, report_wrong_arguments,
};
use crate::{args, args::OutputFormat};

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
    #[command(flatten, next_help_heading = "Options with --repository")]
    options: folder::FolderRunOptions,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments {
        ticket,
        mock,
        asked,
        options,
    } = asked;
    if asked.repository.is_some() {
        let text = folder::read_ticket_file(Path::new(&ticket))?;
        return folder::work_in_folder(text, asked, &options).await;
    }
    if asked.accept || asked.model.is_some() || asked.base_url.is_some() || !options.is_default() {
        return Ok(report_wrong_arguments(
            "--accept, --model, --base-url, --verbose, --output, --max-cost, --setup, --no-setup and --allow go with --repository",
        ));
    }
    let ticket = match args::parse_ticket(&ticket) {
        Ok(ticket) => ticket,
        Err(problem) => return Ok(report_wrong_arguments(&problem)),
    };
    let Some(rules) = asked.rules else {
        return Ok(report_wrong_arguments(
            "name the repository's rules file by --config, or a folder by --repository",
        ));
    };
    let alone = OneShotServices {
        rules: Some(rules),
        file: find_settings_file(asked.settings),
        // The default of `journeyman up`: a run that waits for a person continues when that starts.
        data: asked.data.unwrap_or_else(|| PathBuf::from(".journeyman")),
        more: Vec::new(),
        extent: IngestMode::Whole,
    };
    if asked.dry_run {
        return preview_job(alone, &ticket).await;
    }
    if mock {
        return rehearse_job(alone, &ticket).await;
    }
    process_ticket(alone, &ticket).await
}

/// Works on a ticket with temporary services.
pub(super) async fn process_ticket(alone: OneShotServices, ticket: &TicketKey) -> anyhow::Result<ExitCode> {
    let worked = alone.run(async |client, shutdown| work_on_ticket(&client, ticket, shutdown).await);
    Ok(worked.await?.unwrap_or(EXIT_INTERRUPTED.into()))
}

/// Prints the job that would start. Only the API runs, so that nothing can start it.
async fn preview_job(alone: OneShotServices, ticket: &TicketKey) -> anyhow::Result<ExitCode> {
    let alone = OneShotServices {
        extent: IngestMode::Answers,
        ..alone
    };
    let previewed = alone.run(async |client, _| {
        print_planned_job(&client, ticket).await?;
        Ok(ExitCode::SUCCESS)
    });
    Ok(previewed.await?.unwrap_or(EXIT_INTERRUPTED.into()))
}

/// Rehearses in a temporary folder, where no other ticket is queued.
async fn rehearse_job(alone: OneShotServices, ticket: &TicketKey) -> anyhow::Result<ExitCode> {
    let place = tempfile::tempdir()?;
    let alone = OneShotServices {
        data: place.path().to_owned(),
        extent: IngestMode::OnRequest,
        ..alone
    };
    let rehearsed = alone.run(async |client, shutdown| {
        let mock = JobBody {
            mock: true,
            ..build_implement_job(ticket)
        };
        let accepted = client.jobs().dispatch_with(&mock, None).await?;
        print_result(&format!("run {}", accepted.run));
        let run = accepted.run.parse()?;
        let rehearsed = shutdown.run_until_cancelled(dispatch::follow_rehearsal(&client, &run));
        Ok(rehearsed.await.transpose()?.unwrap_or(EXIT_INTERRUPTED.into()))
    });
    Ok(rehearsed.await?.unwrap_or(EXIT_INTERRUPTED.into()))
}

pub(super) async fn print_planned_job(client: &Client, ticket: &TicketKey) -> anyhow::Result<()> {
    let planned = client.jobs().plan(&build_implement_job(ticket)).await?;
    print_result(&render_planned_job(&planned));
    Ok(())
}

/// Starts the work on a ticket and prints its journal until the run ends or waits for a person; `None` after an
/// interruption.
pub(super) async fn print_new_run(
    client: &Client,
    ticket: &TicketKey,
    shutdown: &CancellationToken,
) -> anyhow::Result<(RunId, Option<FollowOutcome>)> {
    let run: RunId = client
        .jobs()
        .dispatch(ticket, Job::Implement)
        .await?
        .run
        .parse()?;
    print_result(&format!("run {run}"));
    let followed = shutdown.run_until_cancelled(print_journal(client, &run, OutputFormat::Text));
    let followed = followed.await.transpose()?;
    Ok((run, followed))
}

async fn work_on_ticket(
    client: &Client,
    ticket: &TicketKey,
    shutdown: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let (_, followed) = print_new_run(client, ticket, &shutdown).await?;
    match followed {
        Some(followed) => {
            let code = choose_exit_code(&followed);
            if matches!(followed, FollowOutcome::Waits(_)) {
                print_error("once it has that, the run carries on when journeyman starts again");
            }
            Ok(code)
        }
        None => {
            print_error("stopped; the run carries on when journeyman starts again");
            Ok(EXIT_INTERRUPTED.into())
        }
    }
}
