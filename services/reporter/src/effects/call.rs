//! Notifies people when only they can continue.

use async_trait::async_trait;
use domain::{ChecksSummary, report::ReviewAddressed};

use super::{CommentThread, EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{cleared_text::ClearedText, effect_error::EffectError, message};

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
    /// Comments of a review that only a person can decide.
    Decision(ReviewAddressed),
}

#[async_trait]
impl OutboundEffect for CallPeople {
    type Output = ();

    fn name(&self) -> &'static str {
        "call"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Thread(&self.thread)
    }

    fn only_tells(&self) -> bool {
        true
    }

    fn absorbs_repetition(&self) -> bool {
        false
    }

    async fn look(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let ours = outside.our_comments(&self.thread).await?;
        let is_there = ours.iter().any(|comment| comment.marker == asked.id);
        Ok(is_there.then_some(()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let text = match &self.why {
            CallFor::Checks(failed) => message::checks_call(failed),
            CallFor::Decision(addressed) => message::decision_call(addressed),
        };
        let text = ClearedText::without_credentials(&text);
        match outside
            .write_comment(&self.thread, &text, asked.id, asked.audience())
            .await
        {
            // The thread is deleted, so a notification has no reader.
            Ok(_) | Err(EffectError::Missing(_)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}
