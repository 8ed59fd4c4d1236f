//! Tokens of the API: `journeyman token` generates one, `journeyman login` stores one for later commands.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use api::{Client, types::RunsQuery};
use clap::Args;
use domain::{InstanceName, RepositoryName, TicketKey};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

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
    let smallest = RunsQuery {
        limit: Some(1),
        ..RunsQuery::default()
    };
    client.runs().list(&smallest).await?;
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
    repositories: Vec<RepositoryName>,
    /// Only the issues of this Jira project; may be repeated
    #[arg(long = "project", value_name = "KEY", value_parser = parse_project)]
    projects: Vec<String>,
}

fn parse_bearer_name(text: &str) -> Result<String, String> {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if !text.is_empty() && text.bytes().all(is_valid) {
        Ok(text.to_owned())
    } else {
        Err("must be lower-case letters and digits".to_owned())
    }
}

fn parse_role(text: &str) -> Result<String, String> {
    if ["viewer", "operator", "admin"].contains(&text) {
        Ok(text.to_owned())
    } else {
        Err("must be viewer, operator or admin".to_owned())
    }
}

/// Parses `ENG`, or `work:ENG` for a project on the site `work`: what ingest accepts in `projects`.
fn parse_project(text: &str) -> Result<String, String> {
    let expected = || "must be a Jira project such as ENG, or work:ENG for one on the site work".to_owned();
    let (instance, key) = match text.split_once(':') {
        Some((instance, key)) => {
            let instance: InstanceName = instance.parse().map_err(|_| expected())?;
            (Some(instance), key)
        }
        None => (None, text),
    };
    // The parser of issue keys validates the project key.
    match TicketKey::jira_on(instance, &format!("{key}-1")) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(expected()),
    }
}

pub(super) async fn run_token(asked: TokenArguments) -> anyhow::Result<ExitCode> {
    let (token, sha256) = generate_token();
    let settings = asked.render_settings(&sha256)?;
    print_result(&format!(
        "# for its bearer, shown once:\n{}\n",
        token.expose_secret()
    ));
    print_result(&format!("# for journeyman.toml:\n{settings}"));
    Ok(ExitCode::SUCCESS)
}

/// Section of the settings for one token. A list that is left out does not limit the token.
#[derive(Serialize)]
struct TokenSection<'a> {
    sha256: &'a str,
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    repositories: Option<&'a [RepositoryName]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    projects: Option<&'a [String]>,
}

impl TokenArguments {
    /// Section for the settings of ingest.
    fn render_settings(&self, sha256: &str) -> anyhow::Result<String> {
        let section = TokenSection {
            sha256,
            role: &self.role,
            repositories: Some(self.repositories.as_slice()).filter(|names| !names.is_empty()),
            projects: Some(self.projects.as_slice()).filter(|names| !names.is_empty()),
        };
        let section = toml::to_string(&section).context("the settings cannot be written as TOML")?;
        Ok(format!(
            "[ingest.api_tokens.{}]\n{}",
            self.name,
            section.trim_end()
        ))
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
            repositories: ["acme/shop", "ghe:acme/docs"]
                .map(|name| name.parse().unwrap())
                .to_vec(),
            projects: vec!["ENG".to_owned()],
        };
        let settings = asked.render_settings("abc").unwrap();
        assert_eq!(
            settings,
            "[ingest.api_tokens.shop]\nsha256 = \"abc\"\nrole = \"viewer\"\n\
             repositories = [\"acme/shop\", \"ghe:acme/docs\"]\nprojects = [\"ENG\"]"
        );
        asked.projects.clear();
        asked.repositories.clear();
        let settings = asked.render_settings("abc").unwrap();
        assert_eq!(
            settings,
            "[ingest.api_tokens.shop]\nsha256 = \"abc\"\nrole = \"viewer\""
        );
    }

    #[test]
    fn scope_of_unknown_form_is_refused() {
        use clap::Parser;

        #[derive(Parser)]
        struct TokenCommand {
            #[command(flatten)]
            token: TokenArguments,
        }
        let parse = |flag: &str, value: &str| TokenCommand::try_parse_from(["token", "shop", flag, value]);
        for (flag, value) in [
            ("--repository", "acme/shop"),
            ("--repository", "ghe:acme/shop"),
            ("--project", "ENG"),
            ("--project", "work:ENG"),
        ] {
            let parsed = parse(flag, value).unwrap().token;
            let named = parsed
                .repositories
                .iter()
                .map(ToString::to_string)
                .chain(parsed.projects);
            assert_eq!(named.collect::<Vec<_>>(), [value], "{flag}");
        }
        for (flag, value) in [
            ("--repository", "shop"),
            ("--repository", "acme/shop\u{e9}"),
            ("--project", "eng"),
            ("--project", "ENG-1"),
            ("--project", ":ENG"),
            ("--project", "E\u{7f}"),
        ] {
            assert!(parse(flag, value).is_err(), "{flag} {value:?}");
        }
    }
}
