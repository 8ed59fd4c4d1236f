//! Amounts and reservations known to one planner. They alone count while Redis does not answer.

use std::collections::{BTreeMap, HashMap};

use domain::{SpendAmount, Timestamp};

use super::{BudgetAccount, BudgetCall, BudgetRefusal};

#[derive(Default)]
struct LocalAmount {
    /// Amount as the server last had it, plus what was taken here since.
    taken: SpendAmount,
    ends: Timestamp,
    /// Reservations of this planner's running calls: end and maximum of each.
    reserved: BTreeMap<String, (Timestamp, SpendAmount)>,
}

/// Settled call that the server has not received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnsentSettlement {
    pub(super) call: String,
    pub(super) amount: SpendAmount,
    pub(super) accounts: Vec<BudgetAccount>,
    pub(super) at: Timestamp,
}

#[derive(Default)]
pub(super) struct LocalBudgets {
    accounts: HashMap<String, LocalAmount>,
    pub(super) unsent: Vec<UnsentSettlement>,
}

impl LocalBudgets {
    /// Returns the first account without room for a call. Reserves nothing.
    pub(super) fn refusal(&self, call: &BudgetCall, accounts: &[BudgetAccount]) -> Option<BudgetRefusal> {
        accounts.iter().enumerate().find_map(|(place, account)| {
            let used = self.used(account, call);
            account.refusal(place, used, call.most)
        })
    }

    fn used(&self, account: &BudgetAccount, call: &BudgetCall) -> SpendAmount {
        let Some(held) = self.accounts.get(&account.name) else {
            return SpendAmount::default();
        };
        let others = held
            // A repeated call replaces its own reservation, so that is not counted against it.
            .reserved
            .iter()
            .filter(|(id, (until, _))| **id != call.id && *until > call.now);
        others.fold(held.taken, |sum, (_, (_, most))| sum.plus(*most))
    }

    pub(super) fn reserve(&mut self, call: &BudgetCall, accounts: &[BudgetAccount]) {
        let now = call.now;
        self.accounts.retain(|_, held| held.ends > now);
        self.unsent
            .retain(|unsent| unsent.accounts.iter().any(|account| account.ends > now));
        for account in accounts {
            let held = self.accounts.entry(account.name.clone()).or_default();
            held.ends = account.ends;
            held.reserved.retain(|_, (until, _)| *until > now);
            held.reserved.insert(call.id.clone(), (call.until, call.most));
        }
    }

    pub(super) fn settle(&mut self, call: &str, amount: SpendAmount, accounts: &[BudgetAccount]) {
        // Only a call that is reserved here is added, so that a repeated settlement counts once.
        for account in accounts {
            if let Some(held) = self.accounts.get_mut(&account.name)
                && held.reserved.remove(call).is_some()
            {
                held.taken = held.taken.plus(amount);
            }
        }
    }

    /// Replaces the amount that was counted here by the server's.
    pub(super) fn observe(&mut self, account: &BudgetAccount, taken: SpendAmount) {
        if let Some(held) = self.accounts.get_mut(&account.name) {
            held.taken = taken;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: u64 = 1_000;

    fn build_token_amount(tokens: u64) -> SpendAmount {
        SpendAmount {
            cost_micros: 0,
            tokens,
        }
    }

    fn build_accounts() -> [BudgetAccount; 2] {
        ["day", "month"].map(|name| BudgetAccount {
            name: name.to_owned(),
            limit: build_token_amount(LIMIT),
            ends: Timestamp::from_unix_ms(1_000_000),
        })
    }

    proptest! {
        #[test]
        fn any_reservations_and_settlements_respect_limit(
            steps in prop::collection::vec((0..8_u8, 0..500_u64, 0..100_u64, any::<bool>()), 1..200),
        ) {
            let (mut book, accounts) = (LocalBudgets::default(), build_accounts());
            // Running calls with their maximum and end, and the amount that was taken for good.
            let (mut open, mut taken) = (BTreeMap::<String, (u64, i64)>::new(), 0);
            for (now, (id, most, part, settles)) in steps.into_iter().enumerate() {
                let (id, now) = (format!("c{id}"), i64::try_from(now).unwrap());
                open.retain(|_, (_, until)| *until > now);
                if settles && let Some((most, _)) = open.remove(&id) {
                    let amount = most * part / 100;
                    book.settle(&id, build_token_amount(amount), &accounts);
                    book.settle(&id, build_token_amount(amount), &accounts);
                    taken += amount;
                    continue;
                }
                let call = BudgetCall {
                    id: id.clone(),
                    most: build_token_amount(most),
                    now: Timestamp::from_unix_ms(now),
                    until: Timestamp::from_unix_ms(now + 20),
                };
                let others = open.iter().filter(|(other, _)| **other != id);
                let used = taken + others.map(|(_, (most, _))| most).sum::<u64>();
                let refusal = book.refusal(&call, &accounts);
                prop_assert_eq!(refusal.map(|refusal| refusal.used), (used + most > LIMIT).then_some(used));
                if refusal.is_none() {
                    book.reserve(&call, &accounts);
                    open.insert(id, (most, now + 20));
                }
                let reserved = open.values().map(|(most, _)| most).sum::<u64>();
                prop_assert!(taken + reserved <= LIMIT);
            }
        }
    }
}
