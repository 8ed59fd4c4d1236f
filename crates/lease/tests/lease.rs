//! The lease against a real Redis server.

use std::time::Duration;

use domain::{RunFence, TicketKey};
use servers::{RedisOptions, RedisServer};
use tokio::time::timeout;

use super::{LIMIT, pass_time};
use crate::{Error, LeaseLost, RENEWALS, Settings, TicketLease, TicketLeases};

/// Time to live of a lease, longer than a loaded machine stands still.
const TTL: Duration = Duration::from_secs(60);
const KEY: &str = "journeyman:lease:{jira:ENG-12}";

struct World {
    server: RedisServer,
    leases: TicketLeases,
    ticket: TicketKey,
}

impl World {
    async fn new() -> Self {
        Self::with_ttl(TTL).await
    }

    /// Starts with leases that end soon, for tests that wait for an end.
    async fn with_short_leases() -> Self {
        Self::with_ttl(Duration::from_millis(600)).await
    }

    async fn with_ttl(ttl: Duration) -> Self {
        let server = RedisServer::start().await.unwrap();
        let leases = TicketLeases::connect(&build_settings(&server, ttl))
            .await
            .unwrap();
        Self {
            server,
            leases,
            ticket: TicketKey::jira("ENG-12").unwrap(),
        }
    }

    async fn redis(&self, command: &[&str]) -> redis::Value {
        run_command(&self.server.url(), command).await.unwrap()
    }

    async fn key_exists(&self) -> bool {
        self.redis(&["EXISTS", KEY]).await == redis::Value::Int(1)
    }

    async fn is_refused(&self, fence: RunFence) -> bool {
        is_refused(&self.leases, &self.ticket, fence).await
    }
}

fn build_settings(server: &RedisServer, ttl: Duration) -> Settings {
    Settings {
        url: server.url(),
        ttl_ms: u64::try_from(ttl.as_millis()).unwrap(),
        ..Settings::default()
    }
}

/// Returns true if the server refuses a lease to this fence. Without an answer of the server, it is asked again.
async fn is_refused(leases: &TicketLeases, ticket: &TicketKey, fence: RunFence) -> bool {
    loop {
        match leases.take(ticket, fence).await {
            None => return true,
            Some(lease) if lease.is_held() => return false,
            Some(_) => {}
        }
    }
}

/// Lets the time until the next renewal pass, and waits until the server at this address has renewed the lease.
async fn renew_lease(url: &str, held: &TicketLease) {
    let half = i64::try_from(TTL.as_millis()).unwrap() / 2;
    let shorter = half.to_string();
    let shortened = run_command(url, &["PEXPIRE", KEY, &shorter]).await;
    assert_eq!(shortened.unwrap(), redis::Value::Int(1));
    // A little longer than the pause between two renewals.
    pass_time(TTL / RENEWALS + TTL / 100).await;
    let renewed = async {
        loop {
            match run_command(url, &["PTTL", KEY]).await.unwrap() {
                redis::Value::Int(left) if left > half => return,
                _ => assert_eq!(held.check(), Ok(())),
            }
        }
    };
    timeout(LIMIT, renewed).await.unwrap();
}

fn build_fence(sequence: u64, delivered: u64) -> RunFence {
    RunFence::new(1, sequence, delivered)
}

/// SHA-256 of `secret`.
const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

/// Runs one command as the user of this address and returns the answer.
async fn run_command(url: &str, command: &[&str]) -> redis::RedisResult<redis::Value> {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut built = redis::cmd(command[0]);
    built.arg(&command[1..]);
    built.query_async(&mut connection).await
}

#[tokio::test]
async fn acl_restricts_lease_user_and_default() {
    let mut acl = crate::render_acl([(crate::RedisUser::Planner, SECRET)]);
    // The user of this test reads and shortens the time to live.
    acl.push_str("user test on >test ~* +@all\n");
    let server = RedisServer::start_with(RedisOptions {
        acl: Some(acl),
        ..RedisOptions::default()
    })
    .await
    .unwrap();
    let as_user = |login: &str| server.url().replace("redis://", &format!("redis://{login}@"));
    let known = |username: &str, password: &str| Settings {
        username: Some(username.to_owned()),
        password: Some(password.into()),
        ..build_settings(&server, TTL)
    };
    let leases = TicketLeases::connect(&known(crate::RedisUser::Planner.name(), "secret"))
        .await
        .unwrap();
    let ticket = TicketKey::jira("ENG-12").unwrap();
    let lease = leases.take(&ticket, build_fence(1, 1)).await.unwrap();
    renew_lease(&as_user("test:test"), &lease).await;
    assert!(is_refused(&leases, &ticket, build_fence(1, 1)).await);
    lease.release().await;
    assert!(!is_refused(&leases, &ticket, build_fence(1, 1)).await);

    for stranger in [
        build_settings(&server, TTL),
        known("planner", "guess"),
        known("default", "secret"),
    ] {
        let refused = TicketLeases::connect(&stranger).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{stranger:?}");
    }
    let others: [&[&str]; 8] = [
        &["GET", "other"],
        &["SET", "journeyman:other", "1"],
        &["EVAL", "return redis.call('GET', 'other')", "0"],
        &["KEYS", "*"],
        &["FLUSHALL"],
        &["CONFIG", "GET", "*"],
        &["ACL", "LIST"],
        &["PUBLISH", "channel", "words"],
    ];
    for command in others {
        let refused = run_command(&as_user("planner:secret"), command).await;
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("permission") || refused.contains("can't access"),
            "{command:?}: {refused}"
        );
    }
}

#[tokio::test]
async fn higher_fence_takes_over_lower_lease() {
    let world = World::new().await;
    let old = world.leases.take(&world.ticket, build_fence(9, 1)).await.unwrap();
    let new = world
        .leases
        .take(&world.ticket, build_fence(10, 1))
        .await
        .unwrap();
    pass_time(TTL / 2).await;
    timeout(LIMIT, old.lost().cancelled()).await.unwrap();
    assert_eq!(old.check(), Err(LeaseLost));
    assert_eq!(new.check(), Ok(()));
}

#[tokio::test]
async fn an_equal_or_lower_fence_is_refused() {
    let world = World::new().await;
    let _held = world.leases.take(&world.ticket, build_fence(9, 2)).await.unwrap();
    for refused in [build_fence(9, 2), build_fence(9, 1), build_fence(8, 5)] {
        assert!(world.is_refused(refused).await, "{refused}");
    }
}

#[tokio::test]
async fn held_lease_outlives_time_to_live() {
    let world = World::new().await;
    let held = world.leases.take(&world.ticket, build_fence(9, 2)).await.unwrap();
    // One more than fit into the time to live.
    for _ in 0..=RENEWALS {
        renew_lease(&world.server.url(), &held).await;
    }
    assert!(!held.lost().is_cancelled());
    assert_eq!(held.check(), Ok(()));
    assert!(world.is_refused(build_fence(9, 1)).await);
}

#[tokio::test]
async fn a_dropped_lease_ends_by_itself() {
    let world = World::with_short_leases().await;
    drop(world.leases.take(&world.ticket, build_fence(9, 2)).await);
    let free = async {
        while world
            .leases
            .take(&world.ticket, build_fence(9, 1))
            .await
            .is_none()
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, free).await.unwrap();
}

#[tokio::test]
async fn release_frees_only_the_own_lease() {
    let world = World::new().await;
    let old = world.leases.take(&world.ticket, build_fence(1, 1)).await.unwrap();
    let new = world.leases.take(&world.ticket, build_fence(1, 2)).await.unwrap();
    old.release().await;
    assert!(world.key_exists().await);
    new.release().await;
    assert!(!world.key_exists().await);
    assert!(!world.is_refused(build_fence(1, 1)).await);
}

#[tokio::test]
async fn lease_returns_after_data_loss() {
    let world = World::new().await;
    let held = world.leases.take(&world.ticket, build_fence(1, 1)).await.unwrap();
    world.redis(&["FLUSHALL"]).await;
    world.redis(&["SCRIPT", "FLUSH"]).await;
    pass_time(TTL / 2).await;
    let back = async { while !world.key_exists().await {} };
    timeout(LIMIT, back).await.unwrap();
    assert_eq!(held.check(), Ok(()));
}

#[tokio::test]
async fn flushed_lease_belongs_to_first_claimant() {
    let world = World::new().await;
    let old = world.leases.take(&world.ticket, build_fence(5, 1)).await.unwrap();
    world.redis(&["FLUSHALL"]).await;
    let new = world.leases.take(&world.ticket, build_fence(5, 2)).await.unwrap();
    pass_time(TTL / 2).await;
    timeout(LIMIT, old.lost().cancelled()).await.unwrap();
    assert_eq!(new.check(), Ok(()));
}

#[tokio::test]
async fn work_continues_without_server_until_return() {
    let mut world = World::with_short_leases().await;
    let held = world.leases.take(&world.ticket, build_fence(1, 1)).await.unwrap();
    assert!(held.is_held());
    world.server.kill();
    let unguarded = async {
        while held.is_held() {
            assert_eq!(
                held.check(),
                Ok(()),
                "there is no moment without a right to go on"
            );
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, unguarded).await.unwrap();
    assert_eq!(held.check(), Ok(()));
    let error = world.leases.ping().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");

    world.server.restart().await.unwrap();
    let guarded = async {
        while !held.is_held() || !world.key_exists().await {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, guarded).await.unwrap();
    world.leases.ping().await.unwrap();
    let taker = world.leases.take(&world.ticket, build_fence(2, 1)).await.unwrap();
    timeout(LIMIT, held.lost().cancelled()).await.unwrap();
    assert_eq!((held.check(), taker.check()), (Err(LeaseLost), Ok(())));
}

#[tokio::test]
async fn ticket_taken_in_outage_gets_lease_later() {
    let mut world = World::new().await;
    world.server.kill();
    let ttl = Duration::from_millis(600);
    let leases = TicketLeases::open(&build_settings(&world.server, ttl)).unwrap();
    let old = leases.take(&world.ticket, build_fence(1, 1)).await.unwrap();
    let new = leases.take(&world.ticket, build_fence(1, 2)).await.unwrap();
    assert!(!old.is_held() && !new.is_held());
    assert_eq!((old.check(), new.check()), (Ok(()), Ok(())));
    drop(old);
    world.server.restart().await.unwrap();
    let guarded = async {
        while !new.is_held() {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, guarded).await.unwrap();
    assert!(leases.take(&world.ticket, build_fence(1, 1)).await.is_none());
}

#[tokio::test]
async fn a_dead_server_is_named_at_start() {
    let mut server = RedisServer::start().await.unwrap();
    let settings = build_settings(&server, TTL);
    server.kill();
    let error = TicketLeases::connect(&settings).await.err().unwrap();
    let address = settings
        .url
        .trim_start_matches("redis://")
        .trim_end_matches('/')
        .to_owned();
    let own = format!("redis at {address} is unavailable");
    assert_eq!(error.to_string(), own);
    assert!(std::error::Error::source(&error).is_some());
    let all = domain::cause::format_error_chain(&error);
    assert!(all.starts_with(&own) && all.len() > own.len(), "{all}");
}
