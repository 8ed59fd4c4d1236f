//! Moves a Jira issue to another status, and closes a GitHub issue.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::{RepositoryName, TicketKey, cause::format_error_chain};
use jira::WorkflowTransition as Offered;
use pullrequest::transition::{OfferedTransition, rank_status_transitions};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    receipt::{AwaitedCheck, EffectReceipts, TransitionResult},
};

/// Moves a Jira issue to another status.
#[derive(Debug)]
pub(crate) struct TransitionIssue {
    /// Key of the Jira issue.
    pub(crate) issue: TicketKey,
    /// Acceptable statuses, in order of preference.
    pub(crate) goals: Vec<String>,
}

/// Output of the effect.
#[derive(Debug)]
pub(crate) enum TransitionOutcome {
    /// The issue has one of the statuses, or cannot have it.
    Tried(TransitionResult),
    /// The pull request stays a draft, so the issue stays where it is.
    Skipped,
}

impl From<TransitionOutcome> for EffectReceipts {
    fn from(outcome: TransitionOutcome) -> Self {
        match outcome {
            TransitionOutcome::Tried(result) => result.into(),
            TransitionOutcome::Skipped => Self::default(),
        }
    }
}

#[async_trait]
impl OutboundEffect for TransitionIssue {
    type Output = TransitionOutcome;

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "transition"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.issue)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let reached = find_reached_goal(outside, &self.issue, &self.goals).await?;
        Ok(reached.map(TransitionOutcome::Tried))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        if asked.receipts.last::<AwaitedCheck>().is_some() {
            return Ok(TransitionOutcome::Skipped);
        }
        let given = asked.rules.map(|rules| rules.jira.transition_fields.clone());
        let given = given.unwrap_or_default();
        let result = try_transitions(outside, &self.issue, &self.goals, &given).await?;
        Ok(TransitionOutcome::Tried(result))
    }
}

/// Done if the issue has one of the statuses.
async fn find_reached_goal(
    outside: &OutboundClients,
    issue: &TicketKey,
    goals: &[String],
) -> Result<Option<TransitionResult>, EffectError> {
    let status = outside.jira.status(issue).await?.name;
    let lower = status.to_lowercase();
    let is_done = goals.iter().any(|goal| goal.to_lowercase() == lower);
    Ok(is_done.then_some(TransitionResult::To(status)))
}

/// Performs the first transition to a goal that Jira accepts. No offered transition, or a refusal of each, is a
/// result, not an error.
async fn try_transitions(
    outside: &OutboundClients,
    issue: &TicketKey,
    goals: &[String],
    given: &BTreeMap<String, String>,
) -> Result<TransitionResult, EffectError> {
    let jira = &outside.jira;
    let wanted = goals.first().cloned().unwrap_or_default();
    let offered = jira.transitions(issue).await?;
    let candidates = rank_transitions(&offered, goals);
    if candidates.is_empty() {
        let status = jira.status(issue).await?.name;
        let reachable = offered.into_iter().map(|transition| transition.to.name).collect();
        return Ok(TransitionResult::Unavailable {
            wanted,
            status,
            reachable,
        });
    }
    let mut refusals = Vec::new();
    // Several transitions can lead to the same status, and each may have conditions and required fields.
    for transition in candidates {
        let filled = transition.fill(given).fields;
        let moved = jira.transition(issue, &transition.id, &filled);
        match failpoint::around("reporter.transition", moved).await {
            Ok(()) => {
                tracing::info!(ticket = %issue, status = %transition.to.name, "ticket moved");
                return Ok(TransitionResult::To(transition.to.name.clone()));
            }
            Err(
                error @ (jira::Error::Rejected { .. }
                | jira::Error::Forbidden { .. }
                | jira::Error::Conflict { .. }),
            ) => {
                tracing::info!(
                    ticket = %issue,
                    transition = %transition.name,
                    error = %format_error_chain(&error),
                    "transition refused"
                );
                refusals.push((transition, error));
            }
            Err(error) => return Err(error.into()),
        }
        // An earlier try whose response was lost may have moved the issue in the meantime.
        if let Some(moved) = find_reached_goal(outside, issue, goals).await? {
            return Ok(moved);
        }
    }
    Ok(describe_refusal(wanted, &refusals, given))
}

/// Returns the transitions that lead to a goal, in order of preference.
fn rank_transitions<'a>(offered: &'a [Offered], goals: &[String]) -> Vec<&'a Offered> {
    let moves: Vec<_> = offered.iter().map(convert_transition).collect();
    let ranked = rank_status_transitions(&moves, goals).into_iter();
    ranked.filter_map(|index| offered.get(index)).collect()
}

/// Converts a Jira transition to the fields that the match compares.
pub(crate) fn convert_transition(transition: &Offered) -> OfferedTransition {
    OfferedTransition {
        id: transition.id.clone(),
        name: transition.name.clone(),
        leads_to: transition.to.name.clone(),
        fields: transition.asks_for.len(),
    }
}

/// Builds the result of a refused transition: Jira's reason for the best candidate, and the fields that a person has
/// to fill in.
fn describe_refusal(
    wanted: String,
    refusals: &[(&Offered, jira::Error)],
    given: &BTreeMap<String, String>,
) -> TransitionResult {
    let (transition, error) = match refusals.first() {
        Some((transition, error)) => (Some(*transition), format_error_chain(error)),
        None => (None, String::new()),
    };
    TransitionResult::Refused {
        wanted,
        detail: error,
        asks_for: transition.map_or_else(Vec::new, |transition| transition.fill(given).missing),
    }
}

/// Closes a GitHub issue as completed. GitHub does so itself only when a pull request that names the issue is merged
/// into the default branch.
#[derive(Debug)]
pub(crate) struct CloseIssue {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl OutboundEffect for CloseIssue {
    type Output = TransitionResult;

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "close_issue"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Issue(&self.repository, self.number)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let is_open = outside
            .github
            .issues()
            .is_issue_open(&self.repository, self.number)
            .await?;
        Ok((!is_open).then(closed_result))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        outside
            .github
            .issues()
            .close_issue(&self.repository, self.number)
            .await?;
        tracing::info!(repository = %self.repository, number = self.number, "issue closed");
        Ok(closed_result())
    }
}

fn closed_result() -> TransitionResult {
    TransitionResult::To("Closed".to_owned())
}

#[cfg(test)]
mod tests {
    use jira::{IssueStatus, StatusCategory};

    use super::*;

    fn build_offered_transitions(names: &[(&str, &str)]) -> Vec<Offered> {
        let transition = |(index, (name, to)): (usize, &(&str, &str))| Offered {
            id: index.to_string(),
            name: (*name).to_owned(),
            to: IssueStatus {
                name: (*to).to_owned(),
                category: StatusCategory::Done,
            },
            asks_for: Vec::new(),
            screen: Vec::new(),
        };
        names.iter().enumerate().map(transition).collect()
    }

    #[test]
    fn transition_to_best_goal_is_tried_first() {
        let workflow = build_offered_transitions(&[
            ("Close issue", "Closed"),
            ("Done", "Somewhere"),
            ("Finish", "DONE"),
        ]);
        let goals = ["Done", "closed"].map(str::to_owned);
        let tried: Vec<&str> = rank_transitions(&workflow, &goals)
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(tried, ["Finish", "Close issue"]);
    }

    #[test]
    fn transition_refusal_names_missing_screen_fields() {
        let mut workflow = build_offered_transitions(&[("Close", "Done")]);
        let field = |name: &str| jira::ScreenField {
            key: name.to_lowercase(),
            name: name.to_owned(),
            must: true,
            ..jira::ScreenField::default()
        };
        workflow[0].screen = vec![field("Reason"), field("Points")];
        let given = BTreeMap::from([("Points".to_owned(), "3".to_owned())]);
        let error = jira::Error::Rejected {
            detail: "reason: Reason is required.".to_owned(),
        };
        let TransitionResult::Refused { asks_for, detail, .. } =
            describe_refusal("Done".to_owned(), &[(&workflow[0], error)], &given)
        else {
            panic!("not refused")
        };
        assert_eq!(asks_for, ["Reason"], "the rules give the other");
        assert!(detail.contains("Reason is required"));
    }
}
