//! Report of work in a discussion.

use domain::{DiscussionTask, RepositoryName, TicketKey, report::Discussed};

use super::{Asked, Effects, Heard, Kind, Told};
use crate::{
    effects::{CloseDiscussion, LinkThreads, MarkAnswer, ResearchThread, Summary, Thread},
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

    /// Marks and closes a complete discussion after its last comment, or starts the threads of a research.
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
            DiscussionTask::Research => self.threads(repository, number, asked.rules.discussions.threads),
            DiscussionTask::Summarize | DiscussionTask::Plan => Effects::new(),
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

/// Effects of a research: a thread for each of the first questions, and then their links.
trait Threads {
    fn threads(&self, repository: RepositoryName, number: u64, most: usize) -> Effects;
}

impl Threads for Discussed {
    fn threads(&self, repository: RepositoryName, number: u64, most: usize) -> Effects {
        let first = self.answer.questions.iter().take(most).enumerate();
        let mut effects: Effects = first
            .map(|(index, found)| {
                Box::new(ResearchThread {
                    repository: repository.clone(),
                    number,
                    index,
                    found: found.clone(),
                }) as _
            })
            .collect();
        if !effects.is_empty() {
            effects.push(Box::new(LinkThreads {
                repository,
                number,
                answer: self.answer.clone(),
            }));
        }
        effects
    }
}
