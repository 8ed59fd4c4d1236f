//! `journeyman follow`, and following a run to its end for other commands.

use std::process::ExitCode;

use anyhow::Context;
use api::{Client, Followed, types::RunsQuery};
use clap::Args;
use domain::{Entry, Fact, RunId, StopReason, TicketKey, Timestamp};
use futures::{Stream, TryStreamExt};

use super::{EXIT_ARGUMENTS, say, say_error, say_json};
use crate::{
    access,
    args::{Api, Format, RunOrTicket, run_or_ticket},
    output::OutputLines,
    timeline,
};

/// Show a run live until its end, with what its tools print; the exit code tells whether it was completed
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The run, or the ticket whose newest run is meant
    #[arg(value_name = "RUN|TICKET", value_parser = run_or_ticket)]
    of: RunOrTicket,
    /// How it is printed: text, or jsonl for the entries of the journal
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    api: Api,
}

pub(super) async fn run(Arguments { of, output, api }: Arguments) -> anyhow::Result<ExitCode> {
    if output == Format::Json {
        say_error("journeyman: -o json has to wait for an end: use -o jsonl");
        return Ok(ExitCode::from(EXIT_ARGUMENTS));
    }
    let client = access::client(&api)?;
    let run = match of {
        RunOrTicket::Run(run) => run,
        RunOrTicket::Ticket(ticket) => newest(&client, &ticket).await?,
    };
    if output == Format::Text {
        say(&format!("run {run}"));
    }
    Ok(exit_code(&live(&client, &run, output).await?))
}

/// The newest run of a ticket.
async fn newest(client: &Client, ticket: &TicketKey) -> anyhow::Result<RunId> {
    let query = RunsQuery {
        ticket: Some(ticket.to_string()),
        limit: Some(1),
        ..RunsQuery::default()
    };
    let found = client.list_runs(&query).await?.pop();
    let found = found.with_context(|| format!("{ticket} has no run"))?;
    Ok(found.id.parse()?)
}

/// Prints what happens in a run until its end: its journal, and for people what its tools print meanwhile.
pub(super) async fn live(client: &Client, run: &RunId, output: Format) -> anyhow::Result<StopReason> {
    let mut events = std::pin::pin!(client.follow_with_output(run).await?);
    let mut printed = OutputLines::default();
    let mut start = None;
    while let Some(event) = events.try_next().await? {
        match event {
            Followed::Output(_) if output != Format::Text => {}
            Followed::Output(piece) => printed.push(&piece.text).iter().for_each(|line| say(line)),
            Followed::Entry(entry) => {
                printed.end().iter().for_each(|line| say(line));
                tell(&entry, output, &mut start)?;
                if let Fact::RunFinished { reason } = entry.fact {
                    return Ok(reason);
                }
            }
        }
    }
    anyhow::bail!("the live journal ended before the run did")
}

/// Prints one entry of a journal.
pub(super) fn tell(entry: &Entry, output: Format, start: &mut Option<Timestamp>) -> anyhow::Result<()> {
    let start = *start.get_or_insert(entry.at);
    match output {
        Format::Json | Format::Jsonl => say_json(entry)?,
        Format::Text => timeline::line(entry, start).iter().for_each(|line| say(line)),
    }
    Ok(())
}

/// Prints the journal as it comes, unless the output is one JSON value, and gives the reason of its end.
pub(super) async fn show(
    events: impl Stream<Item = Result<Entry, api::Error>>,
    output: Format,
) -> anyhow::Result<StopReason> {
    let mut events = std::pin::pin!(events);
    let mut start: Option<Timestamp> = None;
    while let Some(entry) = events.try_next().await? {
        if output != Format::Json {
            tell(&entry, output, &mut start)?;
        }
        if let Fact::RunFinished { reason } = entry.fact {
            return Ok(reason);
        }
    }
    anyhow::bail!("the live journal ended before the run did")
}

/// 0 for a run that is completed.
pub(super) fn exit_code(reason: &StopReason) -> ExitCode {
    match reason {
        StopReason::Completed => ExitCode::SUCCESS,
        other => {
            say_error(&format!("journeyman: the run ended: {}", other.as_str()));
            ExitCode::FAILURE
        }
    }
}
