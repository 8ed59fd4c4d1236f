//! Tickets from a request in Jira to the merge while releases change.

use std::{path::Path, time::Duration};

use anyhow::Context as _;
use e2e::{Mode, Note, Options, Previous, World, findings};
use testkit::{eventually, fixture};
use tokio::time::Instant;

use crate::skew::cases::{ALL, Case, Change, Release};

const TICKETS: usize = 4;
// Model latency, long enough that a service is replaced during the work.
const THINKING: Duration = Duration::from_millis(200);
// Time limit for all tickets after the last change; far above their duration.
const PATIENCE: Duration = Duration::from_secs(120);
/// NATS user with the permission to back up.
const BACKUP: &str = "backup";

/// Prints a line to standard output.
#[expect(clippy::print_stdout, reason = "the output is what this is run for")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Plays a case and prints its outcome. Returns true if every ticket is merged exactly once.
pub(crate) async fn play(case: Case, previous: &Previous) -> bool {
    let start = Instant::now();
    let played = Box::pin(tickets(case, previous)).await;
    let outcome = if played.is_ok() { "ok" } else { "failed" };
    let ms = start.elapsed().as_millis();
    say(&format!(
        "skew case={} tickets={TICKETS} outcome={outcome} ms={ms}",
        case.name
    ));
    if let Err(error) = &played {
        say(&format!("  {error:#}"));
    }
    played.is_ok()
}

async fn tickets(case: Case, previous: &Previous) -> anyhow::Result<()> {
    let mut world = start(case.behind, previous).await?;
    let played = Box::pin(changes(&mut world, case, previous)).await;
    if played.is_err() {
        world.keep_logs();
        say(&format!("  logs are in {}", world.logs().display()));
    }
    played?;
    world.stop().await
}

async fn changes(world: &mut World, case: Case, previous: &Previous) -> anyhow::Result<()> {
    for change in case.before {
        make(world, *change, previous).await?;
    }
    let mut notes = ask(world)?;
    for change in case.during {
        make(world, *change, previous).await?;
        Note::attend_all(world, &mut notes)?;
    }
    finish(world, &mut notes).await
}

async fn start(behind: &[&'static str], previous: &Previous) -> anyhow::Result<World> {
    let world = World::start(Options {
        mode: Mode::Processes,
        settings: vec![("EXECUTOR__SLOTS", "16".to_owned())],
        rules: "agent: {review_status: In Review}\n".to_owned(),
        jira: Note::workflow(),
        previous: Some((previous.clone(), behind.to_vec())),
        ..Options::default()
    });
    let world = Box::pin(world).await?;
    world.model.set_latency(THINKING);
    world.model.repeat_after("was cut");
    Ok(world)
}

fn ask(world: &World) -> anyhow::Result<Vec<Note>> {
    (0..TICKETS).map(|number| Note::ask(world, number)).collect()
}

async fn make(world: &mut World, change: Change, previous: &Previous) -> anyhow::Result<()> {
    let Change { service, to } = change;
    let processes = world.processes().context("the services are no processes")?;
    processes.drain(service).await?;
    let release = (to == Release::Previous).then(|| previous.clone());
    processes.set_release(service, release)?;
    processes.restart(service).await
}

/// Waits until every ticket is merged and Done, and checks that every result exists once.
async fn finish(world: &World, notes: &mut [Note]) -> anyhow::Result<()> {
    let over = async || Note::attend_all(world, notes).ok()?.then_some(());
    eventually("every ticket is merged and Done", PATIENCE, over).await?;
    let mut problems: Vec<String> = findings::outside(world, &notes.iter().collect::<Vec<_>>())
        .iter()
        .map(ToString::to_string)
        .collect();
    let pulls = world.github.pull_requests(fixture::REPOSITORY).len();
    if pulls != TICKETS {
        problems.push(format!("{pulls} pull requests of {TICKETS} tickets"));
    }
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("; "));
    Ok(())
}

/// Plays tickets with the previous release alone and backs up the streams.
pub(crate) async fn keep(previous: &Previous, folder: &Path) -> anyhow::Result<()> {
    let mut world = start(&ALL, previous).await?;
    let mut notes = ask(&world)?;
    finish(&world, &mut notes).await?;
    // A backup requires the streams of this release, which its reporter creates. It writes no records.
    let reporter = Change {
        service: "reporter",
        to: Release::This,
    };
    make(&mut world, reporter, previous).await?;
    world.queue_as(BACKUP).await?.back_up(folder, |_| ()).await?;
    say(&format!("skew kept={}", folder.display()));
    world.stop().await
}
