//! The lease against a real Redis server.

use std::time::Duration;

use domain::{RunFence, TicketKey};
use servers::{RedisOptions, RedisServer};
use tokio::time::timeout;

use crate::{Error, LeaseLost, Settings, TicketLeases};

const LIMIT: Duration = Duration::from_secs(10);

struct World {
    server: RedisServer,
    leases: TicketLeases,
    ticket: TicketKey,
}

impl World {
    async fn new() -> Self {
        let server = RedisServer::start().await.unwrap();
        let leases = TicketLeases::connect(&build_settings(&server)).await.unwrap();
        Self {
            server,
            leases,
            ticket: TicketKey::jira("ENG-12").unwrap(),
        }
    }

    async fn redis(&self, command: &[&str]) -> redis::Value {
        let client = redis::Client::open(self.server.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut built = redis::cmd(command[0]);
        built.arg(&command[1..]);
        built.query_async(&mut connection).await.unwrap()
    }

    async fn key_exists(&self) -> bool {
        self.redis(&["EXISTS", "journeyman:lease:{jira:ENG-12}"]).await == redis::Value::Int(1)
    }
}

fn build_settings(server: &RedisServer) -> Settings {
    Settings {
        url: server.url(),
        ttl_ms: 600,
        ..Settings::default()
    }
}

fn build_fence(sequence: u64, delivered: u64) -> RunFence {
    RunFence::new(1, sequence, delivered)
}

/// SHA-256 of `secret`.
const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

/// Runs one command as the planner's user and returns the answer.
async fn as_user(server: &RedisServer, command: &[&str]) -> redis::RedisResult<redis::Value> {
    let url = server.url().replace("redis://", "redis://planner:secret@");
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut built = redis::cmd(command[0]);
    built.arg(&command[1..]);
    built.query_async(&mut connection).await
}

#[tokio::test]
async fn acl_restricts_lease_user_and_default() {
    let server = RedisServer::start_with(RedisOptions {
        acl: Some(crate::render_acl([(crate::RedisUser::Planner, SECRET)])),
        ..RedisOptions::default()
    })
    .await
    .unwrap();
    let known = |username: &str, password: &str| Settings {
        username: Some(username.to_owned()),
        password: Some(password.into()),
        ..build_settings(&server)
    };
    let leases = TicketLeases::connect(&known(crate::RedisUser::Planner.name(), "secret"))
        .await
        .unwrap();
    let ticket = TicketKey::jira("ENG-12").unwrap();
    let lease = leases.take(&ticket, build_fence(1, 1)).await.unwrap();
    // Longer than two renewals.
    tokio::time::sleep(Duration::from_millis(450)).await;
    assert!(leases.take(&ticket, build_fence(1, 1)).await.is_none());
    lease.release().await;
    assert!(leases.take(&ticket, build_fence(1, 1)).await.is_some());

    for stranger in [
        build_settings(&server),
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
        let refused = as_user(&server, command).await.unwrap_err().to_string();
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
    timeout(LIMIT, old.lost().cancelled()).await.unwrap();
    assert_eq!(old.check(), Err(LeaseLost));
    assert_eq!(new.check(), Ok(()));
}

#[tokio::test]
async fn an_equal_or_lower_fence_is_refused() {
    let world = World::new().await;
    let _held = world.leases.take(&world.ticket, build_fence(9, 2)).await.unwrap();
    for refused in [build_fence(9, 2), build_fence(9, 1), build_fence(8, 5)] {
        assert!(
            world.leases.take(&world.ticket, refused).await.is_none(),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn held_lease_outlives_time_to_live() {
    let world = World::new().await;
    let held = world.leases.take(&world.ticket, build_fence(9, 2)).await.unwrap();
    assert!(
        timeout(Duration::from_millis(1500), held.lost().cancelled())
            .await
            .is_err()
    );
    assert_eq!(held.check(), Ok(()));
    assert!(
        world
            .leases
            .take(&world.ticket, build_fence(9, 1))
            .await
            .is_none()
    );
}

#[tokio::test]
async fn a_dropped_lease_ends_by_itself() {
    let world = World::new().await;
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
    assert!(
        world
            .leases
            .take(&world.ticket, build_fence(1, 1))
            .await
            .is_some()
    );
}

#[tokio::test]
async fn lease_returns_after_data_loss() {
    let world = World::new().await;
    let held = world.leases.take(&world.ticket, build_fence(1, 1)).await.unwrap();
    world.redis(&["FLUSHALL"]).await;
    world.redis(&["SCRIPT", "FLUSH"]).await;
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
    timeout(LIMIT, old.lost().cancelled()).await.unwrap();
    assert_eq!(new.check(), Ok(()));
}

#[tokio::test]
async fn work_continues_without_server_until_return() {
    let mut world = World::new().await;
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
    let leases = TicketLeases::open(&build_settings(&world.server)).unwrap();
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
    let settings = build_settings(&server);
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
