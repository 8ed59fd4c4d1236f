//! Submits a review of another author's pull request.

use async_trait::async_trait;
use domain::{OutboundRefusal, PullRequestRef, report::PullRequestReviewed};
use github::{NewComment, NewReview, PullRequestState};

use super::{
    EffectContext, EffectTarget, OutboundClients, OutboundEffect, is_by_our_account,
    thread::{append_marker, read_marker},
};
use crate::{cleared_text::ClearedText, effect_error::EffectError, message};

/// Submits a review with all its comments in one request. It never approves: only people approve.
#[derive(Debug)]
pub(crate) struct SubmitReview(pub(crate) PullRequestReviewed);

#[async_trait]
impl OutboundEffect for SubmitReview {
    type Output = ();

    const ABSORBS_REPETITION: bool = false;

    fn name(&self) -> &'static str {
        "submit_review"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::ReviewedPullRequest(&self.0.pull_request)
    }

    /// Done if a review of ours has the effect's marker.
    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let PullRequestRef {
            repository, number, ..
        } = &self.0.pull_request;
        let us = outside.github.login(repository.instance()).await?;
        let reviews = outside.github.reviews().reviews(repository, *number).await?;
        let is_it = |review: &github::PullRequestReview| {
            review.author.eq_ignore_ascii_case(&us) && read_marker(&review.body) == Some(asked.id)
        };
        Ok(reviews.iter().any(is_it).then_some(()))
    }

    /// Refuses a pull request that is merged or closed.
    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let PullRequestRef {
            repository, number, ..
        } = &self.0.pull_request;
        let github = &outside.github;
        let now = outside.read_pull_request(&self.0.pull_request).await?;
        if now.state != PullRequestState::Open {
            return Err(EffectError::Refused(OutboundRefusal::PullRequestOver {
                number: *number,
            }));
        }
        // GitHub refuses a judging review by the author of the pull request.
        let judges = self.0.review.is_blocking() && !is_by_our_account(github, repository, &now).await?;
        let run = asked.report.run.as_ref();
        let with_comments = self.written((true, judges), asked.id, run);
        match github
            .reviews()
            .submit_review(repository, *number, &with_comments)
            .await
        {
            // A push removed a commented line in the meantime. The remarks become part of the review's text.
            Err(github::Error::Rejected { detail }) => {
                tracing::info!(%repository, number, detail, "comments on lines are refused");
                let as_text = self.written((false, judges), asked.id, run);
                github
                    .reviews()
                    .submit_review(repository, *number, &as_text)
                    .await?;
            }
            done => drop(done?),
        }
        tracing::info!(%repository, number, comments = self.0.review.comments.len(), "review submitted");
        Ok(())
    }
}

impl SubmitReview {
    fn written(
        &self,
        (on_lines, judges): (bool, bool),
        marker: &str,
        run: Option<&domain::RunId>,
    ) -> NewReview {
        let PullRequestReviewed { head, review, .. } = &self.0;
        let body = ClearedText::without_credentials(&message::render_review(review, on_lines, run));
        let comments = review
            .comments
            .iter()
            .filter(|_| on_lines)
            .map(|remark| NewComment {
                path: remark.path.clone(),
                line: remark.line,
                start_line: remark.start_line,
                body: ClearedText::without_credentials(&message::line_remark(remark))
                    .as_str()
                    .to_owned(),
            });
        NewReview {
            commit: head.clone(),
            asks_for_changes: judges,
            body: append_marker(&body, marker),
            comments: comments.collect(),
        }
    }
}
