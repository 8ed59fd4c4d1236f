//! Tickets on a Kubernetes cluster, with stand-ins for the outside in it: applies the manifests of a kustomization in namespaces of its
//! own, plays rounds of tickets while things happen to the cluster, counts what was lost or done twice, and removes the namespaces.

mod autoscale;
mod contained;
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

use clap::{Args, Subcommand};

/// Plays tickets on the cluster of the current kubeconfig, which must know the images.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    /// Kustomization to apply
    #[arg(long, default_value = "k8s/base")]
    kustomization: PathBuf,
    /// Image of the stand-ins: the Dockerfile's target `stand-ins`
    #[arg(long, default_value = concat!("journeyman/stand-ins:", env!("CARGO_PKG_VERSION")))]
    stand_ins_image: String,
    /// How many tickets in each round, all at once
    #[arg(long, default_value_t = 20)]
    tickets: usize,
    /// What a ticket's test command does
    #[arg(long, default_value = "sleep 6")]
    command: String,
    /// Which rounds to play [default: all]
    #[arg(long, value_enum, num_args = 1..)]
    rounds: Vec<events::ClusterEvent>,
    /// Leave the namespaces as they are in the end
    #[arg(long)]
    keep: bool,
    /// Where the rendered overlay is written, inside of this repository
    #[arg(long, default_value = "target/cluster-test")]
    folder: PathBuf,
}

#[derive(Subcommand)]
enum Part {
    /// Be the stand-ins: what the pod runs
    StandIns,
    /// Isolate the pod whose network this container shares: what the round `partition` adds to a pod. It takes `NET_ADMIN` in that
    /// network and nothing of the node
    Isolate {
        /// For how long
        #[arg(long)]
        seconds: u64,
    },
}

pub(crate) async fn run(arguments: Arguments) -> ExitCode {
    let done = match arguments.part {
        Some(Part::StandIns) => Box::pin(stand_ins::serve()).await.map(|()| true),
        Some(Part::Isolate { seconds }) => isolation_rules::hold_isolation(Duration::from_secs(seconds))
            .await
            .map(|()| true),
        None => Box::pin(run::run(&arguments)).await,
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("cluster-test failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints one line.
#[expect(clippy::print_stdout, reason = "the program is its output")]
fn say(line: &str) {
    println!("{line}");
}
