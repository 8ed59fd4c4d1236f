//! Comments with a marker. A marker in a comment of another account does not count.

use async_trait::async_trait;

use super::{CommentThread, EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{effect_error::EffectError, receipt::WrittenComment};

/// Writes the text of a report: in the ticket's status comment, or in a separate comment.
#[derive(Debug)]
pub(crate) struct WriteComment {
    pub(crate) thread: CommentThread,
}

#[async_trait]
impl OutboundEffect for WriteComment {
    type Output = WrittenComment;

    fn name(&self) -> &'static str {
        "comment"
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

    fn tells_in(&self) -> Option<&CommentThread> {
        Some(&self.thread)
    }

    /// Done if a comment of ours has the effect's marker. The oldest one counts.
    async fn look(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let ours = outside.our_comments(&self.thread).await?;
        let found = ours.into_iter().find(|comment| comment.marker == asked.id);
        Ok(found.map(|comment| WrittenComment(comment.id)))
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
