//! Budgets that planners share: the maximum of a model call is reserved before it, and its amount is settled
//! after it.
//!
//! Redis is a cache of the journals. When it is empty, a new generation of amounts begins and one planner
//! counts every call of the running periods again. Until then each planner also applies the amounts that it
//! knows itself. While Redis does not answer, these alone count.

mod local_budgets;
mod rebuild;
mod scripts;
mod store;

use std::{collections::VecDeque, sync::Arc};

use domain::{BudgetUnit, SpendAmount, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::TicketLeases;
use local_budgets::{LocalBudgets, UnsentSettlement};
pub use rebuild::BudgetRebuild;
pub(crate) use store::PREFIX;
use store::{BudgetStore, GrantedAmount, ReservationAnswer, SettledCallPolicy, SettlementOutcome};

/// Account with a limit for one period, such as a repository's day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetAccount {
    /// Name of the account and period, unique among accounts.
    pub name: String,
    /// Limit of the period; a part of 0 has no limit.
    pub limit: SpendAmount,
    /// End of the period; the amount is deleted some time later.
    pub ends: Timestamp,
}

impl BudgetAccount {
    fn refusal(&self, place: usize, used: SpendAmount, most: SpendAmount) -> Option<BudgetRefusal> {
        let parts = [
            (
                BudgetUnit::Cost,
                used.cost_micros,
                most.cost_micros,
                self.limit.cost_micros,
            ),
            (BudgetUnit::Tokens, used.tokens, most.tokens, self.limit.tokens),
        ];
        parts.into_iter().find_map(|(budget, used, most, limit)| {
            (limit > 0 && used.saturating_add(most) > limit).then_some(BudgetRefusal { place, budget, used })
        })
    }
}

/// Call of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetCall {
    /// Id of the call; a repeated call keeps it.
    pub id: String,
    /// Maximum amount of the call.
    pub most: SpendAmount,
    /// Current time of the caller's clock.
    pub now: Timestamp,
    /// Time at which the call has ended in any case; its reservation ends with it.
    pub until: Timestamp,
}

/// Refusal of a call for which an account has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetRefusal {
    /// Index of the account in the caller's list.
    pub place: usize,
    /// Kind of budget that is exhausted.
    pub budget: BudgetUnit,
    /// Amount that was taken, plus the maximum of other running calls.
    pub used: u64,
}

/// Result of a reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedBudgetReservation {
    /// Account without room; nothing is reserved then.
    pub refusal: Option<BudgetRefusal>,
    /// Indexes of the accounts that reached four fifths of their limit with this call.
    pub near: Vec<usize>,
    /// False when only this planner's amounts were applied.
    pub is_shared: bool,
}

/// Budgets that planners share. Cheap to clone.
#[derive(Clone)]
pub struct RedisBudgets {
    store: BudgetStore,
    book: Arc<Mutex<LocalBudgets>>,
    /// Notified when amounts of the server are found to be incomplete.
    lost: Arc<Notify>,
}

impl RedisBudgets {
    /// Creates budgets on the connection of the leases.
    pub fn new(leases: &TicketLeases) -> Self {
        Self {
            store: BudgetStore::new(leases.server.clone()),
            book: Arc::default(),
            lost: Arc::default(),
        }
    }

    /// Reserves the maximum of a call in all accounts, or in none. A repeated call keeps one reservation.
    pub async fn reserve(&self, call: &BudgetCall, accounts: &[BudgetAccount]) -> SharedBudgetReservation {
        // Unsent amounts first, so that the server decides with them.
        self.send_settlements().await;
        let answer = failpoint::around("lease.budget.reserve", self.store.reserve(call, accounts)).await;
        let mut book = self.book();
        let own = book.refusal(call, accounts);
        let (refusal, granted, is_shared) = match answer {
            Ok(ReservationAnswer::Refused(refusal)) => (Some(refusal), Vec::new(), true),
            Ok(ReservationAnswer::Granted {
                accounts,
                complete: true,
            }) => (None, accounts, true),
            // Without all amounts, the server's consent proves nothing, so this planner's own amounts decide.
            Ok(ReservationAnswer::Granted { complete: false, .. }) | Err(_) => (own, Vec::new(), false),
        };
        if !is_shared {
            self.lost.notify_one();
        }
        if refusal.is_none() {
            book.reserve(call, accounts);
            for (account, granted) in accounts.iter().zip(&granted) {
                book.observe(account, granted.taken);
            }
        }
        let is_near = |(place, granted): (usize, &GrantedAmount)| granted.is_near.then_some(place);
        SharedBudgetReservation {
            refusal,
            near: granted.iter().enumerate().filter_map(is_near).collect(),
            is_shared,
        }
    }

    /// Replaces a call's reservation by its amount. A call counts once, with its last amount.
    pub async fn settle(&self, call: &str, amount: SpendAmount, accounts: &[BudgetAccount], now: Timestamp) {
        // First in this process, so that the amount counts even if Redis does not answer.
        self.book().settle(call, amount, accounts);
        let unsent = UnsentSettlement {
            call: call.to_owned(),
            amount,
            accounts: accounts.to_vec(),
            at: now,
        };
        let settled = self.store.settle(&unsent, SettledCallPolicy::Changes);
        let settled = failpoint::around("lease.budget.settle", settled).await;
        // The call is kept before the next reservation sends it again, so an outage loses no amount.
        if !matches!(settled, Ok(SettlementOutcome::Yes)) {
            self.lost.notify_one();
            self.book().unsent.push(unsent);
        }
    }

    /// Sends the settled calls that the server has not received. An amount that it counted from journals
    /// meanwhile stays.
    async fn send_settlements(&self) {
        let mut round = SettlementRound::begin(&self.book);
        while let Some(next) = round.unsent.front() {
            if !matches!(
                self.store.settle(next, SettledCallPolicy::Stays).await,
                Ok(SettlementOutcome::Yes)
            ) {
                // The first failure ends the round. Each further attempt could cost the caller's
                // reservation another second.
                return;
            }
            round.unsent.pop_front();
        }
    }

    fn book(&self) -> MutexGuard<'_, LocalBudgets> {
        self.book.lock()
    }
}

/// Unsent settlements that one reservation sends. Those that it did not send return to the book when the round ends,
/// also if the reservation is canceled.
struct SettlementRound<'a> {
    book: &'a Mutex<LocalBudgets>,
    unsent: VecDeque<UnsentSettlement>,
}

impl<'a> SettlementRound<'a> {
    /// Takes the unsent settlements out of the book: the lock is not held across the requests, and a parallel
    /// reservation does not send the same ones.
    fn begin(book: &'a Mutex<LocalBudgets>) -> Self {
        let unsent = std::mem::take(&mut book.lock().unsent).into();
        Self { book, unsent }
    }
}

impl Drop for SettlementRound<'_> {
    fn drop(&mut self) {
        self.book.lock().unsent.extend(self.unsent.drain(..));
    }
}
