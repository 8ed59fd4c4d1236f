//! Shared budgets with the Redis of several planners.

use domain::{BudgetPeriod, BudgetScope, JournalEntry, RunId, Spend, SpendAmount, Timestamp};
use lease::{BudgetAccount, BudgetCall, RedisBudgets, TicketLeases};

use super::*;
use crate::{AmountSettings, PeriodSettings};

const REPOSITORY: &str = "acme/shop";

fn limit_month_tokens(tokens: u64) -> PeriodSettings {
    PeriodSettings {
        month: AmountSettings {
            tokens,
            ..AmountSettings::default()
        },
        ..PeriodSettings::default()
    }
}

impl World {
    async fn journal(&self, run: &RunId) -> Vec<JournalEntry> {
        let entries = self.queue.journal().read(run).await.unwrap();
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Returns the usage in the journals of the ticket's runs.
    async fn taken(&self) -> SpendAmount {
        let mut spend = Spend::default();
        for run in self.queue.journal().runs_of(&build_ticket_key()).await.unwrap() {
            spend.add_journal(&run, &self.journal(&run).await);
        }
        spend.total().spend.amount()
    }

    fn shared(&self) -> RedisBudgets {
        let settings = lease::Settings {
            url: self.redis.url(),
            ..lease::Settings::default()
        };
        RedisBudgets::new(&TicketLeases::open(&settings).unwrap())
    }

    /// Returns the tokens of each account of the repository and its owner, once all amounts are known.
    async fn counted(&self) -> Vec<u64> {
        let (budgets, now) = (self.shared(), bootstrap::read_wall_clock());
        let mut counted = Vec::new();
        for (of, name) in [
            (BudgetScope::Repository, REPOSITORY),
            (BudgetScope::Organization, "acme"),
        ] {
            for period in BudgetPeriod::ALL {
                let account = BudgetAccount {
                    name: format!("{}:{name}:{}", of.as_str(), period.name(now)),
                    limit: SpendAmount {
                        cost_micros: 0,
                        tokens: 1,
                    },
                    ends: period.around(now).1,
                };
                let refused = budgets.reserve(&build_probe_call(now), &[account]).await.refusal;
                counted.push(refused.map_or(0, |refusal| refusal.used));
            }
        }
        counted
    }
}

/// Returns a call that has no room in any account.
fn build_probe_call(now: Timestamp) -> BudgetCall {
    BudgetCall {
        id: "probe".to_owned(),
        most: SpendAmount {
            cost_micros: 0,
            tokens: 1_000_000_000,
        },
        now,
        until: now,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_budget_amounts_are_rebuilt_from_journals() {
    let mut world = World::start(build_fix_script()).await;
    let planner = world.planner().await;
    world.ask().await;
    world.finished(1).await;
    let taken = world.taken().await.tokens;
    assert!(taken > 0);
    assert_eq!(world.counted().await, [taken; 4]);
    planner.stop().await;
    // The server restarts without its data.
    world.redis.kill();
    world.redis.restart().await.unwrap();
    let planner = world.planner().await;
    let recounted = async || (world.counted().await == [taken; 4]).then_some(());
    world.until("amounts as before", recounted).await;
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_above_whole_budget_ends_run() {
    let mut world = World::start(build_fix_script()).await;
    world.budget.organization = limit_month_tokens(1_000);
    let planner = world.planner().await;
    world.ask().await;
    let row = world.finished(1).await;
    let RunStatus::Finished {
        reason: StopReason::SharedBudgetSpent(budget),
    } = &row.runs[0].status
    else {
        panic!("{:?}", row.runs[0])
    };
    assert_eq!(
        (budget.of, budget.name.as_str()),
        (BudgetScope::Organization, "acme")
    );
    assert_eq!((budget.limit, budget.spent, budget.resets), (1_000, 0, None));
    assert!(budget.needs > 1_000);
    assert_eq!(world.model.calls().len(), 0);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exhausted_shared_budget_delays_run() {
    let mut world = World::start(build_fix_script()).await;
    world.budget.repository = limit_month_tokens(100_000);
    let planner = world.planner().await;
    let now = bootstrap::read_wall_clock();
    let (budgets, account) = (
        world.shared(),
        BudgetAccount {
            name: format!("repository:{REPOSITORY}:{}", BudgetPeriod::Month.name(now)),
            limit: SpendAmount::default(),
            ends: BudgetPeriod::Month.around(now).1,
        },
    );
    let other = BudgetCall {
        most: SpendAmount {
            cost_micros: 0,
            tokens: 99_999,
        },
        until: account.ends,
        ..build_probe_call(now)
    };
    let accounts = [account.clone()];
    assert_eq!(budgets.reserve(&other, &accounts).await.refusal, None);
    world.ask().await;
    let waiting = async || world.row().await.filter(|row| row.due.is_some());
    let row = world.until("a run that waits", waiting).await;
    assert!(row.due > Some(account.ends), "not before the period is over");
    assert_eq!(world.model.calls().len(), 0);
    // The other call took little, and a person requests a retry at once.
    budgets
        .settle(
            "probe",
            SpendAmount {
                cost_micros: 0,
                tokens: 5,
            },
            &accounts,
            now,
        )
        .await;
    world.trigger("retry:1", TriggerReason::RetryRequested).await;
    assert_eq!(world.finished(1).await.runs[0].status, COMPLETED);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ticket_budget_counts_earlier_runs() {
    let mut world = World::start([build_fix_script(), build_fix_script()].concat()).await;
    let planner = world.planner().await;
    world.ask().await;
    world.finished(1).await;
    let taken = world.taken().await.tokens;
    planner.stop().await;
    world.budget.ticket.tokens = taken + 100;
    let planner = world.planner().await;
    world
        .trigger(
            "changelog:2",
            TriggerReason::JobRequested(Box::new(build_job_request(Job::Implement))),
        )
        .await;
    let row = world.finished(2).await;
    let RunStatus::Finished {
        reason: StopReason::SharedBudgetSpent(budget),
    } = &row.runs[1].status
    else {
        panic!("{:?}", row.runs[1])
    };
    assert_eq!(
        (budget.of, budget.spent, budget.limit),
        (BudgetScope::Ticket, taken, taken + 100)
    );
    assert_eq!(world.taken().await.tokens, taken, "no call was made");
    world.stop(planner).await;
}
