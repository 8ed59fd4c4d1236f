//! `journeyman certs`: certificates for mutual authentication of services.

mod folder;
mod secrets;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand, ValueEnum};

use self::folder::{Done, Folder, Made};
use super::say;

/// Create or renew the certificates of the services, with a private authority
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Create an authority, and a certificate for each service without a valid one; valid ones stay
    Init(Init),
    /// Create a new key and certificate for each service; the authority stays
    Renew(Renew),
}

#[derive(Debug, Args)]
struct Init {
    /// The folder of the certificates; the authority's key never leaves it
    dir: PathBuf,
    /// The Kubernetes namespace of the services
    #[arg(long, default_value = "journeyman")]
    namespace: String,
    /// Additional name or address at which services are reached (repeatable)
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
struct Renew {
    /// The folder of `journeyman certs init`
    dir: PathBuf,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
struct How {
    /// Validity of the certificates in days
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Output format: a line per certificate, or a Kubernetes Secret per service
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A line per certificate
    Text,
    /// Secrets for `kubectl apply -f -`, with private keys
    Secrets,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let now = bootstrap::now();
    let (made, output) = match asked.what {
        What::Init(asked) => {
            let leaves = certs::leaves(&asked.namespace, &asked.hosts);
            let folder = Folder::new(asked.dir);
            (folder.init(&leaves, now, asked.how.days)?, asked.how.output)
        }
        What::Renew(asked) => (
            Folder::new(asked.dir).renew(now, asked.how.days)?,
            asked.how.output,
        ),
    };
    match output {
        Output::Text => made.iter().for_each(|made| say(&line(made))),
        Output::Secrets => say(&secrets::yaml(&made)?),
    }
    Ok(ExitCode::SUCCESS)
}

fn line(made: &Made) -> String {
    let done = match made.done {
        Done::New => "new",
        Done::Kept => "kept",
    };
    let (name, until, place) = (&made.leaf.service, made.not_after, made.folder.display());
    format!("{done:<5} {name:<10} until {until} {place}")
}
