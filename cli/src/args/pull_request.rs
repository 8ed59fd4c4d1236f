//! The arguments of `journeyman pr`.

use std::path::PathBuf;

use clap::Args;

use super::Api;

/// A pull request that somebody asks for.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "With `working_directory` in the request, the branch is pushed from there and no service is needed.
With `repository` in its place, the branch is at GitHub already and the running services open the pull request."
)]
pub struct PullRequest {
    /// The request: a file with one JSON object, or `-` for standard input
    #[arg(long, value_name = "FILE|-")]
    pub input: PathBuf,
    /// Write nothing, and print what would be written
    #[arg(long)]
    pub dry_run: bool,
    /// The transition to code review, by its name or that of the status that it leads to
    #[arg(long, value_name = "NAME")]
    pub transition: Option<String>,
    /// Take the Jira issue from the branch's name, where the request names none
    #[arg(long)]
    pub jira_key_from_branch: bool,
    /// Settings file [default: journeyman.toml, when it exists]
    #[arg(long = "config", value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    pub settings: Option<PathBuf>,
    /// For a request with `repository`: asks once, however often the command is repeated with this key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Where the API is, for a request with `repository`.
    #[command(flatten)]
    pub api: Api,
}
