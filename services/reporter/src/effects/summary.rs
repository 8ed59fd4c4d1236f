//! Updates the one summary of a discussion.

use async_trait::async_trait;
use domain::{Answered, DiscussionTask, TicketKey};

use super::{Asked, Effect, EffectTarget, Outside, Thread};
use crate::{made::Made, message, outgoing::Outgoing, trouble::Trouble};

/// Writes the summary, or replaces the previous one, so that people find it in the same comment.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) thread: Thread,
    pub(crate) task: DiscussionTask,
    pub(crate) answer: Answered,
}

/// Returns the common start of the markers of a ticket's summaries. Each marker ends in the id of its effect.
fn summary_of(ticket: &TicketKey) -> String {
    format!("summary:{ticket}|")
}

#[async_trait]
impl Effect for Summary {
    fn name(&self) -> &'static str {
        "summary"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Thread(&self.thread)
    }

    fn absorbs_repetition(&self) -> bool {
        false
    }

    async fn look(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let marker = format!("{}{}", summary_of(&asked.report.ticket), asked.id);
        let ours = outside.our_comments(&self.thread).await?;
        let found = ours.into_iter().find(|comment| comment.marker == marker);
        Ok(found.map(|comment| made(comment.id)))
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let run = asked.report.run.as_ref();
        let text = Outgoing::without_credentials(&message::summary(self.task, &self.answer, run));
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
                Err(Trouble::Missing(_)) => {}
                edited => return edited.map(|()| made(last.id)),
            }
        }
        let id = outside
            .write_comment(&self.thread, &text, &marker, asked.audience())
            .await?;
        Ok(made(id))
    }
}

fn made(comment: String) -> Made {
    Made {
        comment: Some(comment),
        ..Made::default()
    }
}
