//! `journeyman token`: tokens for the API.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use secrecy::ExposeSecret;

use super::print_result;
use crate::secrets::generate_token;

/// Generate a token for the API: the token for its bearer, the hash for ingest's settings
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Name of the bearer
    name: String,
    /// viewer, operator or admin
    #[arg(long, default_value = "viewer")]
    role: String,
    /// Only the issues, pull requests and discussions of this repository; may be repeated
    #[arg(long = "repository", value_name = "OWNER/NAME")]
    repositories: Vec<String>,
    /// Only the issues of this Jira project; may be repeated
    #[arg(long = "project", value_name = "KEY")]
    projects: Vec<String>,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, role, .. } = &asked;
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

impl Arguments {
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
        let mut asked = Arguments {
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
