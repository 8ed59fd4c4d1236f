//! Highest fence of each ticket, so that a planner with an older fence changes nothing.

use std::collections::HashMap;

use domain::{RunFence, TicketKey};
use tonic::Status;

/// Limit of remembered tickets, about 2 MiB of memory.
const MAX_TICKETS: usize = 16_384;

/// Fences of the tickets whose planners called this executor.
///
/// At the limit, the tickets with the lowest fences are forgotten. A fence begins with the sequence of a token
/// in one stream, so the lowest fences belong to the tickets that were taken up the longest time ago.
pub(crate) struct TicketFences {
    highest: HashMap<TicketKey, RunFence>,
    /// Highest of the forgotten fences.
    forgotten: RunFence,
    max: usize,
}

/// Reason why a fence is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceRefusal {
    /// A call for the ticket had this higher fence.
    Older(RunFence),
    /// The ticket is unknown, and its calls may have been forgotten: the forgotten fences reach up to this
    /// one.
    Forgotten(RunFence),
}

/// Relation of an accepted fence to the earlier ones of its ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceStep {
    /// The ticket is new, or its fence is the same.
    Same,
    /// The fence is newer, so calls under the earlier one must end.
    Newer,
}

impl Default for TicketFences {
    fn default() -> Self {
        Self::with_limit(MAX_TICKETS)
    }
}

impl TicketFences {
    fn with_limit(max: usize) -> Self {
        Self {
            highest: HashMap::new(),
            forgotten: RunFence::default(),
            max,
        }
    }

    /// Records the fence of a call for a ticket. `list_used` returns the tickets with a workspace, which are
    /// never forgotten.
    ///
    /// # Errors
    /// Returns the reason when the fence is older than another one of the ticket, or may be.
    pub(crate) fn raise(
        &mut self,
        ticket: &TicketKey,
        fence: RunFence,
        list_used: impl FnOnce() -> Vec<TicketKey>,
    ) -> Result<FenceStep, FenceRefusal> {
        let Some(highest) = self.highest.get_mut(ticket) else {
            if fence < self.forgotten {
                return Err(FenceRefusal::Forgotten(self.forgotten));
            }
            self.make_room(list_used);
            self.highest.insert(ticket.clone(), fence);
            return Ok(FenceStep::Same);
        };
        if fence < *highest {
            return Err(FenceRefusal::Older(*highest));
        }
        let is_newer = fence > *highest;
        *highest = fence;
        Ok(if is_newer {
            FenceStep::Newer
        } else {
            FenceStep::Same
        })
    }

    /// Forgets the lowest eighth of the fences when the limit is reached. Only an eighth, because sorting for
    /// each new ticket would be slow.
    fn make_room(&mut self, list_used: impl FnOnce() -> Vec<TicketKey>) {
        if self.highest.len() < self.max {
            return;
        }
        let used = list_used();
        let mut unused: Vec<(RunFence, TicketKey)> = self
            .highest
            .iter()
            .filter(|(ticket, _)| !used.contains(ticket))
            .map(|(ticket, fence)| (*fence, ticket.clone()))
            .collect();
        unused.sort_unstable();
        unused.truncate((self.max / 8).max(1));
        for (fence, ticket) in unused {
            self.highest.remove(&ticket);
            self.forgotten = self.forgotten.max(fence);
        }
    }
}

impl FenceRefusal {
    /// Returns the status for the planner that sent the fence.
    pub(crate) fn status(self, fence: RunFence) -> Status {
        match self {
            Self::Older(highest) => {
                Status::failed_precondition(format!("fence {fence} is older than {highest}"))
            }
            // The planner may be the current one, so it gets no order to stop: another executor can serve it.
            Self::Forgotten(forgotten) => Status::resource_exhausted(format!(
                "fence {fence} is older than {forgotten}, up to which this executor forgot the fences of \
                 tickets; another executor can open the workspace"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 64;

    fn build_ticket_key(number: u64) -> TicketKey {
        TicketKey::jira(&format!("ENG-{number}")).unwrap()
    }

    fn build_fence(sequence: u64) -> RunFence {
        RunFence::new(1, sequence, 1)
    }

    /// Records one call for each of many tickets, in the order of their tokens.
    fn raise_many(fences: &mut TicketFences, tickets: std::ops::Range<u64>, used: &[TicketKey]) {
        for number in tickets {
            let raised = fences.raise(&build_ticket_key(number), build_fence(number), || used.to_vec());
            assert_eq!(raised, Ok(FenceStep::Same));
        }
    }

    #[test]
    fn older_fence_of_ticket_is_refused() {
        let mut fences = TicketFences::default();
        let ticket = build_ticket_key(1);
        let mut raise = |sequence| fences.raise(&ticket, build_fence(sequence), Vec::new);
        assert_eq!(raise(5), Ok(FenceStep::Same));
        assert_eq!(raise(5), Ok(FenceStep::Same));
        assert_eq!(raise(4), Err(FenceRefusal::Older(build_fence(5))));
        assert_eq!(raise(6), Ok(FenceStep::Newer));
        assert_eq!(raise(5), Err(FenceRefusal::Older(build_fence(6))));
    }

    #[test]
    fn remembered_tickets_stay_within_limit() {
        let mut fences = TicketFences::with_limit(MAX);
        raise_many(&mut fences, 1..10_000, &[]);
        assert!(fences.highest.len() <= MAX, "{}", fences.highest.len());
        assert!(fences.highest.contains_key(&build_ticket_key(9_999)));
    }

    #[test]
    fn forgotten_ticket_refuses_its_older_planner() {
        let mut fences = TicketFences::with_limit(MAX);
        raise_many(&mut fences, 2..1_000, &[]);
        let ticket = build_ticket_key(2);
        assert!(!fences.highest.contains_key(&ticket));
        let refused = fences.raise(&ticket, build_fence(1), Vec::new);
        assert!(matches!(refused, Err(FenceRefusal::Forgotten(_))), "{refused:?}");
        // The next token of the ticket is newer than all before it.
        assert_eq!(
            fences.raise(&ticket, build_fence(1_000), Vec::new),
            Ok(FenceStep::Same)
        );
    }

    #[test]
    fn ticket_with_workspace_is_never_forgotten() {
        let mut fences = TicketFences::with_limit(MAX);
        let used = build_ticket_key(1);
        raise_many(&mut fences, 1..10_000, std::slice::from_ref(&used));
        assert_eq!(fences.raise(&used, build_fence(1), Vec::new), Ok(FenceStep::Same));
        assert_eq!(
            fences.raise(&used, RunFence::new(0, 9, 9), Vec::new),
            Err(FenceRefusal::Older(build_fence(1)))
        );
    }
}
