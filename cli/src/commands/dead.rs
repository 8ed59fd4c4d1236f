//! `journeyman dead`: dead letters.

use std::process::ExitCode;

use api::{ApiAction, types::DeadView};
use clap::{Args, Subcommand};

use super::{
    confirmation::{ConfirmationOption, DryRun, perform_act},
    print_result,
};
use crate::{access, args::ApiArguments};

/// Dead letters, which could not be handled: list, show, retry, drop
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: DeadLetterAction,
}

/// Action on dead letters.
#[derive(Debug, Subcommand)]
enum DeadLetterAction {
    /// List them, newest last
    List {
        #[command(flatten)]
        api: ApiArguments,
    },
    /// Print one with the record that it is about
    Show {
        /// Its number in the list
        sequence: u64,
        #[command(flatten)]
        api: ApiArguments,
    },
    /// Retry it and delete the letter
    Retry {
        /// Its number in the list
        sequence: u64,
        #[command(flatten)]
        dry: DryRun,
        #[command(flatten)]
        api: ApiArguments,
    },
    /// Delete it
    Drop {
        /// Its number in the list
        sequence: u64,
        #[command(flatten)]
        dry: DryRun,
        #[command(flatten)]
        sure: ConfirmationOption,
        #[command(flatten)]
        api: ApiArguments,
    },
}

pub(super) async fn run_command(Arguments { action }: Arguments) -> anyhow::Result<ExitCode> {
    match action {
        DeadLetterAction::List { api } => {
            for letter in access::build_client(&api)?.dead_letters().list().await? {
                print_result(&render_letter_line(&letter));
            }
        }
        DeadLetterAction::Show { sequence, api } => {
            let found = access::build_client(&api)?.dead_letters().read(sequence).await?;
            print_result(&render_letter_line(&found.letter));
            print_result(&found.body);
        }
        DeadLetterAction::Retry { sequence, dry, api } => {
            let (client, done) = (
                access::build_client(&api)?,
                format!("retry asked for: {sequence}"),
            );
            return perform_act(&client, ApiAction::RetryLetter(sequence), dry, &done).await;
        }
        DeadLetterAction::Drop {
            sequence,
            dry,
            sure,
            api,
        } => {
            if let Some(refused) = sure.refused(dry) {
                return Ok(refused);
            }
            let (client, done) = (access::build_client(&api)?, format!("dropped: {sequence}"));
            return sure
                .perform(&client, ApiAction::DropLetter(sequence), dry, &done)
                .await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn render_letter_line(letter: &DeadView) -> String {
    format!(
        "{:>5}  {}  {:<8} {}  {}",
        letter.sequence, letter.at, letter.what, letter.id, letter.reason
    )
}
