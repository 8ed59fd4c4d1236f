//! `journeyman dead`: dead letters.

use std::process::ExitCode;

use api::{Act, types::DeadView};
use clap::{Args, Subcommand};

use super::{
    acting::{DryRun, perform},
    say,
    sure::Sure,
};
use crate::{access, args::Api};

/// Dead letters, which could not be handled: list, show, retry, drop
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// Action on dead letters.
#[derive(Debug, Subcommand)]
enum Action {
    /// List them, newest last
    List {
        #[command(flatten)]
        api: Api,
    },
    /// Print one with the record that it is about
    Show {
        /// Its number in the list
        sequence: u64,
        #[command(flatten)]
        api: Api,
    },
    /// Retry it and delete the letter
    Retry {
        /// Its number in the list
        sequence: u64,
        #[command(flatten)]
        dry: DryRun,
        #[command(flatten)]
        api: Api,
    },
    /// Delete it
    Drop {
        /// Its number in the list
        sequence: u64,
        #[command(flatten)]
        dry: DryRun,
        #[command(flatten)]
        sure: Sure,
        #[command(flatten)]
        api: Api,
    },
}

pub(super) async fn run(Arguments { action }: Arguments) -> anyhow::Result<ExitCode> {
    match action {
        Action::List { api } => {
            for letter in access::client(&api)?.dead_letters().await? {
                say(&line(&letter));
            }
        }
        Action::Show { sequence, api } => {
            let found = access::client(&api)?.dead_letter(sequence).await?;
            say(&line(&found.letter));
            say(&found.body);
        }
        Action::Retry { sequence, dry, api } => {
            let (client, done) = (access::client(&api)?, format!("retry asked for: {sequence}"));
            return perform(&client, Act::RetryLetter(sequence), dry, &done).await;
        }
        Action::Drop {
            sequence,
            dry,
            sure,
            api,
        } => {
            if let Some(refused) = sure.refused(dry) {
                return Ok(refused);
            }
            let (client, done) = (access::client(&api)?, format!("dropped: {sequence}"));
            return sure.perform(&client, Act::DropLetter(sequence), dry, &done).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(letter: &DeadView) -> String {
    format!(
        "{:>5}  {}  {:<8} {}  {}",
        letter.sequence, letter.at, letter.what, letter.id, letter.reason
    )
}
