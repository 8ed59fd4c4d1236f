//! Shared limits against a real Redis server.

use std::time::Duration;

use domain::limits::{LimitClass, LimitGate, LimitObservation, LimitedRequest, PrimaryQuota, WritePace};
use servers::{RedisOptions, RedisServer};
use tokio::time::timeout;

use super::{LIMIT, build_settings, pass_time};
use crate::{Error, RedisUser, Settings, SharedLimits, TicketLeases};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
/// SHA-256 of `secret`.
const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

/// Two replicas and their server.
struct World {
    server: RedisServer,
    first: SharedLimits,
    second: SharedLimits,
}

impl World {
    async fn new() -> Self {
        let server = RedisServer::start().await.unwrap();
        let open = || SharedLimits::open(&build_settings(&server)).unwrap();
        let (first, second) = (open(), open());
        first.ping().await.unwrap();
        second.ping().await.unwrap();
        Self {
            server,
            first,
            second,
        }
    }
}

const fn build_limited_request(account: &str) -> LimitedRequest<'_> {
    LimitedRequest {
        account,
        resource: "core",
        pace: None,
    }
}

const fn build_refused_observation(class: LimitClass, wait: Duration) -> LimitObservation {
    LimitObservation {
        quota: None,
        refused: Some((class, wait)),
    }
}

/// Waits until a replica refuses a request, and returns the wait. A replica follows its own refusals for a moment when
/// the server does not answer within a fifth of a second, as on a loaded machine.
async fn await_refusal(replica: &SharedLimits, request: LimitedRequest<'_>) -> Duration {
    let refused = async {
        loop {
            match replica.admit(request).await {
                Ok(()) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(wait) => return wait,
            }
        }
    };
    timeout(LIMIT, refused).await.unwrap()
}

#[tokio::test]
async fn refusal_of_one_replica_stops_others() {
    let world = World::new().await;
    world
        .second
        .admit(build_limited_request("github:writer"))
        .await
        .unwrap();
    let observation = build_refused_observation(LimitClass::Secondary, HOUR);
    world
        .first
        .observe(build_limited_request("github:writer"), observation)
        .await;
    let wait = await_refusal(&world.second, build_limited_request("github:writer")).await;
    assert!(
        wait <= HOUR && wait > HOUR - LIMIT,
        "{wait:?} of {HOUR:?} are left"
    );
    let graphql = LimitedRequest {
        resource: "graphql",
        ..build_limited_request("github:writer")
    };
    assert!(
        world.second.admit(graphql).await.is_err(),
        "a secondary limit holds for everything"
    );
    world
        .second
        .admit(build_limited_request("github:reader"))
        .await
        .unwrap();
}

#[tokio::test]
async fn primary_limit_closes_only_its_resource() {
    let world = World::new().await;
    let graphql = LimitedRequest {
        resource: "graphql",
        ..build_limited_request("github:writer")
    };
    world
        .first
        .observe(graphql, build_refused_observation(LimitClass::Primary, MINUTE))
        .await;
    await_refusal(&world.second, graphql).await;
    world
        .second
        .admit(build_limited_request("github:writer"))
        .await
        .unwrap();
}

#[tokio::test]
async fn exhausted_quota_closes_window_before_refusal() {
    let world = World::new().await;
    let quota = |remaining| LimitObservation {
        quota: Some((
            PrimaryQuota {
                reset_unix_s: 1_782_000_000,
                limit: 5_000,
                remaining,
            },
            MINUTE,
        )),
        refused: None,
    };
    world
        .first
        .observe(build_limited_request("github:writer"), quota(1))
        .await;
    world
        .second
        .admit(build_limited_request("github:writer"))
        .await
        .unwrap();
    world
        .first
        .observe(build_limited_request("github:writer"), quota(0))
        .await;
    await_refusal(&world.second, build_limited_request("github:writer")).await;
}

#[tokio::test]
async fn shorter_wait_never_shortens_closure() {
    let world = World::new().await;
    let account = build_limited_request("jira:writer");
    let report = |replica: &SharedLimits, minutes: u32| {
        let replica = replica.clone();
        async move {
            let observation = build_refused_observation(LimitClass::Primary, MINUTE * minutes);
            replica.observe(account, observation).await;
        }
    };
    for minutes in [3, 20, 1] {
        report(&world.first, minutes).await;
    }
    report(&world.second, 7).await;
    let third = SharedLimits::open(&build_settings(&world.server)).unwrap();
    third.ping().await.unwrap();
    for replica in [&world.first, &world.second, &third] {
        let wait = await_refusal(replica, account).await;
        assert!(wait > MINUTE * 20 - LIMIT && wait <= MINUTE * 20, "{wait:?}");
    }
}

#[tokio::test]
async fn a_wait_ends_for_everybody() {
    let world = World::new().await;
    let account = build_limited_request("github:writer");
    world
        .first
        .observe(account, build_refused_observation(LimitClass::Secondary, HOUR))
        .await;
    await_refusal(&world.second, account).await;
    // The server has another clock, so its part of the wait ends with its data.
    world.server.flush().await.unwrap();
    pass_time(HOUR).await;
    let opened = async {
        while world.first.admit(account).await.is_err() || world.second.admit(account).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, opened).await.unwrap();
}

#[tokio::test]
async fn writes_of_all_replicas_share_pace() {
    let world = World::new().await;
    // Two at once, then one in ten minutes.
    let turn = MINUTE * 10;
    let write = LimitedRequest {
        pace: Some(WritePace {
            a_minute: 0,
            an_hour: 8,
        }),
        ..build_limited_request("github:writer")
    };
    world.first.admit(write).await.unwrap();
    world.second.admit(write).await.unwrap();
    for replica in [&world.first, &world.second] {
        let wait = await_refusal(replica, write).await;
        assert!(wait <= turn, "{wait:?}");
        assert!(wait > turn / 2, "{wait:?}");
    }
    world
        .first
        .admit(build_limited_request("github:writer"))
        .await
        .unwrap();
}

#[tokio::test]
async fn replicas_without_redis_obey_own_refusals() {
    let mut world = World::new().await;
    let account = build_limited_request("github:writer");
    world.server.kill();
    timeout(LIMIT, world.first.admit(account)).await.unwrap().unwrap();
    let observation = build_refused_observation(LimitClass::Secondary, MINUTE);
    timeout(LIMIT, world.first.observe(account, observation))
        .await
        .unwrap();
    assert!(world.first.admit(account).await.is_err());
    timeout(LIMIT, world.second.admit(account))
        .await
        .unwrap()
        .unwrap();
    world.server.restart().await.unwrap();
    // A refusal is shared again as soon as both replicas have their connection.
    let other = build_limited_request("jira:writer");
    let shared = async {
        let mut minutes = 1;
        while world.second.admit(other).await.is_ok() {
            // Each refusal ends later than the one before, so each is shared.
            let observation = build_refused_observation(LimitClass::Primary, MINUTE * minutes);
            world.first.observe(other, observation).await;
            minutes += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(LIMIT, shared).await.unwrap();
}

#[tokio::test]
async fn each_limit_user_has_only_its_rights() {
    let server = RedisServer::start_with(RedisOptions {
        acl: Some(crate::render_acl(RedisUser::ALL.map(|user| (user, SECRET)))),
        ..RedisOptions::default()
    })
    .await
    .unwrap();
    let known = |user: RedisUser, password: &str| Settings {
        username: Some(user.name().to_owned()),
        password: Some(password.into()),
        ..build_settings(&server)
    };
    let account = build_limited_request("github:writer");
    let write = LimitedRequest {
        pace: Some(WritePace {
            a_minute: 80,
            an_hour: 500,
        }),
        ..account
    };
    let [reporter, ingest] =
        [RedisUser::Reporter, RedisUser::Ingest].map(|user| SharedLimits::open(&known(user, "secret")));
    let (reporter, ingest) = (reporter.unwrap(), ingest.unwrap());
    ingest.ping().await.unwrap();
    reporter.admit(write).await.unwrap();
    reporter
        .observe(account, build_refused_observation(LimitClass::Secondary, MINUTE))
        .await;
    await_refusal(&ingest, account).await;

    let guessed = SharedLimits::open(&known(RedisUser::Ingest, "guess")).unwrap();
    assert!(matches!(guessed.ping().await, Err(Error::Unavailable { .. })));
    let planner = TicketLeases::open(&known(RedisUser::Planner, "secret")).unwrap();
    planner.ping().await.unwrap();
    for (user, command) in [
        (
            RedisUser::Reporter,
            vec!["SET", "journeyman:lease:{jira:ENG-1}", "1"],
        ),
        (
            RedisUser::Reporter,
            vec!["HSET", "journeyman:budget:{all}:x", "a", "1"],
        ),
        (
            RedisUser::Reporter,
            vec!["DEL", "journeyman:limits:{github:writer}:secondary"],
        ),
        (RedisUser::Ingest, vec!["GET", "journeyman:lease:{jira:ENG-1}"]),
        (RedisUser::Ingest, vec!["FLUSHALL"]),
        (RedisUser::Ingest, vec!["KEYS", "*"]),
        (
            RedisUser::Planner,
            vec!["GET", "journeyman:limits:{github:writer}:secondary"],
        ),
    ] {
        let url = server
            .url()
            .replace("redis://", &format!("redis://{}:secret@", user.name()));
        let client = redis::Client::open(url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut built = redis::cmd(command[0]);
        built.arg(&command[1..]);
        let answer: redis::RedisResult<redis::Value> = built.query_async(&mut connection).await;
        let refused = answer.unwrap_err().to_string();
        assert!(
            refused.contains("permission") || refused.contains("can't access"),
            "{user:?} {command:?}: {refused}"
        );
    }
}
