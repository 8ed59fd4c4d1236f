//! Threads, summary, answer and end of a discussion.

use async_trait::async_trait;
use domain::{AnsweredQuestion, CitedAnswer, DiscussionTask, RepositoryName, TicketKey};

use super::{CommentThread, EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    cleared_text::ClearedText,
    effect_error::EffectError,
    message,
    receipt::{BegunThread, WrittenComment},
};

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

    const ONLY_INFORMS: bool = true;
    const ABSORBS_REPETITION: bool = false;

    fn name(&self) -> &'static str {
        "research_thread"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Discussion(&self.repository, self.number)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let found = outside.find_comment(&self.thread(), asked.id).await?;
        Ok(found.map(|comment| self.begun(comment)))
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

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "link_threads"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Discussion(&self.repository, self.number)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let Some(WrittenComment(summary)) = asked.receipts.last() else {
            return Ok(());
        };
        let discussion = outside
            .github
            .discussions()
            .discussion(&self.repository, self.number)
            .await?;
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

    const ABSORBS_REPETITION: bool = false;

    fn name(&self) -> &'static str {
        "summary"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Thread(&self.thread)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let marker = format!("{}{}", summary_of(&asked.report.ticket), asked.id);
        let found = outside.find_comment(&self.thread, &marker).await?;
        Ok(found.map(WrittenComment))
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

/// Marks the comment of the same report as the answer, if the category has answers and none is marked.
#[derive(Debug)]
pub(crate) struct MarkAnswer {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl OutboundEffect for MarkAnswer {
    type Output = ();

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "mark_answer"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Discussion(&self.repository, self.number)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let Some(WrittenComment(comment)) = asked.receipts.last() else {
            return Ok(());
        };
        let found = outside
            .github
            .discussions()
            .discussion(&self.repository, self.number)
            .await?;
        if found.is_answerable && found.answer.is_none() {
            outside
                .github
                .discussions()
                .mark_answer(&self.repository, comment)
                .await?;
            tracing::info!(repository = %self.repository, number = self.number, "answer marked");
        }
        Ok(())
    }
}

/// Closes a discussion as resolved.
#[derive(Debug)]
pub(crate) struct CloseDiscussion {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl OutboundEffect for CloseDiscussion {
    type Output = ();

    fn name(&self) -> &'static str {
        "close_discussion"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Discussion(&self.repository, self.number)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let found = outside
            .github
            .discussions()
            .discussion(&self.repository, self.number)
            .await?;
        Ok((!found.is_open).then_some(()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let found = outside
            .github
            .discussions()
            .discussion(&self.repository, self.number)
            .await?;
        if found.is_open {
            outside
                .github
                .discussions()
                .close_discussion(&self.repository, &found.node_id)
                .await?;
            tracing::info!(repository = %self.repository, number = self.number, "discussion closed");
        }
        Ok(())
    }
}
