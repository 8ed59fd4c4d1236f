//! Tickets on a Kubernetes cluster: applies the manifests of an overlay with stand-ins outside of the cluster, plays tickets to their
//! end, and counts what was lost or done twice. The cluster must know the images.

mod apply;
mod overlay;
mod play;

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use e2e::{Note, Vendors};
use overlay::Overlay;
use testkit::{fixture, tls::Authority};

/// Plays tickets on the cluster of the current kubeconfig.
#[derive(Parser)]
struct Arguments {
    /// Kustomization to apply
    #[arg(long, default_value = "k8s/base")]
    kustomization: PathBuf,
    /// Addresses of this machine that pods reach, for GitHub, Jira and the model; their ports 443 must be free
    #[arg(long, num_args = 3, required = true)]
    addresses: Vec<IpAddr>,
    /// How many tickets, all at once
    #[arg(long, default_value_t = 20)]
    tickets: usize,
    /// What a ticket's test command does
    #[arg(long, default_value = "sleep 6")]
    command: String,
    /// A shell command to run once tickets are under way
    #[arg(long)]
    during: Option<String>,
    /// Where the rendered overlay is written, inside of this repository
    #[arg(long, default_value = "target/cluster")]
    folder: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    bootstrap::install_tls_provider();
    Box::pin(perform(Arguments::parse()))
        .await
        .unwrap_or_else(|error| {
            say(&format!("cluster failed: {error:#}"));
            ExitCode::FAILURE
        })
}

async fn perform(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let authority = Authority::new()?;
    let mut addresses = [SocketAddr::from(([0, 0, 0, 0], 443)); 3];
    for (address, ip) in addresses.iter_mut().zip(&arguments.addresses) {
        address.set_ip(*ip);
    }
    let vendors = Vendors::start_private(&authority, addresses, Note::workflow(), fixture::script());
    let vendors = vendors.await?;
    let overlay = Overlay::new(vendors.outside(), &authority);
    overlay.write(&arguments.kustomization, &arguments.folder)?;
    let (url, ready) = apply::apply(&arguments.folder).await?;
    say(&format!("ready after {:.0} s", ready.as_secs_f64()));
    let client = api::Client::new(&url, overlay.token.clone())?;
    vendors.send_webhooks(&url);
    let good = play::play(&arguments, &vendors, &client).await?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints one line.
#[expect(clippy::print_stdout, reason = "the program is its output")]
fn say(line: &str) {
    println!("{line}");
}
