//! `journeyman journal`: what happened in a run.

use std::process::ExitCode;

use api::Followed;
use clap::Args;
use domain::{Entry, RunId, Timestamp};
use futures::TryStreamExt;

use super::{say, say_json};
use crate::{access, args::Api, output::OutputLines, timeline};

/// Print a run's journal
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The run: jira:ENG-12@57
    run: RunId,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// Keep printing until the run is over
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    api: Api,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments {
        run,
        json,
        follow,
        api,
    } = asked;
    let client = access::client(&api)?;
    let mut start = None;
    if follow {
        let mut events = std::pin::pin!(client.follow_with_output(&run).await?);
        let mut output = OutputLines::default();
        while let Some(event) = events.try_next().await? {
            match event {
                Followed::Entry(entry) => {
                    output.end().iter().for_each(|line| say(line));
                    print(&entry, json, &mut start)?;
                }
                Followed::Output(piece) if !json => {
                    output.push(&piece.text).iter().for_each(|line| say(line));
                }
                Followed::Output(_) => {}
            }
        }
    } else {
        for entry in client.journal(&run).await? {
            print(&entry, json, &mut start)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(entry: &Entry, json: bool, start: &mut Option<Timestamp>) -> anyhow::Result<()> {
    let start = *start.get_or_insert(entry.at);
    if json {
        say_json(entry)?;
    } else if let Some(line) = timeline::line(entry, start) {
        say(&line);
    }
    Ok(())
}
