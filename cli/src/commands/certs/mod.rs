//! `journeyman certs`: certificates for mutual authentication of services.

mod folder;
mod secrets;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand, ValueEnum};

use self::folder::{CertificateFolder, CertificateResult, StoredCertificate};
use super::print_result;

/// Create or renew the certificates of the services, with a private authority
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: CertsAction,
}

#[derive(Debug, Subcommand)]
enum CertsAction {
    /// Create an authority, and a certificate for each service without a valid one; valid ones stay
    Init(InitArguments),
    /// Create a new key and certificate for each service; the authority stays
    Renew(RenewArguments),
}

#[derive(Debug, Args)]
struct InitArguments {
    /// The folder of the certificates; the authority's key never leaves it
    dir: PathBuf,
    /// The Kubernetes namespace of the services
    #[arg(long, default_value = "journeyman")]
    namespace: String,
    /// Additional name or address at which services are reached (repeatable)
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    #[command(flatten)]
    how: IssueOptions,
}

#[derive(Debug, Args)]
struct RenewArguments {
    /// The folder of `journeyman certs init`
    dir: PathBuf,
    #[command(flatten)]
    how: IssueOptions,
}

#[derive(Debug, Args)]
struct IssueOptions {
    /// Validity of the certificates in days
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Output format: a line per certificate, or a Kubernetes Secret per service
    #[arg(short, long, value_enum, default_value_t = CertsOutput::Text)]
    output: CertsOutput,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CertsOutput {
    /// A line per certificate
    Text,
    /// Secrets for `kubectl apply -f -`, with private keys
    Secrets,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let now = bootstrap::read_wall_clock();
    let (made, output) = match asked.what {
        CertsAction::Init(asked) => {
            let leaves = certs::list_service_subjects(&asked.namespace, &asked.hosts);
            let folder = CertificateFolder::new(asked.dir);
            (folder.init(&leaves, now, asked.how.days)?, asked.how.output)
        }
        CertsAction::Renew(asked) => (
            CertificateFolder::new(asked.dir).renew(now, asked.how.days)?,
            asked.how.output,
        ),
    };
    match output {
        CertsOutput::Text => made
            .iter()
            .for_each(|made| print_result(&render_certificate_line(made))),
        CertsOutput::Secrets => print_result(&secrets::render_secrets(&made)?),
    }
    Ok(ExitCode::SUCCESS)
}

fn render_certificate_line(made: &StoredCertificate) -> String {
    let done = match made.done {
        CertificateResult::New => "new",
        CertificateResult::Kept => "kept",
    };
    let (name, until, place) = (&made.leaf.service, made.not_after, made.folder.display());
    format!("{done:<5} {name:<10} until {until} {place}")
}
