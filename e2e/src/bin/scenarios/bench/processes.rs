//! CPU time and memory of processes, from `/proc`.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::Context;
use e2e::TestWorld;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::bench::measure::print_figure;

const SERVICES: [&str; 5] = ["ingest", "planner", "executor", "reporter", "egress"];
const SERVERS: [&str; 2] = ["nats-server", "redis-server"];
/// Pause before idle memory is read.
const IDLE_PAUSE: Duration = Duration::from_secs(2);
/// Interval of the memory samples. Each reads the page tables of every process, so they are rare.
const SAMPLE: Duration = Duration::from_millis(250);
/// Time limit for services, and then servers, to end after an interruption.
const DRAIN: Duration = Duration::from_secs(25);
// Linux reports a process's CPU time in units of 1/100 s (`USER_HZ`), independent of the kernel's tick.
const TICKS_PER_SECOND: f64 = 100.0;

/// Process ids of services and servers, by name.
pub(crate) struct ServiceProcesses {
    services: Vec<(&'static str, u32)>,
    servers: Vec<(&'static str, u32)>,
}

/// CPU seconds of the bench itself and of the children that it has reaped.
pub(crate) struct ProcessTimes {
    pub(crate) own: f64,
    pub(crate) children: f64,
}

impl ProcessTimes {
    /// Reads the counters of this process.
    pub(crate) fn of_bench() -> anyhow::Result<Self> {
        let stat = read_process_stat(std::process::id()).context("this process has no counters")?;
        Ok(Self {
            own: stat.own_ticks as f64 / TICKS_PER_SECOND,
            children: stat.child_ticks as f64 / TICKS_PER_SECOND,
        })
    }
}

/// Sampler of peak memory.
pub(crate) struct PeakMemory {
    done: CancellationToken,
    task: JoinHandle<f64>,
}

struct ProcessStat {
    parent: u32,
    name: String,
    /// True for a process that ended and was not reaped yet.
    is_zombie: bool,
    own_ticks: u64,
    child_ticks: u64,
}

impl ProcessStat {
    fn ticks(&self) -> u64 {
        self.own_ticks + self.child_ticks
    }
}

impl ServiceProcesses {
    pub(crate) fn of(world: &mut TestWorld) -> anyhow::Result<Self> {
        let processes = world
            .processes()
            .context("the services are not separate processes")?;
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
        tokio::time::sleep(IDLE_PAUSE).await;
        for (name, pid) in self.services.iter().chain(&self.servers) {
            let name = name.replace('-', "_");
            for (figure, part) in [("idle_memory", "Pss:"), ("idle_anonymous_memory", "Pss_Anon:")] {
                let memory = read_memory(*pid, part)
                    .with_context(|| format!("the memory of {name} cannot be read"))?;
                print_figure(&format!("{figure}_{name}"), memory, "MiB");
            }
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
        Ok(stat.ticks() as f64 / TICKS_PER_SECOND)
    }

    fn pid(&self, service: &str) -> anyhow::Result<u32> {
        let found = self.services.iter().find(|(name, _)| *name == service);
        found
            .map(|(_, pid)| *pid)
            .with_context(|| format!("{service} does not run"))
    }

    /// Process ids of the servers.
    pub(crate) fn server_pids(&self) -> impl Iterator<Item = u32> {
        self.servers.iter().map(|(_, pid)| *pid)
    }

    /// CPU seconds of the servers so far. They start no other processes.
    pub(crate) fn server_cpu(&self) -> f64 {
        let ticks: u64 = self
            .server_pids()
            .filter_map(read_process_stat)
            .map(|stat| stat.ticks())
            .sum();
        ticks as f64 / TICKS_PER_SECOND
    }

    /// CPU seconds so far of the services and of everything below them that lives or was reaped.
    pub(crate) fn tree_cpu(&self) -> f64 {
        let table = read_processes();
        let roots = self.services.iter().map(|(_, pid)| *pid).collect();
        let pids = list_descendants(&table, roots);
        let ticks: u64 = pids
            .iter()
            .filter_map(|pid| table.get(pid))
            .map(ProcessStat::ticks)
            .sum();
        ticks as f64 / TICKS_PER_SECOND
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
    parse_process_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_process_stat(text: &str) -> Option<ProcessStat> {
    // The name is in parentheses and may itself contain spaces and parentheses.
    let (head, tail) = text.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    // utime, stime, cutime and cstime are fields 14 to 17 of the line; the fields after the name start at 3.
    let ticks = |from: usize| -> Option<u64> {
        let two = fields.get(from..from + 2)?.iter();
        Some(two.filter_map(|field| field.parse::<u64>().ok()).sum())
    };
    Some(ProcessStat {
        parent: fields.get(1)?.parse().ok()?,
        name: head.split_once('(')?.1.to_owned(),
        is_zombie: *fields.first()? == "Z",
        own_ticks: ticks(11)?,
        child_ticks: ticks(13)?,
    })
}

fn list_descendants(table: &BTreeMap<u32, ProcessStat>, roots: Vec<u32>) -> Vec<u32> {
    let (mut open, mut all) = (roots, Vec::new());
    while let Some(next) = open.pop() {
        all.push(next);
        let children = table.iter().filter(|(_, stat)| stat.parent == next);
        open.extend(children.map(|(pid, _)| *pid));
    }
    all
}

fn tree_pss(roots: &[u32]) -> f64 {
    let pids = list_descendants(&read_processes(), roots.to_vec());
    pids.into_iter().filter_map(read_proportional_memory).sum()
}

/// Ends the child processes in order: first the services, which still need the servers, then the servers.
///
/// The bench's own tasks keep running meanwhile, so that the stand-ins answer draining services.
pub(crate) async fn drain_children() {
    let is_server = |stat: &ProcessStat| SERVERS.contains(&stat.name.as_str());
    for wants_servers in [false, true] {
        let end = Instant::now() + DRAIN;
        let mut children = list_children(|stat| is_server(stat) == wants_servers);
        for pid in &children {
            terminate(*pid);
        }
        while !children.is_empty() && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let living = list_children(|_| true);
            children.retain(|pid| living.contains(pid));
        }
    }
}

/// Lists this process's children that have not ended.
fn list_children(is_wanted: impl Fn(&ProcessStat) -> bool) -> Vec<u32> {
    let mine = std::process::id();
    read_processes()
        .into_iter()
        .filter(|(_, stat)| stat.parent == mine && !stat.is_zombie && is_wanted(stat))
        .map(|(pid, _)| pid)
        .collect()
}

fn terminate(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // The error is ignored: the process ended by itself.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// Returns the proportional set size in MiB. PSS divides shared pages among their users, so sums are correct.
fn read_proportional_memory(pid: u32) -> Option<f64> {
    read_memory(pid, "Pss:")
}

/// Returns a line of the kernel's sums over the mappings of a process, in MiB.
fn read_memory(pid: u32, part: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find(|line| line.starts_with(part))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_line_with_odd_name_is_read() {
        let line = "42 (a (b) c) Z 7 1 1 0 -1 0 0 0 0 0 10 5 3 2 20 0 1 0 0";
        let stat = parse_process_stat(line).unwrap();
        assert_eq!(
            (stat.parent, stat.name.as_str(), stat.is_zombie),
            (7, "a (b) c", true)
        );
        assert_eq!((stat.own_ticks, stat.child_ticks, stat.ticks()), (15, 5, 20));
        assert!(parse_process_stat("42 (a) S 7").is_none());
    }

    #[test]
    fn descendants_are_found_at_any_depth() {
        let stat = |parent| ProcessStat {
            parent,
            name: String::new(),
            is_zombie: false,
            own_ticks: 0,
            child_ticks: 0,
        };
        let table = BTreeMap::from([(2, stat(1)), (3, stat(2)), (4, stat(3)), (5, stat(1))]);
        let mut found = list_descendants(&table, vec![2]);
        found.sort_unstable();
        assert_eq!(found, [2, 3, 4]);
    }
}
