//! Performs a report's effects, each one once: claim, look, attempt, create, receipt.

use std::{sync::Arc, time::Duration};

use bootstrap::rules::{RulesBook, RulesStore};
use domain::{Report, ReportFence, ReportOutcome, Rules, cause::chain};
use futures::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    effects::{Asked, Effect, Outside, Thread, TicketRecords},
    ledger::{self, Claim, Intent, Ledger},
    made::{How, Made, Settled},
    message,
    outgoing::Outgoing,
    reports::{self, named, plan},
    telemetry,
    trouble::Trouble,
};

// Interval of the search for an attempt of unknown outcome.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Time limits of GitHub and Jira.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// Time after the start of an attempt in which it may still arrive. The reporter searches for it until then.
    pub(crate) unknown: Duration,
    /// Time after which lists show a write.
    pub(crate) list_lag: Duration,
}

/// Decides if a temporary failure leaves the report unsettled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It does, because another try follows.
    More,
    /// It settles the report, because this is the last try.
    Last,
}

/// Outcome of a report, and the failure of a notification if the report succeeded without it.
#[derive(Debug)]
pub(crate) struct Performed {
    pub(crate) outcome: ReportOutcome,
    /// Reason why people were not notified, for the dead letters.
    pub(crate) untold: Option<String>,
}

/// Performer of reports, with its clients and stores.
pub(crate) struct Performer {
    pub(crate) outside: Outside,
    pub(crate) ledger: Ledger,
    pub(crate) rules: RulesStore,
    pub(crate) windows: Windows,
    pub(crate) shutdown: CancellationToken,
}

impl Performer {
    /// Performs all effects of a report. A repetition repeats no finished effect.
    ///
    /// # Errors
    /// The report is not settled: the ledger failed, another reporter has the ticket, the failure may pass, or the
    /// process shuts down.
    pub(crate) async fn perform(
        &self,
        report: &Report,
        fence: ReportFence,
        patience: Patience,
    ) -> Result<Performed, Trouble> {
        let book: Arc<RulesBook> = self.rules.book();
        let rules = rules_of(&book, report);
        let effects = plan(report, rules.unwrap_or(&Rules::default()));
        let records = TicketRecords::new(&self.outside, report, rules);
        // All targets are checked before the first effect: a report with a foreign target has no effect at all.
        let mut clearances = Vec::with_capacity(effects.len());
        for effect in &effects {
            match Box::pin(records.clear(&**effect)).await {
                Ok(cleared) => clearances.push(cleared),
                Err(trouble) => {
                    let outcome = settled(report, trouble, patience)?;
                    return Ok(Performed {
                        outcome,
                        untold: None,
                    });
                }
            }
        }
        let is_told_only = effects.iter().all(|effect| effect.only_tells());
        let mut made = Made::default();
        let mut failed: Option<ReportOutcome> = None;
        let nothing = Outgoing::default();
        for ((name, effect), cleared) in named(&effects).zip(&clearances) {
            let Some(cleared) = cleared else { continue };
            let id = format!("{}/{name}", report.id);
            let asked = Asked {
                report,
                rules,
                cleared,
                made: &made,
                id: &id,
                text: &nothing,
                rounds: None,
            };
            match Box::pin(self.measured(&asked, effect, fence)).await {
                Ok(part) => made.merge(part),
                Err(trouble) => {
                    let outcome = settled(report, trouble, patience)?;
                    tracing::warn!(effect = effect.name(), ?outcome, "effect not done");
                    // A failed notification does not stop the effects after it.
                    if !effect.only_tells() {
                        return Ok(Performed {
                            outcome,
                            untold: None,
                        });
                    }
                    failed.get_or_insert(outcome);
                }
            }
        }
        // Reached only if all effects that matter are done; notifications may have failed.
        let done = ReportOutcome::Done(reports::receipt(report, rules.unwrap_or(&Rules::default()), made));
        Ok(match failed {
            Some(outcome) if is_told_only => Performed {
                outcome,
                untold: None,
            },
            // The branch or pull request exists. A failed notification must not undo that.
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

    async fn measured(
        &self,
        asked: &Asked<'_>,
        effect: &dyn Effect,
        fence: ReportFence,
    ) -> Result<Made, Trouble> {
        let started = Instant::now();
        // Boxed, because the compiler limits the depth of nested future types.
        let settling: BoxFuture<'_, _> = match (effect.tells_in(), effect.shows_round()) {
            (Some(_), _) if reports::is_silent(asked) => Box::pin(async {
                let made = Made::default();
                Ok(Settled {
                    made,
                    how: How::Known,
                })
            }),
            (Some(thread), _) => Box::pin(self.tell(asked, thread, effect, fence)),
            (None, Some(round)) => Box::pin(self.show_rounds(asked, round, effect, fence)),
            (None, None) => Box::pin(self.once(asked, effect, fence)),
        };
        let settled = settling.await;
        telemetry::effect(effect.name(), started.elapsed(), &settled);
        settled.map(|settled| settled.made)
    }

    /// Performs one effect: claim, look, attempt, create, receipt.
    pub(crate) async fn once(
        &self,
        asked: &Asked<'_>,
        effect: &dyn Effect,
        fence: ReportFence,
    ) -> Result<Settled, Trouble> {
        // The last line of defense: no effect runs without its own clearance.
        if !asked.cleared.covers(effect) {
            return Err(Trouble::Failed(message::unchecked_effect()));
        }
        let mut intent = match self.ledger.claim(&asked.report.ticket, asked.id, fence).await? {
            Claim::Done(made) => {
                return Ok(Settled {
                    made: *made,
                    how: How::Known,
                });
            }
            Claim::Open(intent) => intent,
        };
        if let Some(made) = self.find(asked, effect, &intent).await? {
            return self.settle(intent, made, How::Found).await;
        }
        // The attempt is recorded before the write: after a crash in between, the next reporter searches for its
        // result.
        self.ledger.attempt(&mut intent, bootstrap::now()).await?;
        let create: BoxFuture<'_, _> = effect.create(&self.outside, asked);
        match failpoint::around_kind("reporter.effect.create", effect.name(), create).await {
            Ok(made) => match self.settle(intent, made.clone(), How::Created).await {
                // The write happened although another reporter has the ticket by now.
                Err(superseded @ Trouble::Ledger(ledger::Error::Superseded)) => {
                    self.take_back(asked, &made).await;
                    Err(superseded)
                }
                settled => settled,
            },
            // The write may have happened, so its attempt stays in the ledger.
            Err(trouble @ (Trouble::Unknown(_) | Trouble::Ledger(_))) => Err(trouble),
            // The failure is certain, so no later try has to search for a result.
            Err(trouble) => {
                self.ledger.withdraw(intent).await?;
                Err(trouble)
            }
        }
    }

    /// Deletes our comment if another reporter took over and commented first.
    async fn take_back(&self, asked: &Asked<'_>, made: &Made) {
        let Some(ours) = &made.comment else { return };
        let receipt = self.ledger.receipt(&asked.report.ticket, asked.id).await;
        let theirs = receipt.ok().flatten().and_then(|made| made.comment);
        // Without a receipt of the other reporter, our comment may be the only one.
        if theirs.is_none_or(|theirs| theirs == *ours) {
            return;
        }
        match self
            .outside
            .delete_comment(&Thread::of(&asked.report.ticket), ours)
            .await
        {
            Ok(()) => tracing::warn!(comment = %ours, "comment came second; deleted"),
            Err(error) => {
                tracing::warn!(
                    comment = %ours,
                    error = %chain(&error),
                    "comment came second; it stays for now"
                )
            }
        }
    }

    /// Searches for an earlier result. If a repetition would be visible, an open attempt is searched for until it can
    /// no longer arrive.
    async fn find(
        &self,
        asked: &Asked<'_>,
        effect: &dyn Effect,
        intent: &Intent,
    ) -> Result<Option<Made>, Trouble> {
        let open_until = intent.open_since.map(|since| since.plus(self.windows.unknown));
        if effect.absorbs_repetition() {
            return self.look(asked, effect).await;
        }
        // No attempt is open, so nothing can have been written.
        let Some(open_until) = open_until else {
            return Ok(None);
        };
        loop {
            if let Some(made) = self.look(asked, effect).await? {
                return Ok(Some(made));
            }
            let left = open_until.since(bootstrap::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.pause(LOOK_INTERVAL.min(left)).await?;
        }
    }

    async fn look(&self, asked: &Asked<'_>, effect: &dyn Effect) -> Result<Option<Made>, Trouble> {
        let look: BoxFuture<'_, _> = effect.look(&self.outside, asked);
        failpoint::around_kind("reporter.effect.look", effect.name(), look).await
    }

    async fn settle(&self, intent: Intent, made: Made, how: How) -> Result<Settled, Trouble> {
        self.ledger.settle(intent, made.clone()).await?;
        Ok(Settled { made, how })
    }

    /// Waits, or returns an error when the process shuts down.
    pub(crate) async fn pause(&self, wait: Duration) -> Result<(), Trouble> {
        self.shutdown
            .run_until_cancelled(tokio::time::sleep(wait))
            .await
            .ok_or(Trouble::Shutdown)
    }
}

fn rules_of<'a>(book: &'a RulesBook, report: &Report) -> Option<&'a Rules> {
    match report.request.repository() {
        Some(repository) => book.for_repository(repository),
        None => book.for_ticket(&report.ticket),
    }
}

/// Converts a failure to the report's outcome.
///
/// # Errors
/// The failure, if it leaves the report unsettled.
fn settled(report: &Report, trouble: Trouble, patience: Patience) -> Result<ReportOutcome, Trouble> {
    match trouble {
        Trouble::Later { .. } | Trouble::HeldBack { .. } | Trouble::DiskFull(_) | Trouble::Unknown(_)
            if patience == Patience::More =>
        {
            Err(trouble)
        }
        Trouble::Refused(refusal) => Ok(ReportOutcome::Refused(refusal)),
        Trouble::DiskFull(_) => Ok(ReportOutcome::Failed {
            detail: trouble.to_string(),
        }),
        Trouble::Failed(detail) | Trouble::Missing(detail) | Trouble::Unknown(detail) => {
            Ok(ReportOutcome::Failed { detail })
        }
        Trouble::Later { detail, .. } | Trouble::HeldBack { detail, .. } => {
            Ok(ReportOutcome::Failed { detail })
        }
        Trouble::Denied { account, detail } => {
            let section = account.section(report);
            tracing::error!(section, %detail, "permission missing");
            let detail = message::denied(&section, &detail);
            Ok(ReportOutcome::Failed { detail })
        }
        Trouble::Credentials { account, detail } => {
            let section = account.section(report);
            tracing::error!(section, %detail, "credentials refused");
            let detail = message::credentials_refused();
            Ok(ReportOutcome::Failed { detail })
        }
        Trouble::Ledger(_) | Trouble::HandBack(_) | Trouble::Shutdown => Err(trouble),
    }
}

/// Renders an outcome that is not successful.
pub(crate) fn words(outcome: &ReportOutcome) -> String {
    match outcome {
        ReportOutcome::Done(_) => String::new(),
        ReportOutcome::Refused(refusal) => refusal.words(),
        ReportOutcome::Failed { detail } => detail.clone(),
    }
}

#[cfg(test)]
mod tests {
    use domain::{Job, ReportRequest, RunId, TicketKey, report};

    use super::*;
    use crate::trouble::Account;

    fn started(ticket: &str, repository: &str) -> Report {
        let ticket: TicketKey = ticket.parse().unwrap();
        let run = RunId::new(ticket.clone(), 1);
        Report {
            id: run.call(2).into(),
            ticket,
            run: Some(run),
            fence: domain::RunFence::default(),
            at: domain::Timestamp::default(),
            progress: None,
            request: ReportRequest::WorkStarted(report::WorkStarted {
                job: Job::Implement,
                repository: repository.parse().unwrap(),
                begun: report::Begun::default(),
            }),
        }
    }

    #[test]
    fn refused_credentials_name_settings_section_of_instance() {
        let there = started("jira+dc:ENG-1", "ghe:acme/shop");
        let here = started("jira:ENG-1", "acme/shop");
        let crossed = started("jira+dc:ENG-1", "acme/shop");
        for (account, report, section) in [
            (Account::GitHub, &there, "github.ghe"),
            (Account::Jira, &there, "jira.dc"),
            (Account::GitHub, &here, "github_writer"),
            (Account::Jira, &here, "jira_writer"),
            (Account::GitHub, &crossed, "github_writer"),
        ] {
            assert_eq!(account.section(report), section);
        }
    }

    #[test]
    fn denied_permission_fails_with_cause_for_operator() {
        let detail = "Resource not accessible by integration".to_owned();
        let denied = Trouble::from(github::Error::Forbidden { detail, needs: None });
        let outcome = settled(&started("jira:ENG-1", "acme/shop"), denied, Patience::More).unwrap();
        let ReportOutcome::Failed { detail } = outcome else {
            panic!("{outcome:?}")
        };
        assert!(
            detail.contains("not accessible") && detail.contains("[github_writer]"),
            "{detail}"
        );
        assert!(detail.contains("permission"), "{detail}");
    }
}
