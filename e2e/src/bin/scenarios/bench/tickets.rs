//! Cost of whole tickets.

use std::{path::Path, time::Duration};

use anyhow::{Context, ensure};
use bootstrap::read_wall_clock;
use domain::{JournalEntry, StopReason};
use e2e::{TestWorld, run_ci_tests};
use serde_json::{Value, json};
use testkit::{ScriptStep, fixture, model::MODEL_API_KEY};
use tokio::time::{Instant, sleep};

use crate::bench::{
    measure::{DurationSamples, compute_mean_interval, convert_to_milliseconds, print_figure},
    processes::ServiceProcesses,
};

/// Command of each turn; it prints half a kilobyte.
pub(crate) const COMMAND: &str = "sed -n 1,20p shop/cart.py";
const FIRST_CALLS: usize = 20;
const PULL_REQUESTS: usize = 10;
const LONG_RUNS: usize = 3;
const TURNS: usize = 50;
const MIB: f64 = 1024.0 * 1024.0;
const POLL: Duration = Duration::from_millis(1);
// Far above the duration of any step here.
const PATIENCE: Duration = Duration::from_secs(120);

/// Creates a ticket with its own script, without a request for work.
pub(crate) fn create_scripted_ticket(
    world: &TestWorld,
    marker: &str,
    script: impl FnOnce(&str) -> Vec<ScriptStep>,
) -> String {
    let (summary, description) = fixture::describe_shop_ticket();
    let summary = format!("{summary} ({marker})");
    let key = world
        .jira
        .create_issue(fixture::PROJECT, &summary, description, "Bug", &[]);
    world.model.set_script(&format!("({marker})"), script(&key));
    key
}

/// Polls the stand-ins alone, so that waiting causes no load on the services.
pub(crate) async fn wait_for(what: &str, mut reached: impl FnMut() -> bool) -> anyhow::Result<Instant> {
    let end = Instant::now() + PATIENCE;
    while !reached() {
        ensure!(Instant::now() < end, "{what}: not seen");
        sleep(POLL).await;
    }
    Ok(Instant::now())
}

/// Waits for the end of a ticket's run and returns the last journal entry.
pub(crate) async fn wait_for_end(
    world: &TestWorld,
    key: &str,
    wanted: fn(&StopReason) -> bool,
) -> anyhow::Result<JournalEntry> {
    let run = world.run(key, 0).await?;
    let (mut journal, reason) = world.finished(&run).await?;
    ensure!(wanted(&reason), "{run} ended with {reason:?}");
    journal.pop().context("an empty journal")
}

pub(crate) fn no_change(reason: &StopReason) -> bool {
    matches!(reason, StopReason::NoChange { .. } | StopReason::GivenUp { .. })
}

fn is_completed(reason: &StopReason) -> bool {
    matches!(reason, StopReason::Completed)
}

/// Prints the time from a signed webhook to the model's first call.
pub(crate) async fn first_call(world: &TestWorld) -> anyhow::Result<()> {
    let mut samples = DurationSamples::default();
    for number in 0..=FIRST_CALLS {
        let key = create_scripted_ticket(world, &format!("first-{number}"), |_| {
            vec![fixture::nothing_to_do()]
        });
        let before = world.model.all_calls().len();
        let start = Instant::now();
        world.ask_for_work(&key)?;
        wait_for("the model's first call", || {
            world.model.all_calls().len() > before
        })
        .await?;
        let calls = world.model.all_calls();
        let took = calls
            .get(before)
            .context("no call")?
            .at
            .saturating_duration_since(start);
        if number == 0 {
            print_figure(
                "webhook_to_first_model_call_cold",
                convert_to_milliseconds(took),
                "ms",
            );
        } else {
            samples.add(took);
        }
        wait_for_end(world, &key, no_change).await?;
    }
    samples.print("webhook_to_first_model_call");
    Ok(())
}

/// Prints the duration of a turn, and the part outside the model's answer and the command.
pub(crate) async fn measure_turns(world: &TestWorld, command: Duration) -> anyhow::Result<()> {
    let (mut walls, mut overheads) = (DurationSamples::default(), DurationSamples::default());
    for number in 0..LONG_RUNS {
        let marker = format!("turns-{number}");
        let key = create_scripted_ticket(world, &marker, |_| {
            let mut script = run_steps(TURNS - 1);
            script.push(fixture::nothing_to_do());
            script
        });
        world.ask_for_work(&key)?;
        wait_for_end(world, &key, no_change).await?;
        let marker = format!("({marker})");
        let calls: Vec<_> = world
            .model
            .calls()
            .into_iter()
            .filter(|call| call.marker == marker)
            .collect();
        ensure!(calls.len() == TURNS, "{} turns instead of {TURNS}", calls.len());
        let moments: Vec<Instant> = calls.iter().map(|call| call.at).collect();
        let wall = compute_mean_interval(&moments);
        let model = time_model_answers(world, calls.into_iter().map(|call| call.request).collect()).await?;
        walls.add(wall);
        overheads.add(wall.saturating_sub(model + command));
        if number == 0 {
            print_figure("floor_model_answer", convert_to_milliseconds(model), "ms");
            print_figure("floor_command", convert_to_milliseconds(command), "ms");
        }
    }
    walls.print("turn_wall");
    overheads.print("turn_overhead");
    Ok(())
}

/// Sends the same requests from a bare client and returns the stand-in's mean latency.
async fn time_model_answers(world: &TestWorld, requests: Vec<Value>) -> anyhow::Result<Duration> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("{}/v1/messages", world.model.url());
    let count = u32::try_from(requests.len())?;
    let bodies: Vec<String> = requests.iter().map(Value::to_string).collect();
    let start = Instant::now();
    for body in bodies {
        let request = client
            .post(&url)
            .header("content-type", "application/json")
            .header("x-api-key", MODEL_API_KEY)
            .header("anthropic-version", "2023-06-01")
            .body(body);
        request.send().await?.error_for_status()?.bytes().await?;
    }
    Ok(start.elapsed() / count)
}

/// Builds `count` turns with one command each. Each command is different, because the planner stops a model
/// that repeats itself.
pub(crate) fn run_steps(count: usize) -> Vec<ScriptStep> {
    let step = |number| ScriptStep::call("run_command", json!({"command": format!("{COMMAND} # {number}")}));
    (0..count).map(step).collect()
}

/// Prints the time from the webhook to the open pull request. The project's tests run twice in between.
pub(crate) async fn pull_requests(world: &TestWorld) -> anyhow::Result<()> {
    let mut samples = DurationSamples::default();
    for number in 0..PULL_REQUESTS {
        let key = create_scripted_ticket(world, &format!("pull-{number}"), |_| fixture::build_shop_script());
        let before = world.github.pull_requests(fixture::REPOSITORY).len();
        let start = Instant::now();
        world.ask_for_work(&key)?;
        let opened = wait_for("the pull request", || {
            world.github.pull_requests(fixture::REPOSITORY).len() > before
        });
        samples.add(opened.await? - start);
        wait_for_end(world, &key, is_completed).await?;
    }
    samples.print("ticket_to_pull_request");
    floor_tests().await
}

/// Prints the floor: the same two test runs without Journeyman.
async fn floor_tests() -> anyhow::Result<()> {
    let checkout = tempfile::tempdir()?;
    for (path, content) in fixture::list_shop_files() {
        let file = checkout.path().join(path);
        std::fs::create_dir_all(file.parent().context("parent")?)?;
        std::fs::write(file, content)?;
    }
    let folder = checkout.path();
    let samples = DurationSamples::sequential(5, async |_| {
        run_ci_tests(folder).await?;
        run_ci_tests(folder).await.map(drop)
    });
    samples.await?.print("floor_two_test_runs");
    Ok(())
}

/// Prints the cost of many concurrent tickets with 50 turns and a pull request each.
pub(crate) async fn at_once(
    world: &TestWorld,
    services: &ServiceProcesses,
    tickets: usize,
) -> anyhow::Result<()> {
    let keys: Vec<_> = (0..tickets)
        .map(|number| create_scripted_ticket(world, &format!("many-{number}"), |_| long_script()))
        .collect();
    let calls = world.model.call_count() + tickets * TURNS;
    let store = world.logs().join("data/nats");
    let stored = size_of(&store)?;
    let (cpu, peak, start) = (
        services.cpu(),
        services.watch_memory(),
        read_wall_clock().unix_ms(),
    );
    for key in &keys {
        world.ask_for_work(key)?;
    }
    wait_for("every model call", || world.model.call_count() >= calls).await?;
    let after = services.cpu();
    let peak = peak.stop().await?;
    let (mut end, mut steps) = (start, 0);
    for key in &keys {
        let last = wait_for_end(world, key, is_completed).await?;
        end = end.max(last.at.unix_ms());
        steps += last.position + 1;
    }
    let name = format!("tickets_{tickets}x{TURNS}");
    let wall = (end - start) as f64 / 1000.0;
    print_figure(&format!("{name}_wall"), wall, "s");
    print_figure("durable_steps", steps as f64 / wall, "per_second");
    let stored = (size_of(&store)? - stored) / tickets as f64;
    print_figure("storage_1000_runs", stored * 1000.0 / MIB, "MiB");
    print_figure(
        &format!("{name}_cpu_services"),
        after.services - cpu.services,
        "s",
    );
    print_figure(
        &format!("{name}_cpu_nats_redis"),
        after.servers - cpu.servers,
        "s",
    );
    print_figure(&format!("{name}_peak_memory_services"), peak, "MiB");
    Ok(())
}

/// Sums the bytes of a folder.
fn size_of(folder: &Path) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // The server may remove a file while it compacts the store.
        let Ok(metadata) = entry.metadata() else { continue };
        sum += if metadata.is_dir() {
            size_of(&entry.path())?
        } else {
            metadata.len() as f64
        };
    }
    Ok(sum)
}

/// Builds a script of 50 turns: the fixture's change after many reads of the file.
fn long_script() -> Vec<ScriptStep> {
    let kept = fixture::build_shop_script()
        .into_iter()
        .filter(|step| !is_test_step(step))
        .collect::<Vec<_>>();
    let mut script = run_steps(TURNS - kept.len());
    // The preceding steps differ from the fixture's, so its expectations do not hold.
    script.extend(kept.into_iter().map(|step| ScriptStep { expect: None, ..step }));
    script
}

/// True if the step runs the project's tests, whose duration would distort the figure.
fn is_test_step(step: &ScriptStep) -> bool {
    let is_test = |(_, input): &(String, Value)| input["command"] == fixture::TEST_COMMAND;
    step.calls.iter().any(is_test)
}
