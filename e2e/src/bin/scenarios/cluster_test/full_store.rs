//! A file store that becomes full: less room for the streams, tickets that leave more than fits, and the way out of the runbook.

use std::time::Duration;

use anyhow::Context;
use e2e::findings::NOISE;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::cluster_test::{
    disturbances::CHANGE,
    kubectl::{self, inside, replace_object},
    names::INSIDE,
    nats_monitor::{StreamReport, report_streams},
};

/// Room that the tickets of the round find, in MiB: objects may take half of it.
const ROOM_MIB: u64 = 48;
/// Bytes that the command of a ticket leaves in its worktree.
const NOISE_BYTES: u64 = 4_000_000;
/// Until no further workspace fits.
const FILLED: Duration = Duration::from_secs(180);
/// Time in which the store stays full.
const FULL_FOR: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_secs(2);
/// Tickets of the round: enough to fill the room several times.
pub(crate) const TICKETS: usize = 8;

/// The command of a ticket that leaves noise: as a page of prose, which is part of the change and raises no doubt about it, under a name
/// that no other ticket has.
pub(crate) fn noisy_command(command: &str) -> String {
    format!(
        "bash -c 'head -c {NOISE_BYTES} /dev/urandom >{NOISE}$(od -An -N8 -tx8 /dev/urandom | tr -d \" \").md; {command}'"
    )
}

/// The room of a store: what the reporter keeps to, and what a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoreSize {
    /// `nats.store_mib`
    store_mib: u64,
    /// `max_file_store`, in MB
    server_mb: u64,
}

impl StoreSize {
    /// Room for what is there already and for the tickets of the round; the reporter's is less than 90 % of the server's.
    fn beside(used: StreamReport) -> Self {
        let store_mib = ROOM_MIB + 2 * used.bytes.div_ceil(1 << 20);
        Self {
            store_mib,
            server_mb: (store_mib << 20).div_ceil(900_000) + 4,
        }
    }
}

/// One file of a `ConfigMap`, before and after.
struct ChangedFile {
    config_map: Value,
    file: &'static str,
}

impl ChangedFile {
    /// The `ConfigMap` that a workload mounts, and whose name begins so.
    async fn find(workload: &str, name: &str, file: &'static str) -> anyhow::Result<Self> {
        let known = kubectl::get(&["-n", INSIDE, workload]).await?;
        let found =
            mounted_config_map(&known, name).with_context(|| format!("{workload} mounts no {name}"))?;
        let config_map = kubectl::get(&["-n", INSIDE, "configmap", &found]).await?;
        Ok(Self { config_map, file })
    }

    fn text(&self) -> &str {
        self.config_map["data"][self.file].as_str().unwrap_or_default()
    }

    /// Writes another text, whatever stands there meanwhile.
    async fn write(&self, text: &str) -> anyhow::Result<()> {
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

/// A store with little room, until it is given back.
pub(crate) struct SmallStore {
    reporter: ChangedFile,
    nats: ChangedFile,
    size: StoreSize,
}

impl SmallStore {
    /// Takes the room away: first from the streams, then from the servers.
    ///
    /// # Errors
    /// When a setting is not found, or a workload does not become ready.
    pub(crate) async fn set() -> anyhow::Result<Self> {
        let this = Self {
            reporter: ChangedFile::find("deployment/reporter", "journeyman-settings", "journeyman.toml")
                .await?,
            nats: ChangedFile::find("statefulset/nats", "nats-settings", "nats.conf").await?,
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
            // The part that was done is reverted; the first error is the one that matters.
            let _ = this.give_room().await;
            return Err(error);
        }
        Ok(this)
    }

    /// Waits until the objects' room is used up, and for as long as the store is to stay full; every pod must stay ready meanwhile.
    ///
    /// # Errors
    /// When the store does not become full, or a pod is not ready or restarted.
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

    /// The runbook's way out: more room at the servers, then for the streams.
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

/// True when one more workspace does not fit. The last tenth of the objects' room is for small ones.
const fn is_full(report: StreamReport) -> bool {
    report.object_limit > 0 && report.object_bytes + NOISE_BYTES > report.object_limit / 10 * 9
}

async fn restart_workload(workload: &str) -> anyhow::Result<()> {
    inside(CHANGE, &["rollout", "restart", workload]).await?;
    inside(
        CHANGE,
        &["rollout", "status", workload, "--watch", "--timeout=240s"],
    )
    .await?;
    Ok(())
}

/// The text with another value after the first such name; absent when there is none.
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
