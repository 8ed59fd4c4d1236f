//! Report of work in a discussion.

use domain::{CitedAnswer, DiscussionTask, RepositoryName, TicketKey, report::DiscussionResult};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind};
use crate::{
    effects::{CloseDiscussion, CommentThread, LinkThreads, MarkAnswer, ResearchThread, WriteSummary},
    message,
};

impl ReportKind for DiscussionResult {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        match self.task {
            DiscussionTask::Summarize => vec![Box::new(WriteSummary {
                thread: CommentThread::of(&asked.report.ticket),
                task: self.task,
                answer: self.answer.clone(),
            })],
            DiscussionTask::Research | DiscussionTask::Plan | DiscussionTask::Complete => EffectList::new(),
        }
    }

    /// Marks and closes a complete discussion after its last comment, or starts the threads of a research.
    fn afterwards(&self, asked: &PlanContext<'_>) -> EffectList {
        let TicketKey::Discussion { repository, number } = &asked.report.ticket else {
            return EffectList::new();
        };
        let (repository, number) = (repository.clone(), *number);
        match self.task {
            DiscussionTask::Complete => vec![
                Box::new(MarkAnswer {
                    repository: repository.clone(),
                    number,
                }),
                Box::new(CloseDiscussion { repository, number }),
            ],
            DiscussionTask::Research => {
                plan_research_threads(&self.answer, repository, number, asked.rules.discussions.threads)
            }
            DiscussionTask::Summarize | DiscussionTask::Plan => EffectList::new(),
        }
    }

    fn notice_place(&self) -> NoticePlace {
        match self.task {
            DiscussionTask::Summarize => NoticePlace::Nowhere,
            DiscussionTask::Research | DiscussionTask::Plan | DiscussionTask::Complete => NoticePlace::Apart,
        }
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_discussion(self.task, &self.answer)
    }
}

/// Plans the effects of a research: a thread for each of the first questions, and then their links.
fn plan_research_threads(
    answer: &CitedAnswer,
    repository: RepositoryName,
    number: u64,
    most: usize,
) -> EffectList {
    let first = answer.questions.iter().take(most).enumerate();
    let mut effects: EffectList = first
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
            answer: answer.clone(),
        }));
    }
    effects
}
