//! Cost of many tickets at once, each figure with the same work done without Journeyman.

use std::path::Path;

use anyhow::{Context as _, ensure};
use bootstrap::read_wall_clock;
use domain::{Fact, JournalEntry, RunId, TicketKey};
use e2e::{Options, ServiceMode, TestWorld, run_ci_tests};
use futures::{StreamExt as _, TryStreamExt as _, future::try_join_all, stream};
use queue::Queue;
use serde_json::Value;
use servers::NatsServer;
use testkit::{ScriptStep, fixture};
use tokio::{process::Command, time::Instant};

use crate::bench::{
    cpu::{CpuSeconds, MeasuredWorld},
    folder::create_shop_checkout,
    measure::print_figure,
    processes::ProcessTimes,
    tickets::{COMMAND, create_scripted_ticket, run_steps},
    waiting::{is_completed, no_change, wait_for, wait_for_end},
};
use crate::output::print_line;

/// Number of tickets in progress at once, and turns of each.
const AT_ONCE: usize = 20;
const TURNS: usize = 50;
/// Number of tickets that end after one turn.
const ONE_TURN: usize = 1_000;
/// Number of runs in the store whose journals are measured.
const STORED_RUNS: u64 = 1_000;
/// Journals that are read at once; the API permits 16 streams for one token.
const READERS: usize = 8;
const MIB: f64 = 1024.0 * 1024.0;
/// Rules under which no check runs.
pub(crate) const WITHOUT_CHECKS: &str = "agent:\n  checks: []\n";

/// Prints all figures of this part.
pub(crate) async fn measure_throughput() -> anyhow::Result<()> {
    let proven = Box::pin(play_at_once("tickets_20x50", "")).await?;
    print_figure("durable_steps", proven.steps as f64 / proven.wall, "per_second");
    let stored = proven.stored + Box::pin(measure_full_journals(&proven.journals)).await?;
    print_figure("storage_1000_runs", stored * STORED_RUNS as f64 / MIB, "MiB");
    let each = proven.checks / AT_ONCE;
    print_line(&format!(
        "# {} checks in {AT_ONCE} tickets; floor_20x50 runs the tests {each} times for each",
        proven.checks
    ));
    measure_floor("floor_20x50", each).await?;
    let bare = Box::pin(play_at_once("tickets_20x50_without_checks", WITHOUT_CHECKS)).await?;
    ensure!(bare.checks == 0, "{} checks ran without checks", bare.checks);
    measure_floor("floor_20x50_without_checks", 0).await?;
    Box::pin(play_one_turn()).await
}

/// Sums over the tickets that were played at once.
struct PlayedTickets {
    /// Seconds from the first request to the last end of a run.
    wall: f64,
    /// Journal entries.
    steps: u64,
    /// Checks that ran.
    checks: usize,
    /// Bytes that one ticket leaves in NATS, without its journal.
    stored: f64,
    journals: Vec<Vec<JournalEntry>>,
}

/// Plays many tickets with 50 turns and a pull request each, and prints wall, CPU and memory.
async fn play_at_once(name: &str, rules: &str) -> anyhow::Result<PlayedTickets> {
    let measured = Box::pin(MeasuredWorld::start(build_options(rules))).await?;
    let world = &measured.world;
    let keys: Vec<_> = (0..AT_ONCE)
        .map(|number| create_scripted_ticket(world, &format!("many-{number}"), |_| long_script()))
        .collect();
    let store = world.logs().join("data/nats");
    let journal_files = NatsServer::stream_files(&store, "JOURNAL");
    let stored = size_of(&store)? - size_of(&journal_files)?;
    let peak = measured.services.watch_memory();
    let (cpu, start) = (measured.start_cpu()?, read_wall_clock().unix_ms());
    for key in &keys {
        world.ask_for_work(key)?;
    }
    wait_for("every pull request", world.github.answered(), || {
        world.github.count_pull_requests(fixture::REPOSITORY) >= AT_ONCE
    })
    .await?;
    let journals = read_journals(world, &keys, is_completed).await?;
    let peak = peak.stop().await?;
    let stored = size_of(&store)? - size_of(&journal_files)? - stored;
    let played = sum_journals(journals, start, stored / AT_ONCE as f64);
    let cpu = Box::pin(measured.stop(cpu)).await?;
    print_figure(&format!("{name}_wall"), played.wall, "s");
    print_cpu(name, &cpu);
    print_figure(&format!("{name}_peak_memory_services"), peak, "MiB");
    Ok(played)
}

/// Plays tickets whose model ends the run at once, and prints wall and CPU.
async fn play_one_turn() -> anyhow::Result<()> {
    let name = "tickets_1000_one_turn";
    let measured = Box::pin(MeasuredWorld::start(build_options(""))).await?;
    let world = &measured.world;
    let keys: Vec<_> = (0..ONE_TURN)
        .map(|number| {
            create_scripted_ticket(world, &format!("one-turn-{number}"), |_| {
                vec![fixture::nothing_to_do()]
            })
        })
        .collect();
    let (cpu, start) = (measured.start_cpu()?, read_wall_clock().unix_ms());
    for key in &keys {
        world.ask_for_work(key)?;
    }
    wait_for("a turn of every ticket", world.model.answered(), || {
        world.model.call_count() >= ONE_TURN
    })
    .await?;
    let journals = read_journals(world, &keys, no_change).await?;
    let played = sum_journals(journals, start, 0.0);
    let cpu = Box::pin(measured.stop(cpu)).await?;
    print_figure(&format!("{name}_wall"), played.wall, "s");
    print_cpu(name, &cpu);
    Ok(())
}

fn build_options(rules: &str) -> Options {
    Options {
        mode: ServiceMode::Processes,
        rules: rules.to_owned(),
        // Enough for the tickets at once, and a few that are being closed.
        settings: vec![("EXECUTOR__SLOTS", (AT_ONCE + 6).to_string())],
        ..Options::default()
    }
}

fn print_cpu(name: &str, cpu: &CpuSeconds) {
    print_figure(&format!("{name}_cpu_services"), cpu.services, "s");
    print_figure(&format!("{name}_cpu_nats_redis"), cpu.servers, "s");
    print_figure(&format!("{name}_cpu_bench"), cpu.bench, "s");
    print_figure(
        &format!("{name}_share_of_bench"),
        cpu.bench_percent(),
        "percent_of_cpu",
    );
}

async fn read_journals(
    world: &TestWorld,
    keys: &[String],
    wanted: fn(&domain::StopReason) -> bool,
) -> anyhow::Result<Vec<Vec<JournalEntry>>> {
    stream::iter(keys)
        .map(|key| wait_for_end(world, key, wanted))
        .buffer_unordered(READERS)
        .try_collect()
        .await
}

fn sum_journals(journals: Vec<Vec<JournalEntry>>, start_ms: i64, stored: f64) -> PlayedTickets {
    let entries = || journals.iter().flatten();
    let end = entries()
        .map(|entry| entry.at.unix_ms())
        .max()
        .unwrap_or(start_ms);
    let is_check = |entry: &&JournalEntry| matches!(entry.fact, Fact::CheckRequested { .. });
    PlayedTickets {
        wall: (end - start_ms) as f64 / 1000.0,
        steps: entries().count() as u64,
        checks: entries().filter(is_check).count(),
        stored,
        journals,
    }
}

/// Measures the bytes of a journal in a store of [`STORED_RUNS`], with these journals repeated.
///
/// The server compresses a file of journals when it begins the next one. The few runs of the tickets fill none.
async fn measure_full_journals(journals: &[Vec<JournalEntry>]) -> anyhow::Result<f64> {
    let server = NatsServer::start().await?;
    let settings = queue::Settings {
        url: server.url(),
        ..queue::Settings::default()
    };
    let queue = Queue::connect(&settings, "bench").await?;
    queue.ensure_topology().await?;
    stream::iter(journals.iter().cycle().zip(1..=STORED_RUNS))
        .map(|(journal, number)| append_copy(&queue, journal, number))
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    let files = NatsServer::stream_files(server.data_dir(), "JOURNAL");
    Ok(size_of(&files)? / STORED_RUNS as f64)
}

/// Appends a journal as that of another run.
async fn append_copy(queue: &Queue, journal: &[JournalEntry], number: u64) -> anyhow::Result<()> {
    let run = RunId::new(TicketKey::jira(&format!("COPY-{number}"))?, 1);
    let (log, mut last) = (queue.journal(), 0);
    // As a planner appends them: request and outcome of two steps follow each other.
    for entries in journal.chunks(2) {
        let copies: Vec<JournalEntry> = entries
            .iter()
            .map(|entry| JournalEntry {
                nonce: queue::create_nonce(),
                ..entry.clone()
            })
            .collect();
        last = log.append_all(&run, last, &copies).await?;
    }
    Ok(())
}

/// Sums the bytes of a folder.
fn size_of(folder: &Path) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        // The server may remove a file while it compacts the store, and the folder of a consumer.
        let Ok(metadata) = entry.metadata() else { continue };
        sum += if metadata.is_dir() {
            size_of(&entry.path()).unwrap_or(0.0)
        } else {
            metadata.len() as f64
        };
    }
    Ok(sum)
}

/// Builds a script of 50 turns: the fixture's change after many reads of the file.
fn long_script() -> Vec<ScriptStep> {
    let kept = build_untested_script();
    let mut script = run_steps(TURNS - kept.len());
    script.extend(kept);
    script
}

/// The fixture's change without the model's own test runs, whose duration would distort a figure.
pub(crate) fn build_untested_script() -> Vec<ScriptStep> {
    let is_test = |(_, input): &(String, Value)| input["command"] == fixture::TEST_COMMAND;
    let steps = fixture::build_shop_script().into_iter();
    // The preceding steps differ from the fixture's, so its expectations do not hold.
    steps
        .filter(|step| !step.calls.iter().any(is_test))
        .map(|step| ScriptStep { expect: None, ..step })
        .collect()
}

/// Prints wall and CPU of the same work without Journeyman, for as many tickets at once: a clone, the commands,
/// the edit, the test runs of the proof, a commit and a push.
async fn measure_floor(name: &str, test_runs: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (source, forge) = (folder.path().join("source"), folder.path().join("forge.git"));
    create_shop_checkout(&source).await?;
    let of_forge = ["clone", "--quiet", "--bare", "source", "forge.git"];
    run_program(folder.path(), "git", &of_forge).await?;
    let (before, start) = (ProcessTimes::of_bench()?, Instant::now());
    let tickets = (0..AT_ONCE).map(|number| work_bare(folder.path(), &forge, number, test_runs));
    Box::pin(try_join_all(tickets)).await?;
    print_figure(&format!("{name}_wall"), start.elapsed().as_secs_f64(), "s");
    let children = ProcessTimes::of_bench()?.children - before.children;
    print_figure(&format!("{name}_cpu"), children, "s");
    Ok(())
}

async fn work_bare(folder: &Path, forge: &Path, number: usize, test_runs: usize) -> anyhow::Result<()> {
    let name = format!("ticket-{number}");
    let forge = forge.to_str().context("the folder's name is not UTF-8")?;
    run_program(folder, "git", &["clone", "--quiet", "--shared", forge, &name]).await?;
    let checkout = folder.join(&name);
    let commands = TURNS - build_untested_script().len();
    for turn in 0..commands {
        run_program(&checkout, "bash", &["-c", &format!("{COMMAND} # {turn}")]).await?;
    }
    let file = checkout.join("shop/cart.py");
    let text = tokio::fs::read_to_string(&file).await?;
    let fixed = text.replace("line.price for line", "line.price * line.quantity for line");
    ensure!(fixed != text, "the floor's edit matches nothing");
    tokio::fs::write(&file, fixed).await?;
    for _ in 0..test_runs {
        run_ci_tests(&checkout).await?;
    }
    let branch = format!("fix/{name}");
    let author = ["-c", "user.name=A", "-c", "user.email=a@b.example"];
    for arguments in [
        &["switch", "--quiet", "--create", &branch][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "Count every piece"],
        &["push", "--quiet", "origin", &branch],
    ] {
        run_program(&checkout, "git", &[&author, arguments].concat()).await?;
    }
    Ok(())
}

async fn run_program(folder: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    // A pipe for the output, as for a command of a ticket.
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .await?;
    ensure!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_script_has_its_turns_without_tests() {
        let script = long_script();
        assert_eq!(script.len(), TURNS);
        assert!(script.iter().all(|step| step.expect.is_none()));
        let text = format!("{script:?}");
        assert!(!text.contains(fixture::TEST_COMMAND), "{text}");
    }
}
