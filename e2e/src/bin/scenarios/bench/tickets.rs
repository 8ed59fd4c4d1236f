//! Cost of single tickets.

use std::{path::Path, time::Duration};

use anyhow::{Context, ensure};
use e2e::{TestWorld, run_ci_tests};
use serde_json::json;
use testkit::{ScriptStep, fixture, model::MODEL_API_KEY};
use tokio::time::Instant;

use crate::bench::{
    measure::{DurationSamples, compute_mean_interval, convert_to_milliseconds, print_figure},
    waiting::{is_completed, no_change, wait_for, wait_for_end},
};

/// Command of each turn; it prints half a kilobyte.
pub(crate) const COMMAND: &str = "sed -n 1,20p shop/cart.py";
const FIRST_CALLS: usize = 20;
const PULL_REQUESTS: usize = 10;
const LONG_RUNS: usize = 3;
const TURNS: usize = 50;

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

/// Prints the time from a signed webhook to the model's first call.
pub(crate) async fn first_call(world: &TestWorld) -> anyhow::Result<()> {
    let mut samples = DurationSamples::default();
    for number in 0..=FIRST_CALLS {
        let key = create_scripted_ticket(world, &format!("first-{number}"), |_| {
            vec![fixture::nothing_to_do()]
        });
        let before = world.model.total_count();
        let start = Instant::now();
        world.ask_for_work(&key)?;
        wait_for("the model's first call", world.model.answered(), || {
            world.model.total_count() > before
        })
        .await?;
        let arrival = world.model.arrival(before).context("no call")?;
        let took = arrival.saturating_duration_since(start);
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
        let marker = format!("({marker})");
        world.ask_for_work(&key)?;
        // The journal is followed only after the last turn, so that its reader costs the measured turns nothing.
        wait_for("every turn", world.model.answered(), || {
            world.model.marker_count(&marker) >= TURNS
        })
        .await?;
        wait_for_end(world, &key, no_change).await?;
        let calls: Vec<_> = world
            .model
            .calls()
            .into_iter()
            .filter(|call| call.marker == marker)
            .collect();
        ensure!(calls.len() == TURNS, "{} turns instead of {TURNS}", calls.len());
        let moments: Vec<Instant> = calls.iter().map(|call| call.at).collect();
        let wall = compute_mean_interval(&moments);
        let bodies = calls.iter().map(|call| call.request.to_string()).collect();
        let model = time_model_answers(world, bodies).await?;
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
async fn time_model_answers(world: &TestWorld, bodies: Vec<String>) -> anyhow::Result<Duration> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("{}/v1/messages", world.model.url());
    let count = u32::try_from(bodies.len())?;
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

/// Prints the time from the webhook to the open pull request under the name `figure`.
pub(crate) async fn pull_requests(world: &TestWorld, figure: &str) -> anyhow::Result<()> {
    let mut samples = DurationSamples::default();
    for number in 0..PULL_REQUESTS {
        let key = create_scripted_ticket(world, &format!("pull-{number}"), |_| fixture::build_shop_script());
        let before = world.github.count_pull_requests(fixture::REPOSITORY);
        let start = Instant::now();
        world.ask_for_work(&key)?;
        let opened = wait_for("the pull request", world.github.answered(), || {
            world.github.count_pull_requests(fixture::REPOSITORY) > before
        });
        samples.add(opened.await? - start);
        wait_for_end(world, &key, is_completed).await?;
    }
    samples.print(figure);
    Ok(())
}

/// Prints the floor of a ticket: the test runs that the model requests, and those of the proof besides, without
/// Journeyman.
pub(crate) async fn floor_tests() -> anyhow::Result<()> {
    let checkout = tempfile::tempdir()?;
    write_shop_files(checkout.path())?;
    for (name, runs) in [("floor_two_test_runs", 2), ("floor_eight_test_runs", 8)] {
        let samples = DurationSamples::sequential(5, async |_| {
            for _ in 0..runs {
                run_ci_tests(checkout.path()).await?;
            }
            Ok(())
        });
        samples.await?.print(name);
    }
    Ok(())
}

/// Writes the files of the fixture's repository.
pub(crate) fn write_shop_files(folder: &Path) -> anyhow::Result<()> {
    for (path, content) in fixture::list_shop_files() {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().context("parent")?)?;
        std::fs::write(file, content)?;
    }
    Ok(())
}
