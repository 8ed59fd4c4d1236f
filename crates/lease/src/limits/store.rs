//! Requests to the server about limits.

use std::time::Duration;

use domain::limits::{LimitClass, LimitedRequest, PrimaryQuota, WriteBucket};
use redis::{FromRedisValue, Script, ScriptInvocation};

use super::LONGEST_IN_PLACE;
use crate::{
    Settings,
    connection::{RESPONSE_TIMEOUT, RedisConnection},
    error::{Error, RedisOutage},
};

/// Prefix of all keys.
pub(crate) const PREFIX: &str = "journeyman:limits:";
// Every request to GitHub or Jira waits for this answer, so the limit is short.
const LOOK: Duration = Duration::from_millis(200);
const OUTAGE: &str = "each replica finds out for itself when a service outside asks to wait";

/// Lua script: returns both remaining waits, the wait of a write, and the time that each bucket is ahead of
/// the clock.
///
/// The write is added to its buckets only if it may be sent. Keys: both classes, buckets. Arguments: longest
/// wait; for each bucket its burst and interval in ms.
const ASK: &str = "
local function left(key)
  local ms = redis.call('PTTL', key)
  if ms < 0 then return 0 end
  return ms
end
local answer = {left(KEYS[1]), left(KEYS[2]), 0}
for place = 3, #KEYS do
  answer[place + 1] = left(KEYS[place])
  local wait = answer[place + 1] - ARGV[2 * place - 4]
  if wait > answer[3] then answer[3] = wait end
end
if answer[1] == 0 and answer[2] == 0 and answer[3] <= tonumber(ARGV[1]) then
  for place = 3, #KEYS do
    answer[place + 1] = answer[place + 1] + ARGV[2 * place - 3]
    redis.call('SET', KEYS[place], '1', 'PX', answer[place + 1])
  end
end
return answer";
/// Lua script: closes a limit; the later end counts. Returns the remaining time.
const CLOSE: &str = "
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], '1', 'PX', ARGV[1]) end
return redis.call('PTTL', KEYS[1])";
/// Lua script: records a quota; the later window counts, and within a window the lowest remainder. Returns
/// the result.
const QUOTA: &str = "
local function known(field) return tonumber(redis.call('HGET', KEYS[1], field) or '-1') end
local reset, remaining = known('reset'), known('remaining')
if tonumber(ARGV[1]) > reset or (tonumber(ARGV[1]) == reset and tonumber(ARGV[3]) < remaining) then
  redis.call('HSET', KEYS[1], 'reset', ARGV[1], 'limit', ARGV[2], 'remaining', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return {known('reset'), known('limit'), known('remaining')}";

/// Keys of one account and one kind of request. The braces put all keys of an account into one hash slot of a
/// cluster.
pub(super) struct LimitKeys {
    base: String,
    secondary: String,
    primary: String,
    pub(super) quota: String,
}

impl LimitKeys {
    pub(super) fn of(request: &LimitedRequest<'_>) -> Self {
        // Redis Cluster runs a script only if all of its keys are in one slot.
        let base = format!("{PREFIX}{{{}}}", request.account);
        Self {
            secondary: format!("{base}:secondary"),
            primary: format!("{base}:primary:{}", request.resource),
            quota: format!("{base}:quota:{}", request.resource),
            base,
        }
    }

    pub(super) fn of_class(&self, class: LimitClass) -> &str {
        match class {
            LimitClass::Primary => &self.primary,
            LimitClass::Secondary => &self.secondary,
        }
    }

    pub(super) fn of_bucket(&self, bucket: &WriteBucket) -> String {
        format!("{}:writes:{}", self.base, bucket.name)
    }
}

/// State that all replicas share.
pub(super) struct SharedWaits {
    /// Remaining time of each closed limit.
    pub(super) closed: [(LimitClass, Duration); 2],
    /// Delay of a write until its turn.
    pub(super) wait: Duration,
    /// Time that each bucket is ahead of the clock.
    pub(super) ahead: Vec<Duration>,
}

struct LimitScripts {
    ask: Script,
    close: Script,
    quota: Script,
}

pub(super) struct LimitStore {
    connection: RedisConnection,
    outage: RedisOutage,
    scripts: LimitScripts,
}

impl LimitStore {
    pub(super) fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            connection: RedisConnection::open(settings)?,
            outage: RedisOutage::new(OUTAGE),
            scripts: LimitScripts {
                ask: Script::new(ASK),
                close: Script::new(CLOSE),
                quota: Script::new(QUOTA),
            },
        })
    }

    pub(super) async fn ping(&self) -> Result<(), Error> {
        let mut connection = self.connection.manager();
        let ping = redis::cmd("PING");
        let asking = ping.query_async::<String>(&mut connection);
        let answer = self.connection.bounded(&self.outage, RESPONSE_TIMEOUT, asking);
        answer.await.map(drop)
    }

    pub(super) async fn ask(&self, names: &LimitKeys, buckets: &[WriteBucket]) -> Result<SharedWaits, Error> {
        let mut ask = self.scripts.ask.prepare_invoke();
        ask.key(&names.secondary)
            .key(&names.primary)
            .arg(convert_to_millis(LONGEST_IN_PLACE));
        for bucket in buckets {
            ask.key(names.of_bucket(bucket))
                .arg(convert_to_millis(bucket.interval * (bucket.burst - 1)))
                .arg(convert_to_millis(bucket.interval));
        }
        let answer: Vec<u64> = self.run(LOOK, &ask).await?;
        let at = |place: usize| Duration::from_millis(answer.get(place).copied().unwrap_or_default());
        Ok(SharedWaits {
            closed: [(LimitClass::Secondary, at(0)), (LimitClass::Primary, at(1))],
            wait: at(2),
            ahead: (3..answer.len()).map(at).collect(),
        })
    }

    /// Closes a limit for a time, and returns the shared remaining time.
    pub(super) async fn close(&self, name: &str, wait: Duration) -> Result<Duration, Error> {
        let mut close = self.scripts.close.prepare_invoke();
        // Redis refuses `SET … PX 0` as an invalid expiry.
        close.key(name).arg(convert_to_millis(wait).max(1));
        // `PTTL` returns a negative number for a key that expired in the meantime.
        let left: i64 = self.run(RESPONSE_TIMEOUT, &close).await?;
        Ok(Duration::from_millis(u64::try_from(left).unwrap_or_default()))
    }

    /// Shares a remaining quota, and returns the shared state of it.
    pub(super) async fn share(
        &self,
        name: &str,
        quota: PrimaryQuota,
        left: Duration,
    ) -> Result<PrimaryQuota, Error> {
        let mut share = self.scripts.quota.prepare_invoke();
        share
            .key(name)
            .arg(quota.reset_unix_s)
            .arg(quota.limit)
            .arg(quota.remaining)
            .arg(convert_to_millis(left).max(1));
        let [reset_unix_s, limit, remaining]: [u64; 3] = self.run(LOOK, &share).await?;
        Ok(PrimaryQuota {
            reset_unix_s,
            limit,
            remaining,
        })
    }

    async fn run<T: FromRedisValue>(
        &self,
        limit: Duration,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, Error> {
        let mut connection = self.connection.manager();
        let asking = script.invoke_async(&mut connection);
        self.connection.bounded(&self.outage, limit, asking).await
    }
}

fn convert_to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
