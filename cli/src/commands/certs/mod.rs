//! `journeyman certs`: the certificates that services prove themselves with to each other.

mod folder;
mod secrets;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand, ValueEnum};

use self::folder::{Done, Folder, Made};
use super::say;

/// Make or renew the certificates of the services, with an authority of their own
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make an authority, and a certificate for each service that has none; what is there and fits stays
    Init(Init),
    /// Make the key and the certificate of each service anew; the authority stays
    Renew(Renew),
}

#[derive(Debug, Args)]
struct Init {
    /// The folder of the certificates: the authority's key in it never leaves it
    dir: PathBuf,
    /// The namespace of Kubernetes that the services run in
    #[arg(long, default_value = "journeyman")]
    namespace: String,
    /// One more name or address at which services are reached (repeatable)
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
    /// How many days the certificates are valid
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// `secrets` prints a Secret of Kubernetes for each service instead of what was done
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A line for each certificate
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
