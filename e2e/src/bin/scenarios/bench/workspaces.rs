//! Cost of workspaces: opening, many at once, and work in one of them while others are busy.

use std::{path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use e2e::TestWorld;
use futures::future::try_join_all;
use grant::GrantSigner;
use serde_json::{Value, json};
use testkit::fixture;
use tokio::{process::Command, time::Instant};

use crate::bench::{
    measure::{DurationSamples, convert_to_milliseconds, print_figure},
    processes::ServiceProcesses,
    tools::{BenchCaller, FILE, ten_kilobytes},
};
use crate::output::print_line;

/// Repositories: name of the figure, repository, number of files.
const SIZES: [(&str, &str, usize); 2] = [("600", "acme/middle", 600), ("20000", "acme/large", 20_000)];
const WARM_OPENS: usize = 5;
/// Number of workspaces opened at once, and number of those that run commands at once.
const OPENS: usize = 50;
const BUSY: usize = 32;
const COMMANDS_EACH: usize = 10;
const READS: usize = 300;
const YES: &str = "timeout 3 yes; true";
const SAMPLE: Duration = Duration::from_millis(50);
// CPU seconds per interval below which the executor counts as idle.
const REST: f64 = 0.03;

/// Slots of the executor that this part needs.
pub(crate) const SLOTS: usize = OPENS + 6;

/// Prints all figures with their floors.
pub(crate) async fn measure_workspaces(
    world: &TestWorld,
    services: &ServiceProcesses,
    signer: Arc<GrantSigner>,
) -> anyhow::Result<()> {
    for (name, repository, files) in SIZES {
        Box::pin(measure_opens(world, services, &signer, (name, repository, files))).await?;
    }
    let benches = Box::pin(opens_at_once(world, &signer)).await?;
    Box::pin(work_at_once(services, &benches[..BUSY])).await?;
    for bench in &benches {
        bench.close().await?;
    }
    Ok(())
}

/// Prints the first opening of a repository, later openings, and a search in it.
async fn measure_opens(
    world: &TestWorld,
    services: &ServiceProcesses,
    signer: &Arc<GrantSigner>,
    (name, repository, count): (&str, &str, usize),
) -> anyhow::Result<()> {
    let files: Vec<(String, String)> = (0..count).map(generate_source_file).collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    world.github.create_repository(repository, &files)?;
    let mut bench = Box::pin(BenchCaller::connect(world, signer, repository, 8000)).await?;
    let gate = Instant::now();
    bench.warm_gate().await?;
    print_figure(
        &format!("gate_first_fetch_{name}"),
        convert_to_milliseconds(gate.elapsed()),
        "ms",
    );
    let cold = Instant::now();
    bench.open().await?;
    print_figure(
        &format!("open_cold_{name}"),
        convert_to_milliseconds(cold.elapsed()),
        "ms",
    );
    let mirror = find_mirror_url(world, repository)?;
    measure_clone(&mirror, "--depth=1", &format!("floor_clone_depth_1_{name}")).await?;
    let mut warm = DurationSamples::default();
    for _ in 0..WARM_OPENS {
        bench.close().await?;
        wait_for_rest(services).await?;
        let start = Instant::now();
        bench.open().await?;
        warm.add(start.elapsed());
    }
    warm.print(&format!("open_warm_{name}"));
    measure_search(world, &bench, name, repository).await?;
    bench.close().await
}

/// Generates a file of 1 kB, with forty files per folder.
fn generate_source_file(number: usize) -> (String, String) {
    let line = format!("def function_{number}(value):\n    return value + {number}\n\n");
    let text = line.repeat(1000 / line.len());
    (format!("src/part_{}/file_{number}.py", number / 40), text)
}

async fn measure_search(
    world: &TestWorld,
    bench: &BenchCaller,
    name: &str,
    repository: &str,
) -> anyhow::Result<()> {
    let input = json!({"pattern": r"function_599\b"});
    let searches = DurationSamples::sequential(5, |number| {
        bench.call(1 + number as u64, "search_content", &input)
    });
    searches.await?.print(&format!("tool_search_content_{name}"));
    let folder = executor_folder(world)?.join("workspaces");
    let tree = folder
        .join(format!("{}.0", repository.replace('/', ".")))
        .join("tree");
    // ripgrep may be missing on this machine.
    let has_rg = Command::new("rg")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .await;
    let (tool, arguments) = if has_rg.is_ok() {
        ("rg", ["-n", r"function_599\b"])
    } else {
        ("grep", ["-rn", r"function_599\b"])
    };
    let floor = DurationSamples::sequential(5, async |_| {
        let mut command = Command::new(tool);
        command.args(arguments).arg(&tree).stdout(Stdio::null());
        let status = command.status().await?;
        ensure!(status.success(), "{tool}: {status}");
        Ok(())
    });
    floor.await?.print(&format!("floor_{tool}_{name}"));
    Ok(())
}

async fn opens_at_once(world: &TestWorld, signer: &Arc<GrantSigner>) -> anyhow::Result<Vec<BenchCaller>> {
    let numbers = 8100..8100 + OPENS as u64;
    let connected = numbers.map(|number| BenchCaller::connect(world, signer, fixture::REPOSITORY, number));
    let mut benches = Box::pin(try_join_all(connected)).await?;
    let start = Instant::now();
    let opened = benches.iter_mut().map(async |bench| {
        bench.open().await?;
        anyhow::Ok(start.elapsed())
    });
    let mut each = DurationSamples::default();
    for time in Box::pin(try_join_all(opened)).await? {
        each.add(time);
    }
    print_figure(
        &format!("opens_c{OPENS}_wall"),
        convert_to_milliseconds(start.elapsed()),
        "ms",
    );
    each.print(&format!("opens_c{OPENS}"));
    let mirror = find_mirror_url(world, fixture::REPOSITORY)?;
    let start = Instant::now();
    let clones = (0..OPENS).map(|_| clone_to_nowhere(&mirror, "--shared"));
    try_join_all(clones).await?;
    print_figure(
        &format!("floor_clone_shared_c{OPENS}_wall"),
        convert_to_milliseconds(start.elapsed()),
        "ms",
    );
    Ok(benches)
}

async fn work_at_once(services: &ServiceProcesses, benches: &[BenchCaller]) -> anyhow::Result<()> {
    let nothing = json!({"command": "true"});
    let start = Instant::now();
    try_join_all(benches.iter().map(|bench| repeat_call(bench, 100, &nothing))).await?;
    print_rate("commands", start);
    let start = Instant::now();
    try_join_all((0..BUSY).map(|_| spawn_shells())).await?;
    print_rate("floor_sh_true", start);

    let first = benches.first().context("a workspace")?;
    let before = services.memory_of("executor")?;
    let mut peak = before;
    let yes = json!({"command": YES});
    let mut running = Box::pin(first.call(200, "run_command", &yes));
    loop {
        tokio::select! {
            done = &mut running => break done?,
            () = tokio::time::sleep(SAMPLE) => peak = peak.max(services.memory_of("executor")?),
        }
    }
    print_figure("executor_memory_before_yes_3s", before, "MiB");
    print_figure("executor_memory_peak_of_yes_3s", peak, "MiB");

    let (reader, others) = benches.split_last().context("a workspace")?;
    let write = json!({"path": FILE, "content": ten_kilobytes()});
    reader.call(300, "write_file", &write).await?;
    let sleep = json!({"command": "sleep 6"});
    let busy = try_join_all(others.iter().map(|bench| bench.call(301, "run_command", &sleep)));
    let reads = async {
        // The commands have started by then.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let read = json!({"path": FILE});
        DurationSamples::sequential(READS, |number| {
            reader.call(1000 + number as u64, "read_file", &read)
        })
        .await
    };
    let (busy, reads) = tokio::join!(busy, reads);
    busy?;
    reads?.print(&format!("tool_read_file_10kB_beside_{}_commands", others.len()));
    Ok(())
}

fn print_rate(name: &str, start: Instant) {
    let rate = (BUSY * COMMANDS_EACH) as f64 / start.elapsed().as_secs_f64();
    print_figure(&format!("{name}_c{BUSY}"), rate, "per_second");
}

async fn repeat_call(bench: &BenchCaller, from: u64, input: &Value) -> anyhow::Result<()> {
    for number in 0..COMMANDS_EACH as u64 {
        bench.call(from + number, "run_command", input).await?;
    }
    Ok(())
}

async fn spawn_shells() -> anyhow::Result<()> {
    for _ in 0..COMMANDS_EACH {
        let status = Command::new("sh").args(["-c", "true"]).status().await?;
        ensure!(status.success(), "sh -c true: {status}");
    }
    Ok(())
}

async fn measure_clone(mirror: &str, how: &str, name: &str) -> anyhow::Result<()> {
    let clones = DurationSamples::sequential(3, |_| clone_to_nowhere(mirror, how));
    clones.await?.print(name);
    Ok(())
}

async fn clone_to_nowhere(mirror: &str, how: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new("git");
    command.args(["clone", "--quiet", how, mirror]).arg(folder.path());
    let status = command.stdin(Stdio::null()).status().await?;
    ensure!(status.success(), "git clone {how} {mirror}: {status}");
    Ok(())
}

/// URL of the executor's mirror as a git remote.
fn find_mirror_url(world: &TestWorld, repository: &str) -> anyhow::Result<String> {
    let path = executor_folder(world)?
        .join("mirrors")
        .join(format!("{repository}.git"));
    Ok(format!("file://{}", path.display()))
}

fn executor_folder(world: &TestWorld) -> anyhow::Result<PathBuf> {
    let folder = world.setting("EXECUTOR__DATA_DIR");
    Ok(PathBuf::from(folder.context("the executor's folder")?))
}

/// Waits at most 20 s until the executor is idle: it prepares its next checkout in the background, which
/// would distort the next opening.
async fn wait_for_rest(services: &ServiceProcesses) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut before = services.cpu_of("executor")?;
    while start.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = services.cpu_of("executor")?;
        if now - before < REST {
            return Ok(());
        }
        before = now;
    }
    print_line("# the executor did not come to rest");
    Ok(())
}
