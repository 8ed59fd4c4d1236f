//! Report of a question that a person has to answer.

use domain::report::QuestionAsked;

use super::{Heard, Kind, Told};
use crate::message;

impl Kind for QuestionAsked {
    fn heard(&self) -> Heard {
        Heard::Apart
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::asked(&self.questions)
    }
}
