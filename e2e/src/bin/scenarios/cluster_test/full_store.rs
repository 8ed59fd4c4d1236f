//! Full file store: smaller limits of the streams, tickets that leave more than fits, and the recovery of the
//! runbook.

use std::time::Duration;

use anyhow::Context;
use e2e::NOISE;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::cluster_test::{
    disturbances::CHANGE,
    kubectl::{self, replace_object, run_inside},
    names::INSIDE,
    nats_monitor::{StreamReport, report_streams},
};

// Storage for the tickets of the round in MiB. Objects may use half of it.
const ROOM_MIB: u64 = 48;
/// Bytes that a ticket's command leaves in its worktree.
const NOISE_BYTES: u64 = 4_000_000;
/// Time limit until no further workspace fits.
const FILLED: Duration = Duration::from_secs(180);
/// Time for which the store stays full.
const FULL_FOR: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_secs(2);
/// Number of tickets in the round, enough to fill the storage several times.
pub(crate) const TICKETS: usize = 8;

/// Extends a ticket's command with noise in a Markdown file. Markdown is part of the change and passes the
/// inspection, and the file name is unique among the tickets.
pub(crate) fn noisy_command(command: &str) -> String {
    format!(
        "bash -c 'head -c {NOISE_BYTES} /dev/urandom >{NOISE}$(od -An -N8 -tx8 /dev/urandom | tr -d \" \").md; {command}'"
    )
}

/// Storage limits of the reporter's streams and of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoreSize {
    /// Setting `nats.store_mib` of the reporter, in MiB
    store_mib: u64,
    /// Setting `max_file_store` of the server, in MB
    server_mb: u64,
}

impl StoreSize {
    /// Computes limits for the stored data and the tickets of the round. The reporter's limit stays below 90
    /// % of the server's.
    fn beside(used: StreamReport) -> Self {
        let store_mib = ROOM_MIB + 2 * used.bytes.div_ceil(1 << 20);
        Self {
            store_mib,
            // The server counts in MB of 1,000,000 bytes; 900,000 of them keep the reporter below 90 %.
            server_mb: (store_mib << 20).div_ceil(900_000) + 4,
        }
    }
}

/// File of a `ConfigMap`, with its original content.
struct ChangedConfigMap {
    config_map: Value,
    file: &'static str,
}

impl ChangedConfigMap {
    /// Finds the `ConfigMap` with this name prefix that a workload mounts.
    async fn find(workload: &str, name: &str, file: &'static str) -> anyhow::Result<Self> {
        let known = kubectl::get_json(&["-n", INSIDE, workload]).await?;
        let found =
            mounted_config_map(&known, name).with_context(|| format!("{workload} mounts no {name}"))?;
        let config_map = kubectl::get_json(&["-n", INSIDE, "configmap", &found]).await?;
        Ok(Self { config_map, file })
    }

    fn text(&self) -> &str {
        self.config_map["data"][self.file].as_str().unwrap_or_default()
    }

    /// Replaces the file's text, whatever its current content.
    async fn write(&self, text: &str) -> anyhow::Result<()> {
        // Without a resource version the API server replaces the object unconditionally.
        let mut changed = self.config_map.clone();
        if let Some(metadata) = changed["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        changed["data"][self.file] = text.into();
        replace_object(&changed).await
    }
}

fn mounted_config_map(workload: &Value, name: &str) -> Option<String> {
    let volumes = workload["spec"]["template"]["spec"]["volumes"].as_array()?;
    let mut names = volumes
        .iter()
        .filter_map(|volume| volume["configMap"]["name"].as_str());
    names.find(|found| found.starts_with(name)).map(str::to_owned)
}

/// Reduced storage, until [`Self::give_room`].
pub(crate) struct SmallStore {
    reporter: ChangedConfigMap,
    nats: ChangedConfigMap,
    size: StoreSize,
}

impl SmallStore {
    /// Reduces the storage: first of the streams, then of the servers.
    ///
    /// # Errors
    /// When a setting is not found, or a workload does not become ready.
    pub(crate) async fn set() -> anyhow::Result<Self> {
        let this = Self {
            reporter: ChangedConfigMap::find("deployment/reporter", "journeyman-settings", "journeyman.toml")
                .await?,
            nats: ChangedConfigMap::find("statefulset/nats", "nats-settings", "nats.conf").await?,
            size: StoreSize::beside(report_streams().await?),
        };
        let settings = with_setting(
            this.reporter.text(),
            "store_mib = ",
            &this.size.store_mib.to_string(),
        );
        let server = with_setting(
            this.nats.text(),
            "max_file_store: ",
            &format!("{}MB", this.size.server_mb),
        );
        let settings = settings.context("no nats.store_mib in the reporter's settings")?;
        let server = server.context("no max_file_store in nats.conf")?;
        let set = async {
            this.reporter.write(&settings).await?;
            restart_workload("deployment/reporter").await?;
            this.nats.write(&server).await?;
            restart_workload("statefulset/nats").await
        };
        if let Err(error) = set.await {
            // The completed part is reverted. The first error is the cause, so an error of the revert is
            // ignored.
            let _ = this.give_room().await;
            return Err(error);
        }
        Ok(this)
    }

    /// Waits until the objects' storage is exhausted, and then for the time that it shall stay so. Every pod
    /// must stay ready.
    ///
    /// # Errors
    /// When the store does not become full, or a pod becomes unready or restarts.
    pub(crate) async fn stay_full(&self) -> anyhow::Result<String> {
        let restarts = kubectl::count_restarts().await?;
        let start = Instant::now();
        let mut report = report_streams().await?;
        while !is_full(report) {
            anyhow::ensure!(
                start.elapsed() < FILLED,
                "the store does not become full: {report:?}"
            );
            sleep(TICK).await;
            report = report_streams().await?;
        }
        let filled = start.elapsed();
        let full = Instant::now();
        while full.elapsed() < FULL_FOR {
            sleep(TICK).await;
            let waiting = kubectl::find_unready_pods().await?;
            anyhow::ensure!(
                waiting.is_empty(),
                "not ready while the store is full: {}",
                waiting.join(", ")
            );
        }
        anyhow::ensure!(
            kubectl::count_restarts().await? == restarts,
            "containers were restarted while the store was full"
        );
        Ok(format!(
            "{} MiB, full after {} s",
            self.size.store_mib,
            filled.as_secs()
        ))
    }

    /// Applies the runbook's recovery: more storage for the servers, then for the streams.
    ///
    /// # Errors
    /// When a workload does not become ready.
    pub(crate) async fn give_room(&self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.nats.write(self.nats.text()).await?;
        restart_workload("statefulset/nats").await?;
        self.reporter.write(self.reporter.text()).await?;
        restart_workload("deployment/reporter").await?;
        Ok(start.elapsed())
    }
}

/// True if another workspace does not fit. The last tenth of the objects' storage is reserved for small
/// objects.
const fn is_full(report: StreamReport) -> bool {
    report.object_limit > 0 && report.object_bytes + NOISE_BYTES > report.object_limit / 10 * 9
}

async fn restart_workload(workload: &str) -> anyhow::Result<()> {
    run_inside(CHANGE, &["rollout", "restart", workload]).await?;
    run_inside(
        CHANGE,
        &["rollout", "status", workload, "--watch", "--timeout=240s"],
    )
    .await?;
    Ok(())
}

/// Replaces the value after the first occurrence of a name; returns nothing if the name is absent.
fn with_setting(text: &str, name: &str, value: &str) -> Option<String> {
    let (before, rest) = text.split_once(name)?;
    let end = rest.find([' ', '\n']).unwrap_or(rest.len());
    Some(format!("{before}{name}{value}{}", rest.get(end..)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_of_base_have_both_sizes() {
        let settings = include_str!("../../../../../k8s/base/settings/journeyman.toml");
        let settings = with_setting(settings, "store_mib = ", "48").unwrap();
        let parsed: toml::Value = toml::from_str(&settings).unwrap();
        assert_eq!(parsed["nats"]["store_mib"].as_integer(), Some(48));
        let server = include_str!("../../../../../k8s/base/settings/nats.conf");
        let server = with_setting(server, "max_file_store: ", "60MB").unwrap();
        assert!(server.contains("  max_file_store: 60MB\n"), "{server}");
        assert_eq!(with_setting("a: 1\n", "b: ", "2"), None);
    }

    #[test]
    fn store_size_stays_below_servers_share() {
        for bytes in [0, 1, 20 << 20, 900 << 20] {
            let size = StoreSize::beside(StreamReport {
                bytes,
                ..StreamReport::default()
            });
            assert!(
                (size.store_mib << 20) * 10 <= size.server_mb * 1_000_000 * 9,
                "{size:?}"
            );
            assert!(size.store_mib << 20 >= 2 * bytes + (ROOM_MIB << 20), "{size:?}");
        }
    }

    #[test]
    fn store_is_full_before_last_noise() {
        let report = |object_bytes, object_limit| StreamReport {
            object_bytes,
            object_limit,
            ..StreamReport::default()
        };
        assert!(!is_full(report(20_000_000, 26_666_670)));
        assert!(is_full(report(20_000_004, 26_666_670)));
        assert!(!is_full(report(1, 0)), "no limit is never reached");
    }

    #[test]
    fn noise_fills_room_of_objects() {
        assert!(TICKETS as u64 * NOISE_BYTES > (ROOM_MIB << 20) / 2);
        assert!(noisy_command("sleep 6").ends_with("; sleep 6'"));
    }

    #[test]
    fn config_map_is_found_by_prefix() {
        let workload = json!({"spec": {"template": {"spec": {"volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "settings", "configMap": {"name": "nats-settings-5tk"}},
        ]}}}});
        let found = mounted_config_map(&workload, "nats-settings");
        assert_eq!(found.as_deref(), Some("nats-settings-5tk"));
        assert_eq!(mounted_config_map(&workload, "journeyman-settings"), None);
    }
}
