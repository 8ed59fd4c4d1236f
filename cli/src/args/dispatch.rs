//! Arguments of `dispatch`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domain::{Job, RepositoryName, TicketKey};

use super::{Api, Format, ticket};

/// A job that is asked for by hand.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  journeyman dispatch --job implement --ticket ENG-12
  journeyman dispatch --job fix_ci --ticket acme/shop#7
  echo '{\"question\": \"Why is tax 5 %?\"}' | journeyman dispatch --job answer --ticket ENG-12 --context -")]
pub struct Dispatch {
    /// The kind of work
    #[arg(long, value_enum)]
    pub job: ByHand,
    /// The ticket or pull request: ENG-12, jira:ENG-12, acme/shop#7 or github:acme/shop#7
    #[arg(long, value_parser = ticket, value_name = "KEY")]
    pub ticket: TicketKey,
    /// File with a JSON object, or - for standard input: `instructions` (implement, `fix_ci`, review), `question` (answer),
    /// `feedback` (`address_review`), `pr_number`; what can be read at Jira or GitHub is read there
    #[arg(long, value_name = "FILE|-")]
    pub context: Option<PathBuf>,
    /// For implement: another repository than that of the ticket's project
    #[arg(long, value_name = "OWNER/NAME")]
    pub repository: Option<RepositoryName>,
    /// Starts the job once, however often the command is repeated with this key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Rehearse the job: everything from the request to the reporter, without model, workspace, push and outside writes; what
    /// would be written is printed
    #[arg(long, conflicts_with = "dry_run")]
    pub mock: bool,
    /// Print which job would be started, and start none
    #[arg(long, conflicts_with_all = ["detach", "key"])]
    pub dry_run: bool,
    /// Do not wait for the end of the run
    #[arg(long)]
    pub detach: bool,
    /// How the result is printed; with json no timeline
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: Format,
    /// Where the API is.
    #[command(flatten)]
    pub api: Api,
}

/// A job that can be asked for by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ByHand {
    /// Write the change that a ticket asks for
    #[value(alias = "issue-iterate")]
    Implement,
    /// Label a ticket
    #[value(alias = "issue-triage")]
    Triage,
    /// Answer a question on a ticket or on our pull request
    Answer,
    /// Review a pull request of others
    #[value(alias = "pr-review")]
    Review,
    /// Repair the red checks of our pull request
    FixCi,
    /// Do what a review of our pull request asks for
    AddressReview,
}

impl From<ByHand> for Job {
    fn from(job: ByHand) -> Self {
        match job {
            ByHand::Implement => Self::Implement,
            ByHand::Triage => Self::Triage,
            ByHand::Answer => Self::Answer,
            ByHand::Review => Self::Review,
            ByHand::FixCi => Self::FixCi,
            ByHand::AddressReview => Self::AddressReview,
        }
    }
}
