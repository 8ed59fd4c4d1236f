//! `journeyman dispatch`: a job by hand, to the end of its run.

use std::{io::Read, path::Path, process::ExitCode};

use anyhow::{Context, bail};
use domain::{Entry, Fact, Job, Receipt, Rehearsed, ReportOutcome, RunId, StopReason};
use futures::{Stream, TryStreamExt};
use ingest::api::types::{ContextBody, JobAccepted, JobBody, JobPlanned};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    follow::{exit_code, show},
    say, say_error, say_json,
};
use crate::{
    api::Client,
    args::{Dispatch, Format},
};

/// What came of the job.
#[derive(Serialize)]
struct Ended {
    #[serde(flatten)]
    accepted: JobAccepted,
    /// Why the run ended, e.g. `completed`.
    stop: StopReason,
    /// What a rehearsed job would write.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<Vec<Rehearsed>>,
}

pub(super) async fn run(asked: Dispatch) -> anyhow::Result<ExitCode> {
    let wanted = JobBody {
        ticket: asked.ticket.to_string(),
        job: Job::from(asked.job),
        repository: asked.repository.as_ref().map(ToString::to_string),
        text: None,
        context: asked.context.as_deref().map(context).transpose()?,
        dry_run: false,
        mock: asked.mock,
    };
    let client = Client::from_args(&asked.api)?;
    let is_json = asked.output == Format::Json;
    if asked.dry_run {
        let planned = client.plan(&wanted).await?;
        match is_json {
            true => say_json(&planned)?,
            false => say(&told(&planned)),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let accepted = client.dispatch_with(&wanted, asked.key.as_deref()).await?;
    if !is_json {
        say(&format!("run {}", accepted.run));
    }
    if asked.detach {
        if is_json {
            say_json(&accepted)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    follow(&client, accepted, is_json).await
}

async fn follow(client: &Client, accepted: JobAccepted, is_json: bool) -> anyhow::Result<ExitCode> {
    let run: RunId = accepted.run.parse()?;
    let events = client.follow(&run).await?;
    let [shutdown, _] = bootstrap::signals();
    let end = async {
        match is_json {
            true => end(events).await,
            false => show(events).await,
        }
    };
    let Some(stop) = shutdown.run_until_cancelled(end).await.transpose()? else {
        say_error(&format!(
            "the run goes on without being watched: journeyman journal {run} --follow"
        ));
        return Ok(ExitCode::from(130));
    };
    let code = exit_code(&stop);
    let would = rehearsed(client, &run).await?;
    if is_json {
        say_json(&Ended {
            accepted,
            stop,
            would,
        })?;
    } else {
        rehearsal(would.as_deref().unwrap_or_default())
            .iter()
            .for_each(|line| say(line));
    }
    Ok(code)
}

/// The reason of the run's end, with nothing printed.
async fn end(events: impl Stream<Item = anyhow::Result<Entry>>) -> anyhow::Result<StopReason> {
    let mut events = std::pin::pin!(events);
    while let Some(entry) = events.try_next().await? {
        if let Fact::RunFinished { reason } = entry.fact {
            return Ok(reason);
        }
    }
    bail!("the live journal ended before the run did")
}

/// What a rehearsed job would write; absent for a job that was done.
async fn rehearsed(client: &Client, run: &RunId) -> anyhow::Result<Option<Vec<Rehearsed>>> {
    let entries = client.journal(run).await?;
    Ok(entries.into_iter().find_map(|entry| match entry.fact {
        Fact::ReportSettled {
            outcome: ReportOutcome::Done(Receipt::Rehearsed { would }),
            ..
        } => Some(would),
        _ => None,
    }))
}

/// One line for each request with the effects that it would have, and below it what people would read.
fn rehearsal(would: &[Rehearsed]) -> Vec<String> {
    let mut lines = Vec::new();
    for one in would {
        lines.push(format!("would {}: {}", one.request, one.effects.join(", ")));
        let words = one.words.lines().filter(|line| !line.trim().is_empty());
        lines.extend(words.map(|line| format!("  > {line}")));
    }
    lines
}

/// What a dry run prints.
pub(super) fn told(planned: &JobPlanned) -> String {
    let JobPlanned {
        ticket,
        job,
        repository,
        summary,
        ..
    } = planned;
    let place = match &planned.pull_request {
        Some(url) => format!(" about {url}"),
        None => String::new(),
    };
    format!("would start {job} on {ticket} in {repository}{place}: {summary}")
}

/// The object in a file or on standard input.
fn context(file: &Path) -> anyhow::Result<Map<String, Value>> {
    let most = ContextBody::BYTES as u64 + 1;
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().take(most).read_to_string(&mut text)
    } else {
        let open = std::fs::File::open(file);
        open.and_then(|open| open.take(most).read_to_string(&mut text))
    };
    read.with_context(|| format!("the context {} cannot be read", file.display()))?;
    if text.len() > ContextBody::BYTES {
        bail!(
            "the context {} is larger than {} bytes",
            file.display(),
            ContextBody::BYTES
        );
    }
    serde_json::from_str(&text).with_context(|| format!("the context {} is no JSON object", file.display()))
}
