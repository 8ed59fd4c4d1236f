//! `journeyman login`: default address and token of later commands.

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use api::{Client, types::RunsQuery};
use clap::Args;
use secrecy::SecretString;

use super::print_result;
use crate::access::{self, ApiAccess, SavedLogins};

/// Store the address and token of an API for your commands, after a check that it accepts the token
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Base URL of the API, without /v1
    #[arg(value_parser = parse_address)]
    url: String,
    /// File that holds the token; - for standard input
    #[arg(long, value_name = "FILE", required_unless_present = "forget")]
    token_file: Option<PathBuf>,
    /// Remove the token of this address instead
    #[arg(long, conflicts_with = "token_file")]
    forget: bool,
}

/// Parses an address. A trailing slash is removed, so that equal addresses are equal texts.
fn parse_address(text: &str) -> Result<String, String> {
    let url = text.trim_end_matches('/');
    match url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
    {
        Some(host) if !host.is_empty() => Ok(url.to_owned()),
        _ => Err("must begin with https:// or http://".to_owned()),
    }
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { url, token_file, .. } = asked;
    let Some(file) = token_file else {
        if !SavedLogins::read()?.forget(&url)? {
            bail!("there is no login at {url}");
        }
        print_result(&format!("forgot the token of {url}"));
        return Ok(ExitCode::SUCCESS);
    };
    let client = Client::new(&url, SecretString::from(access::token_in(&file)?))?;
    // The cheapest authenticated request: it proves the token before it is stored.
    let least = RunsQuery {
        limit: Some(1),
        ..RunsQuery::default()
    };
    client.list_runs(&least).await?;
    SavedLogins::read()?.keep(ApiAccess::of(&client))?;
    print_result(&format!("logged in to {url}"));
    Ok(ExitCode::SUCCESS)
}
