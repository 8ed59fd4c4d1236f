//! Ask for a review once more.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::PullRequestRef;
use github::{Review, ReviewState};

use super::{Asked, Effect, Outside};
use crate::{made::Made, trouble::Trouble};

/// Ask those for a review whose last one was no approval, never the author and no program.
#[derive(Debug)]
pub(crate) struct RequestReview {
    pub(crate) pull_request: PullRequestRef,
    /// One of them alone.
    pub(crate) of: Option<String>,
}

#[async_trait]
impl Effect for RequestReview {
    fn name(&self) -> &'static str {
        "request_review"
    }

    /// The pull request is ready whether or not somebody is asked.
    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        let reviews = outside.github.reviews(repository, *number).await?;
        let named = asked.rules.map_or(&[][..], |rules| &rules.pull_request.reviewers);
        if reviews.is_empty() && named.is_empty() {
            return Ok(Made::default());
        }
        let author = outside.github.pull_request(repository, *number).await?.author;
        let mut reviewers = reviewers(&reviews, &author, named);
        reviewers.retain(|login| self.of.as_ref().is_none_or(|one| one == login));
        if !reviewers.is_empty() {
            let requested = outside.github.request_reviewers(repository, *number, &reviewers);
            match requested.await {
                // Somebody left the organization, or the pull request was merged in between.
                Err(github::Error::Rejected { detail }) => {
                    tracing::info!(%repository, number, detail, "nobody is asked for a review");
                    return Ok(Made::default());
                }
                done => done?,
            }
            tracing::info!(%repository, number, reviewers = reviewers.len(), "review asked for");
        }
        Ok(Made::default())
    }
}

/// Everybody whose last judgement is not an approval, and of those that the rules name who has said nothing yet. A comment
/// is no judgement where there was one before. Code owners are asked by GitHub itself when a draft becomes ready.
fn reviewers(reviews: &[Review], author: &str, named: &[String]) -> Vec<String> {
    let mut last: BTreeMap<&str, ReviewState> = BTreeMap::new();
    for review in reviews {
        let is_person = !review.by_bot && !review.author.eq_ignore_ascii_case(author);
        let is_word = review.state == ReviewState::Commented && last.contains_key(review.author.as_str());
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
        .filter(|(_, state)| *state != ReviewState::Approved);
    waiting.map(|(login, _)| login.to_owned()).chain(silent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(author: &str, state: ReviewState) -> Review {
        Review {
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
    fn those_are_asked_again_whose_last_judgement_is_no_approval() {
        use ReviewState::{Approved, ChangesRequested, Commented, Dismissed};
        let reviews = [
            review("ann", ChangesRequested),
            review("ann", Commented),
            review("bob", Approved),
            review("bob", Commented),
            review("eve", Commented),
            review("dan", ChangesRequested),
            review("dan", Approved),
            review("dan", Dismissed),
            review("journeyman", Commented),
            review("linter[bot]", ChangesRequested),
        ];
        assert_eq!(reviewers(&reviews, "Journeyman", &[]), ["ann", "dan", "eve"]);
    }

    #[test]
    fn those_that_the_rules_name_are_asked_until_they_have_judged_and_never_the_author() {
        let named = ["Ann", "fay", "journeyman"].map(str::to_owned);
        let reviews = [review("ann", ReviewState::Approved)];
        assert_eq!(reviewers(&reviews, "Journeyman", &named), ["fay"]);
        assert_eq!(reviewers(&[], "Journeyman", &named), ["Ann", "fay"]);
    }
}
