//! Cost of code search: an index of many files, an incremental update, a query, and memory.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, ensure};
use e2e::find_binary;
use serde_json::Value;
use tokio::{io::AsyncWriteExt, process::Command};

use crate::bench::measure::print_figure;
use crate::output::print_line;

/// Files of the repository, and the number of files that the second commit changes.
const FILES: usize = 50_000;
const CHANGED: usize = 100;
// Definitions per file, about 8 kB.
const DEFINITIONS: usize = 20;
const SEARCHES: u32 = 200;
const SAMPLE: Duration = Duration::from_millis(50);

/// Query in the form of a ticket's text. It names one definition of the repository.
fn write_ticket_query() -> String {
    let (number, at) = (235, 11);
    let name = name_definition(number, at);
    format!(
        "Refund of a discounted order is rounded wrongly\n\nWhen an order with several vouchers is refunded, `compute_{name}` \
         gives a cent too much. The log says: Error: rounding of currency amounts failed for customer 17. Expected: the amount \
         that was paid."
    )
}

/// Suffix of a definition's name.
fn name_definition(number: usize, at: usize) -> String {
    let (one, two) = (pick_word(number + at), pick_word(number * 3 + at * 5));
    format!("{one}_{two}_{}", (number * DEFINITIONS + at) % 90_000)
}

/// Prints all figures of code search.
pub(crate) async fn measure_retrieval() -> anyhow::Result<()> {
    let folder = tempfile::TempDir::new()?;
    let repository = folder.path().join("large.git");
    run_git(folder.path(), &["init", "--quiet", "--bare", "large.git"]).await?;
    import_stream(&repository, &first_commit()?).await?;
    let built = run_index(&repository, "first", "", 1).await?;
    print_line(&format!(
        "# {} files, {} chunks, {} MiB on the disk",
        built.number("indexed")?,
        built.number("chunks")?,
        sum_folder_bytes(&repository.join("code-index"))? >> 20
    ));
    print_figure("index_build_s", built.number("ready_ms")? / 1000.0, "s");
    print_figure("index_build_and_tidy_s", built.number("all_ms")? / 1000.0, "s");
    print_figure("index_memory_mib", built.memory, "MiB");
    import_stream(&repository, &second_commit()?).await?;
    let changed = run_index(&repository, "second", "", 1).await?;
    let new = changed.number("indexed")?;
    ensure!(
        new == CHANGED as f64,
        "{new} files were indexed instead of those that changed"
    );
    print_figure("index_100_changed_ms", changed.number("ready_ms")?, "ms");
    let searched = run_index(&repository, "second", &write_ticket_query(), SEARCHES).await?;
    ensure!(
        searched.report["found"]
            .as_array()
            .is_some_and(|found| !found.is_empty()),
        "the search found nothing"
    );
    print_figure("query_p50_ms", searched.number("query_ms")?, "ms");
    print_figure("index_memory_search_mib", searched.memory, "MiB");
    Ok(())
}

/// Report of `executor index`, and the peak anonymous memory of it and its parser in MiB.
struct IndexMeasurement {
    report: Value,
    memory: f64,
}

impl IndexMeasurement {
    fn number(&self, name: &str) -> anyhow::Result<f64> {
        self.report[name].as_f64().with_context(|| format!("no {name}"))
    }
}

async fn run_index(
    repository: &Path,
    revision: &str,
    query: &str,
    times: u32,
) -> anyhow::Result<IndexMeasurement> {
    let child = Command::new(find_binary("executor")?)
        .args([
            "index",
            "--json",
            "--revision",
            revision,
            "--times",
            &times.to_string(),
        ])
        .arg("--repository")
        .arg(repository)
        .arg(query)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let pid = child.id().context("executor index ended at once")?;
    let output = child.wait_with_output();
    tokio::pin!(output);
    let mut memory = 0.0_f64;
    let output = loop {
        tokio::select! {
            output = &mut output => break output?,
            () = tokio::time::sleep(SAMPLE) => memory = memory.max(own_memory(pid)),
        }
    };
    ensure!(output.status.success(), "executor index failed");
    let report = serde_json::from_slice(&output.stdout)?;
    Ok(IndexMeasurement { report, memory })
}

/// Returns the anonymous memory of a process and its children in MiB. Mapped pages of the index are left out,
/// because the kernel can drop them at any time.
fn own_memory(pid: u32) -> f64 {
    // `children` lists those of one thread, so the files of all threads are read.
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let others = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let mut pids: Vec<u32> = std::iter::once(children)
        .chain(others)
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .chain([pid])
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids.into_iter().filter_map(read_anonymous_memory).sum()
}

fn read_anonymous_memory(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with("RssAnon:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

fn sum_folder_bytes(folder: &Path) -> anyhow::Result<u64> {
    let (mut sum, mut queue) = (0, vec![PathBuf::from(folder)]);
    while let Some(folder) = queue.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                queue.push(entry.path());
            } else {
                sum += entry.metadata()?.len();
            }
        }
    }
    Ok(sum)
}

async fn run_git(folder: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .status()
        .await?;
    ensure!(status.success(), "git {arguments:?} failed");
    Ok(())
}

/// Feeds a stream to `git fast-import`.
async fn import_stream(repository: &Path, stream: &str) -> anyhow::Result<()> {
    let mut child = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(repository)
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = child.stdin.take().context("git has no input")?;
    input.write_all(stream.as_bytes()).await?;
    drop(input);
    ensure!(child.wait().await?.success(), "git fast-import failed");
    Ok(())
}

fn first_commit() -> anyhow::Result<String> {
    let mut stream = commit_header("first", "")?;
    for number in 0..FILES {
        append_file(&mut stream, number, "")?;
    }
    Ok(stream)
}

fn second_commit() -> anyhow::Result<String> {
    let mut stream = commit_header("second", "from refs/heads/first\n")?;
    // Every 500th file, so that the changes are spread over all folders.
    for number in (0..FILES).step_by(FILES / CHANGED) {
        append_file(&mut stream, number, "changed")?;
    }
    Ok(stream)
}

fn commit_header(branch: &str, from: &str) -> anyhow::Result<String> {
    // An empty line before the files would end the commit command.
    Ok(format!(
        "commit refs/heads/{branch}\ncommitter A <a@acme.example> 1 +0000\ndata 1\nx\n{from}"
    ))
}

fn append_file(stream: &mut String, number: usize, note: &str) -> anyhow::Result<()> {
    let (end, text) = generate_source_file(number, note);
    let text = text?;
    let path = format!(
        "part_{}/{}/{}_{number}.{end}",
        number / 2000,
        pick_word(number / 40),
        pick_word(number * 7)
    );
    writeln!(stream, "M 100644 inline {path}\ndata {}\n{text}", text.len())?;
    Ok(())
}

const WORDS: [&str; 32] = [
    "order",
    "refund",
    "voucher",
    "customer",
    "invoice",
    "shipment",
    "price",
    "tax",
    "basket",
    "payment",
    "stock",
    "supplier",
    "account",
    "session",
    "report",
    "export",
    "import",
    "schedule",
    "mail",
    "template",
    "search",
    "filter",
    "archive",
    "audit",
    "role",
    "permission",
    "webhook",
    "queue",
    "worker",
    "cache",
    "currency",
    "rounding",
];

fn pick_word(number: usize) -> &'static str {
    // Multiplicative hashing (2^32 divided by the golden ratio), so that neighboring numbers select different
    // words.
    let spread = number.wrapping_mul(2_654_435_761) >> 7;
    WORDS.get(spread % WORDS.len()).copied().unwrap_or_default()
}

/// Generates a file in one of five languages and returns its extension and text.
fn generate_source_file(number: usize, note: &str) -> (&'static str, Result<String, std::fmt::Error>) {
    let languages = ["py", "ts", "rs", "go", "java"];
    let end = languages
        .get(number % languages.len())
        .copied()
        .unwrap_or_default();
    (end, generate_source_text(number, end, note))
}

fn generate_source_text(number: usize, end: &str, note: &str) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    match end {
        "go" => writeln!(text, "package {}\n", pick_word(number))?,
        "java" => writeln!(text, "class File{number} {{\n")?,
        _ => {}
    }
    for at in 0..DEFINITIONS {
        let (one, two) = (pick_word(number + at), pick_word(number * 3 + at * 5));
        let name = name_definition(number, at);
        let other = format!("{two}_{one}_{}", (number * 31 + at * 17) % 90_000);
        let mark = if end == "py" { "#" } else { "//" };
        writeln!(
            text,
            "{mark} Computes the {two} of an {one} for a {}. {note}",
            pick_word(at + number / 9)
        )?;
        match end {
            "py" => writeln!(
                text,
                "def compute_{name}(items, rate):\n    total = {other}(items) * rate"
            )?,
            "ts" => writeln!(
                text,
                "export function compute_{name}(items: number[], rate: number) {{\n    let total = {other}(items) * rate;"
            )?,
            "rs" => writeln!(
                text,
                "fn compute_{name}(items: &[u64], rate: u64) -> u64 {{\n    let mut total = {other}(items) * rate;"
            )?,
            "go" => writeln!(
                text,
                "func compute_{name}(items []int, rate int) int {{\n    total := {other}(items) * rate"
            )?,
            _ => writeln!(
                text,
                "int compute_{name}(int[] items, int rate) {{\n    int total = {other}(items) * rate;"
            )?,
        }
        let stop = if matches!(end, "py" | "go") { "" } else { ";" };
        for line in 0..6 {
            writeln!(
                text,
                "    total = {}(total, {line}){stop}",
                pick_word(number + at * 3 + line)
            )?;
        }
        writeln!(text, "    return total{stop}")?;
        text.push_str(if end == "py" { "\n" } else { "}\n\n" });
    }
    if end == "java" {
        text.push_str("}\n");
    }
    Ok(text)
}
