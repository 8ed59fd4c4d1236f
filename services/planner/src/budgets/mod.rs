//! Shared budgets of repositories and organizations. Redis holds the amounts that the model calls of all
//! planners take.

mod rebuild;

use std::time::Duration;

use domain::{
    BudgetPeriod, BudgetScope, CallId, Dollars, Fact, JobRequest, RepositoryName, SharedBudget, SpendAmount,
    StopReason, Timestamp,
};
use lease::{BudgetAccount, BudgetCall, BudgetRefusal};
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use crate::config::{BudgetSettings, PeriodSettings};
use crate::run::PlannerRunState;
use crate::telemetry;

// A reservation outlasts the longest call by this time, for the steps between reservation and settlement.
const SLACK: Duration = Duration::from_secs(60);

/// Shared budgets with the limits that the settings give to repositories and organizations.
pub(crate) struct SharedBudgets {
    store: lease::RedisBudgets,
    limits: SharedLimits,
}

/// Limits that the settings give to each repository and each organization.
struct SharedLimits {
    repository: PeriodSettings,
    organization: PeriodSettings,
}

/// Request to reserve room for a model call.
pub(crate) struct ReservationRequest<'a> {
    pub(crate) id: &'a CallId,
    /// Upper bound of the call's cost and tokens.
    pub(crate) most: SpendAmount,
    /// Time limit of the call, from which the end of the reservation follows.
    pub(crate) longest: Duration,
}

/// Room that is reserved for one model call.
pub(crate) struct BudgetReservation {
    call: String,
    accounts: Vec<BudgetAccount>,
}

/// Owner and period of an account.
struct BudgetOwner {
    of: BudgetScope,
    name: String,
    period: BudgetPeriod,
}

impl SharedLimits {
    /// Returns true if an account has a limit, so that it may refuse a call.
    fn has_any(&self) -> bool {
        let has_limit = |limits: &PeriodSettings| {
            let mut periods = BudgetPeriod::ALL.into_iter();
            periods.any(|period| limits.of(period) != SpendAmount::default())
        };
        has_limit(&self.repository) || has_limit(&self.organization)
    }

    /// Returns the accounts that a call of this repository's run counts in, each with its owner.
    fn accounts(&self, repository: &RepositoryName, at: Timestamp) -> (Vec<BudgetOwner>, Vec<BudgetAccount>) {
        let owners = [
            (BudgetScope::Repository, repository.to_string(), &self.repository),
            (
                BudgetScope::Organization,
                repository.organization(),
                &self.organization,
            ),
        ];
        let each = owners.into_iter().flat_map(|(of, name, limits)| {
            BudgetPeriod::ALL.map(|period| {
                let account = BudgetAccount {
                    name: format!("{}:{name}:{}", of.as_str(), period.name(at)),
                    limit: limits.of(period),
                    ends: period.around(at).1,
                };
                let name = name.clone();
                (BudgetOwner { of, name, period }, account)
            })
        });
        each.unzip()
    }
}

impl SharedBudgets {
    pub(crate) fn new(store: lease::RedisBudgets, settings: &BudgetSettings) -> Self {
        Self {
            store,
            limits: SharedLimits {
                repository: settings.repository,
                organization: settings.organization,
            },
        }
    }

    /// Returns true if a repository or an organization has a limit, so that a reservation may be refused.
    pub(crate) fn has_limit(&self) -> bool {
        self.limits.has_any()
    }

    /// Reserves the upper bound of a call in every account of the run's repository.
    ///
    /// # Errors
    /// The budget without room, or [`StopReason::PriceUnknown`] when money is limited and a model has no
    /// price.
    pub(crate) async fn reserve(
        &self,
        state: &PlannerRunState,
        wish: ReservationRequest<'_>,
    ) -> Result<BudgetReservation, StopReason> {
        let now = bootstrap::read_wall_clock();
        let repository = state.request().map(|request: &JobRequest| &request.repository);
        let (owners, accounts) = repository
            .map(|name| self.limits.accounts(name, now))
            .unwrap_or_default();
        let limits_money = accounts.iter().any(|account| account.limit.cost_micros > 0);
        // An unpriced reply costs nothing in the accounts, so a limit in money could never be reached.
        if let (true, Some(model)) = (limits_money, &state.budget().spending().unpriced_model) {
            let model = model.clone();
            return Err(StopReason::PriceUnknown { model });
        }
        let call = BudgetCall {
            id: wish.id.to_string(),
            most: wish.most,
            now,
            until: now.plus(wish.longest + SLACK),
        };
        let reserved = self.store.reserve(&call, &accounts).await;
        if !reserved.is_shared {
            telemetry::count_unshared_budgets();
        }
        for place in reserved.near {
            if let (Some(owner), Some(account)) = (owners.get(place), accounts.get(place)) {
                owner.is_near(account);
            }
        }
        match reserved.refusal {
            Some(refusal) => Err(stop_reason_for_refusal(&refusal, &owners, &accounts, &call)),
            None => Ok(BudgetReservation {
                call: call.id,
                accounts,
            }),
        }
    }

    /// Starts to replace a reservation by the amount that the call took. A failed call counts as nothing, because
    /// its usage is unknown.
    ///
    /// The replacement does not end with its handle: the amount was spent, also if no caller waits for it.
    pub(crate) fn settle(&self, reservation: BudgetReservation, fact: &Fact) -> JoinHandle<()> {
        let charge = fact.charge();
        let amount = charge.map_or_else(SpendAmount::default, |charge| charge.reply.spend_amount());
        let (store, now) = (self.store.clone(), bootstrap::read_wall_clock());
        let settled = async move {
            let BudgetReservation { call, accounts } = reservation;
            store.settle(&call, amount, &accounts, now).await;
        };
        tokio::spawn(settled.in_current_span())
    }
}

impl BudgetOwner {
    fn is_near(&self, account: &BudgetAccount) {
        let (of, period) = (self.of.as_str(), self.period.as_str());
        telemetry::count_near_budget(of, period);
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
fn stop_reason_for_refusal(
    refusal: &BudgetRefusal,
    owners: &[BudgetOwner],
    accounts: &[BudgetAccount],
    call: &BudgetCall,
) -> StopReason {
    let BudgetRefusal { place, budget, used } = *refusal;
    let (Some(owner), Some(account)) = (owners.get(place), accounts.get(place)) else {
        return StopReason::ModelFailed {
            detail: "a budget without an owner has no room".to_owned(),
        };
    };
    let (limit, needs) = match budget {
        domain::BudgetUnit::Cost => (account.limit.cost_micros, call.most.cost_micros),
        domain::BudgetUnit::Tokens | domain::BudgetUnit::Minutes => (account.limit.tokens, call.most.tokens),
    };
    let (of, period) = (owner.of.as_str(), owner.period.as_str());
    telemetry::count_refused_budget(of, period);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::{RunSource, Spend};
    use proptest::prelude::*;

    use super::*;

    fn build_reply_entry(at: Timestamp, tokens: u64) -> domain::JournalEntry {
        let reply = domain::ModelReply {
            blocks: Vec::new(),
            stop: domain::ReplyStop::EndTurn,
            usage: domain::TokenUsage {
                input_tokens: tokens,
                ..domain::TokenUsage::default()
            },
            model: "large".to_owned(),
            provider: "main".to_owned(),
            cost_micros: Some(tokens * 3),
        };
        let run: domain::RunId = "jira:ENG-1@7".parse().unwrap();
        domain::JournalEntry {
            position: 1,
            nonce: String::new(),
            fence: domain::RunFence::default(),
            at,
            fact: Fact::Summarized {
                id: run.call(1),
                reply,
            },
        }
    }

    #[test]
    fn limit_of_any_period_may_refuse() {
        let limited = crate::AmountSettings {
            tokens: 1,
            ..crate::AmountSettings::default()
        };
        let day = PeriodSettings {
            day: limited,
            ..PeriodSettings::default()
        };
        let month = PeriodSettings {
            month: limited,
            ..PeriodSettings::default()
        };
        let none = PeriodSettings::default();
        for (repository, organization, expected) in [
            (none, none, false),
            (day, none, true),
            (month, none, true),
            (none, day, true),
            (none, month, true),
        ] {
            let limits = SharedLimits {
                repository,
                organization,
            };
            assert_eq!(limits.has_any(), expected, "{repository:?} {organization:?}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn settlement_continues_without_its_handle() {
        let redis = testkit::RedisServer::start().await.unwrap();
        let leases = lease::TicketLeases::open(&lease::Settings {
            url: redis.url(),
            ..lease::Settings::default()
        });
        let store = lease::RedisBudgets::new(&leases.unwrap());
        let budgets = SharedBudgets::new(store.clone(), &BudgetSettings::default());
        let now = bootstrap::read_wall_clock();
        let build_amount = |tokens| SpendAmount {
            cost_micros: 0,
            tokens,
        };
        let build_call = |id: &str, tokens| BudgetCall {
            id: id.to_owned(),
            most: build_amount(tokens),
            now,
            until: now.plus(Duration::from_secs(3600)),
        };
        let accounts = vec![BudgetAccount {
            name: "repository:acme/shop:today".to_owned(),
            limit: build_amount(100),
            ends: now.plus(Duration::from_secs(3600)),
        }];
        let next = build_call("next", 50);
        assert_eq!(
            store.reserve(&build_call("first", 100), &accounts).await.refusal,
            None
        );
        assert!(store.reserve(&next, &accounts).await.refusal.is_some());
        let reservation = BudgetReservation {
            call: "first".to_owned(),
            accounts: accounts.clone(),
        };
        drop(budgets.settle(reservation, &build_reply_entry(now, 40).fact));
        let has_room = async || {
            let reserved = store.reserve(&next, &accounts).await;
            reserved.refusal.is_none().then_some(())
        };
        testkit::poll_until("room for the next call", Duration::from_secs(10), has_room)
            .await
            .unwrap();
    }

    proptest! {
        /// Every reply counts once in the day and the month of its repository, and of the repository's owner.
        #[test]
        fn accounts_add_up_to_reported_spend(
            replies in prop::collection::vec(("(acme/shop|acme/web|ghe:acme/web)", 0..5_000_000_000_i64, 0..900_u64), 0..30)
        ) {
            let unlimited = SharedLimits {
                repository: PeriodSettings::default(),
                organization: PeriodSettings::default(),
            };
            let run = "jira:ENG-1@7".parse().unwrap();
            let (mut spend, mut counted) = (Spend::default(), BTreeMap::<String, SpendAmount>::new());
            for (repository, at, tokens) in replies {
                let repository: RepositoryName = repository.parse().unwrap();
                let entry = build_reply_entry(Timestamp::from_unix_ms(at), tokens);
                let amount = entry.fact.charge().unwrap().reply.spend_amount();
                for account in unlimited.accounts(&repository, entry.at).1 {
                    let sum = counted.entry(account.name).or_default();
                    *sum = sum.plus(amount);
                }
                let source = RunSource { repository: Some(repository), job: None };
                spend.add_entry(&run, &source, &entry);
            }
            let mut reported = BTreeMap::new();
            for period in BudgetPeriod::ALL {
                for of in [BudgetScope::Repository, BudgetScope::Organization] {
                    reported.extend(spend.sum_by(|key| {
                        let repository = key.source.repository.as_ref().unwrap();
                        let name = match of {
                            BudgetScope::Organization => repository.organization(),
                            BudgetScope::Repository | BudgetScope::Ticket => repository.to_string(),
                        };
                        format!("{}:{name}:{}", of.as_str(), period.name(key.day))
                    }));
                }
            }
            let reported: BTreeMap<_, _> =
                reported.into_iter().map(|(name, sum)| (name, sum.spend.amount())).collect();
            prop_assert_eq!(counted, reported);
        }
    }
}
