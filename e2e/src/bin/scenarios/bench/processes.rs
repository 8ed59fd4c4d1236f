//! CPU time and memory of processes, from `/proc`.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::Context;
use e2e::TestWorld;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::bench::measure::print_figure;

const SERVICES: [&str; 5] = ["ingest", "planner", "executor", "reporter", "egress"];
const SERVERS: [&str; 2] = ["nats-server", "redis-server"];
/// Rest before idle memory is read.
const REST: Duration = Duration::from_secs(2);
const SAMPLE: Duration = Duration::from_millis(100);
// Linux reports a process's CPU time in units of 1/100 s (`USER_HZ`), independent of the kernel's tick.
const TICKS_PER_SECOND: f64 = 100.0;

/// Process ids of services and servers, by name.
pub(crate) struct ServiceProcesses {
    services: Vec<(&'static str, u32)>,
    servers: Vec<(&'static str, u32)>,
}

/// CPU seconds, including reaped children.
#[derive(Clone, Copy)]
pub(crate) struct CpuSeconds {
    pub(crate) services: f64,
    pub(crate) servers: f64,
}

/// Sampler of peak memory.
pub(crate) struct PeakMemory {
    done: CancellationToken,
    task: JoinHandle<f64>,
}

struct ProcessStat {
    parent: u32,
    name: String,
    ticks: u64,
}

impl ServiceProcesses {
    pub(crate) fn of(world: &mut TestWorld) -> anyhow::Result<Self> {
        let processes = world.processes().context("the services are no processes")?;
        let mut services = Vec::new();
        for name in SERVICES {
            services.push((
                name,
                processes
                    .pid(name)
                    .with_context(|| format!("{name} does not run"))?,
            ));
        }
        let mine = read_processes();
        let mut servers = Vec::new();
        for name in SERVERS {
            // Servers of other worlds are children of other processes.
            let found = mine
                .iter()
                .find(|(_, stat)| stat.parent == std::process::id() && stat.name == name);
            servers.extend(found.map(|(pid, _)| (name, *pid)));
        }
        Ok(Self { services, servers })
    }

    /// Prints the idle memory of each process.
    pub(crate) async fn idle_memory(&self) -> anyhow::Result<()> {
        tokio::time::sleep(REST).await;
        for (name, pid) in self.services.iter().chain(&self.servers) {
            let memory = read_proportional_memory(*pid)
                .with_context(|| format!("the memory of {name} cannot be read"))?;
            print_figure(&format!("idle_memory_{}", name.replace('-', "_")), memory, "MiB");
        }
        Ok(())
    }

    /// Memory of a service in MiB.
    pub(crate) fn memory_of(&self, service: &str) -> anyhow::Result<f64> {
        read_proportional_memory(self.pid(service)?)
            .with_context(|| format!("the memory of {service} cannot be read"))
    }

    /// CPU seconds of a service so far.
    pub(crate) fn cpu_of(&self, service: &str) -> anyhow::Result<f64> {
        let stat = read_process_stat(self.pid(service)?).with_context(|| format!("{service} is gone"))?;
        Ok(stat.ticks as f64 / TICKS_PER_SECOND)
    }

    fn pid(&self, service: &str) -> anyhow::Result<u32> {
        let found = self.services.iter().find(|(name, _)| *name == service);
        found
            .map(|(_, pid)| *pid)
            .with_context(|| format!("{service} does not run"))
    }

    pub(crate) fn cpu(&self) -> CpuSeconds {
        let table = read_processes();
        let seconds = |pids: &[(&str, u32)]| -> f64 {
            let ticks: u64 = pids
                .iter()
                .filter_map(|(_, pid)| table.get(pid))
                .map(|stat| stat.ticks)
                .sum();
            ticks as f64 / TICKS_PER_SECOND
        };
        CpuSeconds {
            services: seconds(&self.services),
            servers: seconds(&self.servers),
        }
    }

    /// Samples the memory of the services and all their descendants.
    pub(crate) fn watch_memory(&self) -> PeakMemory {
        let roots: Vec<u32> = self.services.iter().map(|(_, pid)| *pid).collect();
        let done = CancellationToken::new();
        let stop = done.clone();
        let task = tokio::spawn(async move {
            let mut peak = 0.0_f64;
            while !stop.is_cancelled() {
                let roots = roots.clone();
                let now = tokio::task::spawn_blocking(move || tree_pss(&roots)).await;
                peak = peak.max(now.unwrap_or_default());
                tokio::time::sleep(SAMPLE).await;
            }
            peak
        });
        PeakMemory { done, task }
    }
}

impl PeakMemory {
    /// Stops the sampler and returns the peak in MiB.
    pub(crate) async fn stop(self) -> anyhow::Result<f64> {
        self.done.cancel();
        Ok(self.task.await?)
    }
}

/// Reads `stat` of every process.
fn read_processes() -> BTreeMap<u32, ProcessStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| Some((pid, read_process_stat(pid)?)))
        .collect()
}

fn read_process_stat(pid: u32) -> Option<ProcessStat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may itself contain spaces and parentheses.
    let (head, tail) = text.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    // utime, stime, cutime and cstime are fields 14 to 17 of the line; the fields after the name start at 3.
    let ticks = fields
        .get(11..15)?
        .iter()
        .filter_map(|field| field.parse::<u64>().ok());
    Some(ProcessStat {
        parent: fields.get(1)?.parse().ok()?,
        name: head.split_once('(')?.1.to_owned(),
        ticks: ticks.sum(),
    })
}

fn tree_pss(roots: &[u32]) -> f64 {
    let table = read_processes();
    let mut open = roots.to_vec();
    let mut sum = 0.0;
    while let Some(next) = open.pop() {
        sum += read_proportional_memory(next).unwrap_or_default();
        let children = table.iter().filter(|(_, stat)| stat.parent == next);
        open.extend(children.map(|(pid, _)| *pid));
    }
    sum
}

/// Returns the proportional set size in MiB. PSS divides shared pages among their users, so sums are correct.
fn read_proportional_memory(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find(|line| line.starts_with("Pss:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
