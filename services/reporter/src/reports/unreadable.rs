//! Report of an unreadable record about the ticket.

use domain::report::Unreadable;

use super::{Kind, Told};
use crate::{board::Mark, message};

impl Kind for Unreadable {
    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
        Some(Mark::Failed)
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::unreadable(&self.what.to_string(), self.is_poison)
    }
}
