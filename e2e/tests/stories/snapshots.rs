//! A model that fills the workspace with noise: the store keeps little of it, and webhooks are still
//! accepted.

use domain::{Fact, JournalEntry, StopReason, WorkspaceSnapshot};
use serde_json::json;
use testkit::{ScriptStep, fixture};

use crate::start_world_with_script;

/// Default limit of a ticket's snapshots in bytes.
const BUDGET: u64 = 256 << 20;

/// Returns all snapshots of a run, in order.
fn list_snapshots(entries: &[JournalEntry]) -> Vec<WorkspaceSnapshot> {
    let taken = entries.iter().filter_map(|entry| match &entry.fact {
        Fact::SnapshotTaken { snapshot, .. } => Some(snapshot.clone()),
        _ => None,
    });
    taken.collect()
}

fn build_noise_step(megabytes: u32) -> ScriptStep {
    let command = format!("head -c {megabytes}000000 /dev/urandom > noise.bin");
    ScriptStep::call("run_command", json!({ "command": command }))
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_blocks_neither_store_nor_webhook() {
    let mut script = fixture::build_shop_script();
    let rest = script.split_off(3);
    script.extend((0..4).map(|_| build_noise_step(8)));
    // The tool result names the file that exceeds the snapshot limit; the model continues.
    script.push(build_noise_step(60));
    script.push(
        ScriptStep::call("run_command", json!({ "command": "rm noise.bin" }))
            .expecting("compressed it takes more than 32 MiB. The largest of it: noise.bin (58 MiB)"),
    );
    script.extend(rest);
    let world = start_world_with_script(script).await;
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    let (entries, reason) = world.finished(&run).await.unwrap();
    assert_eq!(reason, StopReason::Completed);
    let taken = list_snapshots(&entries);
    let stored: u64 = taken.iter().map(|snapshot| snapshot.pack.size_bytes).sum();
    assert!(stored > 30_000_000, "four of 8 MB were stored: {stored}");
    let queue = world.queue().await.unwrap();
    let kept = async || {
        let mut bytes = 0;
        for snapshot in &taken {
            if queue.objects().get(&snapshot.pack).await.is_ok() {
                bytes += snapshot.pack.size_bytes;
            }
        }
        // Later snapshots replaced those with noise; only the change remains.
        (bytes < 1 << 20).then_some(bytes)
    };
    let kept = world.until("replaced snapshots to go", kept).await.unwrap();
    assert!((1..BUDGET).contains(&kept), "{kept}");
    let failed = entries.iter().filter_map(|entry| match &entry.fact {
        Fact::SnapshotFailed { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(failed.count(), 1, "the file of 60 MB");
    let body = r#"{"webhookEvent": "jira:issue_updated", "issue": []}"#;
    assert_eq!(world.deliver("jira", "", body).await.unwrap(), 202);
    world.stop_with_dead_letters().await.unwrap();
}
