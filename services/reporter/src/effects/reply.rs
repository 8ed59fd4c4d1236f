//! Replies to a comment of a review.

use async_trait::async_trait;
use domain::{CommitId, LeftThreads, PullRequestRef, ThreadReply};

use super::{Asked, Effect, EffectTarget, Outside, Thread};
use crate::{made::Made, message, outgoing::Outgoing, trouble::Trouble};

/// Replies to a comment of a review, in its thread.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) pull_request: PullRequestRef,
    /// Id of the comment that began the thread.
    pub(crate) comment: u64,
    pub(crate) said: Said,
}

/// Content of a reply.
#[derive(Debug)]
pub(crate) enum Said {
    /// Result for the comment, the commit that was pushed for the review, and the people who decide open questions.
    Done(ThreadReply, Option<CommitId>, Vec<String>),
    /// The threads that people have to decide.
    Left(LeftThreads),
}

impl Reply {
    fn thread(&self) -> Thread {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        Thread::Review(repository.clone(), *number, self.comment)
    }
}

#[async_trait]
impl Effect for Reply {
    fn name(&self) -> &'static str {
        "reply"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::ReviewThread(&self.pull_request, self.comment)
    }

    fn only_tells(&self) -> bool {
        true
    }

    fn absorbs_repetition(&self) -> bool {
        false
    }

    async fn look(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let ours = outside.our_comments(&self.thread()).await?;
        let is_there = ours.iter().any(|comment| comment.marker == asked.id);
        Ok(is_there.then(Made::default))
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let text = match &self.said {
            Said::Done(reply, commit, deciders) => message::thread_reply(reply, commit.as_ref(), deciders),
            Said::Left(left) => message::thread_left(left),
        };
        let text = Outgoing::without_credentials(&text);
        match outside
            .write_comment(&self.thread(), &text, asked.id, asked.audience())
            .await
        {
            // A person deleted the comment, so a reply has no reader.
            Ok(_) | Err(Trouble::Missing(_)) => Ok(Made::default()),
            Err(trouble) => Err(trouble),
        }
    }
}
