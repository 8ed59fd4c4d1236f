//! Tokens of the API: `journeyman token` generates one, `journeyman login` stores one for later commands.

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use api::{Client, types::RunsQuery};
use clap::Args;
use secrecy::{ExposeSecret, SecretString};

use super::print_result;
use crate::{
    access::{self, ApiAccess, BrokenLogins, SavedLogins},
    secrets::generate_token,
};

/// Store the address and token of an API for your commands, after a check that it accepts the token
#[derive(Debug, Args)]
pub(super) struct LoginArguments {
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

pub(super) async fn run_login(asked: LoginArguments) -> anyhow::Result<ExitCode> {
    let LoginArguments { url, token_file, .. } = asked;
    let Some(file) = token_file else {
        forget_login(&url)?;
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

/// Removes the token of an address, or a file of logins in which no token can be found.
fn forget_login(url: &str) -> anyhow::Result<()> {
    let logins = match SavedLogins::read() {
        Ok(logins) => logins,
        Err(error) => {
            let broken: BrokenLogins = error.downcast()?;
            print_result(&format!(
                "removed {}: it held no readable logins",
                broken.remove()?
            ));
            return Ok(());
        }
    };
    if !logins.forget(url)? {
        bail!("no login is stored for {url}");
    }
    print_result(&format!("forgot the token of {url}"));
    Ok(())
}

/// Generate a token for the API: the token for its bearer, the hash for ingest's settings
#[derive(Debug, Args)]
pub(super) struct TokenArguments {
    /// Name of the bearer
    #[arg(value_parser = parse_bearer_name)]
    name: String,
    /// viewer, operator or admin
    #[arg(long, default_value = "viewer", value_parser = parse_role)]
    role: String,
    /// Only the issues, pull requests and discussions of this repository; may be repeated
    #[arg(long = "repository", value_name = "OWNER/NAME")]
    repositories: Vec<String>,
    /// Only the issues of this Jira project; may be repeated
    #[arg(long = "project", value_name = "KEY")]
    projects: Vec<String>,
}

fn parse_bearer_name(text: &str) -> Result<String, String> {
    let is_legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match !text.is_empty() && text.bytes().all(is_legal) {
        true => Ok(text.to_owned()),
        false => Err("must be lower-case letters and digits".to_owned()),
    }
}

fn parse_role(text: &str) -> Result<String, String> {
    match ["viewer", "operator", "admin"].contains(&text) {
        true => Ok(text.to_owned()),
        false => Err("must be viewer, operator or admin".to_owned()),
    }
}

pub(super) async fn run_token(asked: TokenArguments) -> anyhow::Result<ExitCode> {
    let TokenArguments { name, role, .. } = &asked;
    let (token, sha256) = generate_token();
    print_result(&format!(
        "# for its bearer, shown once:\n{}\n",
        token.expose_secret()
    ));
    print_result(&format!(
        "# for journeyman.toml:\n[ingest.api_tokens.{name}]\nsha256 = \"{sha256}\"\nrole = \"{role}\"{}",
        asked.scope()
    ));
    Ok(ExitCode::SUCCESS)
}

impl TokenArguments {
    /// Settings of a limited token; empty for a token without limits.
    fn scope(&self) -> String {
        let lists = [("repositories", &self.repositories), ("projects", &self.projects)];
        let lines = lists.into_iter().filter(|(_, names)| !names.is_empty());
        lines.map(|(key, names)| format!("\n{key} = {names:?}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_token_lists_its_scope_only() {
        let mut asked = TokenArguments {
            name: "shop".to_owned(),
            role: "viewer".to_owned(),
            repositories: vec!["acme/shop".to_owned(), "acme/docs".to_owned()],
            projects: vec!["ENG".to_owned()],
        };
        assert_eq!(
            asked.scope(),
            "\nrepositories = [\"acme/shop\", \"acme/docs\"]\nprojects = [\"ENG\"]"
        );
        asked.projects.clear();
        asked.repositories.clear();
        assert_eq!(asked.scope(), "");
    }
}
