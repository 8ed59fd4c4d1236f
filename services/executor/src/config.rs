//! Settings of the executor: the sections `[executor]`, `[git]`, `[tls]` and `[telemetry]`.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use anyhow::Context;
use bootstrap::{
    settings::{Error, TextList},
    tls::{TlsClient, TlsProtocol},
};
use domain::SandboxLevel;
use serde::{Deserialize, Deserializer};

use crate::{
    absolute_paths,
    sandbox::{CommandLimits, CommandSandbox, ConfinementMechanism, MachineView},
};

/// Settings of the executor. The key of its certificate is the only secret, and it gives access to no other
/// service.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// Section `[executor]`.
    pub executor: ExecutorSettings,
    /// Section `[git]`.
    #[serde(default)]
    pub git: git::FetchSettings,
    /// Section `[tls]`; `None` for plain connections.
    #[serde(default)]
    pub tls: Option<bootstrap::tls::Settings>,
    /// Section `[telemetry]`.
    #[serde(default)]
    pub telemetry: bootstrap::telemetry::Settings,
}

/// Section `[executor]` of the settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorSettings {
    /// Address of the gRPC server.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// Address of `/metrics`, `/healthz` and `/readyz`; `None` to disable them.
    #[serde(default)]
    pub metrics_listen: Option<SocketAddr>,
    /// Folder for mirrors and workspaces. Workspaces in it are deleted at the start.
    pub data_dir: PathBuf,
    /// Number of workspaces that can be open at a time.
    #[serde(default = "default_slots")]
    pub slots: u32,
    /// Public keys of planners (32 raw bytes, base64) by key id.
    pub grant_keys: BTreeMap<String, String>,
    /// Required sandbox level. Below it the executor does not start.
    #[serde(default = "default_min_level")]
    pub min_level: SandboxLevel,
    /// Path of the launcher's program; `None` for the one in the folder of this program.
    #[serde(default)]
    pub launcher: Option<PathBuf>,
    /// Socket of a runner, which starts commands and holds the worktree under its own user. It permits one
    /// workspace at a time.
    #[serde(default)]
    pub runner_socket: Option<PathBuf>,
    /// Folders and files that commands may read in addition to the system and its toolchains.
    #[serde(default, deserialize_with = "read_list")]
    pub exposed: Vec<PathBuf>,
    /// Folders and files that commands must not read although they lie below visible ones.
    #[serde(default, deserialize_with = "read_list")]
    pub hidden: Vec<PathBuf>,
    /// Addresses (`host:port`) that commands must not reach. The executor tests them before it is ready and
    /// periodically afterwards. It accepts no work while one of them is reachable.
    #[serde(default, deserialize_with = "read_list")]
    pub forbidden_addresses: Vec<String>,
    /// Resource limits of one command with all of its descendants.
    #[serde(default)]
    pub limits: CommandLimits,
    /// Permission to start although commands run as root without namespaces, and nothing limits their processes.
    #[serde(default)]
    pub allow_unlimited_processes: bool,
    /// Limit in MiB of all stored results of setup commands; 0 to store none.
    #[serde(default = "default_setup_cache_mib")]
    pub setup_cache_mib: u64,
    /// Limit in MiB of all contents of Git LFS that no workspace uses.
    #[serde(default = "default_lfs_cache_mib")]
    pub lfs_cache_mib: u64,
    /// Free disk space in MiB below which nothing is prepared or stored for later runs, and stored results
    /// are deleted.
    #[serde(default = "default_disk_floor_mib")]
    pub disk_floor_mib: u64,
    /// Free disk space in MiB below which the executor accepts no work, after stored results were deleted.
    #[serde(default = "default_disk_reserve_mib")]
    pub disk_reserve_mib: u64,
    /// Limit in MiB of a snapshot's pack, the stored form of a run's change.
    #[serde(default = "default_snapshot_mib")]
    pub snapshot_mib: u64,
    /// Switch for indexing repositories in the background for `find_code` and `SeedContext`. Without an index
    /// both search only paths and literal text.
    #[serde(default = "default_index")]
    pub index: bool,
    /// Mechanisms to disable although the machine supports them; the sandbox level falls accordingly.
    #[serde(default)]
    pub without: Vec<ConfinementMechanism>,
}

impl ExecutorSettings {
    /// Opens the sandbox, which hides further paths from commands.
    ///
    /// # Errors
    /// Fails when the launcher or runner is missing, or when the sandbox is too weak.
    pub(crate) async fn open_sandbox(
        &self,
        runner: Option<&Path>,
        further_hidden: impl IntoIterator<Item = PathBuf>,
    ) -> anyhow::Result<CommandSandbox> {
        let mut hidden = absolute_paths(&self.hidden).context("executor.hidden")?;
        hidden.extend(further_hidden);
        let exposed = absolute_paths(&self.exposed).context("executor.exposed")?;
        let view = MachineView::of_this_machine(exposed, hidden);
        let opened = CommandSandbox::open(self.launcher.as_deref(), runner, view, self.limits).await;
        let sandbox = opened
            .map_err(|problem| anyhow::anyhow!("executor.launcher, executor.runner_socket: {problem}"))?
            .without(&self.without);
        sandbox.require(self.min_level).map_err(anyhow::Error::msg)?;
        if !self.allow_unlimited_processes {
            sandbox.require_process_limit().map_err(anyhow::Error::msg)?;
        }
        Ok(sandbox)
    }
}

fn read_list<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let TextList(texts) = TextList::deserialize(deserializer)?;
    Ok(texts.into_iter().map(T::from).collect())
}

fn default_listen() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 7403).into()
}

const fn default_slots() -> u32 {
    4
}

const fn default_setup_cache_mib() -> u64 {
    8192
}

const fn default_lfs_cache_mib() -> u64 {
    2048
}

const fn default_disk_floor_mib() -> u64 {
    2048
}

const fn default_disk_reserve_mib() -> u64 {
    512
}

const fn default_snapshot_mib() -> u64 {
    32
}

const fn default_index() -> bool {
    true
}

const fn default_min_level() -> SandboxLevel {
    SandboxLevel::L1
}

/// Trust anchors for the git gate and the egress proxy; empty for plain connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerTls {
    /// TLS client for the egress proxy, and for requests to the git gate.
    pub(crate) client: Option<TlsClient>,
    /// File of the authority for git, which reads it at each start.
    pub(crate) authority: Option<PathBuf>,
}

impl PeerTls {
    /// Loads the trust anchors from the settings.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub(crate) fn new(settings: Option<&bootstrap::tls::Settings>) -> Result<Self, Error> {
        let Some(settings) = settings else {
            return Ok(Self::default());
        };
        let authority = std::path::absolute(&settings.ca);
        Ok(Self {
            client: Some(TlsClient::by_name(settings, TlsProtocol::Http1)?),
            authority: Some(authority.map_err(|error| Error::new("tls.ca", error.to_string()))?),
        })
    }
}

impl bootstrap::ServiceConfig for Config {
    fn listen(&self) -> SocketAddr {
        self.executor.listen
    }

    fn metrics_listen(&self) -> Option<SocketAddr> {
        self.executor.metrics_listen
    }

    fn telemetry(&self) -> &bootstrap::telemetry::Settings {
        &self.telemetry
    }

    fn keeps_spans(&self) -> bool {
        true
    }

    fn takes_proxy() -> bool {
        false
    }

    fn check(&self) -> Result<(), Error> {
        let problem = |key: &str, text: String| Err(Error::new(key, text));
        if !(1..=1024).contains(&self.executor.slots) {
            return problem("executor.slots", "must be between 1 and 1024".to_owned());
        }
        if self.executor.runner_socket.is_some() && self.executor.slots != 1 {
            return problem(
                "executor.slots",
                "must be 1 with executor.runner_socket: a runner keeps one workspace at a time".to_owned(),
            );
        }
        // A larger snapshot could not be restored: the contract limits the pack of a request.
        let largest = proto::executor::MAX_PACK_BYTES as u64 >> 20;
        if !(1..=largest).contains(&self.executor.snapshot_mib) {
            return problem(
                "executor.snapshot_mib",
                format!("must be between 1 and {largest}"),
            );
        }
        let limits = self.executor.limits;
        let least = [
            ("executor.limits.memory_mib", limits.memory_mib, 64),
            ("executor.limits.processes", limits.processes, 16),
            ("executor.limits.disk_mib", limits.disk_mib, 16),
            ("executor.limits.file_mib", limits.file_mib, 1),
        ];
        if let Some((key, _, least)) = least.into_iter().find(|(_, value, least)| value < least) {
            return problem(key, format!("must be at least {least}"));
        }
        let is_address = |text: &&String| {
            // The last colon counts, because an IPv6 address contains others.
            let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0))
        };
        if let Some(wrong) = self
            .executor
            .forbidden_addresses
            .iter()
            .find(|text| !is_address(text))
        {
            return problem(
                "executor.forbidden_addresses",
                format!("{wrong:?} is not host:port"),
            );
        }
        match grant::GrantVerifier::new(&self.executor.grant_keys) {
            Ok(_) => Ok(()),
            Err(refused) => problem("executor.grant_keys", refused.to_string()),
        }
    }
}
