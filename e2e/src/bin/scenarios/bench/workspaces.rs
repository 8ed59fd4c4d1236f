//! Cost of workspaces: opening, many at once, and work in one of them while others are busy.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, ensure};
use e2e::{Options, ServiceMode, TestWorld};
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

/// Repository of generated files.
struct SizedRepository {
    /// Suffix of the figures.
    name: &'static str,
    repository: &'static str,
    files: usize,
}

const MIDDLE: SizedRepository = SizedRepository {
    name: "600",
    repository: "acme/middle",
    files: 600,
};
const LARGE: [SizedRepository; 2] = [
    SizedRepository {
        name: "20000",
        repository: "acme/large",
        files: 20_000,
    },
    SizedRepository {
        name: "100000",
        repository: "acme/huge",
        files: 100_000,
    },
];
const WARM_OPENS: usize = 5;
/// Calls of each tool in a large workspace.
const LARGE_CALLS: usize = 10;
/// Size of an incompressible file in a snapshot, and the number of snapshots with a new one.
const LARGE_FILE_BYTES: usize = 60_000_000;
const LARGE_SNAPSHOTS: usize = 3;
/// Limit of a snapshot's pack in the world of the large workspaces, in MiB.
const SNAPSHOT_MIB: &str = "128";
/// File that the edits change, and its first line.
const EDITED: &str = "edited.py";
/// Number of workspaces opened at once, and number of those that run commands at once.
const OPENS: usize = 50;
const BUSY: usize = 32;
const COMMANDS_EACH: usize = 10;
const READS: usize = 300;
const YES: &str = "timeout 3 yes; true";
const SAMPLE: Duration = Duration::from_millis(50);
/// Interval between two reads of the executor's CPU time, CPU seconds per interval below which it counts as idle,
/// and time limit of that wait.
const IDLE_INTERVAL: Duration = Duration::from_millis(300);
const IDLE_CPU_S: f64 = 0.03;
const IDLE_WITHIN: Duration = Duration::from_secs(20);

/// Slots of the executor that this part needs.
pub(crate) const SLOTS: usize = OPENS + 6;

/// Prints all figures with their floors.
pub(crate) async fn measure_workspaces(
    world: &TestWorld,
    services: &ServiceProcesses,
    signer: Arc<GrantSigner>,
) -> anyhow::Result<()> {
    let bench = Box::pin(measure_opens(world, services, &signer, &MIDDLE)).await?;
    bench.close().await?;
    let benches = Box::pin(opens_at_once(world, &signer)).await?;
    Box::pin(work_at_once(services, &benches[..BUSY])).await?;
    for bench in &benches {
        bench.close().await?;
    }
    Ok(())
}

/// Prints the figures of repositories with 20,000 and 100,000 files, in a world of their own.
pub(crate) async fn measure_large_workspaces() -> anyhow::Result<()> {
    let keys = Arc::new(BenchCaller::keys()?);
    let mut options = build_bench_options(&keys, LARGE.len() + 2);
    let limit = ("EXECUTOR__SNAPSHOT_MIB", SNAPSHOT_MIB.to_owned());
    options.settings.push(limit);
    let mut world = Box::pin(TestWorld::start(options)).await?;
    world.github.set_recording(false);
    let services = ServiceProcesses::of(&mut world)?;
    for sized in &LARGE {
        let bench = Box::pin(measure_opens(&world, &services, &keys, sized)).await?;
        measure_calls(&world, &bench, sized).await?;
        if sized.name == LARGE[0].name {
            measure_large_snapshots(&bench).await?;
        }
        bench.close().await?;
    }
    world.stop().await
}

/// Builds the options of a world whose executor and gate accept the bench's grants.
pub(crate) fn build_bench_options(keys: &GrantSigner, slots: usize) -> Options {
    let (_, public_key) = keys.public_key();
    Options {
        mode: ServiceMode::Processes,
        settings: vec![
            ("EXECUTOR__SLOTS", slots.to_string()),
            ("EXECUTOR__GRANT_KEYS__BENCH", public_key.clone()),
            ("REPORTER__GRANT_KEYS__BENCH", public_key),
        ],
        ..Options::default()
    }
}

/// Prints the first opening of a repository, later openings, and a search in it. Returns the open workspace.
async fn measure_opens(
    world: &TestWorld,
    services: &ServiceProcesses,
    signer: &Arc<GrantSigner>,
    sized: &SizedRepository,
) -> anyhow::Result<BenchCaller> {
    let SizedRepository {
        name,
        repository,
        files,
    } = sized;
    let files: Vec<(String, String)> = (0..*files).map(generate_source_file).collect();
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
    measure_clone(&mirror, "--shared", &format!("floor_clone_shared_{name}")).await?;
    let mut warm = DurationSamples::default();
    for _ in 0..WARM_OPENS {
        bench.close().await?;
        wait_until_idle(services).await?;
        let start = Instant::now();
        bench.open().await?;
        warm.add(start.elapsed());
    }
    warm.print(&format!("open_warm_{name}"));
    // After an opening the executor prepares the next checkout and the index, which would distort the searches and
    // their floor.
    wait_until_idle(services).await?;
    measure_search(world, &bench, sized).await?;
    Ok(bench)
}

/// Prints commands, edits and commits in a large workspace with their floors: bash, a write of the file, and
/// `git commit` in a clone of the same repository.
async fn measure_calls(
    world: &TestWorld,
    bench: &BenchCaller,
    sized: &SizedRepository,
) -> anyhow::Result<()> {
    let name = sized.name;
    let nothing = json!({"command": "true"});
    DurationSamples::sequential(LARGE_CALLS, |number| {
        bench.call(100 + number as u64, "run_command", &nothing)
    })
    .await?
    .print(&format!("tool_run_command_true_{name}"));
    let tree = find_tree(world, sized)?;
    DurationSamples::sequential(LARGE_CALLS, async |_| {
        run_in(&tree, "bash", &["-c", "true"]).await
    })
    .await?
    .print(&format!("floor_bash_true_{name}"));

    let branch = json!({"branch_name": "feat/bench"});
    bench.call(200, "create_branch", &branch).await?;
    let write = json!({"path": EDITED, "content": "value = 0\n"});
    bench.call(201, "write_file", &write).await?;
    let (mut edits, mut commits) = (DurationSamples::default(), DurationSamples::default());
    for number in 0..LARGE_CALLS as u64 {
        let start = Instant::now();
        bench.call(300 + number, "edit_file", &build_edit(number)).await?;
        edits.add(start.elapsed());
        let message = json!({"message": format!("Change {number}")});
        let start = Instant::now();
        bench.call(400 + number, "commit_changes", &message).await?;
        commits.add(start.elapsed());
    }
    edits.print(&format!("tool_edit_file_{name}"));
    commits.print(&format!("tool_commit_changes_{name}"));
    measure_commit_floor(&find_mirror_url(world, sized.repository)?, name).await
}

fn build_edit(number: u64) -> Value {
    let next = number + 1;
    let edits = format!("<<<<<<< SEARCH\nvalue = {number}\n=======\nvalue = {next}\n>>>>>>> REPLACE");
    json!({"path": EDITED, "edits": edits})
}

/// Prints the floors of an edit and of a commit: the file written, then `git add` and `git commit`.
async fn measure_commit_floor(mirror: &str, name: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let checkout = folder.path().join("checkout");
    let checkout_name = checkout.to_str().context("the folder's name is not UTF-8")?;
    run_in(
        folder.path(),
        "git",
        &["clone", "--quiet", "--shared", mirror, checkout_name],
    )
    .await?;
    let (mut writes, mut commits) = (DurationSamples::default(), DurationSamples::default());
    for number in 0..LARGE_CALLS {
        let start = Instant::now();
        tokio::fs::write(checkout.join(EDITED), format!("value = {number}\n")).await?;
        writes.add(start.elapsed());
        let message = format!("Change {number}");
        let start = Instant::now();
        run_in(&checkout, "git", &["add", "--all"]).await?;
        let commit = ["commit", "--quiet", "--message", &message];
        let author = ["-c", "user.name=A", "-c", "user.email=a@b.example"];
        run_in(&checkout, "git", &[&author[..], &commit].concat()).await?;
        commits.add(start.elapsed());
    }
    writes.print(&format!("floor_write_file_{name}"));
    commits.print(&format!("floor_git_commit_{name}"));
    Ok(())
}

/// Prints snapshots of one large file and their floor, `git add` of such a file.
async fn measure_large_snapshots(bench: &BenchCaller) -> anyhow::Result<()> {
    let script = |name: &str| format!("head -c {LARGE_FILE_BYTES} /dev/urandom > {name}");
    let mut snapshots = DurationSamples::default();
    for number in 0..LARGE_SNAPSHOTS as u64 {
        let write = json!({"command": script("large.bin")});
        bench.call(500 + number, "run_command", &write).await?;
        let start = Instant::now();
        let bytes = bench.snapshot().await?;
        snapshots.add(start.elapsed());
        ensure!(bytes > LARGE_FILE_BYTES, "a snapshot of {bytes} bytes");
    }
    snapshots.print("snapshot_60MB");
    let folder = tempfile::tempdir()?;
    run_in(folder.path(), "git", &["init", "--quiet"]).await?;
    let mut floor = DurationSamples::default();
    for _ in 0..LARGE_SNAPSHOTS {
        run_in(folder.path(), "sh", &["-c", &script("large.bin")]).await?;
        let start = Instant::now();
        run_in(folder.path(), "git", &["add", "--all"]).await?;
        floor.add(start.elapsed());
    }
    floor.print("floor_git_add_60MB");
    Ok(())
}

async fn run_in(folder: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .await?;
    ensure!(status.success(), "{program} {arguments:?}: {status}");
    Ok(())
}

/// Generates a file of 1 kB, with forty files per folder.
fn generate_source_file(number: usize) -> (String, String) {
    let line = format!("def function_{number}(value):\n    return value + {number}\n\n");
    let text = line.repeat(1000 / line.len());
    (format!("src/part_{}/file_{number}.py", number / 40), text)
}

/// Prints a search and its floor, ripgrep. Where ripgrep is missing, `grep -rn` takes its place and the remark
/// says so, because `grep` is slower than a fair floor.
async fn measure_search(
    world: &TestWorld,
    bench: &BenchCaller,
    sized: &SizedRepository,
) -> anyhow::Result<()> {
    let name = sized.name;
    let input = json!({"pattern": r"function_599\b"});
    let searches = DurationSamples::sequential(5, |number| {
        bench.call(1 + number as u64, "search_content", &input)
    });
    searches.await?.print(&format!("tool_search_content_{name}"));
    let tree = find_tree(world, sized)?;
    // ripgrep may be missing on this machine.
    let has_rg = Command::new("rg")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .await;
    let (tool, arguments) = if has_rg.is_ok() {
        ("rg", ["-n", r"function_599\b"])
    } else {
        print_line("# rg is not installed: install ripgrep for the floor of tool_search_content");
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

/// Folder of the files of the repository's first workspace.
fn find_tree(world: &TestWorld, sized: &SizedRepository) -> anyhow::Result<PathBuf> {
    let name = format!("{}.0", sized.repository.replace('/', "."));
    Ok(executor_folder(world)?.join("workspaces").join(name).join("tree"))
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

/// Waits until the executor is idle, because the preparation of its next checkout would distort the next figure.
/// Prints a remark and returns when it is busy for longer than [`IDLE_WITHIN`].
async fn wait_until_idle(services: &ServiceProcesses) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut before = services.cpu_of("executor")?;
    while start.elapsed() < IDLE_WITHIN {
        tokio::time::sleep(IDLE_INTERVAL).await;
        let now = services.cpu_of("executor")?;
        if now - before < IDLE_CPU_S {
            return Ok(());
        }
        before = now;
    }
    print_line(&format!(
        "# the executor was not idle within {} s",
        IDLE_WITHIN.as_secs()
    ));
    Ok(())
}
