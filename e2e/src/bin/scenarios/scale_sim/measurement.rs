//! Load of one ticket on its longest path, and of idle services, measured with real services, NATS and Redis.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use e2e::{
    Options, TestWorld,
    longest_path::{self, RULES, StoryTicketSource},
};
use testkit::{NatsServer, RecordedRequest, RedisServer, jira};
use tokio::time::Instant;

use crate::scale_sim::relay::{CountingRelay, MessageCounts, RelayProtocol, subtract_counts};

// Observation of idle services. It covers every loop with a period of seconds; loops with a period of minutes
// are simulated.
const IDLE: Duration = Duration::from_secs(12);

/// Counts of one ticket, and rates per minute without tickets.
pub(crate) struct MeasuredLoad {
    /// GitHub calls by account and kind.
    pub(crate) github: BTreeMap<(CallAccount, CallKind), u64>,
    /// Jira calls by account.
    pub(crate) jira: BTreeMap<CallAccount, u64>,
    pub(crate) nats: MessageCounts,
    pub(crate) redis: MessageCounts,
    /// Messages per minute of one process of each service.
    pub(crate) idle_nats: BTreeMap<&'static str, f64>,
    pub(crate) idle_redis: BTreeMap<&'static str, f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallAccount {
    Reader,
    Writer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallKind {
    Read,
    Query,
    Write,
}

pub(crate) async fn measure_load() -> anyhow::Result<MeasuredLoad> {
    let (nats, redis) = tokio::try_join!(NatsServer::start(), RedisServer::start())?;
    // The relays count what the services send to NATS and Redis.
    let before_nats = CountingRelay::start(RelayProtocol::Nats, strip_url_scheme(&nats.url())).await?;
    let before_redis = CountingRelay::start(RelayProtocol::Redis, strip_url_scheme(&redis.url())).await?;
    let world = TestWorld::start(Options {
        rules: RULES.to_owned(),
        settings: vec![
            ("NATS__URL", format!("nats://{}", before_nats.address())),
            ("REDIS__URL", format!("redis://{}", before_redis.address())),
        ],
        ..Options::default()
    });
    let world = Box::pin(world).await?;
    let (idle_nats, idle_redis) = measure_idle(&before_nats, &before_redis).await;
    let (nats, redis, start) = (before_nats.counts(), before_redis.counts(), Instant::now());
    // The first round of polls ended during the idle observation.
    let (github, jira) = (world.github.requests().len(), world.jira.requests().len());
    longest_path::play_longest_path(&world, StoryTicketSource::Jira).await?;
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    let measured = MeasuredLoad {
        github: by_kind(&world.github.requests()[github..]),
        jira: by_account(&world.jira.requests()[jira..]),
        nats: subtract_idle(subtract_counts(before_nats.counts(), &nats), &idle_nats, minutes),
        redis: subtract_idle(
            subtract_counts(before_redis.counts(), &redis),
            &idle_redis,
            minutes,
        ),
        idle_nats,
        idle_redis,
    };
    world.stop().await?;
    Ok(measured)
}

fn strip_url_scheme(url: &str) -> String {
    url.split("://").last().unwrap_or_default().to_owned()
}

type MinuteRates = BTreeMap<&'static str, f64>;

async fn measure_idle(nats: &CountingRelay, redis: &CountingRelay) -> (MinuteRates, MinuteRates) {
    let before = (nats.counts(), redis.counts());
    tokio::time::sleep(IDLE).await;
    let a_minute = |counts: MessageCounts| {
        let rate = |count: u64| count as f64 * 60.0 / IDLE.as_secs_f64();
        counts
            .into_iter()
            .map(|(kind, count)| (kind, rate(count)))
            .collect()
    };
    (
        a_minute(subtract_counts(nats.counts(), &before.0)),
        a_minute(subtract_counts(redis.counts(), &before.1)),
    )
}

/// Subtracts the idle services' share.
fn subtract_idle(counts: MessageCounts, idle: &MinuteRates, minutes: f64) -> MessageCounts {
    let less = |(kind, count): (&'static str, u64)| {
        let anyway = idle.get(kind).copied().unwrap_or_default() * minutes;
        (kind, (count as f64 - anyway).max(0.0).round() as u64)
    };
    counts.into_iter().map(less).collect()
}

/// True if the request has this token. Basic authentication contains it as the password.
fn is_of(request: &RecordedRequest, token: &str) -> bool {
    let pair = request.authorization.strip_prefix("Basic ");
    let pair = pair.and_then(|pair| STANDARD.decode(pair).ok());
    pair.is_some_and(|pair| String::from_utf8_lossy(&pair).contains(token))
}

/// True for API calls that count for an installation: no clones, no pushes, no calls of the App itself.
fn is_call(request: &RecordedRequest) -> bool {
    !request.path.contains(".git/") && !request.path.contains("/app")
}

fn kind_of(request: &RecordedRequest) -> CallKind {
    let query = request.body.as_ref().and_then(|body| body["query"].as_str());
    match (request.method.as_str(), query) {
        ("GET", _) => CallKind::Read,
        (_, Some(query)) if !query.trim_start().starts_with("mutation") => CallKind::Query,
        _ => CallKind::Write,
    }
}

/// Counts GitHub calls by account and kind. Only the writer writes, so a token with a write is the writer's.
fn by_kind(requests: &[RecordedRequest]) -> BTreeMap<(CallAccount, CallKind), u64> {
    let calls = || requests.iter().filter(|request| is_call(request));
    let writers: BTreeSet<&str> = calls()
        .filter(|request| kind_of(request) == CallKind::Write)
        .map(|request| request.authorization.as_str())
        .collect();
    let mut counts = BTreeMap::new();
    for request in calls() {
        let account = if writers.contains(request.authorization.as_str()) {
            CallAccount::Writer
        } else {
            CallAccount::Reader
        };
        *counts.entry((account, kind_of(request))).or_default() += 1;
    }
    counts
}

fn by_account(requests: &[RecordedRequest]) -> BTreeMap<CallAccount, u64> {
    let mut counts = BTreeMap::new();
    for request in requests {
        let account = if is_of(request, jira::WRITER_API_TOKEN) {
            CallAccount::Writer
        } else {
            CallAccount::Reader
        };
        *counts.entry(account).or_default() += 1;
    }
    counts
}
