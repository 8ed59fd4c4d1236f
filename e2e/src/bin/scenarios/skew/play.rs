//! Tickets from a request in Jira to the merge while releases change.

use std::{path::Path, time::Duration};

use anyhow::Context as _;
use e2e::{NoteTicket, Options, PreviousRelease, ServiceMode, TestWorld, findings};
use testkit::{fixture, poll_until};
use tokio::time::Instant;

use crate::output::print_line;
use crate::skew::cases::{ALL, ReleaseChange, SkewCase, SkewRelease};

const TICKETS: usize = 4;
// Model latency, long enough that a service is replaced during the work.
const THINKING: Duration = Duration::from_millis(200);
// Time limit for all tickets after the last change; far above their duration.
const PATIENCE: Duration = Duration::from_secs(120);
/// NATS user with the permission to back up.
const BACKUP: &str = "backup";

/// Plays a case and prints its outcome. Returns true if every ticket is merged exactly once.
pub(crate) async fn play_case(case: SkewCase, previous: &PreviousRelease) -> bool {
    let start = Instant::now();
    let played = Box::pin(play_tickets(case, previous)).await;
    let outcome = if played.is_ok() { "ok" } else { "failed" };
    let ms = start.elapsed().as_millis();
    print_line(&format!(
        "skew case={} tickets={TICKETS} outcome={outcome} ms={ms}",
        case.name
    ));
    if let Err(error) = &played {
        print_line(&format!("  {error:#}"));
    }
    played.is_ok()
}

async fn play_tickets(case: SkewCase, previous: &PreviousRelease) -> anyhow::Result<()> {
    let mut world = start_world(case.behind, previous).await?;
    let played = Box::pin(play_changes(&mut world, case, previous)).await;
    if played.is_err() {
        world.keep_logs();
        print_line(&format!("  logs are in {}", world.logs().display()));
    }
    played?;
    world.stop().await
}

async fn play_changes(
    world: &mut TestWorld,
    case: SkewCase,
    previous: &PreviousRelease,
) -> anyhow::Result<()> {
    for change in case.before {
        make_change(world, *change, previous).await?;
    }
    let mut notes = ask_for_notes(world)?;
    for change in case.during {
        make_change(world, *change, previous).await?;
        NoteTicket::attend_all(world, &mut notes)?;
    }
    finish_notes(world, &mut notes).await
}

async fn start_world(behind: &[&'static str], previous: &PreviousRelease) -> anyhow::Result<TestWorld> {
    let world = TestWorld::start(Options {
        mode: ServiceMode::Processes,
        settings: vec![("EXECUTOR__SLOTS", "16".to_owned())],
        rules: "agent: {review_status: In Review}\n".to_owned(),
        jira: NoteTicket::workflow(),
        previous: Some((previous.clone(), behind.to_vec())),
        ..Options::default()
    });
    let world = Box::pin(world).await?;
    world.model.set_latency(THINKING);
    world.model.repeat_after("was cut");
    Ok(world)
}

fn ask_for_notes(world: &TestWorld) -> anyhow::Result<Vec<NoteTicket>> {
    (0..TICKETS)
        .map(|number| NoteTicket::ask(world, number))
        .collect()
}

async fn make_change(
    world: &mut TestWorld,
    change: ReleaseChange,
    previous: &PreviousRelease,
) -> anyhow::Result<()> {
    let ReleaseChange { service, to } = change;
    let processes = world
        .processes()
        .context("the services are not separate processes")?;
    processes.drain(service).await?;
    let release = (to == SkewRelease::Previous).then(|| previous.clone());
    processes.set_release(service, release)?;
    processes.restart(service).await
}

/// Waits until every ticket is merged and Done, and checks that every result exists once.
async fn finish_notes(world: &TestWorld, notes: &mut [NoteTicket]) -> anyhow::Result<()> {
    let over = async || NoteTicket::attend_all(world, notes).ok()?.then_some(());
    poll_until("every ticket is merged and Done", PATIENCE, over).await?;
    let mut problems: Vec<String> = findings::find_outside_problems(world, &notes.iter().collect::<Vec<_>>())
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
pub(crate) async fn keep_backup(previous: &PreviousRelease, folder: &Path) -> anyhow::Result<()> {
    let mut world = start_world(&ALL, previous).await?;
    let mut notes = ask_for_notes(&world)?;
    finish_notes(&world, &mut notes).await?;
    // A backup requires the streams of this release, which its reporter creates. It writes no records.
    let reporter = ReleaseChange {
        service: "reporter",
        to: SkewRelease::This,
    };
    make_change(&mut world, reporter, previous).await?;
    world.queue_as(BACKUP).await?.back_up(folder, |_| ()).await?;
    print_line(&format!("skew kept={}", folder.display()));
    world.stop().await
}
