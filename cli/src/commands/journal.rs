//! `journeyman journal`: events of a run.

use std::process::ExitCode;

use clap::Args;
use domain::RunId;

use super::{
    EXIT_ARGUMENTS,
    follow::{self, Until},
    say_error, say_json, say_long,
};
use crate::{
    access,
    args::{Api, Format, Paging},
    timeline,
};

/// Print a run's journal
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The run: jira:ENG-12@57
    run: RunId,
    /// Output format: text, one JSON array, or one JSON object per line
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
    /// Same as -o jsonl
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Keep printing until the run is finished
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    paging: Paging,
    #[command(flatten)]
    api: Api,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let output = match asked.json {
        true => Format::Jsonl,
        false => asked.output,
    };
    if asked.follow && output == Format::Json {
        say_error("journeyman: -o json has to wait for an end: use -o jsonl with --follow");
        return Ok(ExitCode::from(EXIT_ARGUMENTS));
    }
    let client = access::client(&asked.api)?;
    if asked.follow {
        follow::live(&client, &asked.run, output, Until::End).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let journal = client.journal(&asked.run).await?;
    match output {
        Format::Json => say_json(&journal)?,
        Format::Jsonl => journal.iter().try_for_each(say_json)?,
        Format::Text => {
            let start = journal.first().map(|entry| entry.at).unwrap_or_default();
            let lines = journal.iter().filter_map(|entry| timeline::line(entry, start));
            say_long(lines, asked.paging);
        }
    }
    Ok(ExitCode::SUCCESS)
}
