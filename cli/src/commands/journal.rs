//! `journeyman journal`: events of a run.

use std::process::ExitCode;

use clap::Args;
use domain::RunId;

use super::{
    EXIT_ARGUMENTS,
    follow::{self, FollowLimit},
    print_error, print_json, print_long,
};
use crate::{
    access,
    args::{ApiArguments, OutputFormat, PagerOptions},
    timeline,
};

/// Print a run's journal
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The run: jira:ENG-12@57
    run: RunId,
    /// Output format: text, one JSON array, or one JSON object per line
    #[arg(long, short, value_enum, default_value = "text")]
    output: OutputFormat,
    /// Same as -o jsonl
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Keep printing until the run is finished
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    paging: PagerOptions,
    #[command(flatten)]
    api: ApiArguments,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let output = match asked.json {
        true => OutputFormat::Jsonl,
        false => asked.output,
    };
    if asked.follow && output == OutputFormat::Json {
        print_error("journeyman: -o json has to wait for an end: use -o jsonl with --follow");
        return Ok(ExitCode::from(EXIT_ARGUMENTS));
    }
    let client = access::build_client(&asked.api)?;
    if asked.follow {
        follow::print_live_run(&client, &asked.run, output, FollowLimit::End).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let journal = client.journal(&asked.run).await?;
    match output {
        OutputFormat::Json => print_json(&journal)?,
        OutputFormat::Jsonl => journal.iter().try_for_each(print_json)?,
        OutputFormat::Text => {
            let start = journal.first().map(|entry| entry.at).unwrap_or_default();
            let lines = journal
                .iter()
                .filter_map(|entry| timeline::render_entry_line(entry, start));
            print_long(lines, asked.paging);
        }
    }
    Ok(ExitCode::SUCCESS)
}
