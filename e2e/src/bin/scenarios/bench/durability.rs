//! Cost of durability, and time to recover from a crash.

use std::time::Duration;

use anyhow::{Context, ensure};
use bootstrap::read_wall_clock;
use domain::{Fact, JournalEntry, RunFence, RunId, TicketKey};
use e2e::{Options, ReplicaProcesses, ServiceMode, TestWorld};
use queue::Queue;
use servers::{FileSync, NatsOptions, NatsServer};
use testkit::fixture;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::bench::{
    measure::{DurationSamples, print_figure},
    processes::ServiceProcesses,
    tickets::{create_scripted_ticket, run_steps},
    waiting::{no_change, wait_for, wait_for_end},
};

const APPENDS: u64 = 500;
const WRITERS: u64 = 64;
const TEXT_BYTES: usize = 1_000;
const CRASHES: usize = 3;
// Far below the default, so that the other parts of a recovery remain visible.
const ACK_WAIT: Duration = Duration::from_secs(3);
const LEASE: Duration = Duration::from_secs(2);
const PARKED: usize = 1_000;
const ACTIVE: usize = 200;
/// Model latency while many runs are active.
const THOUGHT: Duration = Duration::from_secs(2);
/// Time limit for 1,000 runs to park.
const PATIENCE: Duration = Duration::from_secs(240);
const WATCHED: Duration = Duration::from_secs(10);

/// Prints the time of a journal append for each sync mode of the NATS server.
pub(crate) async fn measure_appends() -> anyhow::Result<()> {
    for (name, sync) in [("default", FileSync::Interval), ("always", FileSync::Always)] {
        let options = NatsOptions {
            sync,
            ..NatsOptions::default()
        };
        let nats = NatsServer::start_with(options).await?;
        let settings = queue::Settings {
            url: nats.url(),
            ..queue::Settings::default()
        };
        let queue = Queue::connect(&settings, "bench").await?;
        queue.ensure_topology().await?;
        let start = Instant::now();
        append_entries(&queue, 0)
            .await?
            .print(&format!("journal_append_1kB_sync_{name}"));
        let each = start.elapsed();
        append_together(&queue, name).await?;
        if sync == FileSync::Interval {
            DurationSamples::sequential(usize::try_from(APPENDS)?, async |_| Ok(queue.ping().await?))
                .await?
                .print("floor_nats_round_trip");
        }
        ensure!(
            each < Duration::from_secs(60),
            "the disk is too slow to be measured"
        );
    }
    floor_sync().await
}

/// Appends entries to the journal of one run, in order.
async fn append_entries(queue: &Queue, run: u64) -> anyhow::Result<DurationSamples> {
    let run = RunId::new(TicketKey::jira("ENG-1")?, run + 1);
    let journal = queue.journal();
    let (mut samples, mut last) = (DurationSamples::default(), 0);
    for position in 0..APPENDS {
        let entry = JournalEntry {
            position,
            nonce: format!("{run}-{position}"),
            fence: RunFence::default(),
            at: read_wall_clock(),
            fact: Fact::StopRequested {
                by: "x".repeat(TEXT_BYTES),
            },
        };
        let start = Instant::now();
        last = journal.append(&run, last, &entry).await?;
        samples.add(start.elapsed());
    }
    Ok(samples)
}

async fn append_together(queue: &Queue, name: &str) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut writers = JoinSet::new();
    for run in 1..=WRITERS {
        let queue = queue.clone();
        writers.spawn(async move { append_entries(&queue, run).await.map(drop) });
    }
    while let Some(written) = writers.join_next().await {
        written??;
    }
    let rate = (WRITERS * APPENDS) as f64 / start.elapsed().as_secs_f64();
    print_figure(
        &format!("journal_appends_c{WRITERS}_sync_{name}"),
        rate,
        "per_second",
    );
    Ok(())
}

/// Prints the floor: the same bytes written to a file and synced.
async fn floor_sync() -> anyhow::Result<()> {
    use tokio::io::AsyncWriteExt as _;
    let mut file = tokio::fs::File::from_std(tempfile::tempfile()?);
    let mut samples = DurationSamples::default();
    for _ in 0..APPENDS {
        let start = Instant::now();
        file.write_all(&[b'x'; TEXT_BYTES]).await?;
        file.sync_data().await?;
        samples.add(start.elapsed());
    }
    samples.print("floor_write_and_sync_1kB");
    Ok(())
}

/// Prints crash recovery and the load of many runs, with short timeouts and a planner with many slots.
pub(crate) async fn crashes_and_crowds() -> anyhow::Result<()> {
    let options = Options {
        mode: ServiceMode::Processes,
        settings: vec![
            ("NATS__ACK_WAIT_MS", ACK_WAIT.as_millis().to_string()),
            ("REDIS__TTL_MS", LEASE.as_millis().to_string()),
            // Twice the active runs, so that no run waits for a slot.
            ("PLANNER__SLOTS", (ACTIVE * 2).to_string()),
            ("PLANNER__RETRY_BASE_MS", "900000".to_owned()),
            ("EXECUTOR__SLOTS", (ACTIVE * 2).to_string()),
        ],
        ..Options::default()
    };
    let mut world = Box::pin(TestWorld::start(options)).await?;
    print_figure("floor_ack_wait", ACK_WAIT.as_secs_f64(), "s");
    for service in ["planner", "executor"] {
        let took = measure_recovery(&mut world, service).await?;
        print_figure(
            &format!("recovery_{service}_sigkill_p50"),
            took.as_secs_f64(),
            "s",
        );
    }
    measure_many_runs(&mut world).await?;
    world.stop().await
}

/// Prints the time to recover from a planner crash with default settings.
pub(crate) async fn default_recovery() -> anyhow::Result<()> {
    let options = Options {
        mode: ServiceMode::Processes,
        ..Options::default()
    };
    let mut world = Box::pin(TestWorld::start(options)).await?;
    let took = measure_recovery(&mut world, "planner").await?;
    print_figure("recovery_planner_default_s", took.as_secs_f64(), "s");
    world.stop().await
}

/// Returns the median time from SIGKILL to the run's next model call. A new process starts immediately.
async fn measure_recovery(world: &mut TestWorld, service: &'static str) -> anyhow::Result<Duration> {
    world.model.set_latency(Duration::from_millis(50));
    let mut samples = Vec::new();
    for number in 0..CRASHES {
        let marker = format!("crash-{service}-{number}");
        let key = create_scripted_ticket(world, &marker, |_| {
            let mut script = run_steps(12);
            script.push(fixture::nothing_to_do());
            script
        });
        let marker = format!("({marker})");
        world.ask_for_work(&key)?;
        wait_for("work", world.model.answered(), || {
            world.model.marker_count(&marker) >= 5
        })
        .await?;
        find_running_processes(world)?.kill(service).await?;
        let (start, before) = (Instant::now(), world.model.marker_count(&marker));
        find_running_processes(world)?.restart(service).await?;
        let again = wait_for("work after the crash", world.model.answered(), || {
            world.model.marker_count(&marker) > before
        });
        samples.push(again.await? - start);
        wait_for_end(world, &key, no_change).await?;
    }
    world.model.set_latency(Duration::ZERO);
    samples.sort_unstable();
    Ok(samples[CRASHES / 2])
}

fn find_running_processes(world: &mut TestWorld) -> anyhow::Result<&mut ReplicaProcesses> {
    world
        .processes()
        .context("the services are not separate processes")
}

/// Prints memory and CPU of one planner with 1,000 parked and 200 active runs.
async fn measure_many_runs(world: &mut TestWorld) -> anyhow::Result<()> {
    let services = ServiceProcesses::of(world)?;
    world.github.set_recording(false);
    world.jira.set_recording(false);
    world.model.set_recording(false);
    print_figure("planner_memory_empty", services.memory_of("planner")?, "MiB");
    // Garbled model replies fail each run's turn, so every run parks with a backoff (`RETRY_BASE_MS` is 15
    // minutes).
    world.model.garble_next(u32::MAX);
    let start = Instant::now();
    for number in 0..PARKED {
        let key = create_scripted_ticket(world, &format!("parked-{number}"), |_| {
            vec![fixture::nothing_to_do()]
        });
        world.ask_for_work(&key)?;
    }
    let rows = world
        .queue()
        .await?
        .table::<domain::TicketRow>(queue::KeyValueBucket::Tickets);
    loop {
        let parked = rows
            .list()
            .await?
            .iter()
            .filter(|(_, row)| row.due.is_some())
            .count();
        if parked >= PARKED {
            break;
        }
        ensure!(
            start.elapsed() < PATIENCE,
            "only {parked} of {PARKED} runs parked"
        );
        sleep(Duration::from_secs(1)).await;
    }
    print_figure("parked_1000_wall", start.elapsed().as_secs_f64(), "s");
    measure_planner(&services, "parked_1000").await?;
    // The parked runs stay parked for 15 minutes, while new runs get real replies.
    world.model.garble_next(0);
    world.model.set_latency(THOUGHT);
    for number in 0..ACTIVE {
        let key = create_scripted_ticket(world, &format!("active-{number}"), |_| {
            let mut script = run_steps(200);
            script.push(fixture::nothing_to_do());
            script
        });
        world.ask_for_work(&key)?;
    }
    let before = world.model.call_count();
    // After two calls per run, every run is in its second turn.
    wait_for("every run at work", world.model.answered(), || {
        world.model.call_count() >= before + 2 * ACTIVE
    })
    .await?;
    let turns = world.model.call_count();
    measure_planner(&services, "parked_1000_active_200").await?;
    print_figure(
        "turns_of_200_active",
        (world.model.call_count() - turns) as f64 / WATCHED.as_secs_f64(),
        "per_second",
    );
    Ok(())
}

/// Prints the planner's memory and its share of a CPU core.
async fn measure_planner(services: &ServiceProcesses, name: &str) -> anyhow::Result<()> {
    let before = services.cpu_of("planner")?;
    sleep(WATCHED).await;
    let cpu = (services.cpu_of("planner")? - before) / WATCHED.as_secs_f64();
    print_figure(
        &format!("planner_memory_{name}"),
        services.memory_of("planner")?,
        "MiB",
    );
    print_figure(&format!("planner_cpu_{name}"), cpu * 100.0, "percent_of_a_core");
    Ok(())
}
