//! Links the threads of a research from its first comment.

use async_trait::async_trait;
use domain::{CitedAnswer, RepositoryName};

use super::{CommentThread, EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    cleared_text::ClearedText,
    effect_error::EffectError,
    message,
    receipt::{BegunThread, WrittenComment},
};

/// Adds links to the threads of a research to its summary comment.
#[derive(Debug)]
pub(crate) struct LinkThreads {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
    pub(crate) answer: CitedAnswer,
}

#[async_trait]
impl OutboundEffect for LinkThreads {
    type Output = ();

    fn name(&self) -> &'static str {
        "link_threads"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Discussion(&self.repository, self.number)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let Some(WrittenComment(summary)) = asked.receipts.last() else {
            return Ok(());
        };
        let discussion = outside.github.discussion(&self.repository, self.number).await?;
        let link = |comment: &str| {
            let mut comments = discussion.comments.iter();
            let found = comments.find(|known| known.node_id == comment)?;
            Some(format!("{}#discussioncomment-{}", discussion.url, found.id))
        };
        let links: Vec<Option<String>> = (0..self.answer.questions.len())
            .map(|index| {
                let mut begun = asked.receipts.all::<BegunThread>();
                link(&begun.find(|thread| thread.question == index)?.comment)
            })
            .collect();
        let thread = CommentThread::Discussion(self.repository.clone(), self.number, None);
        let ours = outside.our_comments(&thread).await?;
        // A person deleted the comment, so it gets no links.
        let Some(known) = ours.into_iter().find(|comment| comment.id == *summary) else {
            return Ok(());
        };
        let text = message::render_research(&self.answer, &links, asked.report.run.as_ref());
        let text = ClearedText::without_credentials(&text);
        match outside
            .edit_comment(&thread, &known.id, &text, &known.marker)
            .await
        {
            Ok(()) | Err(EffectError::Missing(_)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}
