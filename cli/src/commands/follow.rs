//! `journeyman follow`, and the same for other commands.

use std::process::ExitCode;

use anyhow::Context;
use api::{Client, Followed as Event, types::RunsQuery};
use clap::Args;
use domain::{Entry, Fact, RunId, StopReason, TicketKey, Timestamp, WaitsFor};
use futures::TryStreamExt;

use super::{EXIT_ARGUMENTS, EXIT_PERSON, say, say_error, say_json};
use crate::{
    access,
    args::{Api, Format, RunOrTicket, run_or_ticket},
    output::OutputLines,
    timeline,
};

/// Show a run live until its end, with the output of its tools; the exit code shows whether it completed
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The run, or a ticket for its newest run
    #[arg(value_name = "RUN|TICKET", value_parser = run_or_ticket)]
    of: RunOrTicket,
    /// Output format: text, or jsonl for the entries of the journal
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
    /// End as soon as the run waits for a person, with exit code 3
    #[arg(long)]
    exit_status: bool,
    #[command(flatten)]
    api: Api,
}

/// End of following.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// End of the run, independent of waits for people.
    End,
    /// End of the run, or a wait for a person.
    Person,
}

/// Reason why following ended.
#[derive(Debug)]
pub(super) enum Followed {
    /// The run is finished.
    Over(StopReason),
    /// The run waits for a person.
    Waits(WaitsFor),
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { of, output, api, .. } = asked;
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
    let until = match asked.exit_status {
        true => Until::Person,
        false => Until::End,
    };
    Ok(exit_code(&live(&client, &run, output, until).await?))
}

/// Newest run of a ticket.
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

/// Prints a run live: its journal and, in text format, the output of its tools.
pub(super) async fn live(
    client: &Client,
    run: &RunId,
    output: Format,
    until: Until,
) -> anyhow::Result<Followed> {
    let mut events = std::pin::pin!(client.follow_with_output(run).await?);
    let mut printed = OutputLines::default();
    let mut start = None;
    while let Some(event) = events.try_next().await? {
        match event {
            Event::Output(_) if output != Format::Text => {}
            Event::Output(piece) => printed.push(&piece.text).iter().for_each(|line| say(line)),
            Event::Entry(entry) => {
                // An incomplete line of output must not share a line with the entry.
                printed.end().iter().for_each(|line| say(line));
                tell(&entry, output, &mut start)?;
                if let Some(end) = end(client, run, *entry, until).await? {
                    return Ok(end);
                }
            }
        }
    }
    anyhow::bail!("the live journal ended before the run did")
}

/// Result of following, if this entry is the last one.
async fn end(client: &Client, run: &RunId, entry: Entry, until: Until) -> anyhow::Result<Option<Followed>> {
    match entry.fact {
        Fact::RunFinished { reason } => Ok(Some(Followed::Over(reason))),
        Fact::Parked { waits_for } if until == Until::Person && waits_for.is_for_person() => {
            // During replay an old wait may already be over. Only the newest entry of the journal is the current
            // state.
            let known = client.run(run).await?.overview;
            let is_last = known.is_some_and(|known| known.entries == entry.position + 1);
            Ok(is_last.then_some(Followed::Waits(waits_for)))
        }
        _ => Ok(None),
    }
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

/// Prints the journal live, except in the format with one JSON value, until the run is finished or waits for a
/// person.
pub(super) async fn show(client: &Client, run: &RunId, output: Format) -> anyhow::Result<Followed> {
    let mut events = std::pin::pin!(client.follow(run).await?);
    let mut start: Option<Timestamp> = None;
    while let Some(entry) = events.try_next().await? {
        if output != Format::Json {
            tell(&entry, output, &mut start)?;
        }
        if let Some(end) = end(client, run, entry, Until::Person).await? {
            return Ok(end);
        }
    }
    anyhow::bail!("the live journal ended before the run did")
}

/// Exit code: 0 for a completed run, 3 for one that waits for a person.
pub(super) fn exit_code(followed: &Followed) -> ExitCode {
    let (told, code) = match followed {
        Followed::Over(StopReason::Completed) => return ExitCode::SUCCESS,
        Followed::Over(other) => (format!("ended: {}", other.as_str()), ExitCode::FAILURE),
        Followed::Waits(waits_for) => (waits_for.words().to_owned(), EXIT_PERSON.into()),
    };
    say_error(&format!("journeyman: the run {told}"));
    code
}
