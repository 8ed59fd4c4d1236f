//! Tickets on a Kubernetes cluster with the stand-ins inside.
//!
//! The program applies a kustomization in separate namespaces, plays rounds of tickets during disturbances,
//! counts lost and duplicate work, and removes the namespaces.

mod autoscale;
mod containment;
mod disturbances;
mod events;
mod full_store;
mod isolation;
mod isolation_rules;
mod kubectl;
mod names;
mod nats_monitor;
mod observation;
mod overlay;
mod play;
mod rounds;
mod run;
mod stand_ins;
mod table;
mod wake_ups;
mod webhooks;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use crate::output::exit_code;
use clap::{Args, Subcommand};

/// Plays tickets on the cluster of the current kubeconfig, which must know the images.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    part: Option<ClusterTestPart>,
    /// Kustomization to apply
    #[arg(long, default_value = "k8s/base")]
    kustomization: PathBuf,
    /// Image of the stand-ins: the Dockerfile's target `stand-ins`
    #[arg(long, default_value = concat!("journeyman/stand-ins:", env!("CARGO_PKG_VERSION")))]
    stand_ins_image: String,
    /// Number of concurrent tickets in each round
    #[arg(long, default_value_t = 20)]
    tickets: usize,
    /// Test command of each ticket
    #[arg(long, default_value = "sleep 6")]
    command: String,
    /// Rounds to play [default: all]
    #[arg(long, value_enum, num_args = 1..)]
    rounds: Vec<events::ClusterEvent>,
    /// Keep the namespaces at the end
    #[arg(long)]
    keep: bool,
    /// Folder of the rendered overlay, inside this repository
    #[arg(long, default_value = "target/cluster-test")]
    folder: PathBuf,
}

#[derive(Subcommand)]
enum ClusterTestPart {
    /// Run the stand-ins; the entry point of their pod
    StandIns,
    /// Isolate the network of this container's pod, as the round `partition` does. It needs `NET_ADMIN` in
    /// that network and no access to the node
    Isolate {
        /// Duration in seconds
        #[arg(long)]
        seconds: u64,
    },
}

/// Plays the scenario.
pub(crate) async fn run_scenario(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.part {
        Some(ClusterTestPart::StandIns) => Box::pin(stand_ins::serve_stand_ins()).await?,
        Some(ClusterTestPart::Isolate { seconds }) => {
            isolation_rules::hold_isolation(Duration::from_secs(seconds)).await?;
        }
        None => return Box::pin(run::run_test(&arguments)).await.map(exit_code),
    }
    Ok(ExitCode::SUCCESS)
}
