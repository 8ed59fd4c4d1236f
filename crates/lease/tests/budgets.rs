//! Shared budgets against a real Redis server.

use std::time::Duration;

use domain::{BudgetUnit, SpendAmount, Timestamp};
use servers::{RedisOptions, RedisServer};
use tokio::time::timeout;

use super::{LIMIT, build_settings};
use crate::{BudgetAccount, BudgetCall, BudgetRebuild, BudgetRefusal, RedisBudgets, Settings, TicketLeases};

const HOUR_MS: i64 = 3_600_000;

struct World {
    server: RedisServer,
    first: RedisBudgets,
    second: RedisBudgets,
}

impl World {
    /// Creates two planners and a server that knows every amount.
    async fn new() -> Self {
        let server = RedisServer::start().await.unwrap();
        let world = Self {
            first: open_budgets(&server),
            second: open_budgets(&server),
            server,
        };
        assert!(world.rebuilt(&[]).await);
        world
    }

    async fn rebuilt(&self, calls: &[(&str, u64)]) -> bool {
        let Some(rebuild) = self.first.rebuild(LIMIT).await.unwrap() else {
            return false;
        };
        for (id, tokens) in calls {
            rebuild
                .count(
                    id,
                    build_amount(*tokens),
                    build_day_accounts(1_000),
                    build_timestamp(0),
                )
                .await
                .unwrap();
        }
        rebuild.finish().await.unwrap()
    }

    async fn flush(&self) {
        self.run::<()>(&redis::cmd("FLUSHALL")).await;
    }

    /// Number of rebuild locks at the server: 0 or 1.
    async fn count_locks(&self) -> u64 {
        let mut exists = redis::cmd("EXISTS");
        exists.arg("journeyman:budget:{all}:rebuild");
        self.run(&exists).await
    }

    async fn run<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> T {
        let client = redis::Client::open(self.server.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        command.query_async(&mut connection).await.unwrap()
    }

    /// Claims a rebuild that expires at once for the first planner, and one that lasts for the second.
    async fn overtake_rebuild(&self) -> (BudgetRebuild, BudgetRebuild) {
        let expired = self
            .first
            .rebuild(Duration::from_millis(1))
            .await
            .unwrap()
            .unwrap();
        let next = async {
            loop {
                if let Some(next) = self.second.rebuild(LIMIT * 6).await.unwrap() {
                    return next;
                }
            }
        };
        (expired, timeout(LIMIT, next).await.unwrap())
    }
}

fn open_budgets(server: &RedisServer) -> RedisBudgets {
    RedisBudgets::new(&TicketLeases::open(&build_settings(server)).unwrap())
}

fn build_timestamp(hour: i64) -> Timestamp {
    Timestamp::from_unix_ms(hour * HOUR_MS)
}

/// Amount of this many tokens and twice as many millionths of a dollar.
fn build_amount(tokens: u64) -> SpendAmount {
    SpendAmount {
        cost_micros: tokens * 2,
        tokens,
    }
}

/// One account that ends after a day and has room for this many tokens.
fn build_day_accounts(tokens: u64) -> Vec<BudgetAccount> {
    vec![build_account("repository:acme/shop:1970-01-01", tokens)]
}

fn build_account(name: &str, tokens: u64) -> BudgetAccount {
    BudgetAccount {
        name: name.to_owned(),
        limit: SpendAmount {
            cost_micros: 0,
            tokens,
        },
        ends: build_timestamp(24),
    }
}

/// Call in the first hour that ends after it.
fn build_call(id: &str, tokens: u64) -> BudgetCall {
    BudgetCall {
        id: id.to_owned(),
        most: build_amount(tokens),
        now: build_timestamp(0),
        until: build_timestamp(1),
    }
}

/// Used amount, as a call finds it that is too large for any account.
async fn read_used_tokens(budgets: &RedisBudgets, hour: i64) -> u64 {
    let probe = BudgetCall {
        now: build_timestamp(hour),
        until: build_timestamp(hour + 1),
        ..build_call("probe", 1_000_000)
    };
    let refused = budgets
        .reserve(&probe, &build_day_accounts(1))
        .await
        .refusal
        .unwrap();
    assert_eq!(refused.budget, BudgetUnit::Tokens);
    refused.used
}

#[tokio::test]
async fn concurrent_planners_never_exceed_limit() {
    let world = World::new().await;
    let reserve = |number: u32| {
        let budgets = if number.is_multiple_of(2) {
            &world.first
        } else {
            &world.second
        };
        let budgets = budgets.clone();
        tokio::spawn(async move {
            budgets
                .reserve(&build_call(&format!("c{number}"), 30), &build_day_accounts(1_000))
                .await
        })
    };
    let all: Vec<_> = (0..100).map(reserve).collect();
    let mut granted = 0;
    for one in all {
        granted += u64::from(one.await.unwrap().refusal.is_none());
    }
    assert_eq!(granted, 33);
    assert_eq!(read_used_tokens(&world.second, 0).await, 990);
}

#[tokio::test]
async fn repeated_call_counts_once_with_last_amount() {
    let world = World::new().await;
    for budgets in [&world.first, &world.second] {
        assert_eq!(
            budgets
                .reserve(&build_call("c", 600), &build_day_accounts(1_000))
                .await
                .refusal,
            None
        );
    }
    assert_eq!(read_used_tokens(&world.first, 0).await, 600);
    world
        .first
        .settle(
            "c",
            build_amount(50),
            &build_day_accounts(1_000),
            build_timestamp(0),
        )
        .await;
    world
        .second
        .settle(
            "c",
            build_amount(50),
            &build_day_accounts(1_000),
            build_timestamp(0),
        )
        .await;
    assert_eq!(read_used_tokens(&world.first, 0).await, 50);
    world
        .second
        .settle(
            "c",
            build_amount(40),
            &build_day_accounts(1_000),
            build_timestamp(0),
        )
        .await;
    assert_eq!(read_used_tokens(&world.first, 0).await, 40);
}

#[tokio::test]
async fn reservation_of_crashed_planner_expires() {
    let world = World::new().await;
    world
        .first
        .reserve(&build_call("c", 600), &build_day_accounts(1_000))
        .await;
    let refused = world
        .second
        .reserve(&build_call("d", 401), &build_day_accounts(1_000))
        .await
        .refusal;
    let refusal = BudgetRefusal {
        place: 0,
        budget: BudgetUnit::Tokens,
        used: 600,
    };
    assert_eq!(refused, Some(refusal));
    assert_eq!(read_used_tokens(&world.second, 0).await, 600);
    assert_eq!(read_used_tokens(&world.second, 1).await, 0);
}

#[tokio::test]
async fn call_reserves_all_accounts_or_none() {
    let world = World::new().await;
    let accounts = [build_account("large", 1_000), build_account("small", 100)];
    let refused = world.first.reserve(&build_call("c", 101), &accounts).await;
    assert_eq!(refused.refusal.map(|refusal| refusal.place), Some(1));
    let granted = world.first.reserve(&build_call("d", 1_000), &accounts[..1]).await;
    assert_eq!(
        granted.refusal, None,
        "nothing was left behind in the first account"
    );
    let mut money = build_account("money", 0);
    money.limit.cost_micros = 10;
    let refused = world.first.reserve(&build_call("e", 6), &[money]).await.refusal;
    assert_eq!(refused.map(|refusal| refusal.budget), Some(BudgetUnit::Cost));
}

#[tokio::test]
async fn four_fifths_are_reported_once() {
    let world = World::new().await;
    let near = |reserved: crate::SharedBudgetReservation| reserved.near;
    assert!(
        near(
            world
                .first
                .reserve(&build_call("a", 799), &build_day_accounts(1_000))
                .await
        )
        .is_empty()
    );
    assert_eq!(
        near(
            world
                .second
                .reserve(&build_call("b", 1), &build_day_accounts(1_000))
                .await
        ),
        [0]
    );
    assert!(
        near(
            world
                .first
                .reserve(&build_call("c", 1), &build_day_accounts(1_000))
                .await
        )
        .is_empty()
    );
}

#[tokio::test]
async fn rebuild_by_one_planner_counts_calls_once() {
    let world = World::new().await;
    world
        .first
        .reserve(&build_call("old", 300), &build_day_accounts(1_000))
        .await;
    world
        .first
        .settle(
            "old",
            build_amount(300),
            &build_day_accounts(1_000),
            build_timestamp(0),
        )
        .await;
    world.flush().await;
    let reserved = world
        .first
        .reserve(&build_call("new", 100), &build_day_accounts(1_000))
        .await;
    assert!(!reserved.is_shared && reserved.refusal.is_none());
    timeout(LIMIT, world.first.lost()).await.unwrap();
    let rebuild = world.first.rebuild(LIMIT).await.unwrap().unwrap();
    assert!(
        world.second.rebuild(LIMIT).await.unwrap().is_none(),
        "one is at it"
    );
    // Settled before its journal is read, and counted again from the journal.
    world
        .first
        .settle(
            "new",
            build_amount(70),
            &build_day_accounts(1_000),
            build_timestamp(0),
        )
        .await;
    for (id, tokens) in [("old", 300), ("new", 70), ("older", 11)] {
        assert!(
            rebuild
                .count(
                    id,
                    build_amount(tokens),
                    build_day_accounts(1_000),
                    build_timestamp(0)
                )
                .await
                .unwrap()
        );
    }
    assert!(rebuild.finish().await.unwrap());
    assert_eq!(read_used_tokens(&world.second, 0).await, 381);
    let reserved = world
        .second
        .reserve(&build_call("next", 619), &build_day_accounts(1_000))
        .await;
    assert!(reserved.is_shared && reserved.refusal.is_none());
    assert!(
        world.second.rebuild(LIMIT).await.unwrap().is_none(),
        "all is known"
    );
}

#[tokio::test]
async fn expired_rebuild_keeps_lock_of_successor() {
    let world = World::new().await;
    world.flush().await;
    let (expired, next) = world.overtake_rebuild().await;
    assert!(expired.finish().await.unwrap(), "it counted every call");
    assert_eq!(world.count_locks().await, 1, "the successor still counts");
    assert!(!next.finish().await.unwrap(), "the amounts are complete already");
    assert_eq!(world.count_locks().await, 0, "the owner releases its lock");
}

#[tokio::test]
async fn rebuild_of_lost_generation_keeps_foreign_lock() {
    let world = World::new().await;
    world.flush().await;
    let (lost, _) = world.overtake_rebuild().await;
    world.flush().await;
    let next = world.second.rebuild(LIMIT * 6).await.unwrap().unwrap();
    assert!(!lost.finish().await.unwrap(), "its generation is gone");
    assert!(
        world.first.rebuild(LIMIT).await.unwrap().is_none(),
        "the second planner is at it"
    );
    assert!(next.finish().await.unwrap());
    assert_eq!(world.count_locks().await, 0);
}

#[tokio::test]
async fn planner_without_server_applies_own_amounts() {
    let world = World::new().await;
    world
        .second
        .reserve(&build_call("theirs", 600), &build_day_accounts(1_000))
        .await;
    world
        .second
        .settle(
            "theirs",
            build_amount(600),
            &build_day_accounts(1_000),
            build_timestamp(0),
        )
        .await;
    world
        .first
        .reserve(&build_call("mine", 100), &build_day_accounts(1_000))
        .await;
    world
        .first
        .settle(
            "mine",
            build_amount(100),
            &build_day_accounts(1_000),
            build_timestamp(0),
        )
        .await;
    world.flush().await;
    let refused = world
        .first
        .reserve(&build_call("c", 301), &build_day_accounts(1_000))
        .await;
    assert!(!refused.is_shared);
    assert_eq!(refused.refusal.map(|refusal| refusal.used), Some(700));
    assert_eq!(
        world
            .first
            .reserve(&build_call("d", 300), &build_day_accounts(1_000))
            .await
            .refusal,
        None
    );
}

#[tokio::test]
async fn amounts_during_outage_reach_server_later() {
    let mut world = World::new().await;
    world
        .first
        .reserve(&build_call("a", 100), &build_day_accounts(1_000))
        .await;
    world
        .first
        .settle(
            "a",
            build_amount(100),
            &build_day_accounts(1_000),
            build_timestamp(0),
        )
        .await;
    world.server.kill();
    let reserved = world
        .first
        .reserve(&build_call("b", 500), &build_day_accounts(1_000))
        .await;
    assert!(!reserved.is_shared && reserved.refusal.is_none());
    world
        .first
        .settle(
            "b",
            build_amount(450),
            &build_day_accounts(1_000),
            build_timestamp(0),
        )
        .await;
    let refused = world
        .first
        .reserve(&build_call("c", 451), &build_day_accounts(1_000))
        .await;
    assert_eq!(refused.refusal.map(|refusal| refusal.used), Some(550));
    world.server.restart().await.unwrap();
    // The server restarts without data.
    let sending = async {
        while !world.rebuilt(&[("a", 100)]).await {
            tokio::task::yield_now().await;
        }
        while !world
            .first
            .reserve(&build_call("d", 1), &build_day_accounts(1_000))
            .await
            .is_shared
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, sending).await.unwrap();
    assert_eq!(read_used_tokens(&world.second, 2).await, 550);
}

#[tokio::test]
async fn canceled_reservation_keeps_unsent_amounts() {
    let mut world = World::new().await;
    let accounts = build_day_accounts(1_000);
    world.first.reserve(&build_call("a", 500), &accounts).await;
    world.server.kill();
    world
        .first
        .settle("a", build_amount(450), &accounts, build_timestamp(0))
        .await;
    world.server.restart().await.unwrap();
    // Connects again without a settlement. So the restarted server lacks the script that settles, and the request of
    // the canceled reservation has no effect.
    let rebuilding = async {
        loop {
            if let Ok(Some(rebuild)) = world.first.rebuild(LIMIT).await {
                return rebuild.finish().await.unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    assert!(timeout(LIMIT, rebuilding).await.unwrap());
    let call = build_call("b", 1);
    tokio::select! {
        biased;
        reserved = world.first.reserve(&call, &accounts) => panic!("it was not canceled: {reserved:?}"),
        () = std::future::ready(()) => {}
    }
    assert!(
        world
            .first
            .reserve(&build_call("c", 1), &accounts)
            .await
            .is_shared
    );
    assert_eq!(read_used_tokens(&world.second, 2).await, 450);
}

#[tokio::test]
async fn lease_user_may_handle_budgets() {
    /// SHA-256 of `secret`.
    const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    let options = RedisOptions {
        acl: Some(crate::render_acl([(crate::RedisUser::Planner, SECRET)])),
        ..RedisOptions::default()
    };
    let server = RedisServer::start_with(options).await.unwrap();
    let settings = Settings {
        username: Some(crate::RedisUser::Planner.name().to_owned()),
        password: Some("secret".into()),
        ..build_settings(&server)
    };
    let budgets = RedisBudgets::new(&TicketLeases::open(&settings).unwrap());
    let rebuild = budgets.rebuild(LIMIT).await.unwrap().unwrap();
    assert!(
        rebuild
            .count("a", build_amount(1), build_day_accounts(10), build_timestamp(0))
            .await
            .unwrap()
    );
    assert!(rebuild.finish().await.unwrap());
    let crashed = BudgetCall {
        until: build_timestamp(0),
        ..build_call("b", 3)
    };
    budgets.reserve(&crashed, &build_day_accounts(10)).await;
    assert!(
        budgets
            .reserve(&build_call("c", 9), &build_day_accounts(10))
            .await
            .is_shared
    );
    budgets
        .settle("c", build_amount(2), &build_day_accounts(10), build_timestamp(0))
        .await;
    assert_eq!(read_used_tokens(&budgets, 0).await, 3);
}
