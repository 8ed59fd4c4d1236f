//! Snapshots in the object store: one for each run, within a limit.

use domain::WorkspaceSnapshot;

use super::*;

/// Returns every snapshot in the journal of the only run, in order.
async fn list_snapshots(world: &World, row: &TicketRow) -> Vec<WorkspaceSnapshot> {
    let entries = world.queue.journal().read(&row.runs[0].id).await.unwrap();
    let taken = entries.into_iter().filter_map(|(_, entry)| match entry.fact {
        Fact::SnapshotTaken { snapshot, .. } => Some(snapshot),
        _ => None,
    });
    taken.collect()
}

fn build_edit_script(count: usize) -> Vec<ScriptStep> {
    let edit = |number| ScriptStep::call("edit_file", json!({ "path": format!("{number}") }));
    (0..count)
        .map(edit)
        .chain([ScriptStep::reply("Too large.")])
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_keeps_only_last_run_snapshot() {
    let world = World::start(build_edit_script(5)).await;
    world.executor.make_packs_of(300_000);
    let planner = world.planner().await;
    world.ask().await;
    let row = world.finished(1).await;
    let taken = list_snapshots(&world, &row).await;
    assert!(taken.len() >= 5, "{}", taken.len());
    let (last, replaced) = taken.split_last().unwrap();
    let objects = world.queue.objects();
    let are_gone = async || {
        for snapshot in replaced {
            if objects.get(&snapshot.pack).await.is_ok() {
                return None;
            }
        }
        Some(())
    };
    world.until("replaced snapshots to go", are_gone).await;
    assert_eq!(objects.get(&last.pack).await.unwrap().len(), 300_000);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_workspace_restores_after_snapshot_removal() {
    let mut steps = build_edit_script(3);
    steps.insert(3, ScriptStep::call("read_file", json!({ "path": "a" })));
    let world = World::start(steps).await;
    world.executor.make_packs_of(300_000);
    world.executor.lose_workspace_at("read_file");
    let planner = world.planner().await;
    world.ask().await;
    world.finished(1).await;
    assert_eq!(world.executor.restored(), 1);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_snapshot_is_reported_and_removed() {
    let steps = vec![
        ScriptStep::call("edit_file", json!({ "path": "a" })),
        ScriptStep::call("read_file", json!({ "path": "a" }))
            .expecting("snapshots of one run take at most 1 MiB"),
        ScriptStep::reply("Too large."),
    ];
    let mut world = World::start(steps).await;
    world.snapshots.run_mib = 1;
    world.executor.make_packs_of(2 << 20);
    let planner = world.planner().await;
    world.ask().await;
    let row = world.finished(1).await;
    let facts = list_fact_names(&world, &row).await;
    assert!(facts.iter().any(|fact| fact == "snapshot_failed"), "{facts:?}");
    assert_eq!(list_snapshots(&world, &row).await, []);
    let torn = world
        .queue
        .objects()
        .remove_torn(bootstrap::read_wall_clock().plus_ms(60_000))
        .await;
    assert_eq!(torn.unwrap(), 0, "no part of it is left");
    assert_eq!(world.executor.ran(), ["edit_file", "read_file"]);
    world.stop(planner).await;
}
