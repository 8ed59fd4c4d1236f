//! Settings: the sections `[executor]` and `[telemetry]`.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use domain::SandboxLevel;
use serde::Deserialize;

/// The executor's settings. There is no secret among them.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// `[executor]`.
    pub executor: Executor,
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
    /// Folders that commands may not read, besides other workspaces and the usual places of credentials.
    #[serde(default)]
    pub hidden: Vec<PathBuf>,
}

fn default_listen() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 7403).into()
}

const fn default_slots() -> u32 {
    4
}

const fn default_min_level() -> SandboxLevel {
    SandboxLevel::L0
}

impl bootstrap::ServiceConfig for Config {
    fn listen(&self) -> SocketAddr {
        self.executor.listen
    }

    fn telemetry(&self) -> &bootstrap::telemetry::Settings {
        &self.telemetry
    }

    fn check(&self) -> Result<(), bootstrap::settings::Error> {
        let problem = |key: &str, text: String| Err(bootstrap::settings::Error::new(key, text));
        if !(1..=1024).contains(&self.executor.slots) {
            return problem("executor.slots", "must be between 1 and 1024".to_owned());
        }
        match grant::Verifier::new(&self.executor.grant_keys) {
            Ok(_) => Ok(()),
            Err(refused) => problem("executor.grant_keys", refused.to_string()),
        }
    }
}
