//! Report of an answered question.

use domain::{Reactable, TicketKey, report::QuestionAnswered};

use super::{Asked, Effects, Heard, Kind, Told};
use crate::{
    effects::{BeginWork, Thread},
    message,
};

impl Kind for QuestionAnswered {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        match self.answer.needs_change {
            true => vec![Box::new(BeginWork)],
            false => Effects::new(),
        }
    }

    fn heard(&self) -> Heard {
        Heard::Apart
    }

    /// Returns the thread of the question.
    fn thread(&self, ticket: &TicketKey) -> Thread {
        match (&self.question.pull_request, &self.question.comment) {
            (Some(ours), _) => Thread::GitHub(ours.repository.clone(), ours.number),
            (None, Some(Reactable::Discussion { repository, number, comment })) => {
                Thread::Discussion(repository.clone(), *number, comment.clone())
            }
            (None, _) => Thread::of(ticket),
        }
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::answered(&self.question, &self.answer, told.made.begun)
    }
}
