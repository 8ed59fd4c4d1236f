//! Comments with a marker, and reactions. A marker in a comment of another account does not count.

use async_trait::async_trait;
use domain::{
    ChecksSummary, ConflictLeft, ConflictedBase, ReactionKind, ReactionSubject, report::ReviewAddressed,
};

use super::{CommentThread, EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{cleared_text::ClearedText, effect_error::EffectError, message, receipt::WrittenComment};

/// Writes the text of a report: in the ticket's status comment, or in a separate comment.
#[derive(Debug)]
pub(crate) struct WriteComment {
    pub(crate) thread: CommentThread,
}

#[async_trait]
impl OutboundEffect for WriteComment {
    type Output = WrittenComment;

    const ONLY_INFORMS: bool = true;
    const ABSORBS_REPETITION: bool = false;

    fn name(&self) -> &'static str {
        "comment"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Thread(&self.thread)
    }

    fn notice_thread(&self) -> Option<&CommentThread> {
        Some(&self.thread)
    }

    /// Done if a comment of ours has the effect's marker. The oldest one counts.
    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let found = outside.find_comment(&self.thread, asked.id).await?;
        Ok(found.map(WrittenComment))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let id = outside
            .write_comment(&self.thread, asked.text, asked.id, asked.audience())
            .await?;
        Ok(WrittenComment(id))
    }
}

/// A separate comment, because GitHub sends no notification for an edit of the status comment.
#[derive(Debug)]
pub(crate) struct CallPeople {
    pub(crate) thread: CommentThread,
    pub(crate) why: CallFor,
}

/// Reason of the notification.
#[derive(Debug)]
pub(crate) enum CallFor {
    /// Checks that failed and are not repaired.
    Checks(ChecksSummary),
    /// A conflict with the base branch that is not resolved.
    Conflict(ConflictedBase),
    /// A conflict whose resolution failed, with its files.
    LeftConflict(ConflictLeft, Vec<String>),
    /// Comments of a review that only a person can decide.
    Decision(ReviewAddressed),
}

#[async_trait]
impl OutboundEffect for CallPeople {
    type Output = ();

    const ONLY_INFORMS: bool = true;
    const ABSORBS_REPETITION: bool = false;

    fn name(&self) -> &'static str {
        "call"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Thread(&self.thread)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let found = outside.find_comment(&self.thread, asked.id).await?;
        Ok(found.map(drop))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let text = match &self.why {
            CallFor::Checks(failed) => message::checks_call(failed),
            CallFor::Conflict(conflict) => message::conflict_call(conflict),
            CallFor::LeftConflict(why, files) => message::describe_conflict(*why, files),
            CallFor::Decision(addressed) => message::decision_call(addressed),
        };
        let text = ClearedText::without_credentials(&text);
        outside.notify_thread(&self.thread, &text, asked).await
    }
}

/// Adds a reaction: eyes when work on a request has begun, a rocket when it is done.
#[derive(Debug)]
pub(crate) struct AddReaction {
    pub(crate) to: ReactionSubject,
    pub(crate) reaction: ReactionKind,
}

#[async_trait]
impl OutboundEffect for AddReaction {
    type Output = ();

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        self.reaction.as_str()
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Reactable(&self.to)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        outside.github.comments().react(&self.to, self.reaction).await?;
        Ok(())
    }
}
