//! Updates the one summary of a discussion.

use async_trait::async_trait;
use domain::{CitedAnswer, DiscussionTask, TicketKey};

use super::{CommentThread, EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{cleared_text::ClearedText, effect_error::EffectError, message, receipt::WrittenComment};

/// Writes the summary, or replaces the previous one, so that people find it in the same comment.
#[derive(Debug)]
pub(crate) struct WriteSummary {
    pub(crate) thread: CommentThread,
    pub(crate) task: DiscussionTask,
    pub(crate) answer: CitedAnswer,
}

/// Returns the common start of the markers of a ticket's summaries. Each marker ends in the id of its effect.
fn summary_of(ticket: &TicketKey) -> String {
    format!("summary:{ticket}|")
}

#[async_trait]
impl OutboundEffect for WriteSummary {
    type Output = WrittenComment;

    fn name(&self) -> &'static str {
        "summary"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Thread(&self.thread)
    }

    fn absorbs_repetition(&self) -> bool {
        false
    }

    async fn look(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let marker = format!("{}{}", summary_of(&asked.report.ticket), asked.id);
        let ours = outside.our_comments(&self.thread).await?;
        let found = ours.into_iter().find(|comment| comment.marker == marker);
        Ok(found.map(|comment| WrittenComment(comment.id)))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let run = asked.report.run.as_ref();
        let text = ClearedText::without_credentials(&message::render_summary(self.task, &self.answer, run));
        let prefix = summary_of(&asked.report.ticket);
        let marker = format!("{prefix}{}", asked.id);
        let ours = outside.our_comments(&self.thread).await?;
        // Comments are listed oldest first; the last summary counts.
        let last = ours
            .into_iter()
            .rfind(|comment| comment.marker.starts_with(&prefix));
        if let Some(last) = last {
            match outside.edit_comment(&self.thread, &last.id, &text, &marker).await {
                // A person deleted it between the read and the write.
                Err(EffectError::Missing(_)) => {}
                edited => return edited.map(|()| WrittenComment(last.id)),
            }
        }
        let id = outside
            .write_comment(&self.thread, &text, &marker, asked.audience())
            .await?;
        Ok(WrittenComment(id))
    }
}
