//! `journeyman grant-key`: a key pair for grants.

use std::process::ExitCode;

use clap::Args;
use secrecy::ExposeSecret;

use super::print_result;

/// Generate a key pair for grants: the private key for the planner, the public key for executor, reporter and
/// egress
#[derive(Debug, Args)]
pub(super) struct Arguments {}

pub(super) async fn run_command(_: Arguments) -> anyhow::Result<ExitCode> {
    let keys = grant::generate_key_pair();
    print_result(&format!(
        "# for the planner alone, a secret:\n[planner]\ngrant_key_id = \"{}\"",
        keys.id
    ));
    print_result(&format!("grant_key = \"{}\"\n", keys.private_key.expose_secret()));
    print_result(&format!(
        "# for executor, reporter and egress, public:\n[executor.grant_keys]\n{} = \"{}\"",
        keys.id, keys.public_key
    ));
    for section in ["reporter", "egress"] {
        print_result(&format!(
            "[{section}.grant_keys]\n{} = \"{}\"",
            keys.id, keys.public_key
        ));
    }
    Ok(ExitCode::SUCCESS)
}
