//! Dry run of one polling round. It stores nothing.

use std::{
    fmt::{Debug, Write as _},
    mem::take,
    sync::Arc,
    time::Duration,
};

use domain::Trigger;
use parking_lot::{Mutex, MutexGuard};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    instrument::WithSubscriber,
    span,
};

use crate::{
    Config,
    poll::poller::TrackerPoller,
    router::DryRunSink,
    service::{IngestService, connect_once},
};

/// Result of a dry-run polling round.
#[derive(Debug)]
pub struct DryRound {
    /// Triggers that a real round would append to the logs of tickets.
    pub triggers: Vec<Trigger>,
    /// Reads that failed, as log messages for an operator.
    pub problems: Vec<String>,
}

/// Runs one round of all polls without storing anything.
///
/// # Errors
/// When NATS cannot be reached or settings turn out not to work.
pub async fn run_dry_round(config: &Config) -> anyhow::Result<DryRound> {
    let service = IngestService::new(config)?;
    let queue = connect_once(&config.nats).await?;
    let seen = Arc::new(DryRunSink::default());
    let mut router = service.router_over(config, queue);
    router.seen = Some(Arc::clone(&seen));
    let interval = Duration::from_secs(config.ingest.poll_interval_s);
    let settle = Duration::from_secs(config.ingest.checks_absent_s);
    let pending = Duration::from_secs(config.ingest.checks_pending_s);
    // Polls report failures in the log only, so a subscriber collects them.
    let log = LogCollector::default();
    let mut poller = TrackerPoller::new(router, interval, (settle, pending));
    Box::pin(poller.poll().with_subscriber(log.clone())).await;
    Ok(DryRound {
        triggers: seen.take(),
        problems: log.take(),
    })
}

/// Log subscriber that collects warnings and errors. Polls continue after a failure, and the user
/// should see what is missing.
#[derive(Clone, Default)]
pub(crate) struct LogCollector(Arc<Mutex<Vec<String>>>);

impl LogCollector {
    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock()
    }

    /// Removes and returns the collected lines.
    pub(crate) fn take(&self) -> Vec<String> {
        take(&mut *self.lines())
    }
}

impl Subscriber for LogCollector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN && metadata.target().starts_with("ingest")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = LogSentence::default();
        event.record(&mut line);
        self.lines().push(line.into_text());
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        // Spans are ignored. `Id::from_u64` panics for 0.
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Log line as a sentence: its fields, the message and the error.
#[derive(Default)]
struct LogSentence {
    about: String,
    message: String,
    error: String,
}

impl LogSentence {
    fn into_text(self) -> String {
        let Self {
            about,
            message,
            error,
        } = self;
        if error.is_empty() {
            format!("{about}{message}")
        } else {
            format!("{about}{message}: {error}")
        }
    }
}

impl Visit for LogSentence {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let part = match field.name() {
            "message" => &mut self.message,
            "error" => &mut self.error,
            _ => {
                // Writing to a `String` does not fail.
                let _ = write!(self.about, "{value:?}: ");
                return;
            }
        };
        *part = format!("{value:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dry_round_reports_failed_reads_only() {
        let log = LogCollector::default();
        tracing::subscriber::with_default(log.clone(), || {
            let span = tracing::info_span!("poll");
            let _entered = span.enter();
            tracing::info!("all is well");
            tracing::warn!(project = "ENG", error = %"503", "poll of the project failed");
            tracing::warn!(target: "other", "not of ingest");
        });
        assert_eq!(*log.lines(), ["ENG: poll of the project failed: 503"]);
    }
}
