//! `journeyman token`: a token for the API.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use secrecy::ExposeSecret;

use super::say;
use crate::credentials::new_token;

/// Make a token for the API: the token for its bearer, the hash for ingest's settings
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Who will bear it
    name: String,
    /// viewer, operator or admin
    #[arg(long, default_value = "viewer")]
    role: String,
}

pub(super) async fn run(Arguments { name, role }: Arguments) -> anyhow::Result<ExitCode> {
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !is_name {
        bail!("the name must be lower-case letters and digits");
    }
    if !["viewer", "operator", "admin"].contains(&role.as_str()) {
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
