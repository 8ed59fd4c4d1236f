//! Arguments of `list-tickets`.

use clap::Args;
use domain::RepositoryName;

use super::{Api, Format};

/// Which tickets to list.
#[derive(Debug, Clone, Args)]
pub struct ListTickets {
    /// Only in this status: one of Jira's, or open or closed at GitHub [default: those that are not over]
    #[arg(long)]
    pub status: Option<String>,
    /// Only of this repository's Jira project and issues
    #[arg(long, value_name = "OWNER/NAME")]
    pub repository: Option<RepositoryName>,
    /// Choose a ticket with the arrow keys: process it, see what would be started, read it
    #[arg(long, short, conflicts_with = "output")]
    pub interactive: bool,
    /// How the list is printed
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: Format,
    /// Where the API is.
    #[command(flatten)]
    pub api: Api,
}
