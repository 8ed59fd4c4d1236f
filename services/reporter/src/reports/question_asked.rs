//! Report of a question that a person has to answer.

use domain::report::QuestionAsked;

use super::{NoticeContext, NoticePlace, ReportKind};
use crate::message;

impl ReportKind for QuestionAsked {
    fn heard(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_questions(&self.questions)
    }
}
