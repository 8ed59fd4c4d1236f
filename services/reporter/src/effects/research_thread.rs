//! Starts a thread about one question of a discussion.

use async_trait::async_trait;
use domain::{AnsweredQuestion, RepositoryName};

use super::{CommentThread, EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{cleared_text::ClearedText, effect_error::EffectError, message, receipt::BegunThread};

/// Starts a thread about one question of a research: a separate comment, so that people can reply to it.
#[derive(Debug)]
pub(crate) struct ResearchThread {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
    /// Index of the question, from 0.
    pub(crate) index: usize,
    pub(crate) found: AnsweredQuestion,
}

impl ResearchThread {
    fn thread(&self) -> CommentThread {
        CommentThread::Discussion(self.repository.clone(), self.number, None)
    }

    fn begun(&self, comment: String) -> BegunThread {
        BegunThread {
            question: self.index,
            comment,
        }
    }
}

#[async_trait]
impl OutboundEffect for ResearchThread {
    type Output = BegunThread;

    fn name(&self) -> &'static str {
        "research_thread"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Discussion(&self.repository, self.number)
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
        let ours = outside.our_comments(&self.thread()).await?;
        let found = ours.into_iter().find(|comment| comment.marker == asked.id);
        Ok(found.map(|comment| self.begun(comment.id)))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let text = message::research_thread(&self.found, asked.report.run.as_ref());
        let text = ClearedText::without_credentials(&text);
        let comment = outside
            .write_comment(&self.thread(), &text, asked.id, asked.audience())
            .await?;
        Ok(self.begun(comment))
    }
}
