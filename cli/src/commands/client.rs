//! Commands that ask a running Journeyman over its API.

use std::process::ExitCode;

use domain::{Entry, RunId, TicketKey, Timestamp};
use futures::TryStreamExt;

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
