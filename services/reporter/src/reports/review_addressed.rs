//! A review was addressed: replies in its threads, and the pull request is handed over once more.

use domain::report::ReviewAddressed;

use super::{Asked, Effects, Kind, Told};
use crate::{
    effects::{BackToDraft, Reply, RequestReview},
    message,
};

impl Kind for ReviewAddressed {
    /// What was pushed has to pass its checks first: then the pull request is ready again, and the review is asked for.
    fn effects(&self, _: &Asked<'_>) -> Effects {
        let replies = self.replies.iter().map(|reply| {
            Box::new(Reply {
                pull_request: self.pull_request.clone(),
                comment: reply.id,
                text: message::thread_reply(reply, self.commit.as_ref()),
            }) as _
        });
        let mut effects: Effects = replies.collect();
        match &self.commit {
            Some(_) => effects.push(Box::new(BackToDraft {
                pull_request: self.pull_request.clone(),
            })),
            None => effects.push(Box::new(RequestReview {
                pull_request: self.pull_request.clone(),
                of: Some(self.reviewer.clone()),
            })),
        }
        effects
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::addressed(self)
    }
}
