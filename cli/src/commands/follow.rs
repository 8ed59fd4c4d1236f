//! Journal of a run, live or up to now: `journeyman follow`, `journeyman journal`, and the same for other commands.

use std::process::ExitCode;

use anyhow::Context;
use api::{Client, RunEvent as Event, types::RunsQuery};
use clap::Args;
use domain::{Fact, JournalEntry, RunId, StopReason, TicketKey, TicketNews, Timestamp, WaitCondition};
use futures::TryStreamExt;

use super::{EXIT_PERSON, print_error, print_json, print_long, print_result, refuse_single_json};
use crate::{
    access,
    args::{ApiArguments, OutputFormat, PagerOptions, RunOrTicket, parse_run_or_ticket},
    timeline::{self, OutputLines},
};

/// Show a run live until its end, with the output of its tools; the exit code shows whether it completed
#[derive(Debug, Args)]
pub(super) struct FollowArguments {
    /// The run, or a ticket for its newest run
    #[arg(value_name = "RUN|TICKET", value_parser = parse_run_or_ticket)]
    of: RunOrTicket,
    /// Output format: text, or jsonl for the entries of the journal
    #[arg(long, short, value_enum, default_value = "text")]
    output: OutputFormat,
    /// End as soon as the run waits for a person, with exit code 3
    #[arg(long)]
    exit_status: bool,
    #[command(flatten)]
    api: ApiArguments,
}

/// Print a run's journal
#[derive(Debug, Args)]
pub(super) struct JournalArguments {
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

/// Event that ends following.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FollowLimit {
    /// End of the run, independent of waits for people.
    End,
    /// End of the run, or a wait for a person.
    Person,
}

/// Reason why following ended.
#[derive(Debug)]
pub(super) enum FollowOutcome {
    /// The run is finished.
    Over(StopReason),
    /// The run waits for a person.
    Waits(WaitCondition),
}

pub(super) async fn run_follow(asked: FollowArguments) -> anyhow::Result<ExitCode> {
    let FollowArguments { of, output, api, .. } = asked;
    if output == OutputFormat::Json {
        return Ok(refuse_single_json());
    }
    let client = access::build_client(&api)?;
    let run = match of {
        RunOrTicket::Run(run) => run,
        RunOrTicket::Ticket(ticket) => find_newest_run(&client, &ticket).await?,
    };
    if output == OutputFormat::Text {
        print_result(&format!("run {run}"));
    }
    let until = if asked.exit_status {
        FollowLimit::Person
    } else {
        FollowLimit::End
    };
    Ok(choose_exit_code(
        &print_live_run(&client, &run, output, until).await?,
    ))
}

pub(super) async fn run_journal(asked: JournalArguments) -> anyhow::Result<ExitCode> {
    let output = if asked.json {
        OutputFormat::Jsonl
    } else {
        asked.output
    };
    if asked.follow && output == OutputFormat::Json {
        return Ok(refuse_single_json());
    }
    let client = access::build_client(&asked.api)?;
    if asked.follow {
        print_live_run(&client, &asked.run, output, FollowLimit::End).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let journal = client.runs().journal(&asked.run).await?;
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

/// Newest run of a ticket.
async fn find_newest_run(client: &Client, ticket: &TicketKey) -> anyhow::Result<RunId> {
    let query = RunsQuery {
        ticket: Some(ticket.to_string()),
        limit: Some(1),
        ..RunsQuery::default()
    };
    let found = client.runs().list(&query).await?.pop();
    let found = found.with_context(|| format!("{ticket} has no run"))?;
    Ok(found.id.parse()?)
}

/// Prints a run live: its journal and, in text format, the output of its tools.
async fn print_live_run(
    client: &Client,
    run: &RunId,
    output: OutputFormat,
    until: FollowLimit,
) -> anyhow::Result<FollowOutcome> {
    let mut events = std::pin::pin!(client.runs().follow_with_output(run, None).await?);
    let mut printed = OutputLines::default();
    let (mut start, mut waits) = (None, None);
    while let Some(event) = events.try_next().await? {
        match event {
            // Programs read the other formats, and the journal contains the whole result of each tool.
            Event::Output(_) if output != OutputFormat::Text => {}
            Event::Output(piece) => printed
                .push(&piece.text)
                .iter()
                .for_each(|line| print_result(line)),
            Event::Entry(entry) => {
                // An incomplete line of output must not share a line with the entry.
                printed.end().iter().for_each(|line| print_result(line));
                print_entry(&entry, output, &mut start)?;
                if let Some(end) = find_follow_end(client, run, *entry, until, &mut waits).await? {
                    return Ok(end);
                }
            }
        }
    }
    anyhow::bail!("the live journal ended before the run did")
}

/// Result of following, if this entry is the last one. Updates the wait for a person in which the run is.
async fn find_follow_end(
    client: &Client,
    run: &RunId,
    entry: JournalEntry,
    until: FollowLimit,
    waits: &mut Option<WaitCondition>,
) -> anyhow::Result<Option<FollowOutcome>> {
    *waits = update_person_wait(*waits, &entry.fact);
    if let Fact::RunFinished { reason } = entry.fact {
        return Ok(Some(FollowOutcome::Over(reason)));
    }
    let Some(waits_for) = waits.filter(|_| until == FollowLimit::Person) else {
        return Ok(None);
    };
    // During replay an old wait may already be over. Only the newest entry of the journal is the current state.
    let known = client.runs().read(run).await?.overview;
    let is_last = known.is_some_and(|known| known.entries == entry.position + 1);
    Ok(is_last.then_some(FollowOutcome::Waits(waits_for)))
}

/// Wait for a person after a fact. A parked run stays parked when news arrive or another planner takes it over.
fn update_person_wait(waits: Option<WaitCondition>, fact: &Fact) -> Option<WaitCondition> {
    if let Fact::Parked { waits_for } = fact {
        return Some(*waits_for).filter(|waits_for| waits_for.is_for_person());
    }
    if let Fact::NewsArrived {
        news: TicketNews::Comment { comment, .. },
        ..
    } = fact
    {
        // A comment of a person who may instruct is the answer that wakes the run.
        return waits.filter(|waits_for| *waits_for != WaitCondition::Answer || !comment.may_instruct);
    }
    waits.filter(|_| matches!(fact, Fact::TakenOver { .. }))
}

/// Prints one entry of a journal.
fn print_entry(
    entry: &JournalEntry,
    output: OutputFormat,
    start: &mut Option<Timestamp>,
) -> anyhow::Result<()> {
    let start = *start.get_or_insert(entry.at);
    match output {
        OutputFormat::Json | OutputFormat::Jsonl => print_json(entry)?,
        OutputFormat::Text => timeline::render_entry_line(entry, start)
            .iter()
            .for_each(|line| print_result(line)),
    }
    Ok(())
}

/// Prints the journal live, except in the format with one JSON value, until the run is finished or waits for a
/// person.
pub(super) async fn print_journal(
    client: &Client,
    run: &RunId,
    output: OutputFormat,
) -> anyhow::Result<FollowOutcome> {
    let mut events = std::pin::pin!(client.runs().follow(run).await?);
    let (mut start, mut waits) = (None, None);
    while let Some(entry) = events.try_next().await? {
        if output != OutputFormat::Json {
            print_entry(&entry, output, &mut start)?;
        }
        if let Some(end) = find_follow_end(client, run, entry, FollowLimit::Person, &mut waits).await? {
            return Ok(end);
        }
    }
    anyhow::bail!("the live journal ended before the run did")
}

/// Exit code: 0 for a completed run, 3 for one that waits for a person.
pub(super) fn choose_exit_code(followed: &FollowOutcome) -> ExitCode {
    let (end, code) = match followed {
        FollowOutcome::Over(StopReason::Completed) => return ExitCode::SUCCESS,
        FollowOutcome::Over(other) => (format!("ended: {}", other.as_str()), ExitCode::FAILURE),
        FollowOutcome::Waits(waits_for) => (waits_for.words().to_owned(), EXIT_PERSON.into()),
    };
    print_error(&format!("journeyman: the run {end}"));
    code
}

#[cfg(test)]
mod tests {
    use domain::{RunFence, TicketComment};

    use super::*;

    fn build_news_fact(may_instruct: bool) -> Fact {
        Fact::NewsArrived {
            sequence: 9,
            at: Timestamp::default(),
            news: TicketNews::Comment {
                comment: TicketComment {
                    author: "Ada".to_owned(),
                    at: Timestamp::default(),
                    text: "Half up.".to_owned(),
                    may_instruct,
                    is_new: true,
                },
                pull_request: None,
                attachments: Vec::new(),
            },
        }
    }

    #[test]
    fn wait_outlasts_news_and_takeover() {
        let parked = |waits_for| Fact::Parked { waits_for };
        let taken_over = || Fact::TakenOver {
            fence: RunFence::default(),
        };
        let stop = || Fact::StopRequested { by: "ada".to_owned() };
        let (decision, answer) = (WaitCondition::Decision, WaitCondition::Answer);
        for (facts, expected) in [
            (vec![parked(decision)], Some(decision)),
            (
                vec![parked(decision), build_news_fact(true), taken_over()],
                Some(decision),
            ),
            (vec![parked(answer), build_news_fact(false)], Some(answer)),
            (vec![parked(answer), build_news_fact(true)], None),
            (vec![parked(decision), stop()], None),
            (vec![parked(WaitCondition::Report), taken_over()], None),
        ] {
            let waits = facts.iter().fold(None, update_person_wait);
            assert_eq!(waits, expected, "{facts:?}");
        }
    }
}
