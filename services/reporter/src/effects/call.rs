//! Call people where only they can go on.

use async_trait::async_trait;
use domain::report::{ChecksFailed, ReviewAddressed};

use super::{Asked, Effect, EffectTarget, Outside, Thread};
use crate::{made::Made, message, outgoing::Outgoing, trouble::Trouble};

/// A comment of its own beside the status comment: an edited one would notify nobody on GitHub.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) thread: Thread,
    pub(crate) why: CallFor,
}

/// What people are called for.
#[derive(Debug)]
pub(crate) enum CallFor {
    /// Checks that failed and are not repaired.
    Checks(ChecksFailed),
    /// Comments of a review that nobody but a person can settle.
    Decision(ReviewAddressed),
}

#[async_trait]
impl Effect for Call {
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

    async fn look(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let ours = outside.our_comments(&self.thread).await?;
        let is_there = ours.iter().any(|comment| comment.marker == asked.id);
        Ok(is_there.then(Made::default))
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let text = match &self.why {
            CallFor::Checks(failed) => message::checks_call(failed),
            CallFor::Decision(addressed) => message::decision_call(addressed),
        };
        let text = Outgoing::without_credentials(&text);
        match outside
            .write_comment(&self.thread, &text, asked.id, asked.audience())
            .await
        {
            // Nobody reads what is gone.
            Ok(_) | Err(Trouble::Missing(_)) => Ok(Made::default()),
            Err(trouble) => Err(trouble),
        }
    }
}
