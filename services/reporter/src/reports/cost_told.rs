//! Report of a ticket's cost, for a person who requested it.

use domain::{TicketKey, report::CostTold};

use super::{Heard, Kind, Told};
use crate::{effects::Thread, message};

impl Kind for CostTold {
    fn heard(&self) -> Heard {
        Heard::Apart
    }

    fn thread(&self, ticket: &TicketKey) -> Thread {
        match &self.on {
            Some(on) => Thread::GitHub(on.repository.clone(), on.number),
            None => Thread::of(ticket),
        }
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::cost(&self.cost)
    }
}
