//! Reports of reviews: addressed ones, and our reviews of other authors.

use domain::{
    PullRequestRef, ReactionKind, ReactionSubject, ThreadDisposition,
    report::{PullRequestReviewed, ReviewAddressed},
};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind};
use crate::{
    board::FinishedWork,
    effects::{
        AddReaction, BackToDraft, CallFor, CallPeople, CommentThread, ReplyInThread, RequestReview,
        ResolveThread, ShowFiles, SubmitReview, ThreadReplyText,
    },
    message,
};

/// Report of an addressed review: replies in its threads, and a new handover of the pull request.
impl ReportKind for ReviewAddressed {
    /// Replies in the threads. After a push, the review is requested only when the checks have passed.
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let deciders = match self.deciders.as_slice() {
            [] => vec![self.reviewer.clone()],
            named => named.to_vec(),
        };
        let replies = self.replies.iter().map(|reply| {
            Box::new(ReplyInThread {
                pull_request: self.pull_request.clone(),
                comment: reply.id,
                said: ThreadReplyText::Done(reply.clone(), self.commit.clone(), deciders.clone()),
            }) as _
        });
        let left = self.left.iter().flat_map(|left| {
            left.threads.iter().map(|thread| {
                Box::new(ReplyInThread {
                    pull_request: self.pull_request.clone(),
                    comment: *thread,
                    said: ThreadReplyText::Left(left.clone()),
                }) as _
            })
        });
        // The draft state changes before the replies, so that a reader of a reply finds the state that it describes.
        let mut effects = EffectList::new();
        if self.commit.is_some() {
            effects.push(Box::new(BackToDraft {
                pull_request: self.pull_request.clone(),
            }));
        }
        effects.extend(replies.chain(left));
        if self.commit.is_some() {
            effects.push(Box::new(ShowFiles {
                pull_request: Some(self.pull_request.clone()),
            }));
        }
        // Only finished requests are resolved. The other threads belong to the reviewer.
        let done = self
            .replies
            .iter()
            .filter(|reply| reply.disposition == ThreadDisposition::Changed);
        let pushed = self.commit.iter();
        effects.extend(pushed.flat_map(|commit| {
            done.clone().map(|reply| {
                Box::new(ResolveThread {
                    pull_request: self.pull_request.clone(),
                    comment: reply.id,
                    commit: commit.clone(),
                }) as _
            })
        }));
        let is_open = self.undecided() > 0;
        if is_open && self.deciders.is_empty() {
            effects.extend(asked.on_jira(|issue| CallPeople {
                thread: CommentThread::of(&issue),
                why: CallFor::Decision(self.clone()),
            }));
        }
        // A new review is useful only after the open decisions.
        if self.commit.is_none() && !self.is_left() && !is_open {
            effects.push(Box::new(RequestReview {
                pull_request: self.pull_request.clone(),
                of: Some(self.reviewer.clone()),
            }));
        }
        effects
    }

    fn finished_work(&self, context: &NoticeContext<'_>) -> FinishedWork {
        FinishedWork {
            done: None,
            changed: message::render_changed_files(context.receipts.last(), Some(&self.pull_request)),
        }
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_addressed_review(self)
    }
}

/// Report of a review of another author's pull request.
impl ReportKind for PullRequestReviewed {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(SubmitReview(self.clone()))]
    }

    /// Adds a rocket reaction, which lists of pull requests show.
    fn afterwards(&self, _: &PlanContext<'_>) -> EffectList {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        vec![Box::new(AddReaction {
            to: ReactionSubject::issue(repository, *number),
            reaction: ReactionKind::Rocket,
        })]
    }

    /// The review itself is the notification.
    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Nowhere
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        Vec::new()
    }
}
