//! Budgets that planners share: what a call of a model may take is reserved before it and settled after it.
//!
//! Redis is a cache of what the journals say. When it is empty, a new generation of amounts begins, one planner tells it
//! every call of the running periods, and until then each planner also holds to what it knows itself. When it does not
//! answer, that alone counts.

mod book;
mod rebuild;
mod scripts;
mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{Amount, Budget, Timestamp};
use tokio::sync::Notify;

use crate::Leases;
use book::{Book, Untold};
pub use rebuild::Rebuild;
pub(crate) use store::PREFIX;
use store::{Answer, Granted, Known, Settled, Store};

/// Whose amount is counted under one name, with its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name, of one period; at most one account has it.
    pub name: String,
    /// What may be taken; a part that is 0 has no limit.
    pub limit: Amount,
    /// When its period is over, after which it is forgotten.
    pub ends: Timestamp,
}

impl Account {
    fn refusal(&self, place: usize, used: Amount, most: Amount) -> Option<Refusal> {
        let parts = [
            (
                Budget::Cost,
                used.cost_micros,
                most.cost_micros,
                self.limit.cost_micros,
            ),
            (Budget::Tokens, used.tokens, most.tokens, self.limit.tokens),
        ];
        parts.into_iter().find_map(|(budget, used, most, limit)| {
            (limit > 0 && used.saturating_add(most) > limit).then_some(Refusal { place, budget, used })
        })
    }
}

/// A call of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its id: a call that is repeated keeps it.
    pub id: String,
    /// What it may take at most.
    pub most: Amount,
    /// The caller's clock.
    pub now: Timestamp,
    /// When it is over in any case, and its reservation with it.
    pub until: Timestamp,
}

/// An account has no room for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which of the accounts.
    pub place: usize,
    /// What there is too little of.
    pub budget: Budget,
    /// What was taken of it, and what other calls under way may take.
    pub used: u64,
}

/// What came of a wish to reserve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Who has no room; nothing is reserved then.
    pub refusal: Option<Refusal>,
    /// The accounts of which four fifths are used now and were not before.
    pub near: Vec<usize>,
    /// False when this planner's own knowledge had to do.
    pub is_shared: bool,
}

/// The budgets that planners share. Cheap to clone.
#[derive(Clone)]
pub struct Budgets {
    store: Store,
    book: Arc<Mutex<Book>>,
    /// Somebody noticed that amounts are not known.
    lost: Arc<Notify>,
}

impl Budgets {
    /// Budgets on the connection of the leases.
    pub fn new(leases: &Leases) -> Self {
        Self {
            store: Store::new(leases.server.clone()),
            book: Arc::default(),
            lost: Arc::default(),
        }
    }

    /// Reserves what a call may take at most in all accounts, or in none. A call that has a reservation keeps one.
    pub async fn reserve(&self, call: &Call, accounts: &[Account]) -> Reserved {
        self.tell().await;
        let answer = failpoint::around("lease.budget.reserve", self.store.reserve(call, accounts)).await;
        let mut book = self.book();
        let own = book.refusal(call, accounts);
        let (refusal, granted, is_shared) = match answer {
            Ok(Answer::Refused(refusal)) => (Some(refusal), Vec::new(), true),
            Ok(Answer::Granted {
                accounts,
                complete: true,
            }) => (None, accounts, true),
            Ok(Answer::Granted { complete: false, .. }) | Err(_) => (own, Vec::new(), false),
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
        let is_near = |(place, granted): (usize, &Granted)| granted.is_near.then_some(place);
        Reserved {
            refusal,
            near: granted.iter().enumerate().filter_map(is_near).collect(),
            is_shared,
        }
    }

    /// Replaces a call's reservation by what it took. The same call counts once, with what was said of it last.
    pub async fn settle(&self, call: &str, amount: Amount, accounts: &[Account], now: Timestamp) {
        self.book().settle(call, amount, accounts);
        let untold = Untold {
            call: call.to_owned(),
            amount,
            accounts: accounts.to_vec(),
            at: now,
        };
        let told = self.store.settle(&untold, Known::Changes);
        let told = failpoint::around("lease.budget.settle", told).await;
        if !matches!(told, Ok(Settled::Yes)) {
            self.lost.notify_one();
            self.book().untold.push(untold);
        }
    }

    /// Tells the server what it did not hear of while it did not answer. What it learned from journals meanwhile stays.
    async fn tell(&self) {
        let untold = std::mem::take(&mut self.book().untold);
        let mut left = untold.into_iter();
        while let Some(next) = left.next() {
            if !matches!(self.store.settle(&next, Known::Stays).await, Ok(Settled::Yes)) {
                self.book().untold.extend(std::iter::once(next).chain(left));
                return;
            }
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
