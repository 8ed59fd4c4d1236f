//! `journeyman grant-key`: a key pair for grants.

use std::process::ExitCode;

use clap::Args;
use secrecy::ExposeSecret;

use super::say;

/// Generate a key pair for grants: the private key for the planner, the public key for executor, reporter and
/// egress
#[derive(Debug, Args)]
pub(super) struct Arguments {}

pub(super) async fn run(_: Arguments) -> anyhow::Result<ExitCode> {
    let keys = grant::generate();
    say(&format!(
        "# for the planner alone, a secret:\n[planner]\ngrant_key_id = \"{}\"",
        keys.id
    ));
    say(&format!("grant_key = \"{}\"\n", keys.private_key.expose_secret()));
    say(&format!(
        "# for executor, reporter and egress, public:\n[executor.grant_keys]\n{} = \"{}\"",
        keys.id, keys.public_key
    ));
    for section in ["reporter", "egress"] {
        say(&format!(
            "[{section}.grant_keys]\n{} = \"{}\"",
            keys.id, keys.public_key
        ));
    }
    Ok(ExitCode::SUCCESS)
}
