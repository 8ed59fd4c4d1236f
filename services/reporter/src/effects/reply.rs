//! Reply to a comment of a review.

use async_trait::async_trait;
use domain::{CommitId, PullRequestRef, ThreadReply};

use super::{Asked, Effect, Outside, Thread};
use crate::{made::Made, message, outgoing::Outgoing, trouble::Trouble};

/// Reply to a comment of a review, in its thread.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) pull_request: PullRequestRef,
    pub(crate) reply: ThreadReply,
    /// The commit that was pushed for the review.
    pub(crate) commit: Option<CommitId>,
}

impl Reply {
    fn thread(&self) -> Thread {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        Thread::Review(repository.clone(), *number, self.reply.id)
    }
}

#[async_trait]
impl Effect for Reply {
    fn name(&self) -> &'static str {
        "reply"
    }

    fn only_tells(&self) -> bool {
        true
    }

    fn absorbs_repetition(&self) -> bool {
        false
    }

    async fn look(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let ours = outside.our_comments(&self.thread()).await?;
        let is_there = ours.iter().any(|comment| comment.marker == asked.id);
        Ok(is_there.then(Made::default))
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let text = message::thread_reply(&self.reply, self.commit.as_ref());
        let text = Outgoing::without_credentials(&text);
        match outside.write_comment(&self.thread(), &text, asked.id).await {
            // Somebody deleted the comment; nobody waits for a reply to it.
            Ok(_) | Err(Trouble::Missing(_)) => Ok(Made::default()),
            Err(trouble) => Err(trouble),
        }
    }
}
