//! Sink for the triggers of a dry run.

use domain::Trigger;
use parking_lot::{Mutex, MutexGuard};
use queue::AppendOutcome;

/// Triggers collected by a dry run.
#[derive(Debug, Default)]
pub(crate) struct DryRunSink(Mutex<Vec<Trigger>>);

impl DryRunSink {
    /// Adds a trigger once per ticket and key, like the log does.
    pub(crate) fn add(&self, trigger: &Trigger) -> AppendOutcome {
        let mut kept = self.triggers();
        let is_it = |other: &Trigger| other.ticket == trigger.ticket && other.key == trigger.key;
        if kept.iter().any(is_it) {
            return AppendOutcome::Known(0);
        }
        kept.push(trigger.clone());
        AppendOutcome::New(0)
    }

    /// Removes and returns the collected triggers.
    pub(crate) fn take(&self) -> Vec<Trigger> {
        std::mem::take(&mut *self.triggers())
    }

    fn triggers(&self) -> MutexGuard<'_, Vec<Trigger>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use domain::{Timestamp, TriggerChannel, TriggerKey, TriggerReason};

    use super::*;

    #[test]
    fn dry_run_trigger_is_kept_once() {
        let trigger = |ticket: &str, key: &str| Trigger {
            ticket: ticket.parse().unwrap(),
            key: TriggerKey::new(key),
            at: Timestamp::default(),
            source: TriggerChannel::Poll,
            actor: None,
            seen: None,
            reason: TriggerReason::RetryRequested,
        };
        let seen = DryRunSink::default();
        assert_eq!(seen.add(&trigger("jira:ENG-1", "a")), AppendOutcome::New(0));
        assert_eq!(seen.add(&trigger("jira:ENG-1", "a")), AppendOutcome::Known(0));
        assert_eq!(seen.add(&trigger("jira:ENG-2", "a")), AppendOutcome::New(0));
        assert_eq!(seen.take().len(), 2);
    }
}
