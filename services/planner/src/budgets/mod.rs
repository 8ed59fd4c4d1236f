//! Shared budgets of repositories and organizations. Redis holds the amounts that the model calls of all
//! planners take.

mod rebuild;

use std::time::Duration;

use domain::{
    Amount, BudgetOf, CallId, Dollars, Fact, JobRequest, Period, RepositoryName, SharedBudget, StopReason,
    Timestamp,
};
use lease::{Account, Call, Refusal};

use crate::config::{BudgetSettings, PeriodSettings};
use crate::run::RunState;
use crate::telemetry;

// A reservation outlasts the longest call by this time, for the steps between reservation and settlement.
const SLACK: Duration = Duration::from_secs(60);

/// Shared budgets with the limits that the settings give to repositories and organizations.
pub(crate) struct Budgets {
    store: lease::Budgets,
    repository: PeriodSettings,
    organization: PeriodSettings,
}

/// Request to reserve room for a model call.
pub(crate) struct Wish<'a> {
    pub(crate) id: &'a CallId,
    /// Upper bound of the call's cost and tokens.
    pub(crate) most: Amount,
    /// Time limit of the call, from which the end of the reservation follows.
    pub(crate) longest: Duration,
}

/// Room that is reserved for one model call.
pub(crate) struct Reservation {
    call: String,
    accounts: Vec<Account>,
}

/// Owner and period of an account.
struct Owner {
    of: BudgetOf,
    name: String,
    period: Period,
}

impl Budgets {
    pub(crate) fn new(store: lease::Budgets, settings: &BudgetSettings) -> Self {
        Self {
            store,
            repository: settings.repository,
            organization: settings.organization,
        }
    }

    /// Returns the accounts that a call of this repository's run counts in, each with its owner.
    fn accounts(&self, repository: &RepositoryName, at: Timestamp) -> (Vec<Owner>, Vec<Account>) {
        let owners = [
            (BudgetOf::Repository, repository.to_string(), &self.repository),
            (
                BudgetOf::Organization,
                repository.organization(),
                &self.organization,
            ),
        ];
        let each = owners.into_iter().flat_map(|(of, name, limits)| {
            Period::ALL.map(|period| {
                let account = Account {
                    name: format!("{}:{name}:{}", of.as_str(), period.name(at)),
                    limit: limits.of(period),
                    ends: period.around(at).1,
                };
                let name = name.clone();
                (Owner { of, name, period }, account)
            })
        });
        each.unzip()
    }

    /// Reserves the upper bound of a call in every account of the run's repository.
    ///
    /// # Errors
    /// The budget without room, or [`StopReason::PriceUnknown`] when money is limited and a model has no
    /// price.
    pub(crate) async fn reserve(&self, state: &RunState, wish: Wish<'_>) -> Result<Reservation, StopReason> {
        let now = bootstrap::now();
        let repository = state.request().map(|request: &JobRequest| &request.repository);
        let (owners, accounts) = repository
            .map(|name| self.accounts(name, now))
            .unwrap_or_default();
        let limits_money = accounts.iter().any(|account| account.limit.cost_micros > 0);
        // An unpriced reply costs nothing in the accounts, so a limit in money could never be reached.
        if let (true, Some(model)) = (limits_money, &state.spending.unpriced) {
            let model = model.clone();
            return Err(StopReason::PriceUnknown { model });
        }
        let call = Call {
            id: wish.id.to_string(),
            most: wish.most,
            now,
            until: now.plus(wish.longest + SLACK),
        };
        let reserved = self.store.reserve(&call, &accounts).await;
        if !reserved.is_shared {
            telemetry::budgets_not_shared();
        }
        for place in reserved.near {
            if let (Some(owner), Some(account)) = (owners.get(place), accounts.get(place)) {
                owner.is_near(account);
            }
        }
        match reserved.refusal {
            Some(refusal) => Err(refused(&refusal, &owners, &accounts, &call)),
            None => Ok(Reservation {
                call: call.id,
                accounts,
            }),
        }
    }

    /// Replaces a reservation by the amount that the call took. A failed call counts as nothing, because
    /// its usage is unknown.
    pub(crate) async fn settle(&self, reservation: &Reservation, fact: &Fact) {
        let amount = fact.taken().unwrap_or_default();
        let Reservation { call, accounts } = reservation;
        self.store.settle(call, amount, accounts, bootstrap::now()).await;
    }
}

impl Owner {
    fn is_near(&self, account: &Account) {
        let (of, period) = (self.of.as_str(), self.period.as_str());
        telemetry::budget_near(of, period);
        tracing::warn!(
            of,
            name = self.name,
            period,
            limit_usd = %Dollars::from_micros(account.limit.cost_micros),
            limit_tokens = account.limit.tokens,
            "four fifths of a budget are used"
        );
    }
}

/// Returns the stop reason for a refused reservation. A call within the limit fits again when the period
/// ends; a larger one never does, so `resets` is absent.
fn refused(refusal: &Refusal, owners: &[Owner], accounts: &[Account], call: &Call) -> StopReason {
    let Refusal { place, budget, used } = *refusal;
    let (Some(owner), Some(account)) = (owners.get(place), accounts.get(place)) else {
        return StopReason::ModelFailed {
            detail: "a budget without an owner has no room".to_owned(),
        };
    };
    let (limit, needs) = match budget {
        domain::Budget::Cost => (account.limit.cost_micros, call.most.cost_micros),
        domain::Budget::Tokens | domain::Budget::Minutes => (account.limit.tokens, call.most.tokens),
    };
    let (of, period) = (owner.of.as_str(), owner.period.as_str());
    telemetry::budget_refused(of, period);
    tracing::info!(
        call = call.id,
        of,
        name = owner.name,
        period,
        used,
        limit,
        needs,
        "a budget has no room"
    );
    StopReason::SharedBudgetSpent(SharedBudget {
        of: owner.of,
        name: owner.name.clone(),
        period: Some(owner.period),
        budget,
        spent: used,
        limit,
        needs,
        resets: (needs <= limit).then_some(account.ends),
    })
}
