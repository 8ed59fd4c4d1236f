//! Requests to the server about budgets.

use std::{sync::Arc, time::Duration};

use domain::{BudgetUnit, SpendAmount, Timestamp};
use parking_lot::Mutex;
use redis::ScriptInvocation;

use super::{
    BudgetAccount, BudgetCall, BudgetRefusal, local_budgets::UnsentSettlement, scripts::BudgetScripts,
};
use crate::{error::Error, server::LeaseServer};

/// Prefix of all keys.
pub(crate) const PREFIX: &str = "journeyman:budget:";
// The braces put all keys into one hash slot of a cluster, because one script uses several keys.
const ALL: &str = "journeyman:budget:{all}:";
// Lifetime of the mark of a settled call: longer than a rebuild lasts and calls are repeated.
const MARK: Duration = Duration::from_secs(24 * 3600);
// Time that an account outlives its period: calls of its last moments are settled later.
const GRACE: Duration = Duration::from_secs(6 * 3600);
// Another generation may begin between reading the state and using it.
const TRIES: u32 = 3;

/// Generation of amounts, and whether all of them are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GenerationState {
    pub(super) generation: String,
    pub(super) is_complete: bool,
}

impl GenerationState {
    fn parse(text: &str) -> Self {
        let (generation, complete) = text.split_once(' ').unwrap_or((text, "0"));
        Self {
            generation: generation.to_owned(),
            is_complete: complete == "1",
        }
    }
}

#[derive(Debug)]
pub(super) struct GrantedAmount {
    /// Amount that earlier calls took for good.
    pub(super) taken: SpendAmount,
    pub(super) is_near: bool,
}

#[derive(Debug)]
pub(super) enum ReservationAnswer {
    Granted {
        accounts: Vec<GrantedAmount>,
        complete: bool,
    },
    Refused(BudgetRefusal),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum SettlementOutcome {
    Yes,
    /// The generation no longer exists.
    Lost,
}

/// Treatment of a call that was settled before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettledCallPolicy {
    Changes,
    Stays,
}

#[derive(Clone)]
pub(super) struct BudgetStore {
    server: LeaseServer,
    scripts: Arc<BudgetScripts>,
    generation: Arc<Mutex<Option<String>>>,
}

impl BudgetStore {
    pub(super) fn new(server: LeaseServer) -> Self {
        Self {
            server,
            scripts: Arc::new(BudgetScripts::new()),
            generation: Arc::default(),
        }
    }

    /// State of the server; begins a generation if none exists.
    pub(super) async fn state(&self) -> Result<GenerationState, Error> {
        let mut begin = self.scripts.begin.prepare_invoke();
        begin
            .key(state_key())
            .arg(uuid::Uuid::new_v4().simple().to_string());
        let text: String = self.server.run(&begin).await?;
        let state = GenerationState::parse(&text);
        self.remember(Some(state.generation.clone()));
        Ok(state)
    }

    async fn generation(&self) -> Result<String, Error> {
        let known = self.generation.lock().clone();
        match known {
            Some(known) => Ok(known),
            None => Ok(self.state().await?.generation),
        }
    }

    fn remember(&self, generation: Option<String>) {
        *self.generation.lock() = generation;
    }

    pub(super) async fn reserve(
        &self,
        call: &BudgetCall,
        accounts: &[BudgetAccount],
    ) -> Result<ReservationAnswer, Error> {
        for _ in 0..TRIES {
            let generation = self.generation().await?;
            let invocation = self.reservation(&generation, call, accounts);
            let words: Vec<String> = self.server.run(&invocation).await?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            match parse_reservation_answer(&words) {
                Some(answer) => return Ok(answer),
                None => self.remember(None),
            }
        }
        Err(self
            .server
            .connection
            .unavailable("amounts are lost again and again"))
    }

    fn reservation(
        &self,
        generation: &str,
        call: &BudgetCall,
        accounts: &[BudgetAccount],
    ) -> ScriptInvocation<'_> {
        let mut invocation = self.scripts.reserve.prepare_invoke();
        invocation
            .key(state_key())
            .arg(generation)
            .arg(call.now.unix_ms())
            .arg(call.until.unix_ms())
            .arg(&call.id)
            .arg(call.most.cost_micros)
            .arg(call.most.tokens);
        for account in accounts {
            invocation
                .key(account_key(generation, account))
                .arg(account.limit.cost_micros)
                .arg(account.limit.tokens)
                .arg(compute_account_lifetime(account, call.now));
        }
        invocation
    }

    pub(super) async fn settle(
        &self,
        call: &UnsentSettlement,
        known: SettledCallPolicy,
    ) -> Result<SettlementOutcome, Error> {
        for _ in 0..TRIES {
            let generation = self.generation().await?;
            if self.settle_in(&generation, call, known).await? == SettlementOutcome::Yes {
                return Ok(SettlementOutcome::Yes);
            }
            self.remember(None);
        }
        Ok(SettlementOutcome::Lost)
    }

    pub(super) async fn settle_in(
        &self,
        generation: &str,
        call: &UnsentSettlement,
        known: SettledCallPolicy,
    ) -> Result<SettlementOutcome, Error> {
        let mut invocation = self.scripts.settle.prepare_invoke();
        invocation
            .key(state_key())
            .key(format!("{ALL}{generation}:call:{}", call.call))
            .arg(generation)
            .arg(&call.call)
            .arg(call.amount.cost_micros)
            .arg(call.amount.tokens)
            .arg(convert_to_millis(MARK))
            .arg(u8::from(known == SettledCallPolicy::Stays));
        for account in &call.accounts {
            invocation
                .key(account_key(generation, account))
                .arg(compute_account_lifetime(account, call.at));
        }
        let words: Vec<String> = self.server.run(&invocation).await?;
        Ok(match words.first().map(String::as_str) {
            Some("settled") => SettlementOutcome::Yes,
            _ => SettlementOutcome::Lost,
        })
    }

    /// Claims the right to rebuild for a time; returns false if another planner has it. `owner` is the token
    /// of this claim alone.
    pub(super) async fn lock(&self, owner: &str, limit: Duration) -> Result<bool, Error> {
        let mut command = redis::cmd("SET");
        command
            .arg(lock_key())
            .arg(owner)
            .arg("NX")
            .arg("PX")
            .arg(convert_to_millis(limit));
        let taken: Option<String> = self.server.ask(&command).await?;
        Ok(taken.is_some())
    }

    /// Marks a generation as complete and releases the owner's right to rebuild; returns false when the
    /// generation is gone.
    pub(super) async fn complete(&self, generation: &str, owner: &str) -> Result<bool, Error> {
        let mut complete = self.scripts.complete.prepare_invoke();
        complete
            .key(state_key())
            .key(lock_key())
            .arg(generation)
            .arg(owner);
        self.server.run(&complete).await
    }
}

fn state_key() -> String {
    format!("{ALL}state")
}

fn lock_key() -> String {
    format!("{ALL}rebuild")
}

fn account_key(generation: &str, account: &BudgetAccount) -> String {
    format!("{ALL}{generation}:account:{}", account.name)
}

fn compute_account_lifetime(account: &BudgetAccount, now: Timestamp) -> u64 {
    convert_to_millis(account.ends.since(now) + GRACE)
}

fn convert_to_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Parses an answer to a reservation; `None` if the generation is not the current one.
fn parse_reservation_answer(words: &[&str]) -> Option<ReservationAnswer> {
    match words {
        ["refused", _, place, kind, used] => Some(ReservationAnswer::Refused(BudgetRefusal {
            place: place.parse().ok()?,
            budget: if *kind == "1" {
                BudgetUnit::Cost
            } else {
                BudgetUnit::Tokens
            },
            used: used.parse().ok()?,
        })),
        ["granted", complete, accounts @ ..] => Some(ReservationAnswer::Granted {
            accounts: accounts
                .iter()
                .map(|account| parse_granted_amount(account))
                .collect::<Option<_>>()?,
            complete: *complete == "1",
        }),
        _ => None,
    }
}

fn parse_granted_amount(words: &str) -> Option<GrantedAmount> {
    let mut parts = words.split(' ');
    Some(GrantedAmount {
        taken: SpendAmount {
            cost_micros: parts.next()?.parse().ok()?,
            tokens: parts.next()?.parse().ok()?,
        },
        is_near: parts.next()? == "1",
    })
}
