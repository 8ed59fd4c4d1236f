//! Replies to a comment of a review.

use async_trait::async_trait;
use domain::{CommitId, LeftThreads, PullRequestRef, ThreadReply};

use super::{CommentThread, EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{cleared_text::ClearedText, effect_error::EffectError, message};

/// Replies to a comment of a review, in its thread.
#[derive(Debug)]
pub(crate) struct ReplyInThread {
    pub(crate) pull_request: PullRequestRef,
    /// Id of the comment that began the thread.
    pub(crate) comment: u64,
    pub(crate) said: ThreadReplyText,
}

/// Content of a reply.
#[derive(Debug)]
pub(crate) enum ThreadReplyText {
    /// Result for the comment, the commit that was pushed for the review, and the people who decide open questions.
    Done(ThreadReply, Option<CommitId>, Vec<String>),
    /// The threads that people have to decide.
    Left(LeftThreads),
}

impl ReplyInThread {
    fn thread(&self) -> CommentThread {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        CommentThread::Review(repository.clone(), *number, self.comment)
    }
}

#[async_trait]
impl OutboundEffect for ReplyInThread {
    type Output = ();

    const ONLY_INFORMS: bool = true;
    const ABSORBS_REPETITION: bool = false;

    fn name(&self) -> &'static str {
        "reply"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::ReviewThread(&self.pull_request, self.comment)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let found = outside.find_comment(&self.thread(), asked.id).await?;
        Ok(found.map(drop))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let text = match &self.said {
            ThreadReplyText::Done(reply, commit, deciders) => {
                message::thread_reply(reply, commit.as_ref(), deciders)
            }
            ThreadReplyText::Left(left) => message::thread_left(left),
        };
        let text = ClearedText::without_credentials(&text);
        outside.notify_thread(&self.thread(), &text, asked).await
    }
}
