//! Tickets from their start to their merged pull requests.

use std::time::Duration;

use anyhow::Context;
use api::Client;
use domain::TicketKey;
use e2e::{
    Note, Vendors,
    findings::{self, Broken, Findings, Problem},
};
use testkit::fixture;
use tokio::{process::Command, time::Instant};

use crate::{Arguments, say};

/// Between two looks at everything.
const TICK: Duration = Duration::from_millis(200);
/// How long it may take in all.
const LIMIT: Duration = Duration::from_secs(900);
/// How far tickets are when the command runs: some work, the others wait.
const UNDER_WAY: Duration = Duration::from_secs(10);
/// `implement`, `mark_ready`, `finish`.
const RUNS: usize = 3;

/// Prints the figures; true when nothing was lost and nothing done twice.
///
/// # Errors
/// When the stand-ins, the API or the command fail.
pub(crate) async fn play(arguments: &Arguments, vendors: &Vendors, client: &Client) -> anyhow::Result<bool> {
    let start = Instant::now();
    let mut notes = (1..=arguments.tickets)
        .map(|number| Note::ask(vendors, number))
        .collect::<anyhow::Result<Vec<_>>>()?;
    for note in &notes {
        let marker = &note.marker;
        let script = fixture::note_script_with(&note.key, &arguments.command);
        vendors.model.set_script(marker, script);
    }
    let mut command = arguments.during.as_deref();
    while start.elapsed() < LIMIT && !Note::attend_all(vendors, &mut notes)? {
        if let Some(command) = command.take_if(|_| start.elapsed() > UNDER_WAY) {
            tokio::spawn(during(command.to_owned()));
        }
        tokio::time::sleep(TICK).await;
    }
    let wall = start.elapsed().as_secs();
    let mut problems = findings::outside(vendors, &notes.iter().collect::<Vec<_>>());
    problems.extend(inside(client, &notes).await?);
    let count = |broken| problems.iter().filter(|problem| problem.broken == broken).count();
    for problem in &problems {
        say(&problem.to_string());
    }
    let done = notes.iter().filter(|note| note.done.is_some()).count();
    say(&format!(
        "tickets {} done {done} wall {wall} s losses {} duplicates {}",
        notes.len(),
        count(Broken::Lost),
        count(Broken::Doubled)
    ));
    Ok(problems.is_empty())
}

/// Runs the command; what it prints is shown.
async fn during(command: String) {
    let start = Instant::now();
    let ran = Command::new("sh")
        .args(["-c", &command])
        .kill_on_drop(true)
        .status();
    let ended = match ran.await {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    say(&format!(
        "{command:?} ended after {:.0} s: {ended}",
        start.elapsed().as_secs_f64()
    ));
}

/// What the API shows to be wrong.
async fn inside(client: &Client, notes: &[Note]) -> anyhow::Result<Vec<Problem>> {
    let dead = client.dead_letters().await?.into_iter();
    let mut problems: Vec<_> = dead
        .map(|letter| Problem::general(format!("dead letter: {letter:?}")))
        .collect();
    for note in notes {
        let mut findings = Findings::of(&note.key);
        let ticket = TicketKey::jira(&note.key)?;
        let runs = client.runs(Some(&ticket)).await.context("the runs")?;
        if runs.len() > RUNS {
            findings.add(Broken::Doubled, format!("{} runs", runs.len()));
        }
        problems.extend(findings.into_problems());
    }
    Ok(problems)
}
