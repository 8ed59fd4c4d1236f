//! The command line.

mod pull_request;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use domain::{RunId, TicketKey};

pub use pull_request::PullRequest;

/// Takes a ticket and brings back a pull request that a maintainer would merge.
#[derive(Debug, Parser)]
#[command(name = "journeyman", version, after_help = EXIT_CODES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str =
    "Exit codes: 0 done, 1 failed, 2 wrong arguments, 64 wrong setting, 130 interrupted.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start NATS, Redis and all five services on this machine; data under .journeyman/
    Up(Settings),
    /// Work on a text in a local git folder: needs a model's key, and neither Jira nor GitHub
    Try {
        /// What to do: one line, and more lines with details
        text: String,
        /// How.
        #[command(flatten)]
        asked: InFolder,
    },
    /// Play tasks whose solutions are known by their tests, and say how many are resolved and at what cost
    Eval(Eval),
    /// Work on one ticket now and wait for the end of the run
    ProcessTicket {
        /// The ticket: ENG-12, or jira:ENG-12; with --repository a file in Markdown
        #[arg(value_name = "TICKET")]
        ticket: String,
        /// How.
        #[command(flatten)]
        asked: InFolder,
    },
    /// Open a pull request from a local branch, link it on a Jira issue and move that to code review
    Pr(PullRequest),
    /// Print a run's journal
    Journal {
        /// The run: jira:ENG-12@57
        run: RunId,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
        /// Keep printing until the run is over
        #[arg(long, short)]
        follow: bool,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// List runs, newest last
    Runs {
        /// Only this ticket's
        #[arg(long, value_parser = ticket)]
        ticket: Option<TicketKey>,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Print what models took, counted from the journals that are kept
    Spend(Spend),
    /// Stop a run, or every live run of a ticket
    Stop {
        /// jira:ENG-12@57 for one run, jira:ENG-12 or ENG-12 for all of the ticket
        target: String,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Try again: a waiting run at once, a quarantined ticket from where it stands, a failed job from the start
    Retry(OfTicket),
    /// What could not be handled: list, show, retry, drop
    Dead {
        /// What to do.
        #[command(subcommand)]
        action: Dead,
    },
    /// Forget all that is stored of a ticket that nobody works on (needs an admin's token)
    Purge(OfTicket),
    /// Stop every planner, or let them go on (needs an admin's token)
    StopAll {
        /// on, off, or status
        #[arg(value_enum, default_value = "status")]
        switch: Switch,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Print the change that a run asks a person about
    Diff {
        /// The run
        run: RunId,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Decide at a run's approval gate
    Decide {
        /// The run that waits
        run: RunId,
        /// The answer
        verdict: Verdict,
        /// The commit that you have read, or its first 7 characters; needed to approve
        #[arg(long, value_name = "COMMIT", required_if_eq("verdict", "approve"))]
        head: Option<String>,
        /// For `revise`: what to change
        #[arg(long, default_value = "")]
        feedback: String,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Approve the change or plan of a ticket that waits for it
    Approve {
        /// The ticket.
        #[command(flatten)]
        of: OfTicket,
        /// The commit or plan that you have read, or its first 7 characters
        head: String,
    },
    /// Reject the change or plan of a ticket that waits for a decision; its run ends
    Reject(OfTicket),
    /// Say what to change before the change or plan of a ticket is asked about again
    Feedback {
        /// The ticket.
        #[command(flatten)]
        of: OfTicket,
        /// What to change
        text: String,
    },
    /// Check versions, connections, credentials, rules files and tools
    Doctor(Settings),
    /// Make a token for the API: the token for its bearer, the hash for ingest's settings
    Token {
        /// Who will bear it
        name: String,
        /// viewer, operator or admin
        #[arg(long, default_value = "viewer")]
        role: String,
    },
    /// Make a key pair for grants: the private key for the planner, the public key for executor, reporter and egress
    GrantKey,
    /// Make the keys and the password that services prove their identity with to NATS and Redis
    ServiceKeys,
    /// Print the users of NATS and what each may do, as k8s/base/settings/nats-users.conf holds them
    NatsUsers,
}

/// How one ticket is worked on.
#[derive(Debug, Clone, Args)]
pub struct InFolder {
    /// A folder with a git repository: the change becomes a branch of it and a patch, its files stay as they are [`try`: the
    /// current folder]
    #[arg(long, value_name = "DIR")]
    pub repository: Option<PathBuf>,
    /// The repository's rules file; for a folder optional, and without `repo:`
    #[arg(long = "config", value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Settings file; of a folder's ticket only the model and the limits in it count [for Jira: journeyman.toml, when it
    /// exists]
    #[arg(long, value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    pub settings: Option<PathBuf>,
    /// Folder for data [for Jira: .journeyman; for a folder: below ~/.local/state/journeyman]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The model, as its provider names it
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The provider's address
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// In a folder: check the branch out at the end; refused while there are uncommitted changes
    #[arg(long, conflicts_with = "dry_run")]
    pub accept: bool,
    /// In a folder: write no branch, and print the text and the change
    #[arg(long)]
    pub dry_run: bool,
}

/// An evaluation.
#[derive(Debug, Clone, Args)]
pub struct Eval {
    /// The data set: one instance a line, as JSON
    #[arg(value_name = "DATASET")]
    pub dataset: PathBuf,
    /// The model, as its provider names it
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The provider's address
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Settings file; only the model and the limits in it count
    #[arg(long, value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    pub settings: Option<PathBuf>,
    /// Rules for every instance, without `repo:`
    #[arg(long = "config", value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Instances at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,
    /// How often each instance is played
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Begin no run once this much is spent, in dollars; runs that go on then may still cost something
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub max_cost: Option<f64>,
    /// Folder for results and journals
    #[arg(long, value_name = "DIR", default_value = "eval-results")]
    pub out: PathBuf,
    /// Keep the results that are there, and play what has none
    #[arg(long)]
    pub resume: bool,
    /// Results of another evaluation (its folder) to compare with, instance by instance
    #[arg(long, value_name = "RESULTS")]
    pub compare: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: Format,
}

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

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table.
    Text,
    /// One JSON object.
    Json,
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.trim_start_matches('$').parse().ok();
    amount
        .filter(|usd| usd.is_finite() && *usd > 0.0)
        .ok_or_else(|| "must be more than 0, such as 2.50".to_owned())
}

/// Where the settings are.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// Settings file [default: journeyman.toml, when it exists]
    #[arg(long = "config", value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    pub settings: Option<PathBuf>,
    /// Folder for data
    #[arg(long, value_name = "DIR", default_value = ".journeyman")]
    pub data: PathBuf,
}

/// Where the API is and who asks.
#[derive(Debug, Clone, Args)]
pub struct Api {
    /// Base URL of the API [default: that of the `journeyman up` in .journeyman/]
    #[arg(long = "api", value_name = "URL", env = "JOURNEYMAN_API")]
    pub url: Option<String>,
    /// File that holds the API token (`JOURNEYMAN_TOKEN` may hold the token itself)
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub enum Dead {
    /// List them, newest last
    List {
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Print one with what it is about
    Show {
        /// Its number in the list
        sequence: u64,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Try it once more and forget the letter
    Retry {
        /// Its number in the list
        sequence: u64,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Forget it
    Drop {
        /// Its number in the list
        sequence: u64,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
}

/// The positions of the stop-all switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Stop every planner.
    On,
    /// Let them go on.
    Off,
    /// Show it.
    Status,
}

/// The answers at an approval gate.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Verdict {
    /// Push it.
    Approve,
    /// Stop the run.
    Reject,
    /// Back to the model with the feedback.
    Revise,
}

impl From<Verdict> for domain::Verdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Approve => Self::Approve,
            Verdict::Reject => Self::Reject,
            Verdict::Revise => Self::Revise,
        }
    }
}

/// A ticket, at the API.
#[derive(Clone, Debug, clap::Args)]
pub struct OfTicket {
    /// The ticket: ENG-12, or jira:ENG-12
    #[arg(value_parser = ticket)]
    pub ticket: TicketKey,
    /// Where the API is.
    #[command(flatten)]
    pub api: Api,
}

/// `ENG-12` means `jira:ENG-12`.
pub(crate) fn ticket(text: &str) -> Result<TicketKey, String> {
    TicketKey::jira(text)
        .or_else(|_| text.parse())
        .map_err(|invalid| invalid.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_jira_key_needs_no_prefix() {
        assert_eq!(ticket("ENG-12").unwrap().to_string(), "jira:ENG-12");
        assert_eq!(ticket("github:acme/shop#7").unwrap().short(), "acme/shop#7");
        assert!(ticket("eng-12").is_err());
    }
}
