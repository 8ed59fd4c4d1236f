//! Load of many readers: console pages over 10,000 runs, and 500 viewers of one run.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use api::ApiAction;
use data_encoding::HEXLOWER;
use domain::{
    DecisionVerdict, Job, RunId, RunOverview, RunStatus, RunSummary, StopReason, TicketKey, TicketRow,
    Timestamp, record_format,
};
use e2e::{ConsoleProcess, Options, ServiceMode, TestWorld};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use queue::{KeyValueBucket, RecordKey};
use reqwest::header::{COOKIE, ORIGIN, SET_COOKIE};
use ring::digest::{SHA256, digest};
use secrecy::{ExposeSecret as _, SecretString};
use testkit::ScriptStep;
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

use crate::bench::{
    measure::{DurationSamples, convert_to_milliseconds, print_figure},
    processes::ServiceProcesses,
    waiting::{wait_for, wait_for_end},
};

/// Runs in the lists; two for each ticket.
const RUNS: u64 = 10_000;
/// Number of loads of each page.
const LOADS: usize = 100;
const AT_ONCE: usize = 64;
/// Number of viewers of one run.
const VIEWERS: u32 = 500;
/// Number of streams that the API permits for one token.
const OF_ONE: u32 = 16;
/// Turns of the watched run, and the latency of each model reply.
const TURNS: usize = 50;
const REPLY: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(120);
/// A record of a run as it is stored.
const STORED: &str = include_str!("../../../../../crates/domain/tests/stored/v1/overview.jsonl");

/// Prints the figures of pages and viewers.
pub(crate) async fn measure_readers() -> anyhow::Result<()> {
    Box::pin(measure_pages()).await?;
    Box::pin(measure_viewers()).await
}

async fn measure_pages() -> anyhow::Result<()> {
    let options = Options {
        mode: ServiceMode::Processes,
        ..Options::default()
    };
    let world = Box::pin(TestWorld::start(options)).await?;
    fill_runs(&world).await?;
    let console = ConsoleProcess::start(&world.url).await?;
    // The client follows no redirect, because the login's redirect carries the cookie.
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let cookie = log_in(&client, &console.url, world.client.token()).await?;
    let pages = [
        ("needs_you", "/"),
        ("runs", "/runs"),
        ("runs_failed", "/runs?stop=failed"),
    ];
    for (name, path) in pages {
        let load = |_| async {
            let page = client
                .get(format!("{}{path}", console.url))
                .header(COOKIE, &cookie);
            let page = page.send().await?.error_for_status()?.text().await?;
            ensure!(page.contains("</html>"), "{path} is not a whole page");
            Ok(())
        };
        // The first load is slower, because the API copies the stored records into memory.
        let start = Instant::now();
        load(0).await?;
        print_figure(
            &format!("console_{name}_10000_runs_first"),
            convert_to_milliseconds(start.elapsed()),
            "ms",
        );
        let times = DurationSamples::sequential(LOADS, load).await?;
        print_figure(
            &format!("console_{name}_10000_runs_p50"),
            convert_to_milliseconds(times.median()),
            "ms",
        );
    }
    let floor = DurationSamples::sequential(LOADS, |_| async {
        world
            .client
            .runs()
            .recent(None)
            .await
            .map(drop)
            .map_err(Into::into)
    });
    print_figure(
        "floor_api_runs_10000_runs_p50",
        convert_to_milliseconds(floor.await?.median()),
        "ms",
    );
    world.stop().await
}

/// Stores rows and records of finished runs.
async fn fill_runs(world: &TestWorld) -> anyhow::Result<()> {
    let overview: RunOverview =
        record_format::decode_stored_record(STORED.lines().next().context("no record")?.as_bytes())?;
    let rows = world
        .queue_as("planner")
        .await?
        .table::<TicketRow>(KeyValueBucket::Tickets);
    let records = world.queue().await?.runs().table();
    let tickets = stream::iter(1..=RUNS / 2).map(|number| {
        let (rows, records, overview) = (rows.clone(), records.clone(), overview.clone());
        async move {
            // Numbers that the stand-in's tickets never reach.
            let ticket = TicketKey::jira(&format!("ENG-{}", 100_000 + number))?;
            let ids = [number * 2 - 1, number * 2].map(|sequence| RunId::new(ticket.clone(), sequence));
            let row = TicketRow {
                runs: ids.iter().map(|run| describe_finished_run(run.clone())).collect(),
                ..TicketRow::default()
            };
            rows.put(&ticket, &row, None).await?;
            for run in ids {
                let mut record = overview.clone();
                record.run = run.clone();
                records.put(RecordKey::run(&run), &record, None).await?;
            }
            anyhow::Ok(())
        }
    });
    tickets.buffer_unordered(AT_ONCE).try_collect().await
}

fn describe_finished_run(id: RunId) -> RunSummary {
    RunSummary {
        id,
        job: Job::Implement,
        status: RunStatus::Finished {
            reason: StopReason::Completed,
        },
        started_at: Timestamp::default(),
        finished_at: Some(Timestamp::default()),
        turns: 9,
    }
}

async fn log_in(client: &reqwest::Client, console: &str, token: &SecretString) -> anyhow::Result<String> {
    let form = [("token", token.expose_secret())];
    let request = client.post(format!("{console}/login")).header(ORIGIN, console);
    let answer = request.form(&form).send().await?;
    let cookie = answer.headers().get(SET_COOKIE).context("no session")?.to_str()?;
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

/// Prints the CPU time of ingest for a run of 50 turns without viewers and with 500 viewers, each of which
/// reads every entry.
async fn measure_viewers() -> anyhow::Result<()> {
    let tokens: Vec<SecretString> = (0..VIEWERS.div_ceil(OF_ONE))
        .map(|number| SecretString::from(format!("viewer-{number}-{:032x}", fastrand::u128(..))))
        .collect();
    let mut settings = vec![
        ("INGEST__CONNECTIONS", "2000".to_owned()),
        ("INGEST__CONNECTIONS_PER_ADDRESS", "2000".to_owned()),
    ];
    settings.extend(tokens.iter().enumerate().flat_map(|(number, token)| {
        let hash = digest(&SHA256, token.expose_secret().as_bytes());
        let sha256 = HEXLOWER.encode(hash.as_ref());
        // Setting names are `&'static str`; leaking them costs a few kilobytes until the bench ends.
        let key = |end: &str| -> &'static str { format!("INGEST__API_TOKENS__VIEWER{number}__{end}").leak() };
        [(key("SHA256"), sha256), (key("ROLE"), "viewer".to_owned())]
    }));
    let mut world = Box::pin(TestWorld::start(Options {
        mode: ServiceMode::Processes,
        settings,
        // The approval gate holds the run until all viewers are connected.
        rules: "agent:\n  approval: plan\n".to_owned(),
        ..Options::default()
    }))
    .await?;
    world.model.set_latency(REPLY);
    let services = ServiceProcesses::of(&mut world)?;
    let alone = measure_watched_run(&world, &services, &[]).await?;
    print_figure("floor_ingest_cpu_of_a_run_without_viewers", alone * 1000.0, "ms");
    let seen = measure_watched_run(&world, &services, &tokens).await?;
    print_figure("ingest_cpu_of_a_run_with_500_viewers", seen * 1000.0, "ms");
    world.stop().await
}

/// Returns the CPU seconds of ingest from the approval of a run's plan to the run's end. The tokens' viewers
/// follow the run, 500 together.
async fn measure_watched_run(
    world: &TestWorld,
    services: &ServiceProcesses,
    tokens: &[SecretString],
) -> anyhow::Result<f64> {
    let number = if tokens.is_empty() { 1 } else { 2 };
    let key = world.ask_for_note(number)?;
    world
        .model
        .set_script(&e2e::note_marker(number), build_long_script(&key));
    let run = world.run(&key, 0).await?;
    let plan = async || world.client.runs().read(&run).await.ok()?.overview?.decides_about;
    let plan = world.until("a plan", plan).await?;
    let mut viewers = connect_viewers(world, &run, tokens).await?;
    // All viewers are connected, so the figure contains no connection setup.
    let before = services.cpu_of("ingest")?;
    let approve = ApiAction::Decide {
        run: &run,
        verdict: DecisionVerdict::Approve,
        head: &plan,
        feedback: "",
    };
    let marker = e2e::note_marker(number);
    let steps = build_long_script(&key).len();
    world.client.act(approve).await?;
    // The bench reads the journal once, after the last turn: a reader of its own would be a viewer more.
    wait_for("every turn", world.model.answered(), || {
        world.model.marker_count(&marker) >= steps
    })
    .await?;
    let journal = wait_for_end(world, &key, |_| true).await?;
    let mut counts = Vec::new();
    while let Some(seen) = tokio::time::timeout(PATIENCE, viewers.join_next()).await? {
        counts.push(seen??);
    }
    let cpu = services.cpu_of("ingest")? - before;
    ensure!(
        counts.iter().all(|count| *count == journal.len()),
        "a viewer did not see all {} entries: {counts:?}",
        journal.len()
    );
    Ok(cpu)
}

/// Connects the viewers, each of which counts the entries that it reads.
async fn connect_viewers(
    world: &TestWorld,
    run: &RunId,
    tokens: &[SecretString],
) -> anyhow::Result<JoinSet<Result<usize, api::Error>>> {
    let open = Arc::new(Semaphore::new(0));
    let mut viewers = JoinSet::new();
    let each = tokens.iter().flat_map(|token| (0..OF_ONE).map(move |_| token));
    let wanted = if tokens.is_empty() { 0 } else { VIEWERS };
    for token in each.take(wanted as usize) {
        let client = api::Client::new(&world.url, token.clone())?;
        let (run, open) = (run.clone(), Arc::clone(&open));
        viewers.spawn(async move {
            let entries = client.runs().follow(&run).await?;
            open.add_permits(1);
            entries.try_fold(0_usize, async |count, _| Ok(count + 1)).await
        });
    }
    drop(tokio::time::timeout(PATIENCE, open.acquire_many(wanted)).await??);
    Ok(viewers)
}

fn build_long_script(key: &str) -> Vec<ScriptStep> {
    let commands =
        (0..TURNS).map(|_| ScriptStep::call("run_command", serde_json::json!({"command": "true"})));
    commands.chain(testkit::fixture::note_script(key)).collect()
}
