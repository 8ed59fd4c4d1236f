//! The command line.

mod dead;
mod dispatch;
mod eval;
mod folder;
mod pull_request;
mod serve;
mod spend;
mod tickets;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use domain::{RunId, TicketKey};

pub use dead::Dead;
pub use dispatch::{ByHand, Dispatch};
pub use eval::Eval;
pub use folder::InFolder;
pub use pull_request::PullRequest;
pub use serve::{Serve, Watch};
pub use spend::{Spend, SpendBy};
pub use tickets::ListTickets;

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
    /// The same as `up`, with the port and the folder of rules on the command line
    Serve(Serve),
    /// Work on every ticket that asks for it and look after its pull request, by polls at an interval, without webhooks
    Watch(Watch),
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
    /// Ask for a job on a ticket or pull request and wait for the end of its run (needs an operator's token)
    Dispatch(Dispatch),
    /// List the tickets of the projects and repositories that the rules name, in any status
    ListTickets(ListTickets),
    /// Print what a ticket or pull request says now
    ShowTicket(OfTicket),
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

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table.
    Text,
    /// One JSON object.
    Json,
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

/// `ENG-12` means `jira:ENG-12`, `acme/shop#7` means `github:acme/shop#7`.
pub(crate) fn ticket(text: &str) -> Result<TicketKey, String> {
    TicketKey::jira(text)
        .or_else(|_| match text.contains('#') && !text.contains(':') {
            true => format!("github:{text}").parse(),
            false => text.parse(),
        })
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
    fn keys_of_the_default_instances_need_no_prefix() {
        assert_eq!(ticket("ENG-12").unwrap().to_string(), "jira:ENG-12");
        assert_eq!(ticket("acme/shop#7").unwrap().to_string(), "github:acme/shop#7");
        assert_eq!(ticket("github:acme/shop#7").unwrap().short(), "acme/shop#7");
        assert!(ticket("eng-12").is_err());
    }
}
