//! Performs a report's effects, each one once: claim, look, attempt, create, receipt.

use std::{sync::Arc, time::Duration};

use bootstrap::rules::{RulesBook, RulesStore};
use domain::{Report, ReportFence, ReportOutcome, Rules, TicketKey, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::{
    effects::{Asked, Outside},
    ledger::{Claim, Intent, Ledger},
    plan::{Effect, Made, plan, repository_of},
    trouble::Trouble,
};

/// Waits between tries of one effect; after the last one it has failed.
const BACKOFF: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];
/// The longest wait that the outside may ask for.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// How long an attempt of unknown outcome is looked for before it is repeated.
const UNKNOWN_WINDOW_MS: i64 = 30_000;
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// How a report ended, and what of it did not work although the report as a whole did.
#[derive(Debug)]
pub(crate) struct Performed {
    pub(crate) outcome: ReportOutcome,
    /// Why people were not told, for the dead letters.
    pub(crate) untold: Option<String>,
}

/// Performs reports.
pub(crate) struct Performer {
    outside: Outside,
    ledger: Ledger,
    rules: RulesStore,
    shutdown: CancellationToken,
}

impl Performer {
    /// A performer over the outside, with its ledger.
    pub(crate) fn new(
        outside: Outside,
        ledger: Ledger,
        rules: RulesStore,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            outside,
            ledger,
            rules,
            shutdown,
        }
    }

    /// Performs every effect. An error means that the report is not settled: ledger lost, superseded or shutting down.
    pub(crate) async fn perform(&self, report: &Report, fence: ReportFence) -> Result<Performed, Trouble> {
        let book: Arc<RulesBook> = self.rules.book();
        let rules = rules_of(&book, report);
        let effects = plan(report, rules.unwrap_or(&Rules::default()));
        let is_told_only = effects.iter().all(is_telling);
        let mut made = Made::default();
        let mut failed: Option<ReportOutcome> = None;
        for effect in &effects {
            let id = format!("{}/{}", report.id, effect.name());
            let asked = Asked {
                report,
                rules,
                made: &made,
                id: &id,
            };
            match self.until_settled(&asked, effect, fence).await {
                Ok(part) => made.merge(part),
                Err(trouble) => {
                    let outcome = settled(trouble)?;
                    tracing::warn!(effect = effect.name(), ?outcome, "effect not done");
                    if !is_telling(effect) {
                        return Ok(Performed {
                            outcome,
                            untold: None,
                        });
                    }
                    failed.get_or_insert(outcome);
                }
            }
        }
        let done = ReportOutcome::Done(made.into_receipt(&report.request));
        Ok(match failed {
            Some(outcome) if is_told_only => Performed {
                outcome,
                untold: None,
            },
            // The branch or pull request stands; that nobody could be told of it must not undo that.
            Some(outcome) => Performed {
                outcome: done,
                untold: Some(words(&outcome)),
            },
            None => Performed {
                outcome: done,
                untold: None,
            },
        })
    }

    /// Tries one effect until it is done or has failed for good.
    async fn until_settled(
        &self,
        asked: &Asked<'_>,
        effect: &Effect,
        fence: ReportFence,
    ) -> Result<Made, Trouble> {
        for backoff in BACKOFF {
            let wait = match Box::pin(self.once(asked, effect, fence)).await {
                Err(Trouble::Later { detail, after }) => {
                    tracing::warn!(effect = effect.name(), %detail, "effect delayed");
                    after.map_or(backoff, |after| after.clamp(backoff, MAX_WAIT))
                }
                Err(Trouble::Unknown(detail)) => {
                    tracing::warn!(effect = effect.name(), %detail, "effect's outcome is unknown");
                    LOOK_INTERVAL
                }
                settled => return settled,
            };
            self.pause(wait).await?;
        }
        Box::pin(self.once(asked, effect, fence)).await
    }

    async fn once(&self, asked: &Asked<'_>, effect: &Effect, fence: ReportFence) -> Result<Made, Trouble> {
        let mut intent = match self.ledger.claim(asked.id, fence).await? {
            Claim::Done(receipt) => return read_receipt(&receipt),
            Claim::Open(intent) => intent,
        };
        if let Some(made) = self.find(asked, effect, &intent).await? {
            return self.settle(intent, made).await;
        }
        self.ledger.attempt(&mut intent, bootstrap::now()).await?;
        match self.outside.create(asked, effect).await {
            Ok(made) => self.settle(intent, made).await,
            Err(trouble @ (Trouble::Unknown(_) | Trouble::Ledger(_))) => Err(trouble),
            Err(trouble) => {
                self.ledger.withdraw(intent).await?;
                Err(trouble)
            }
        }
    }

    /// Looks whether the effect is done already. Where a repetition would show, an open attempt is looked for until it
    /// cannot arrive any more.
    async fn find(
        &self,
        asked: &Asked<'_>,
        effect: &Effect,
        intent: &Intent,
    ) -> Result<Option<Made>, Trouble> {
        let open_until = intent.open_since.map(|since| since.plus_ms(UNKNOWN_WINDOW_MS));
        if effect.absorbs_repetition() {
            return self.outside.look(asked, effect).await;
        }
        let Some(open_until) = open_until else {
            return Ok(None);
        };
        loop {
            if let Some(made) = self.outside.look(asked, effect).await? {
                return Ok(Some(made));
            }
            if bootstrap::now() >= open_until {
                return Ok(None);
            }
            self.pause(LOOK_INTERVAL.min(until(open_until))).await?;
        }
    }

    async fn settle(&self, intent: Intent, made: Made) -> Result<Made, Trouble> {
        let receipt = serde_json::to_string(&made).map_err(|error| Trouble::Failed(error.to_string()))?;
        self.ledger.settle(intent, receipt).await?;
        Ok(made)
    }

    async fn pause(&self, wait: Duration) -> Result<(), Trouble> {
        self.shutdown
            .run_until_cancelled(tokio::time::sleep(wait))
            .await
            .ok_or(Trouble::Shutdown)
    }
}

fn until(instant: Timestamp) -> Duration {
    let ms = instant.unix_ms().saturating_sub(bootstrap::now().unix_ms());
    Duration::from_millis(u64::try_from(ms).unwrap_or_default())
}

fn read_receipt(receipt: &str) -> Result<Made, Trouble> {
    serde_json::from_str(receipt).map_err(|error| Trouble::Failed(format!("the ledger's receipt: {error}")))
}

fn rules_of<'a>(book: &'a RulesBook, report: &Report) -> Option<&'a Rules> {
    match (repository_of(&report.request), &report.ticket) {
        (Some(repository), _) | (None, TicketKey::GitHub { repository, .. }) => {
            book.for_repository(repository)
        }
        (None, TicketKey::Jira { project, .. }) => book.for_project(project),
    }
}

/// Whether the effect only tells people of what is there anyway.
fn is_telling(effect: &Effect) -> bool {
    match effect {
        Effect::PushBranch(_) | Effect::OpenPullRequest(_) | Effect::MarkReady { .. } => false,
        Effect::LinkPullRequest { .. } | Effect::Transition { .. } | Effect::Comment { .. } => true,
    }
}

/// The outcome of an effect that is not done; what leaves the report unsettled stays an error.
fn settled(trouble: Trouble) -> Result<ReportOutcome, Trouble> {
    match trouble {
        Trouble::Refused(detail) => Ok(ReportOutcome::Refused { detail }),
        Trouble::Failed(detail) | Trouble::Missing(detail) | Trouble::Unknown(detail) => {
            Ok(ReportOutcome::Failed { detail })
        }
        Trouble::Later { detail, .. } => Ok(ReportOutcome::Failed { detail }),
        Trouble::Credentials { section, detail } => {
            tracing::error!(section, %detail, "credentials refused");
            let detail = "the reporter's credentials are refused; an operator has to look".to_owned();
            Ok(ReportOutcome::Failed { detail })
        }
        Trouble::Ledger(_) | Trouble::Shutdown => Err(trouble),
    }
}

/// The words of an outcome that is not done.
pub(crate) fn words(outcome: &ReportOutcome) -> String {
    match outcome {
        ReportOutcome::Done(_) => String::new(),
        ReportOutcome::Refused { detail } | ReportOutcome::Failed { detail } => detail.clone(),
    }
}
