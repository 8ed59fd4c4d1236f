//! Connection to Redis, and the Lua scripts that take, renew and release a lease.

use std::{sync::Arc, time::Duration};

use redis::{Cmd, FromRedisValue, Script, ScriptInvocation};

use crate::{
    connection::{RESPONSE_TIMEOUT, RedisConnection},
    error::{Error, RedisOutage},
};

// Fences are texts of a fixed width, so Lua compares them as the fences compare.
const TAKE: &str = "
local held = redis.call('GET', KEYS[1])
if held and held >= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1";
/// Renews a lease. A missing key is set again, because the server may have lost its data, unless another
/// fence holds it.
const RENEW: &str = "
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1";
// One script: between a separate `GET` and `DEL`, a worker with a higher fence could take the key and
// lose it.
const RELEASE: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])";

pub(crate) struct LeaseScripts {
    take: Script,
    renew: Script,
    release: Script,
}

impl LeaseScripts {
    pub(crate) fn new() -> Self {
        Self {
            take: Script::new(TAKE),
            renew: Script::new(RENEW),
            release: Script::new(RELEASE),
        }
    }
}

#[derive(Clone)]
pub(crate) struct LeaseServer {
    pub(crate) connection: RedisConnection,
    pub(crate) scripts: Arc<LeaseScripts>,
    pub(crate) outage: Arc<RedisOutage>,
}

impl LeaseServer {
    pub(crate) async fn run<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, Error> {
        let mut connection = self.connection.manager();
        self.bounded(script.invoke_async(&mut connection)).await
    }

    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        let mut connection = self.connection.manager();
        self.bounded(command.query_async(&mut connection)).await
    }

    pub(crate) async fn bounded<T>(
        &self,
        asking: impl Future<Output = redis::RedisResult<T>>,
    ) -> Result<T, Error> {
        self.connection
            .bounded(&self.outage, RESPONSE_TIMEOUT, asking)
            .await
    }
}

/// Claim of one fence on one ticket.
#[derive(Clone)]
pub(crate) struct LeaseClaim {
    pub(crate) server: LeaseServer,
    pub(crate) ttl: Duration,
    pub(crate) key: String,
    pub(crate) fence: String,
}

impl LeaseClaim {
    pub(crate) async fn take(&self) -> Result<bool, Error> {
        self.server.run(&self.with_ttl(&self.server.scripts.take)).await
    }

    /// Renews the lease; returns false when another fence holds it.
    pub(crate) async fn renew(&self) -> Result<bool, Error> {
        let call = self.with_ttl(&self.server.scripts.renew);
        failpoint::around("lease.renew", self.server.run(&call)).await
    }

    pub(crate) async fn release(&self) -> Result<bool, Error> {
        let mut call = self.server.scripts.release.prepare_invoke();
        call.key(&self.key).arg(&self.fence);
        failpoint::around("lease.release", self.server.run(&call)).await
    }

    fn with_ttl<'a>(&self, script: &'a Script) -> ScriptInvocation<'a> {
        let mut call = script.prepare_invoke();
        call.key(&self.key)
            .arg(&self.fence)
            .arg(u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX));
        call
    }
}
