//! Commands that ask a running Journeyman over its API.

use std::process::ExitCode;

use anyhow::bail;
use domain::{Entry, RunId, TicketKey, Timestamp, WaitsFor};
use futures::TryStreamExt;
use ingest::api::types::RunView;

use super::{say, say_json};
use crate::{
    api::{Client, Followed},
    args,
    output::OutputLines,
    timeline,
};

pub(super) async fn journal(
    run: &RunId,
    json: bool,
    follow: bool,
    api: &args::Api,
) -> anyhow::Result<ExitCode> {
    let client = Client::from_args(api)?;
    let mut start = None;
    if follow {
        let mut events = std::pin::pin!(client.follow_with_output(run).await?);
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
        for entry in client.journal(run).await? {
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

pub(super) async fn runs(ticket: Option<&TicketKey>, api: &args::Api) -> anyhow::Result<ExitCode> {
    for run in Client::from_args(api)?.runs(ticket).await? {
        let status = serde_json::to_value(run.status)?;
        let reason = run
            .stop
            .as_ref()
            .map(domain::StopReason::as_str)
            .or(run.waits_for.as_deref())
            .unwrap_or_default()
            .to_owned();
        say(&format!(
            "{:<28} {:<12} {} {reason}",
            run.id,
            run.job.as_str(),
            status.as_str().unwrap_or_default()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn stop(target: &str, api: &args::Api) -> anyhow::Result<ExitCode> {
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

pub(super) async fn diff(run: &RunId, api: &args::Api) -> anyhow::Result<ExitCode> {
    let text = Client::from_args(api)?.diff(run).await?;
    say(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn decide(
    run: &RunId,
    verdict: args::Verdict,
    head: &str,
    feedback: &str,
    api: &args::Api,
) -> anyhow::Result<ExitCode> {
    let client = Client::from_args(api)?;
    client.decide(run, verdict.into(), head, feedback).await?;
    say(&format!("decided: {run}"));
    Ok(ExitCode::SUCCESS)
}

/// Decides about the one run of a ticket that waits for it.
pub(super) async fn decide_about(
    of: &args::OfTicket,
    verdict: args::Verdict,
    head: &str,
    feedback: &str,
) -> anyhow::Result<ExitCode> {
    let args::OfTicket { ticket, api } = of;
    let runs = Client::from_args(api)?.runs(Some(ticket)).await?;
    let waits = |run: &&RunView| run.waits_for.as_deref() == Some(WaitsFor::Decision.as_str());
    let waiting: Vec<RunId> = runs
        .iter()
        .filter(waits)
        .map(|run| run.id.parse())
        .collect::<Result<_, _>>()?;
    match waiting.as_slice() {
        [run] => decide(run, verdict, head, feedback, api).await,
        [] => bail!("no run of {ticket} waits for a decision (`journeyman runs --ticket {ticket}`)"),
        several => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            bail!(
                "{} runs of {ticket} wait for a decision; decide about one with `journeyman decide RUN`: {}",
                several.len(),
                several.join(", ")
            )
        }
    }
}
