//! Cost of whole tickets.

use std::{path::Path, time::Duration};

use anyhow::{Context, ensure};
use bootstrap::now;
use domain::{Entry, StopReason};
use e2e::{World, ci};
use serde_json::{Value, json};
use testkit::{Step, fixture, model::MODEL_API_KEY};
use tokio::time::{Instant, sleep};

use crate::bench::{
    measure::{Samples, figure, ms},
    processes::Services,
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
pub(crate) fn file(world: &World, marker: &str, script: impl FnOnce(&str) -> Vec<Step>) -> String {
    let (summary, description) = fixture::ticket();
    let summary = format!("{summary} ({marker})");
    let key = world
        .jira
        .create_issue(fixture::PROJECT, &summary, description, "Bug", &[]);
    world.model.set_script(&format!("({marker})"), script(&key));
    key
}

/// Polls the stand-ins alone, so that waiting causes no load on the services.
pub(crate) async fn wait(what: &str, mut reached: impl FnMut() -> bool) -> anyhow::Result<Instant> {
    let end = Instant::now() + PATIENCE;
    while !reached() {
        ensure!(Instant::now() < end, "{what}: not seen");
        sleep(POLL).await;
    }
    Ok(Instant::now())
}

/// Waits for the end of a ticket's run and returns the last journal entry.
pub(crate) async fn ended(
    world: &World,
    key: &str,
    wanted: fn(&StopReason) -> bool,
) -> anyhow::Result<Entry> {
    let run = world.run(key, 0).await?;
    let (mut journal, reason) = world.finished(&run).await?;
    ensure!(wanted(&reason), "{run} ended with {reason:?}");
    journal.pop().context("an empty journal")
}

pub(crate) fn no_change(reason: &StopReason) -> bool {
    matches!(reason, StopReason::NoChange { .. } | StopReason::GivenUp { .. })
}

fn completed(reason: &StopReason) -> bool {
    matches!(reason, StopReason::Completed)
}

/// Prints the time from a signed webhook to the model's first call.
pub(crate) async fn first_call(world: &World) -> anyhow::Result<()> {
    let mut samples = Samples::default();
    for number in 0..=FIRST_CALLS {
        let key = file(world, &format!("first-{number}"), |_| {
            vec![fixture::nothing_to_do()]
        });
        let before = world.model.all_calls().len();
        let start = Instant::now();
        world.ask_for_work(&key)?;
        wait("the model's first call", || {
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
            figure("webhook_to_first_model_call_cold", ms(took), "ms");
        } else {
            samples.add(took);
        }
        ended(world, &key, no_change).await?;
    }
    samples.print("webhook_to_first_model_call");
    Ok(())
}

/// Prints the duration of a turn, and the part outside the model's answer and the command.
pub(crate) async fn turns(world: &World, command: Duration) -> anyhow::Result<()> {
    let (mut walls, mut overheads) = (Samples::default(), Samples::default());
    for number in 0..LONG_RUNS {
        let marker = format!("turns-{number}");
        let key = file(world, &marker, |_| {
            let mut script = run_steps(TURNS - 1);
            script.push(fixture::nothing_to_do());
            script
        });
        world.ask_for_work(&key)?;
        ended(world, &key, no_change).await?;
        let marker = format!("({marker})");
        let calls: Vec<_> = world
            .model
            .calls()
            .into_iter()
            .filter(|call| call.marker == marker)
            .collect();
        ensure!(calls.len() == TURNS, "{} turns instead of {TURNS}", calls.len());
        // 50 calls enclose 49 turns.
        let wall = calls[TURNS - 1].at.saturating_duration_since(calls[0].at) / 49;
        let model = answers(world, calls.into_iter().map(|call| call.request).collect()).await?;
        walls.add(wall);
        overheads.add(wall.saturating_sub(model + command));
        if number == 0 {
            figure("floor_model_answer", ms(model), "ms");
            figure("floor_command", ms(command), "ms");
        }
    }
    walls.print("turn_wall");
    overheads.print("turn_overhead");
    Ok(())
}

/// Sends the same requests from a bare client and returns the stand-in's mean latency.
async fn answers(world: &World, requests: Vec<Value>) -> anyhow::Result<Duration> {
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
pub(crate) fn run_steps(count: usize) -> Vec<Step> {
    let step = |number| Step::call("run_command", json!({"command": format!("{COMMAND} # {number}")}));
    (0..count).map(step).collect()
}

/// Prints the time from the webhook to the open pull request. The project's tests run twice in between.
pub(crate) async fn pull_requests(world: &World) -> anyhow::Result<()> {
    let mut samples = Samples::default();
    for number in 0..PULL_REQUESTS {
        let key = file(world, &format!("pull-{number}"), |_| fixture::script());
        let before = world.github.pull_requests(fixture::REPOSITORY).len();
        let start = Instant::now();
        world.ask_for_work(&key)?;
        let opened = wait("the pull request", || {
            world.github.pull_requests(fixture::REPOSITORY).len() > before
        });
        samples.add(opened.await? - start);
        ended(world, &key, completed).await?;
    }
    samples.print("ticket_to_pull_request");
    floor_tests().await
}

/// Prints the floor: the same two test runs without Journeyman.
async fn floor_tests() -> anyhow::Result<()> {
    let checkout = tempfile::tempdir()?;
    for (path, content) in fixture::files() {
        let file = checkout.path().join(path);
        std::fs::create_dir_all(file.parent().context("parent")?)?;
        std::fs::write(file, content)?;
    }
    let folder = checkout.path();
    let samples = Samples::sequential(5, async |_| {
        ci(folder).await?;
        ci(folder).await.map(drop)
    });
    samples.await?.print("floor_two_test_runs");
    Ok(())
}

/// Prints the cost of many concurrent tickets with 50 turns and a pull request each.
pub(crate) async fn at_once(world: &World, services: &Services, tickets: usize) -> anyhow::Result<()> {
    let keys: Vec<_> = (0..tickets)
        .map(|number| file(world, &format!("many-{number}"), |_| long_script()))
        .collect();
    let calls = world.model.call_count() + tickets * TURNS;
    let store = world.logs().join("data/nats");
    let stored = size_of(&store)?;
    let (cpu, peak, start) = (services.cpu(), services.watch_memory(), now().unix_ms());
    for key in &keys {
        world.ask_for_work(key)?;
    }
    wait("every model call", || world.model.call_count() >= calls).await?;
    let after = services.cpu();
    let peak = peak.stop().await?;
    let (mut end, mut steps) = (start, 0);
    for key in &keys {
        let last = ended(world, key, completed).await?;
        end = end.max(last.at.unix_ms());
        steps += last.position + 1;
    }
    let name = format!("tickets_{tickets}x{TURNS}");
    let wall = (end - start) as f64 / 1000.0;
    figure(&format!("{name}_wall"), wall, "s");
    figure("durable_steps", steps as f64 / wall, "per_second");
    let stored = (size_of(&store)? - stored) / tickets as f64;
    figure("storage_1000_runs", stored * 1000.0 / MIB, "MiB");
    figure(
        &format!("{name}_cpu_services"),
        after.services - cpu.services,
        "s",
    );
    figure(
        &format!("{name}_cpu_nats_redis"),
        after.servers - cpu.servers,
        "s",
    );
    figure(&format!("{name}_peak_memory_services"), peak, "MiB");
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
fn long_script() -> Vec<Step> {
    let kept = fixture::script()
        .into_iter()
        .filter(|step| !tests(step))
        .collect::<Vec<_>>();
    let mut script = run_steps(TURNS - kept.len());
    // The preceding steps differ from the fixture's, so its expectations do not hold.
    script.extend(kept.into_iter().map(|step| Step { expect: None, ..step }));
    script
}

/// True if the step runs the project's tests, whose duration would distort the figure.
fn tests(step: &Step) -> bool {
    let is_test = |(_, input): &(String, Value)| input["command"] == fixture::TEST_COMMAND;
    step.calls.iter().any(is_test)
}
