//! Requests reviews of a pull request.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::{ApprovalCount, PullRequestRef, PullRequestRules};
use github::{PullRequest, PullRequestReview, ReviewVerdict};

use super::{
    EffectContext, EffectTarget, OutboundClients, OutboundEffect,
    code_experts::{self, OwnerRules},
};
use crate::{effect_error::EffectError, receipt::AwaitedCheck};

/// Requests a review from the people whose last review was not an approval, except the author and bots. Does nothing
/// while the pull request stays a draft because of a check.
#[derive(Debug)]
pub(crate) struct RequestReview {
    pub(crate) pull_request: PullRequestRef,
    /// Restricts the request to one of them.
    pub(crate) of: Option<String>,
}

#[async_trait]
impl OutboundEffect for RequestReview {
    type Output = Option<ApprovalCount>;

    /// The pull request is ready with or without reviewers.
    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "request_review"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        if asked.receipts.last::<AwaitedCheck>().is_some() {
            return Ok(None);
        }
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        let reviews = outside.github.reviews().reviews(repository, *number).await?;
        let rules = asked
            .rules
            .map_or_else(PullRequestRules::default, |rules| rules.pull_request.clone());
        let now = outside.read_pull_request(&self.pull_request).await?;
        let mut wanted = choose_reviewers(&reviews, &now.author, &named_reviewers(&rules));
        wanted.retain(|login| self.of.as_ref().is_none_or(|one| one == login));
        let mut waiting = self.ask(outside, wanted).await?;
        if self.of.is_some() {
            return Ok(None);
        }
        // Earlier reviews already determine the reviewers.
        if !reviews.is_empty() {
            return count_approvals(outside, &self.pull_request, &now, &reviews, waiting).await;
        }
        let owners = OwnerRules {
            by_file: rules.code_owners,
            modules: asked.rules.map_or(&[], |rules| &rules.modules),
        };
        let mut others = code_experts::find_file_owners(outside, &self.pull_request, &now, owners).await?;
        let is_requested = !now.requested_reviewers.is_empty() || !now.requested_teams.is_empty();
        let is_nobody = waiting.is_empty() && others.is_empty() && !is_requested;
        if is_nobody && rules.touched_authors > 0 {
            others =
                code_experts::find_line_authors(outside, &self.pull_request, &now, rules.touched_authors)
                    .await?;
        }
        others.retain(|login| !waiting.iter().any(|known| known.eq_ignore_ascii_case(login)));
        waiting.extend(self.ask(outside, others).await?);
        count_approvals(outside, &self.pull_request, &now, &reviews, waiting).await
    }
}

/// Counts the approvals that the base branch requires; `None` where it requires none. `asked` are the reviewers of this
/// request.
async fn count_approvals(
    outside: &OutboundClients,
    ours: &PullRequestRef,
    now: &PullRequest,
    reviews: &[PullRequestReview],
    asked: Vec<String>,
) -> Result<Option<ApprovalCount>, EffectError> {
    let rules = outside
        .github
        .branch_requirements(&ours.repository, &now.base_branch)
        .await?;
    let mut state = now.summarize_reviews(reviews);
    state.requested.extend(asked);
    state.requested.sort_unstable();
    state.requested.dedup();
    Ok(rules.count_approvals(&state))
}

impl RequestReview {
    /// Requests the reviews of these logins, and returns those that GitHub accepts. GitHub rejects a request as a whole
    /// if one of the logins is not allowed, so each one is requested separately then.
    async fn ask(&self, outside: &OutboundClients, logins: Vec<String>) -> Result<Vec<String>, EffectError> {
        if logins.is_empty() || self.is_accepted(outside, &logins).await? {
            return Ok(logins);
        }
        let mut accepted = Vec::new();
        if logins.len() > 1 {
            for login in logins {
                if self.is_accepted(outside, std::slice::from_ref(&login)).await? {
                    accepted.push(login);
                }
            }
        }
        Ok(accepted)
    }

    /// Sends one request; returns false if GitHub rejects it.
    async fn is_accepted(&self, outside: &OutboundClients, logins: &[String]) -> Result<bool, EffectError> {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        match outside
            .github
            .reviews()
            .request_reviewers(repository, *number, logins)
            .await
        {
            // A reviewer is no collaborator, or the pull request was merged between the read and the write.
            Err(github::Error::Rejected { detail }) => {
                tracing::info!(%repository, number, reviewers = logins.len(), detail, "request for a review is rejected");
                Ok(false)
            }
            done => {
                done?;
                tracing::info!(%repository, number, reviewers = logins.len(), "review asked for");
                Ok(true)
            }
        }
    }
}

/// Returns the reviewers of the rules, and our reviewer account if the rules want our own review.
fn named_reviewers(rules: &PullRequestRules) -> Vec<String> {
    let PullRequestRules {
        reviewers,
        reviewer,
        self_review,
        ..
    } = rules;
    let ourselves = self_review.then(|| reviewer.clone());
    reviewers.iter().cloned().chain(ourselves).collect()
}

/// Returns everybody whose last review is not an approval, and the named reviewers without a review. A plain comment
/// after an earlier review does not change that review.
fn choose_reviewers(reviews: &[PullRequestReview], author: &str, named: &[String]) -> Vec<String> {
    let mut last: BTreeMap<&str, ReviewVerdict> = BTreeMap::new();
    for review in reviews {
        let is_person = !review.by_bot && !review.author.eq_ignore_ascii_case(author);
        let is_word = review.state == ReviewVerdict::Commented && last.contains_key(review.author.as_str());
        if is_person && !is_word {
            last.insert(&review.author, review.state);
        }
    }
    let is_silent = |login: &&String| {
        let has_judged = last.keys().any(|judge| judge.eq_ignore_ascii_case(login));
        !has_judged && !login.eq_ignore_ascii_case(author)
    };
    let silent: Vec<String> = named.iter().filter(is_silent).cloned().collect();
    let waiting = last
        .into_iter()
        .filter(|(_, state)| *state != ReviewVerdict::Approved);
    waiting.map(|(login, _)| login.to_owned()).chain(silent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_review(author: &str, state: ReviewVerdict) -> PullRequestReview {
        PullRequestReview {
            id: 1,
            author: author.to_owned(),
            author_id: None,
            by_bot: author.ends_with("[bot]"),
            state,
            body: String::new(),
            at: None,
            comments: Vec::new(),
            commit: None,
        }
    }

    #[test]
    fn reviewers_without_approval_are_asked_again() {
        use ReviewVerdict::{Approved, ChangesRequested, Commented, Dismissed};
        let reviews = [
            build_review("ann", ChangesRequested),
            build_review("ann", Commented),
            build_review("bob", Approved),
            build_review("bob", Commented),
            build_review("eve", Commented),
            build_review("dan", ChangesRequested),
            build_review("dan", Approved),
            build_review("dan", Dismissed),
            build_review("journeyman", Commented),
            build_review("linter[bot]", ChangesRequested),
        ];
        assert_eq!(
            choose_reviewers(&reviews, "Journeyman", &[]),
            ["ann", "dan", "eve"]
        );
    }

    #[test]
    fn own_review_is_requested_when_rules_want() {
        let rules = |self_review| PullRequestRules {
            reviewer: "agent".to_owned(),
            reviewers: vec!["fay".to_owned()],
            self_review,
            ..PullRequestRules::default()
        };
        assert_eq!(named_reviewers(&rules(false)), ["fay"]);
        assert_eq!(named_reviewers(&rules(true)), ["fay", "agent"]);
    }

    #[test]
    fn named_reviewers_are_asked_until_they_judge() {
        let named = ["Ann", "fay", "journeyman"].map(str::to_owned);
        let reviews = [build_review("ann", ReviewVerdict::Approved)];
        assert_eq!(choose_reviewers(&reviews, "Journeyman", &named), ["fay"]);
        assert_eq!(choose_reviewers(&[], "Journeyman", &named), ["Ann", "fay"]);
    }
}
