//! Arguments of `try` and `process-ticket`.

use std::path::PathBuf;

use clap::Args;

/// Options for the work on one ticket.
#[derive(Debug, Clone, Args)]
pub(in super::super) struct InFolder {
    /// A folder with a git repository: the change becomes a branch in it and a patch, the files in it stay unchanged [`try`:
    /// the current folder]
    #[arg(long, value_name = "DIR")]
    pub(in super::super) repository: Option<PathBuf>,
    /// The repository's rules file; optional for a folder, and without `repo:`
    #[arg(long = "config", value_name = "FILE")]
    pub(in super::super) rules: Option<PathBuf>,
    /// Settings file; for a ticket of a folder only its model and limits count [for Jira: journeyman.toml, when it exists]
    #[arg(long, value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    pub(in super::super) settings: Option<PathBuf>,
    /// Folder for data [for Jira: .journeyman; for a folder: below ~/.local/state/journeyman]
    #[arg(long, value_name = "DIR")]
    pub(in super::super) data: Option<PathBuf>,
    /// The model, by its provider's name for it
    #[arg(long, value_name = "NAME")]
    pub(in super::super) model: Option<String>,
    /// The provider's address
    #[arg(long, value_name = "URL")]
    pub(in super::super) base_url: Option<String>,
    /// In a folder: check the branch out at the end; refused while there are uncommitted changes
    #[arg(long, conflicts_with = "dry_run")]
    pub(in super::super) accept: bool,
    /// Write nothing: in a folder print the text and the change, for a ticket the job that would start
    #[arg(long)]
    pub(in super::super) dry_run: bool,
}
