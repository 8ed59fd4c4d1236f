//! A question was answered.

use domain::{Reactable, TicketKey, report::QuestionAnswered};

use super::{Heard, Kind, Told};
use crate::{effects::Thread, message};

impl Kind for QuestionAnswered {
    fn heard(&self) -> Heard {
        Heard::Apart
    }

    /// Where it was asked.
    fn thread(&self, ticket: &TicketKey) -> Thread {
        match (&self.question.pull_request, &self.question.comment) {
            (Some(ours), _) => Thread::GitHub(ours.repository.clone(), ours.number),
            (None, Some(Reactable::Discussion { repository, number, comment })) => {
                Thread::Discussion(repository.clone(), *number, comment.clone())
            }
            (None, _) => Thread::of(ticket),
        }
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::answered(&self.question, &self.answer)
    }
}
