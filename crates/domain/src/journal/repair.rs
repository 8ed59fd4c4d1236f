//! Result of a repair of failed checks.

use serde::{Deserialize, Serialize};

use crate::{
    identity::commit::CommitId,
    journal::{
        fact::{Fact, JournalEntry},
        stop::StopReason,
    },
    outbound::report::{self, OutboundAction},
    trigger::{
        job::Job,
        pull_request::{ChecksOutcome, RepairEnd},
        pull_request_event::PullRequestEvent,
        reason::{Trigger, TriggerReason},
    },
};

/// Result of a repair of failed checks. It is derived from the journal of its run and not stored elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairResult {
    /// True when the branch contains the repair. The next check run shows its effect.
    pub fixed: bool,
    /// Applied strategy: the effective entries of `ci.auto_fix` (`pre-commit`, `dbt_compile`, or a command),
    /// [`Self::MODEL`] or [`Self::RERUN`]; absent: none.
    pub strategy: Option<String>,
    /// The pushed commit; absent: none.
    pub commit_sha: Option<CommitId>,
    /// Reason why the checks are not repaired: the run's stop reason, or the reason why people have to act.
    /// Absent after a repair, and while failed jobs run again.
    pub error: Option<String>,
    /// Details for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl RepairResult {
    /// Strategy of a repair by the model.
    pub const MODEL: &str = "model";
    /// Strategy of running the failed jobs again.
    pub const RERUN: &str = "rerun";
    /// Strategy of `ci.auto_fix` if the effective command is unknown.
    const AUTO_FIX: &str = "auto_fix";

    /// Returns the result when no check failed.
    pub fn nothing_failed() -> Self {
        Self {
            fixed: true,
            strategy: None,
            commit_sha: None,
            error: None,
            message: Some("No failed checks".to_owned()),
        }
    }

    /// Derives the result from a journal; `None` for other jobs, and while the run is active.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> Option<Self> {
        let mut found = Self {
            fixed: false,
            strategy: None,
            commit_sha: None,
            error: None,
            message: None,
        };
        for entry in entries {
            // All other facts are irrelevant for the result.
            if let Fact::RunStarted { trigger } = &entry.fact {
                found.started(trigger)?;
            } else if let Fact::ReportRequested { request, .. } = &entry.fact {
                found.reported(request);
            } else if let Fact::RunFinished { reason } = &entry.fact {
                return Some(found.ended(reason));
            }
        }
        None
    }

    fn started(&mut self, trigger: &Trigger) -> Option<()> {
        if trigger.reason.job() != Some(Job::FixCi) {
            return None;
        }
        if let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) = &trigger.reason {
            self.error = checks.unrepaired.map(|end| end.as_str().to_owned());
        }
        Some(())
    }

    fn reported(&mut self, request: &OutboundAction) {
        if let OutboundAction::ChecksRepaired(repaired) = request {
            self.strategy = Some(match repaired.strategy {
                report::RepairStrategy::AutoFix if repaired.by.is_empty() => Self::AUTO_FIX.to_owned(),
                report::RepairStrategy::AutoFix => repaired.by.join(", "),
                report::RepairStrategy::Model => Self::MODEL.to_owned(),
            });
            (self.fixed, self.commit_sha) = (repaired.commit.is_some(), repaired.commit.clone());
        } else if let OutboundAction::PullRequest(PullRequestEvent::ChecksCompleted(checks)) = request
            && checks.outcome() == ChecksOutcome::Rerun
        {
            self.strategy = Some(Self::RERUN.to_owned());
        }
    }

    fn ended(mut self, reason: &StopReason) -> Self {
        // A pushed repair remains a repair, even if the run stopped later.
        if *reason != StopReason::Completed && !self.fixed {
            self.error = Some(reason.as_str().to_owned());
        }
        self
    }
}

impl RepairEnd {
    /// Returns true when a person has to act who may rely on Journeyman. A team that disabled repairs
    /// inspects failed checks anyway.
    pub const fn calls_people(self) -> bool {
        match self {
            Self::FailedAgain | Self::PerHead | Self::PerPullRequest | Self::Repeated | Self::Forgotten => {
                true
            }
            Self::Off | Self::NotOurs => false,
        }
    }

    /// The name in the API and in journals.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn build_entry(fact: &Value) -> JournalEntry {
        serde_json::from_value(json!({
            "position": 0, "nonce": "n", "fence": {"epoch": 1, "sequence": 1, "delivered": 1}, "at": 1, "fact": fact,
        }))
        .unwrap()
    }

    fn build_start_entry(checks: Value) -> JournalEntry {
        let mut reason = json!({"type": "checks_completed", "head": "a".repeat(40), "conclusion": "failure", "failed": [],
            "pull_request": {"repository": "acme/shop", "number": 7, "branch": "b", "url": "u"}});
        if let (Value::Object(reason), Value::Object(more)) = (&mut reason, checks) {
            reason.extend(more);
        }
        build_entry(
            &json!({"type": "run_started", "trigger": {"ticket": "jira:ENG-1", "key": "k", "at": 1, "source": "webhook",
            "actor": null, "reason": reason}}),
        )
    }

    fn build_request_entry(request: Value) -> JournalEntry {
        let mut request = request;
        request["pull_request"] = json!({"repository": "acme/shop", "number": 7, "branch": "b", "url": "u"});
        build_entry(
            &json!({"type": "report_requested", "id": "jira:ENG-1@1:2", "request": request, "answers": null}),
        )
    }

    fn build_finish_entry(reason: &str) -> JournalEntry {
        build_entry(&json!({"type": "run_finished", "reason": {"type": reason}}))
    }

    #[test]
    fn repair_result_follows_from_journal() {
        let of = |entries: Vec<JournalEntry>| serde_json::to_value(RepairResult::of(&entries)).unwrap();
        let commit = "b".repeat(40);
        let repaired =
            json!({"type": "checks_repaired", "commit": commit, "strategy": "auto_fix", "summary": ""});
        assert_eq!(
            of(vec![
                build_start_entry(json!({})),
                build_request_entry(repaired),
                build_finish_entry("completed")
            ]),
            json!({"fixed": true, "strategy": "auto_fix", "commit_sha": commit, "error": null})
        );
        let named = json!({"type": "checks_repaired", "commit": commit, "strategy": "auto_fix", "by": ["pre-commit"], "summary": ""});
        assert_eq!(
            of(vec![
                build_start_entry(json!({})),
                build_request_entry(named),
                build_finish_entry("completed")
            ]),
            json!({"fixed": true, "strategy": "pre-commit", "commit_sha": commit, "error": null})
        );
        assert_eq!(
            serde_json::to_value(RepairResult::nothing_failed()).unwrap(),
            json!({"fixed": true, "strategy": null, "commit_sha": null, "error": null, "message": "No failed checks"})
        );
        assert_eq!(
            of(vec![
                build_start_entry(json!({})),
                build_finish_entry("model_refused")
            ]),
            json!({"fixed": false, "strategy": null, "commit_sha": null, "error": "model_refused"})
        );
        assert_eq!(
            of(vec![
                build_start_entry(json!({"unrepaired": "not_ours"})),
                build_finish_entry("completed")
            ]),
            json!({"fixed": false, "strategy": null, "commit_sha": null, "error": "not_ours"})
        );
        let rerun = json!({"type": "rerun_checks", "head": commit, "failed": [], "runs": [1]});
        assert_eq!(
            of(vec![
                build_start_entry(json!({"rerun": [1]})),
                build_request_entry(rerun),
                build_finish_entry("completed")
            ]),
            json!({"fixed": false, "strategy": "rerun", "commit_sha": null, "error": null})
        );
        assert_eq!(of(vec![build_start_entry(json!({}))]), Value::Null, "it goes on");
        assert_eq!(
            of(vec![
                build_start_entry(json!({"conclusion": "success"})),
                build_finish_entry("completed")
            ]),
            Value::Null
        );
    }
}
