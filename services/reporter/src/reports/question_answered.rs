//! A question was answered.

use domain::{TicketKey, report::QuestionAnswered};

use super::{Heard, Kind, Told};
use crate::{effects::Thread, message};

impl Kind for QuestionAnswered {
    fn heard(&self) -> Heard {
        Heard::Apart
    }

    /// Where it was asked.
    fn thread(&self, ticket: &TicketKey) -> Thread {
        match &self.question.pull_request {
            Some(ours) => Thread::GitHub(ours.repository.clone(), ours.number),
            None => Thread::of(ticket),
        }
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::answered(&self.question, &self.answer)
    }
}
