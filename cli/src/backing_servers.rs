//! NATS and Redis of one data folder. One Journeyman process uses a folder at a time.

use std::{
    fs::{File, TryLockError},
    path::Path,
};

use anyhow::{Context, bail};
use servers::{NatsOptions, NatsServer, RedisOptions, RedisServer};

/// Started servers, which end on drop, and the lock of the data folder.
pub struct BackingServers {
    /// NATS server; absent when the settings name one.
    pub nats: Option<NatsServer>,
    /// Redis server; absent when the settings name one.
    pub redis: Option<RedisServer>,
    /// Lock against a second process, because two servers would corrupt one store. Last field: Rust drops
    /// fields in order, so the servers end before the lock does.
    _lock: File,
}

impl BackingServers {
    /// Locks the data folder without starting a server.
    pub(crate) fn lock(data: &Path) -> anyhow::Result<Self> {
        let path = data.join("lock");
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        // A second process must fail with a message instead of waiting.
        match file.try_lock() {
            Ok(()) => Ok(Self {
                nats: None,
                redis: None,
                _lock: file,
            }),
            Err(TryLockError::WouldBlock) => bail!(
                "another journeyman uses {}: stop it, or name another folder with --data",
                data.display()
            ),
            Err(TryLockError::Error(error)) => Err(error).context("cannot lock the data folder"),
        }
    }

    /// Starts NATS on the folder's store, with only the users of an `authorization` block, and returns its
    /// URL.
    pub(crate) async fn start_nats(&mut self, data: &Path, authorization: String) -> anyhow::Result<String> {
        let options = NatsOptions {
            data_dir: Some(data.join("nats")),
            authorization: Some(authorization),
            ..NatsOptions::default()
        };
        let started = NatsServer::start_with(options)
            .await
            .map_err(add_install_remedy)?;
        let nats = self.nats.insert(started);
        Ok(nats.url())
    }

    /// Starts Redis with only the users of an ACL file, and returns its URL.
    pub(crate) async fn start_redis(&mut self, data: &Path, acl: String) -> anyhow::Result<String> {
        let options = RedisOptions {
            data_dir: Some(data.join("redis")),
            acl: Some(acl),
            ..RedisOptions::default()
        };
        let started = RedisServer::start_with(options)
            .await
            .map_err(add_install_remedy)?;
        let redis = self.redis.insert(started);
        Ok(redis.url())
    }

    /// Messages about leftovers of an earlier start that were removed.
    pub fn remains(&self) -> Vec<String> {
        let nats = self.nats.iter().filter_map(NatsServer::remains);
        let redis = self.redis.iter().filter_map(RedisServer::remains);
        nats.chain(redis).map(ToString::to_string).collect()
    }

    /// Stops both servers gracefully; drop kills them.
    pub(crate) async fn stop(&mut self) {
        if let Some(nats) = &mut self.nats {
            nats.stop().await;
        }
        if let Some(redis) = &mut self.redis {
            redis.stop().await;
        }
    }
}

/// Adds the place of the installation instructions to the error of a missing program.
fn add_install_remedy(error: servers::Error) -> anyhow::Error {
    if let servers::Error::NotFound { .. } = error {
        return anyhow::anyhow!("{error}; `journeyman docs install` says where it comes from");
    }
    error.into()
}
