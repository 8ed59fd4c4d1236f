//! Something was done in a discussion.

use domain::{DiscussionTask, TicketKey, report::Discussed};

use super::{Asked, Effects, Heard, Kind, Told};
use crate::{
    effects::{CloseDiscussion, MarkAnswer, Summary, Thread},
    message,
};

impl Kind for Discussed {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        match self.task {
            DiscussionTask::Summarize => vec![Box::new(Summary {
                thread: Thread::of(&asked.report.ticket),
                task: self.task,
                answer: self.answer.clone(),
            })],
            DiscussionTask::Research | DiscussionTask::Plan | DiscussionTask::Complete => Effects::new(),
        }
    }

    /// The last word is the answer, where there can be one.
    fn afterwards(&self, asked: &Asked<'_>) -> Effects {
        let TicketKey::Discussion { repository, number } = &asked.report.ticket else {
            return Effects::new();
        };
        let (repository, number) = (repository.clone(), *number);
        match self.task {
            DiscussionTask::Complete => vec![
                Box::new(MarkAnswer { repository: repository.clone(), number }),
                Box::new(CloseDiscussion { repository, number }),
            ],
            DiscussionTask::Research | DiscussionTask::Summarize | DiscussionTask::Plan => Effects::new(),
        }
    }

    fn heard(&self) -> Heard {
        match self.task {
            DiscussionTask::Summarize => Heard::Nowhere,
            DiscussionTask::Research | DiscussionTask::Plan | DiscussionTask::Complete => Heard::Apart,
        }
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::discussed(self.task, &self.answer)
    }
}
