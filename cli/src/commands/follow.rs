//! Following a run to its end.

use std::process::ExitCode;

use domain::{Entry, Fact, StopReason, Timestamp};
use futures::{Stream, TryStreamExt};

use super::{say, say_error};
use crate::timeline;

/// Prints the journal as it comes and gives the reason of its end.
pub(super) async fn show(
    events: impl Stream<Item = Result<Entry, api::Error>>,
) -> anyhow::Result<StopReason> {
    let mut events = std::pin::pin!(events);
    let mut start: Option<Timestamp> = None;
    while let Some(entry) = events.try_next().await? {
        let start = *start.get_or_insert(entry.at);
        if let Some(line) = timeline::line(&entry, start) {
            say(&line);
        }
        if let Fact::RunFinished { reason } = entry.fact {
            return Ok(reason);
        }
    }
    anyhow::bail!("the live journal ended before the run did")
}

/// 0 for a run that is completed.
pub(super) fn exit_code(reason: &StopReason) -> ExitCode {
    match reason {
        StopReason::Completed => ExitCode::SUCCESS,
        other => {
            say_error(&format!("journeyman: the run ended: {}", other.as_str()));
            ExitCode::FAILURE
        }
    }
}
