//! Settings: the sections `[executor]`, `[tls]` and `[telemetry]`.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use domain::SandboxLevel;
use serde::{Deserialize, Deserializer};

use crate::sandbox::{Limits, Mechanism};

/// The executor's settings. There is no secret among them but a key that proves who it is, and opens nothing.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// `[executor]`.
    pub executor: Executor,
    /// `[git]`.
    #[serde(default)]
    pub git: git::FetchSettings,
    /// `[tls]`; absent: connections are plain.
    #[serde(default)]
    pub tls: Option<bootstrap::tls::Settings>,
    /// `[telemetry]`.
    #[serde(default)]
    pub telemetry: bootstrap::telemetry::Settings,
}

/// `[executor]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executor {
    /// Where gRPC is served.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// Where `/metrics`, `/healthz` and `/readyz` are served; absent: nowhere.
    #[serde(default)]
    pub metrics_listen: Option<SocketAddr>,
    /// Folder for mirrors and workspaces; emptied of workspaces at the start.
    pub data_dir: PathBuf,
    /// Workspaces at a time.
    #[serde(default = "default_slots")]
    pub slots: u32,
    /// Public keys of planners (raw 32 bytes, base64) by key id.
    pub grant_keys: BTreeMap<String, String>,
    /// Below this sandbox level the executor refuses to start.
    #[serde(default = "default_min_level")]
    pub min_level: SandboxLevel,
    /// The launcher's program; absent: beside this one.
    #[serde(default)]
    pub launcher: Option<PathBuf>,
    /// Socket of a runner: it starts commands and keeps the worktree under a user of its own; one workspace at a time.
    #[serde(default)]
    pub runner_socket: Option<PathBuf>,
    /// Folders and files that commands may read in addition to the system and its toolchains.
    #[serde(default, deserialize_with = "paths")]
    pub exposed: Vec<PathBuf>,
    /// Folders and files that commands may not read although they lie in a place that they may.
    #[serde(default, deserialize_with = "paths")]
    pub hidden: Vec<PathBuf>,
    /// Addresses (`host:port`) that commands must not reach. They are tried before the executor is ready, and again
    /// while it is; reached, it takes no work.
    #[serde(default, deserialize_with = "texts")]
    pub forbidden_addresses: Vec<String>,
    /// What one command and everything it starts may use.
    #[serde(default)]
    pub limits: Limits,
    /// Start although commands run as root, without namespaces, and nothing limits how many processes they make.
    #[serde(default)]
    pub allow_unlimited_processes: bool,
    /// Results of setup commands kept for later runs, all together, in MiB; 0: none.
    #[serde(default = "default_setup_cache_mib")]
    pub setup_cache_mib: u64,
    /// With less free on the disk nothing is made ready or kept for later runs, and what is kept goes, in MiB.
    #[serde(default = "default_disk_floor_mib")]
    pub disk_floor_mib: u64,
    /// With less free on the disk, after what is kept for later runs has gone, the executor takes no work, in MiB.
    #[serde(default = "default_disk_reserve_mib")]
    pub disk_reserve_mib: u64,
    /// The largest pack of a snapshot, in MiB: what of a run's change is kept outside the executor.
    #[serde(default = "default_snapshot_mib")]
    pub snapshot_mib: u64,
    /// Index repositories in the background, for `find_code` and the first look at a ticket; without it both look at paths and
    /// literal text only.
    #[serde(default = "default_index")]
    pub index: bool,
    /// Mechanisms that are not used although the machine offers them; the level falls with them.
    #[serde(default)]
    pub without: Vec<Mechanism>,
}

fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let texts = bootstrap::settings::TextList::deserialize(deserializer)?;
    Ok(texts.iter().map(PathBuf::from).collect())
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = bootstrap::settings::TextList::deserialize(deserializer)?;
    Ok(texts.iter().map(ToString::to_string).collect())
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

impl bootstrap::ServiceConfig for Config {
    fn listen(&self) -> SocketAddr {
        self.executor.listen
    }

    fn telemetry(&self) -> &bootstrap::telemetry::Settings {
        &self.telemetry
    }

    fn keeps_spans(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), bootstrap::settings::Error> {
        let problem = |key: &str, text: String| Err(bootstrap::settings::Error::new(key, text));
        if !(1..=1024).contains(&self.executor.slots) {
            return problem("executor.slots", "must be between 1 and 1024".to_owned());
        }
        if self.executor.runner_socket.is_some() && self.executor.slots != 1 {
            return problem(
                "executor.slots",
                "must be 1 with executor.runner_socket: a runner keeps one workspace at a time".to_owned(),
            );
        }
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
        match grant::Verifier::new(&self.executor.grant_keys) {
            Ok(_) => Ok(()),
            Err(refused) => problem("executor.grant_keys", refused.to_string()),
        }
    }
}
