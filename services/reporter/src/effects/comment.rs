//! Comments with a marker. A marker in a comment of another account does not count.

use async_trait::async_trait;

use super::{Asked, Effect, EffectTarget, Outside, Thread};
use crate::{made::Made, trouble::Trouble};

/// Writes the text of a report: in the ticket's status comment, or in a separate comment.
#[derive(Debug)]
pub(crate) struct Comment {
    pub(crate) thread: Thread,
}

#[async_trait]
impl Effect for Comment {
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

    fn tells_in(&self) -> Option<&Thread> {
        Some(&self.thread)
    }

    /// Done if a comment of ours has the effect's marker. The oldest one counts.
    async fn look(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let ours = outside.our_comments(&self.thread).await?;
        let found = ours.into_iter().find(|comment| comment.marker == asked.id);
        Ok(found.map(|comment| made(comment.id)))
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let id = outside
            .write_comment(&self.thread, asked.text, asked.id, asked.audience())
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
