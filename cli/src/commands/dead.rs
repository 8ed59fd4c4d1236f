//! `journeyman dead`: what could not be handled.

use std::process::ExitCode;

use ingest::api::types::DeadView;

use super::say;
use crate::{api::Client, args::Dead};

pub(super) async fn run(action: Dead) -> anyhow::Result<ExitCode> {
    match action {
        Dead::List { api } => {
            for letter in Client::from_args(&api)?.dead_letters().await? {
                say(&line(&letter));
            }
        }
        Dead::Show { sequence, api } => {
            let found = Client::from_args(&api)?.dead_letter(sequence).await?;
            say(&line(&found.letter));
            say(&found.body);
        }
        Dead::Retry { sequence, api } => {
            Client::from_args(&api)?.retry_dead_letter(sequence).await?;
            say(&format!("retry asked for: {sequence}"));
        }
        Dead::Drop { sequence, api } => {
            Client::from_args(&api)?.drop_dead_letter(sequence).await?;
            say(&format!("dropped: {sequence}"));
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
