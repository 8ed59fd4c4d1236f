//! Tokens for the API and key pairs for grants.

use std::process::ExitCode;

use anyhow::bail;
use secrecy::ExposeSecret;

use super::say;
use crate::local::new_token;

pub(super) fn token(name: &str, role: &str) -> anyhow::Result<ExitCode> {
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !is_name {
        bail!("the name must be lower-case letters and digits");
    }
    if !["viewer", "operator", "admin"].contains(&role) {
        bail!("the role must be viewer, operator or admin");
    }
    let (token, sha256) = new_token();
    say(&format!(
        "# for its bearer, shown once:\n{}\n",
        token.expose_secret()
    ));
    say(&format!(
        "# for journeyman.toml:\n[ingest.api_tokens.{name}]\nsha256 = \"{sha256}\"\nrole = \"{role}\""
    ));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn grant_key() -> ExitCode {
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
    ExitCode::SUCCESS
}
