//! CPU time of a world, read when everything is reaped.
//!
//! A process's own counters contain a child only after the child was waited for, so they lack the launchers that
//! still live. A control group counts its members at once; without one, the figure is read after the services
//! ended.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use e2e::{Options, ServiceMode, TestWorld};

use crate::bench::processes::{ProcessTimes, ServiceProcesses};
use crate::output::print_line;

/// Attempts to remove the group, and the pause between them: the kernel takes a moment to forget a member.
const REMOVALS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// World whose services are measured from their start to their end.
pub(crate) struct MeasuredWorld {
    pub(crate) world: TestWorld,
    pub(crate) services: ServiceProcesses,
    group: Option<ControlGroup>,
}

/// CPU seconds of the services and everything that they started, of the servers, and of the bench with its
/// stand-ins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuSeconds {
    pub(crate) services: f64,
    pub(crate) servers: f64,
    pub(crate) bench: f64,
}

/// Counters at the start of a measurement.
pub(crate) struct CpuStart {
    services: f64,
    servers: f64,
    bench: f64,
}

impl CpuSeconds {
    /// Share of the bench and its stand-ins in percent.
    pub(crate) fn bench_percent(&self) -> f64 {
        100.0 * self.bench / (self.services + self.servers + self.bench).max(f64::MIN_POSITIVE)
    }
}

impl MeasuredWorld {
    /// Starts a world of processes whose stand-ins keep no requests.
    pub(crate) async fn start(options: Options) -> anyhow::Result<Self> {
        ensure!(
            options.mode == ServiceMode::Processes,
            "services inside this process have no counters"
        );
        let group = ControlGroup::create();
        if group.is_none() {
            print_line("# no control group: CPU is read from the processes after their end");
        }
        // Services inherit the group from the bench, which leaves it again with the servers.
        let entered = group
            .as_ref()
            .map(|group| group.enter(std::process::id()))
            .transpose();
        let started = match entered {
            Ok(_) => Box::pin(TestWorld::start(options)).await,
            Err(error) => Err(error.into()),
        };
        if let Some(group) = &group {
            group.leave(std::process::id())?;
        }
        let mut world = started?;
        let services = ServiceProcesses::of(&mut world)?;
        if let Some(group) = &group {
            for pid in services.server_pids() {
                group.leave(pid)?;
            }
        }
        world.github.set_recording(false);
        world.jira.set_recording(false);
        world.model.set_recording(false);
        Ok(Self {
            world,
            services,
            group,
        })
    }

    /// Reads the counters before the measured work.
    pub(crate) fn start_cpu(&self) -> anyhow::Result<CpuStart> {
        let own = ProcessTimes::of_bench()?;
        Ok(CpuStart {
            services: match &self.group {
                Some(group) => group.cpu_seconds()?,
                None => self.services.tree_cpu(),
            },
            servers: self.services.server_cpu(),
            bench: own.own + own.children,
        })
    }

    /// Drains the services and returns the CPU time since `start`.
    pub(crate) async fn stop(mut self, start: CpuStart) -> anyhow::Result<CpuSeconds> {
        let dead = self.world.dead_letters().await?;
        ensure!(dead.is_empty(), "dead letters: {dead:#?}");
        let before_end = ProcessTimes::of_bench()?;
        let processes = self
            .world
            .processes()
            .context("the services are not separate processes")?;
        processes.drain_all().await?;
        let after_end = ProcessTimes::of_bench()?;
        let services = match &self.group {
            Some(group) => group.cpu_seconds()?,
            // The services are the only children that ended meanwhile; the stand-ins' git processes are idle.
            None => after_end.children - before_end.children,
        };
        let violations = self.world.violations();
        ensure!(violations.is_empty(), "broken protocols: {violations:#?}");
        Ok(CpuSeconds {
            services: services - start.services,
            servers: self.services.server_cpu() - start.servers,
            bench: before_end.own + before_end.children - start.bench,
        })
    }
}

/// Control group (cgroup v2) of the services. Dropping it removes it.
struct ControlGroup {
    folder: PathBuf,
    parent: PathBuf,
}

impl ControlGroup {
    /// Creates a group below the one of this process; `None` where that is not permitted.
    fn create() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let parent = locate_own_group(&groups, &mounts)?;
        let group = Self {
            folder: parent.join(format!("journeyman-bench-{}", std::process::id())),
            parent,
        };
        // A group of a former world may still be there; it counts from its own start.
        match fs::create_dir(&group.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return None,
            Ok(()) | Err(_) => {}
        }
        // Without this test, a group that nothing can enter would stop the bench later.
        let is_usable = group.enter(std::process::id()).is_ok()
            && group.leave(std::process::id()).is_ok()
            && group.cpu_seconds().is_ok();
        is_usable.then_some(group)
    }

    fn enter(&self, pid: u32) -> std::io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }

    fn leave(&self, pid: u32) -> std::io::Result<()> {
        fs::write(self.parent.join("cgroup.procs"), pid.to_string())
    }

    /// CPU seconds of all members so far, groups below included.
    fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let text = fs::read_to_string(self.folder.join("cpu.stat"))?;
        parse_cpu_stat(&text).context("cpu.stat has no usage")
    }
}

impl Drop for ControlGroup {
    #[expect(
        clippy::disallowed_methods,
        reason = "a drop cannot await, and the measurement is over"
    )]
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            // A failed test of the group may have left this process inside.
            let _ = self.leave(std::process::id());
            // A killed launcher leaves the empty group of its command.
            for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(entry.path());
            }
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => std::thread::sleep(PAUSE),
                Ok(()) | Err(_) => return,
            }
        }
    }
}

fn parse_cpu_stat(text: &str) -> Option<f64> {
    let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(usage.trim().parse::<f64>().ok()? / 1e6)
}

/// Returns the folder of this process's group in the hierarchy of cgroup v2.
fn locate_own_group(groups: &str, mounts: &str) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    // Field 4 is the root of the mount within the hierarchy, field 5 the mount point.
    let mut fields = mount.split(' ').skip(3);
    let root = fields.next()?;
    let own = Path::new(own).strip_prefix(root).ok()?;
    Some(Path::new(fields.next()?).join(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_stat_gives_usage_in_seconds() {
        let text = "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n";
        assert_eq!(parse_cpu_stat(text), Some(2.5));
        assert_eq!(parse_cpu_stat("user_usec 1\n"), None);
    }

    #[test]
    fn own_group_is_below_mount_of_second_version() {
        let mounts = "30 29 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 29 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n";
        let folder = |groups: &str| locate_own_group(groups, mounts);
        assert_eq!(
            folder("1:cpu:/a\n0::/user/b\n"),
            Some(PathBuf::from("/sys/fs/cgroup/unified/user/b"))
        );
        assert_eq!(folder("0::/\n"), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(folder("1:cpu:/a\n"), None);
        let inside = "31 29 0:27 /user /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(
            locate_own_group("0::/user/b\n", inside),
            Some(PathBuf::from("/sys/fs/cgroup/b"))
        );
    }

    #[test]
    fn bench_percent_is_share_of_all() {
        let cpu = CpuSeconds {
            services: 7.0,
            servers: 2.0,
            bench: 1.0,
        };
        assert!((cpu.bench_percent() - 10.0).abs() < 1e-9);
    }
}
