//! Cluster of three real `nats-server` processes with `JetStream` on loopback.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{ClusterMember, Error, NatsOptions, NatsServer, free_port};

const SERVERS: usize = 3;
// Another program may take a free port between its choice and the start.
const TRIES: u32 = 3;
/// Time in which the servers must elect the leaders of their streams.
const HEALTHY_WITHIN: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

/// Running cluster. Dropping it kills and reaps the three processes.
pub struct NatsCluster {
    servers: Vec<NatsServer>,
}

impl NatsCluster {
    /// Starts three servers with separate data and waits until `JetStream` has a leader, at most two minutes.
    ///
    /// All servers use `options`, except its port, data directory and cluster.
    ///
    /// # Errors
    /// See [`Error`]; the error of a server that does not start contains the end of its log.
    pub async fn start(options: NatsOptions) -> Result<Self, Error> {
        let mut tries = 1;
        loop {
            match Self::start_once(&options).await {
                Err(Error::NotReady { .. }) if tries < TRIES => tries += 1,
                started => return started,
            }
        }
    }

    async fn start_once(options: &NatsOptions) -> Result<Self, Error> {
        let peer_ports: Vec<u16> = (0..SERVERS)
            .map(|_| free_port())
            .collect::<std::io::Result<_>>()
            .map_err(|source| Error::Port { source })?;
        let starting = peer_ports.iter().enumerate().map(|(number, route_port)| {
            NatsServer::start_with(NatsOptions {
                data_dir: None,
                port: None,
                cluster: Some(ClusterMember {
                    name: format!("nats-{number}"),
                    route_port: *route_port,
                    peer_ports: peer_ports.clone(),
                }),
                ..options.clone()
            })
        });
        // A server answers before it knows the others, so they can be awaited one after another.
        let mut servers = Vec::with_capacity(SERVERS);
        for server in starting {
            servers.push(server.await?);
        }
        let cluster = Self { servers };
        cluster.wait_until_healthy().await?;
        Ok(cluster)
    }

    /// Waits until every running server reports that its streams have leaders and are current, at most two
    /// minutes.
    ///
    /// # Errors
    /// [`Error::NotReady`] with the last answer of the server.
    pub async fn wait_until_healthy(&self) -> Result<(), Error> {
        let deadline = Instant::now() + HEALTHY_WITHIN;
        for server in &self.servers {
            loop {
                let answer = server.monitor("/healthz").await;
                if matches!(answer, Ok((200, _))) {
                    break;
                }
                if Instant::now() >= deadline {
                    return Err(Error::NotReady {
                        program: "nats-server".to_owned(),
                        problem: "did not become healthy in its cluster".to_owned(),
                        log_tail: format!("{answer:?}"),
                    });
                }
                sleep(POLL).await;
            }
        }
        Ok(())
    }

    /// Addresses for clients: those of the three servers, separated by commas.
    #[must_use]
    pub fn url(&self) -> String {
        let urls: Vec<String> = self.servers.iter().map(NatsServer::url).collect();
        urls.join(",")
    }

    /// Servers of the cluster, to inspect one.
    #[must_use]
    pub fn servers(&self) -> &[NatsServer] {
        &self.servers
    }

    /// Servers of the cluster, to stop or restart one.
    pub fn servers_mut(&mut self) -> &mut [NatsServer] {
        &mut self.servers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn cluster_of_three_elects_leader_survives_restart() {
        let mut cluster = NatsCluster::start(NatsOptions::default()).await.unwrap();
        assert_eq!(cluster.url().split(',').count(), SERVERS);
        cluster.servers_mut()[0].kill();
        cluster.servers_mut()[0].restart().await.unwrap();
        cluster.wait_until_healthy().await.unwrap();
    }
}
