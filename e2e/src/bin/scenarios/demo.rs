//! Demo with each service as a separate process, which has its own settings and no others. `journeyman demo` plays the
//! same story with all services in one process.

use std::{path::Path, process::ExitCode};

use anyhow::Context;
use e2e::ReplicaProcesses;
use journeyman::{
    demo::{DemoArguments, DemoServices, perform_demo},
    local::{BackingServers, PreparedServices},
};

use crate::output::print_line;

/// Five processes and their servers.
struct SeparateServices {
    processes: ReplicaProcesses,
    /// Last field, so that the servers are dropped after their clients.
    _servers: BackingServers,
}

impl DemoServices for SeparateServices {
    async fn start(prepared: PreparedServices, logs: &Path) -> anyhow::Result<Self> {
        let (environment, credentials) = (prepared.environment.clone(), prepared.credentials.clone());
        // The sockets are free for the processes from here on; the servers keep running.
        let servers = prepared.release();
        let processes = ReplicaProcesses::start(environment, credentials, logs).await?;
        Ok(Self {
            processes,
            _servers: servers,
        })
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.processes.stop().await.context("the services did not drain")
    }
}

/// Plays the scenario.
pub(crate) async fn run_scenario(arguments: DemoArguments) -> anyhow::Result<ExitCode> {
    perform_demo::<SeparateServices>(&arguments, print_line).await
}
