//! Arguments of `spend`.

use clap::{Args, ValueEnum};

use super::{Api, Format};

/// What to print of what models took.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example: journeyman spend --since 2026-11-01 --by ticket")]
pub struct Spend {
    /// From this day (UTC) or RFC 3339 instant on [default: the first of the month]
    #[arg(long, value_name = "DAY")]
    pub since: Option<String>,
    /// Before this day (UTC) or RFC 3339 instant [default: now]
    #[arg(long, value_name = "DAY")]
    pub until: Option<String>,
    /// What each line is about
    #[arg(long, value_enum, default_value = "repository")]
    pub by: SpendBy,
    /// How it is printed
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: Format,
    /// Where the API is.
    #[command(flatten)]
    pub api: Api,
}

/// What is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpendBy {
    /// All repositories of an owner.
    Organization,
    /// A repository.
    Repository,
    /// A ticket.
    Ticket,
    /// A kind of work.
    Job,
    /// A model.
    Model,
    /// A day.
    Day,
}
