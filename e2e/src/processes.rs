//! The four services as processes of their own, each with the settings of its capability row and no others.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::Context;
use tokio::process::{Child, Command};

/// How long a service may take to become ready.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How long a service may take to drain after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(25);

/// Each service with the settings sections that it may see.
const SERVICES: [(&str, &[&str]); 4] = [
    (
        "reporter",
        &[
            "NATS",
            "TELEMETRY",
            "RULES",
            "REPORTER",
            "GITHUB_WRITER",
            "JIRA_WRITER",
        ],
    ),
    ("executor", &["TELEMETRY", "EXECUTOR"]),
    ("planner", &["NATS", "REDIS", "TELEMETRY", "PLANNER", "MODEL"]),
    (
        "ingest",
        &[
            "NATS",
            "TELEMETRY",
            "RULES",
            "INGEST",
            "GITHUB_READER",
            "JIRA_READER",
        ],
    ),
];

/// The running processes; killed and reaped on drop.
pub struct Processes {
    environment: Vec<(String, String)>,
    logs: PathBuf,
    running: Vec<(&'static str, Child)>,
}

impl Processes {
    /// Starts all four and waits until they are ready. Logs go to `<logs>/<service>.log`.
    ///
    /// # Errors
    /// When a binary is missing or a service does not become ready; the error has the end of its log.
    pub async fn start(environment: Vec<(String, String)>, logs: &Path) -> anyhow::Result<Self> {
        let mut processes = Self {
            environment,
            logs: logs.to_owned(),
            running: Vec::new(),
        };
        for (service, _) in SERVICES {
            processes.spawn(service)?;
        }
        for (service, _) in SERVICES {
            processes.wait_until_ready(service).await?;
        }
        Ok(processes)
    }

    /// Starts one service again, after [`Processes::kill`].
    ///
    /// # Errors
    /// As for [`Processes::start`].
    pub async fn restart(&mut self, service: &'static str) -> anyhow::Result<()> {
        self.spawn(service)?;
        self.wait_until_ready(service).await
    }

    /// The process id of a running service.
    pub fn pid(&self, service: &str) -> Option<u32> {
        self.running
            .iter()
            .find(|(name, _)| *name == service)
            .and_then(|(_, child)| child.id())
    }

    /// Sends SIGKILL to one service and reaps it.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn kill(&mut self, service: &str) -> anyhow::Result<()> {
        let at = self.running.iter().position(|(name, _)| *name == service);
        let (_, mut child) = self
            .running
            .remove(at.with_context(|| format!("{service} does not run"))?);
        child.kill().await.context("kill")
    }

    /// Drains all services with SIGTERM.
    ///
    /// # Errors
    /// When one does not end in time or ends with an error.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let mut running = std::mem::take(&mut self.running);
        for (_, child) in &running {
            terminate(child);
        }
        for (service, child) in &mut running {
            let ended = tokio::time::timeout(STOP_LIMIT, child.wait()).await;
            let status =
                ended.with_context(|| format!("{service} did not drain; {}", self.log_tail(service)))??;
            anyhow::ensure!(
                status.success(),
                "{service} ended with {status}; {}",
                self.log_tail(service)
            );
        }
        Ok(())
    }

    fn spawn(&mut self, service: &'static str) -> anyhow::Result<()> {
        let (_, sections) = SERVICES
            .into_iter()
            .find(|(name, _)| *name == service)
            .context("no such service")?;
        let mine = |name: &str| {
            let section = name
                .strip_prefix("JOURNEYMAN__")
                .and_then(|rest| rest.split("__").next());
            section.is_some_and(|section| sections.contains(&section)) || name.starts_with("OTEL_")
        };
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.logs.join(format!("{service}.log")))?;
        let child = Command::new(binary(service)?)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
            .envs(self.environment.iter().filter(|(name, _)| mine(name)).cloned())
            .current_dir(&self.logs)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            // A Ctrl-C reaches the owner first, who drains them in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {service}"))?;
        self.running.push((service, child));
        Ok(())
    }

    async fn wait_until_ready(&mut self, service: &str) -> anyhow::Result<()> {
        let key = format!("JOURNEYMAN__{}__LISTEN", service.to_uppercase());
        let address = self
            .environment
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value.clone());
        let address = address.context("no address")?;
        let end = tokio::time::Instant::now() + READY_LIMIT;
        loop {
            if is_ready(service, &address).await {
                return Ok(());
            }
            let child = self
                .running
                .iter_mut()
                .find(|(name, _)| *name == service)
                .map(|(_, child)| child);
            let ended = child.and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended {
                anyhow::bail!("{service} ended with {status}; {}", self.log_tail(service));
            }
            anyhow::ensure!(
                tokio::time::Instant::now() < end,
                "{service} is not ready; {}",
                self.log_tail(service)
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn log_tail(&self, service: &str) -> String {
        let log = std::fs::read_to_string(self.logs.join(format!("{service}.log"))).unwrap_or_default();
        let tail: Vec<_> = log.lines().rev().take(20).collect();
        format!(
            "the end of its log:\n{}",
            tail.into_iter().rev().collect::<Vec<_>>().join("\n")
        )
    }
}

/// The executor speaks gRPC only; an open port is enough of it here.
async fn is_ready(service: &str, address: &str) -> bool {
    if service == "executor" {
        return tokio::net::TcpStream::connect(address).await.is_ok();
    }
    reqwest::get(format!("http://{address}/readyz"))
        .await
        .is_ok_and(|answer| answer.status().is_success())
}

fn terminate(child: &Child) {
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// A binary of this workspace: beside the current one, or one folder up from a test binary.
///
/// # Errors
/// When it is not built.
pub fn binary(name: &str) -> anyhow::Result<PathBuf> {
    let current = std::env::current_exe()?;
    let found = current
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    found.with_context(|| format!("{name} is not built: cargo build --workspace --bins"))
}
