//! Report of an answered question.

use domain::{ReactionSubject, TicketKey, report::QuestionAnswered};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind};
use crate::{
    effects::{BeginWork, CommentThread},
    message,
    receipt::BegunWork,
};

impl ReportKind for QuestionAnswered {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        match self.answer.needs_change {
            true => vec![Box::new(BeginWork)],
            false => EffectList::new(),
        }
    }

    fn heard(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    /// Returns the thread of the question.
    fn thread(&self, ticket: &TicketKey) -> CommentThread {
        match (&self.question.pull_request, &self.question.comment) {
            (Some(ours), _) => CommentThread::GitHub(ours.repository.clone(), ours.number),
            (
                None,
                Some(ReactionSubject::Discussion {
                    repository,
                    number,
                    comment,
                }),
            ) => CommentThread::Discussion(repository.clone(), *number, comment.clone()),
            (None, _) => CommentThread::of(ticket),
        }
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        let begun = told.receipts.last().map(|BegunWork(job)| *job);
        message::render_answer(&self.question, &self.answer, begun)
    }
}
