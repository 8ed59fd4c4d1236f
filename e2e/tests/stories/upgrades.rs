//! Records of an earlier release, read by this one.

use std::path::{Path, PathBuf};

use domain::{Fact, RunStatus, TicketRow, record_format::AnyRecord};
use e2e::{Options, TestWorld};
use queue::KeyValueBucket;

/// Lists backups of NATS after a release had played four tickets to their merge, from `make skew-check` with
/// `--keep`. Later releases add folders and never change existing ones.
fn list_backups() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored");
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

const TICKETS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn services_read_records_of_previous_release() {
    let backups = list_backups();
    assert!(!backups.is_empty());
    for backup in backups {
        let world = TestWorld::start(Options {
            restored: Some(backup),
            // Old journals would otherwise be removed because of their age.
            settings: vec![("INGEST__JOURNAL_DAYS", "3650".to_owned())],
            ..Options::default()
        });
        let world = world.await.unwrap();
        let runs = world.client.runs().recent(None).await.unwrap();
        assert_eq!(runs.len(), 3 * TICKETS, "work, checks and merge of each ticket");
        for run in runs {
            let id = run.id.parse().unwrap();
            let journal = world.client.runs().journal(&id).await.unwrap();
            assert!(
                matches!(journal.last().unwrap().fact, Fact::RunFinished { .. }),
                "{}",
                run.id
            );
            world
                .until("the record of the run", async || {
                    world.client.runs().read(&id).await.ok()?.overview
                })
                .await
                .unwrap();
        }
        read_all(&world).await;
        assert!(world.dead_letters().await.unwrap().is_empty());
        world.stop().await.unwrap();
    }
}

/// Reads rows and indexes record by record. Triggers and reports leave their streams after 30 days, so an old
/// backup lacks them; crates/domain/tests/stored has samples.
async fn read_all(world: &TestWorld) {
    let queue = world.queue().await.unwrap();
    let rows = queue
        .table::<TicketRow>(KeyValueBucket::Tickets)
        .list()
        .await
        .unwrap();
    assert_eq!(rows.len(), TICKETS);
    for (ticket, row) in rows {
        let is_over = |status: &RunStatus| matches!(status, RunStatus::Finished { .. });
        assert!(
            row.runs.iter().all(|run| is_over(&run.status)),
            "{ticket}: {row:#?}"
        );
        assert_eq!(row.runs.len(), 3, "{ticket}");
    }
    let (pulls, _) = queue
        .pull_requests()
        .changes_after(Default::default())
        .await
        .unwrap();
    assert_eq!(pulls.len(), TICKETS);
    for bucket in [
        KeyValueBucket::Effects,
        KeyValueBucket::Branches,
        KeyValueBucket::Control,
    ] {
        let records = queue.table::<AnyRecord>(bucket).list().await.unwrap();
        assert!(!records.is_empty(), "{bucket:?}");
    }
}
