//! The five services as separate processes, one or more of each, and the console. Each process gets the settings of
//! its capability row and no others.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::Context;
use journeyman::credentials::ServiceCredentials;
use rustix::process::Signal;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{balancer::ReplicaBalancer, previous_release::PreviousRelease};

/// Variable of every service that names the trusted authorities.
const AUTHORITY: &str = "SSL_CERT_FILE";
/// Time limit for a service to become ready, far above its duration even on loaded machines.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// Running time in which a service must drain after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(25);

/// Services with the settings sections that each of them may read.
const SERVICES: [(&str, &[&str]); 5] = [
    (
        "reporter",
        &[
            "NATS",
            "REDIS",
            "TELEMETRY",
            "RULES",
            "REPORTER",
            "GITHUB_WRITER",
            "JIRA_WRITER",
        ],
    ),
    // Egress and executor have no connection to NATS or Redis, so they do not get the addresses.
    ("egress", &["TELEMETRY", "EGRESS"]),
    ("executor", &["TELEMETRY", "EXECUTOR"]),
    ("planner", &["NATS", "REDIS", "TELEMETRY", "PLANNER", "MODEL"]),
    (
        "ingest",
        &[
            "NATS",
            "REDIS",
            "TELEMETRY",
            "RULES",
            "INGEST",
            "GITHUB_READER",
            "JIRA_READER",
        ],
    ),
];

/// Process with everything that a restart requires.
struct ServiceReplica {
    /// Service name, from the second replica on with a number: `planner-2`.
    name: String,
    service: &'static str,
    /// Settings that differ from those of the other replicas.
    own: Vec<(String, String)>,
    child: Option<Child>,
    /// Release of the process, if it is another one than this.
    previous: Option<PreviousRelease>,
    /// True if the process gets no OpenTelemetry variables, like an executor in a cluster.
    is_untraced: bool,
}

/// Running processes. Dropping them kills and reaps all.
pub struct ReplicaProcesses {
    environment: Vec<(String, String)>,
    credentials: ServiceCredentials,
    logs: PathBuf,
    replicas: Vec<ServiceReplica>,
    /// Balancers of ingest and of the reporter's git gate, if they have several replicas.
    balancers: Vec<ReplicaBalancer>,
}

impl ReplicaProcesses {
    /// Starts all five services and waits until they are ready. Logs are in `<logs>/<name>.log`.
    ///
    /// # Errors
    /// When a binary is missing or a service does not become ready; the error contains the end of its log.
    pub async fn start(
        environment: Vec<(String, String)>,
        credentials: ServiceCredentials,
        logs: &Path,
    ) -> anyhow::Result<Self> {
        Self::start_replicas(environment, credentials, logs, 1).await
    }

    /// Starts several processes of each service. Planners know every executor; ingest and the git gate have
    /// one address each, behind a balancer.
    ///
    /// # Errors
    /// As for [`ReplicaProcesses::start`].
    pub async fn start_replicas(
        environment: Vec<(String, String)>,
        credentials: ServiceCredentials,
        logs: &Path,
        count: usize,
    ) -> anyhow::Result<Self> {
        let processes = Self::planned(environment, credentials, logs, count)?;
        processes.begin().await
    }

    /// Plans the processes of [`ReplicaProcesses::start_replicas`] without starting them.
    pub(crate) fn planned(
        environment: Vec<(String, String)>,
        credentials: ServiceCredentials,
        logs: &Path,
        count: usize,
    ) -> anyhow::Result<Self> {
        let mut processes = Self {
            environment,
            credentials,
            logs: logs.to_owned(),
            replicas: Vec::new(),
            balancers: Vec::new(),
        };
        for (service, _) in SERVICES {
            for number in 1..=count {
                let replica = processes.replica(service, number)?;
                processes.replicas.push(replica);
            }
        }
        Ok(processes)
    }

    /// Starts the planned processes and waits until they are ready.
    pub(crate) async fn begin(mut self) -> anyhow::Result<Self> {
        // A single replica of each service needs no balancer.
        if self.replicas.len() > SERVICES.len() {
            self.join().await?;
        }
        self.wait_for_addresses().await?;
        let names: Vec<String> = self.names().map(str::to_owned).collect();
        for name in &names {
            self.spawn(name)?;
        }
        for name in &names {
            self.wait_until_ready(name).await?;
        }
        Ok(self)
    }

    /// Sets the release of a process from its next start on; `None` is this release.
    ///
    /// # Errors
    /// When the process does not exist.
    pub fn set_release(&mut self, name: &str, previous: Option<PreviousRelease>) -> anyhow::Result<()> {
        self.find_mut(name)?.previous = previous;
        Ok(())
    }

    /// Removes the OpenTelemetry variables of a process from its next start on.
    ///
    /// # Errors
    /// When the process does not exist.
    pub fn hide_collector(&mut self, name: &str) -> anyhow::Result<()> {
        self.find_mut(name)?.is_untraced = true;
        Ok(())
    }

    /// Base URL of ingest's balancer, if it has several replicas.
    pub fn url(&self) -> Option<String> {
        self.balancers.first().map(ReplicaBalancer::url)
    }

    /// Names of all processes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.replicas.iter().map(|replica| replica.name.as_str())
    }

    /// Restarts a process after [`ReplicaProcesses::kill`] and waits until it is ready.
    ///
    /// # Errors
    /// As for [`ReplicaProcesses::start`].
    pub async fn restart(&mut self, name: &str) -> anyhow::Result<()> {
        self.spawn(name)?;
        self.wait_until_ready(name).await
    }

    /// Process id of a running process.
    pub fn pid(&self, name: &str) -> Option<u32> {
        self.find(name).ok()?.child.as_ref()?.id()
    }

    /// Kills a process with SIGKILL and reaps it.
    ///
    /// # Errors
    /// When the process does not run.
    pub async fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        let child = self.find_mut(name)?.child.take();
        let mut child = child.with_context(|| format!("{name} does not run"))?;
        child.kill().await.context("kill")
    }

    /// Drains a process with SIGTERM.
    ///
    /// # Errors
    /// When the process does not run, does not end in time or ends with an error.
    pub async fn drain(&mut self, name: &str) -> anyhow::Result<()> {
        let child = self.find_mut(name)?.child.take();
        let mut child = child.with_context(|| format!("{name} does not run"))?;
        send_signal(&child, Signal::TERM);
        self.drained(name, &mut child).await
    }

    /// Freezes a process with SIGSTOP. A process that does not run is ignored.
    pub fn freeze(&self, name: &str) {
        self.signal(name, Signal::STOP);
    }

    /// Resumes a frozen process with SIGCONT.
    pub fn thaw(&self, name: &str) {
        self.signal(name, Signal::CONT);
    }

    /// Reaps the processes that exited by themselves and returns their names and exit statuses.
    pub fn ended(&mut self) -> Vec<(String, ExitStatus)> {
        let mut ended = Vec::new();
        for replica in &mut self.replicas {
            let status = replica.child.as_mut().and_then(|child| child.try_wait().ok()?);
            if let Some(status) = status {
                replica.child = None;
                ended.push((replica.name.clone(), status));
            }
        }
        ended
    }

    /// Drains all services with SIGTERM.
    ///
    /// # Errors
    /// When a process does not end in time or ends with an error.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.drain_all().await
    }

    /// Drains all services with SIGTERM and reaps them. Their processes can be started again.
    ///
    /// # Errors
    /// When a process does not end in time or ends with an error.
    pub async fn drain_all(&mut self) -> anyhow::Result<()> {
        let mut running: Vec<(String, Child)> = Vec::new();
        for replica in &mut self.replicas {
            running.extend(replica.child.take().map(|child| (replica.name.clone(), child)));
        }
        // All processes get the signal before the first wait, so that they drain concurrently.
        for (_, child) in &running {
            send_signal(child, Signal::TERM);
        }
        for (name, child) in &mut running {
            self.drained(name, child).await?;
        }
        Ok(())
    }

    async fn drained(&self, name: &str, child: &mut Child) -> anyhow::Result<()> {
        let ended = testkit::bound_running_time(STOP_LIMIT, child.wait()).await;
        let status = ended.with_context(|| format!("{name} did not drain; {}", self.log_tail(name)))??;
        anyhow::ensure!(
            status.success(),
            "{name} ended with {status}; {}",
            self.log_tail(name)
        );
        Ok(())
    }

    fn replica(&self, service: &'static str, number: usize) -> anyhow::Result<ServiceReplica> {
        if number == 1 {
            return Ok(ServiceReplica {
                name: service.to_owned(),
                service,
                own: Vec::new(),
                child: None,
                previous: None,
                is_untraced: false,
            });
        }
        // Further replicas need their own port and data folder.
        let section = service.to_uppercase();
        let mut own = vec![(
            format!("JOURNEYMAN__{section}__LISTEN"),
            format!("127.0.0.1:{}", servers::free_port()?),
        )];
        let folder = format!("JOURNEYMAN__{section}__DATA_DIR");
        own.extend(
            self.setting(&folder)
                .map(|path| (folder.clone(), format!("{path}-{number}"))),
        );
        Ok(ServiceReplica {
            name: format!("{service}-{number}"),
            service,
            own,
            child: None,
            previous: None,
            is_untraced: false,
        })
    }

    /// Configures the replicas' addresses: executors for the planners, balancers for ingest and the git gate.
    async fn join(&mut self) -> anyhow::Result<()> {
        let executors: Vec<_> = self
            .addresses("executor")
            .map(|address| format!("http://{address}"))
            .collect();
        let ingest = ReplicaBalancer::start(self.addresses("ingest")).await?;
        let gate = ReplicaBalancer::start(self.addresses("reporter")).await?;
        for (key, value) in [
            ("JOURNEYMAN__PLANNER__POOLS__DEFAULT", executors.join(",")),
            ("JOURNEYMAN__PLANNER__GATE_URL", format!("{}/git", gate.url())),
        ] {
            self.environment.retain(|(known, _)| known != key);
            self.environment.push((key.to_owned(), value));
        }
        self.balancers = vec![ingest, gate];
        Ok(())
    }

    fn setting(&self, key: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    fn address(&self, replica: &ServiceReplica) -> Option<String> {
        let key = format!("JOURNEYMAN__{}__LISTEN", replica.service.to_uppercase());
        let own = replica.own.iter().find(|(name, _)| *name == key);
        own.map(|(_, value)| value.clone())
            .or_else(|| self.setting(&key).map(str::to_owned))
    }

    /// Waits until no socket listens on the addresses of the planned processes. This process chose the ports with listeners,
    /// and a process that it forked meanwhile for another test holds copies of them until its `exec`.
    async fn wait_for_addresses(&self) -> anyhow::Result<()> {
        let end = tokio::time::Instant::now() + READY_LIMIT;
        for replica in &self.replicas {
            let address = self.address(replica).context("no address")?;
            let (_, port) = address.rsplit_once(':').context("an address without a port")?;
            while servers::has_listener(port.parse()?)? {
                anyhow::ensure!(tokio::time::Instant::now() < end, "{address} is in use");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        Ok(())
    }

    fn addresses(&self, service: &str) -> impl Iterator<Item = String> {
        let replicas = self
            .replicas
            .iter()
            .filter(move |replica| replica.service == service);
        replicas.filter_map(|replica| self.address(replica))
    }

    fn find(&self, name: &str) -> anyhow::Result<&ServiceReplica> {
        let found = self.replicas.iter().find(|replica| replica.name == name);
        found.with_context(|| format!("there is no process {name}"))
    }

    fn find_mut(&mut self, name: &str) -> anyhow::Result<&mut ServiceReplica> {
        let found = self.replicas.iter_mut().find(|replica| replica.name == name);
        found.with_context(|| format!("there is no process {name}"))
    }

    fn signal(&self, name: &str, wanted: Signal) {
        if let Some(child) = self.find(name).ok().and_then(|replica| replica.child.as_ref()) {
            send_signal(child, wanted);
        }
    }

    /// Starts a process without waiting for its readiness. A running process is left alone.
    ///
    /// # Errors
    /// When the process does not exist or cannot start.
    pub fn spawn(&mut self, name: &str) -> anyhow::Result<()> {
        let replica = self.find(name)?;
        if replica.child.is_some() {
            return Ok(());
        }
        let (_, sections) = SERVICES
            .into_iter()
            .find(|(service, _)| *service == replica.service)
            .context("no such service")?;
        let mine = |name: &str| {
            let section = name
                .strip_prefix("JOURNEYMAN__")
                .and_then(|rest| rest.split("__").next());
            section.is_some_and(|section| sections.contains(&section))
                || (name.starts_with("OTEL_") && !replica.is_untraced)
                || name == AUTHORITY
        };
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.logs.join(format!("{name}.log")))?;
        let previous = replica.previous.as_ref();
        let binary = match previous {
            Some(previous) => previous.binary(replica.service)?,
            None => find_binary(replica.service)?,
        };
        let is_known = |name: &str| previous.is_none_or(|previous| previous.knows(name));
        let shared = self.environment.iter().filter(|(name, _)| mine(name));
        let settings = shared
            .chain(self.credentials.of(replica.service))
            .chain(&replica.own);
        let child = Command::new(binary)
            // A clean environment proves that a service needs its settings alone.
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
            .envs(settings.filter(|(name, _)| is_known(name)).cloned())
            .current_dir(&self.logs)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            // In a separate process group, Ctrl-C reaches only the owner, which drains the services in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        self.find_mut(name)?.child = Some(child);
        Ok(())
    }

    async fn wait_until_ready(&mut self, name: &str) -> anyhow::Result<()> {
        let replica = self.find(name)?;
        let (service, address) = (replica.service, self.address(replica).context("no address")?);
        let end = tokio::time::Instant::now() + READY_LIMIT;
        loop {
            if is_ready(service, &address).await {
                return Ok(());
            }
            let child = self.find_mut(name)?.child.as_mut();
            let ended = child.and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended {
                anyhow::bail!("{name} ended with {status}; {}", self.log_tail(name));
            }
            anyhow::ensure!(
                tokio::time::Instant::now() < end,
                "{name} is not ready; {}",
                self.log_tail(name)
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn log_tail(&self, name: &str) -> String {
        let log = std::fs::read_to_string(self.logs.join(format!("{name}.log"))).unwrap_or_default();
        let tail: Vec<_> = log.lines().rev().take(20).collect();
        format!(
            "the end of its log:\n{}",
            tail.into_iter().rev().collect::<Vec<_>>().join("\n")
        )
    }
}

/// True if the service is ready. The executor serves gRPC alone, so its open port suffices here.
async fn is_ready(service: &str, address: &str) -> bool {
    if service == "executor" {
        return tokio::net::TcpStream::connect(address).await.is_ok();
    }
    reqwest::get(format!("http://{address}/readyz"))
        .await
        .is_ok_and(|answer| answer.status().is_success())
}

fn send_signal(child: &Child, wanted: Signal) {
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, wanted);
    }
}

/// Finds a binary of this workspace: next to the current program, or one folder above a test binary.
///
/// # Errors
/// When the binary is not built.
pub fn find_binary(name: &str) -> anyhow::Result<PathBuf> {
    let current = std::env::current_exe()?;
    let found = current
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    found.with_context(|| format!("{name} is not built: cargo build --workspace --bins"))
}

/// Running console. Dropping it kills the process.
pub struct ConsoleProcess {
    /// Base URL of the console.
    pub url: String,
    _process: Child,
}

impl ConsoleProcess {
    /// Starts the console on a free port as a client of this API.
    ///
    /// # Errors
    /// When the program is not built, or exits before it is ready.
    pub async fn start(api: &str) -> anyhow::Result<Self> {
        let mut process = Command::new(find_binary("journeyman")?)
            .args(["console", "--api", api, "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("journeyman cannot be started")?;
        let said = first_line(&mut process, "console at ").await?;
        let url = said.split([' ', ',']).nth(2).context("no address")?.to_owned();
        Ok(Self {
            url,
            _process: process,
        })
    }
}

/// Returns the first output line with this start. The remaining output is discarded, so that the process
/// never blocks on a full pipe.
///
/// # Errors
/// When the process prints no such line within two minutes.
pub async fn first_line(process: &mut Child, start: &str) -> anyhow::Result<String> {
    let output = process.stdout.take().context("no output")?;
    let mut lines = BufReader::new(output).lines();
    let find = async {
        while let Some(line) = lines.next_line().await? {
            if line.starts_with(start) {
                return Ok(line);
            }
        }
        anyhow::bail!("the process ended before it printed {start:?}")
    };
    let found = tokio::time::timeout(READY_LIMIT, find).await;
    let found = found.with_context(|| format!("the process did not print {start:?}"))??;
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(found)
}
