//! Waiting for executor slots, and removal of workspaces that a finished run left open.

use domain::{ExecutorState, PoolRecord, SlotQueue, WaitCondition};

use super::*;

impl World {
    async fn until_it_waits_for_a_slot(&self) {
        let waits = RunStatus::Parked {
            waits_for: WaitCondition::Slot,
        };
        let waiting = async || (self.row().await?.runs.first()?.status == waits).then_some(());
        self.until("the run waits for a slot", waiting).await;
    }

    async fn waiting_for_slots(&self) -> usize {
        let queues = self.queue.table::<SlotQueue>(KeyValueBucket::Slots);
        let queue = queues.get("default").await.unwrap();
        queue.map_or(0, |(queue, _)| queue.waiting.len())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_run_starts_when_slot_frees() {
    let world = World::start(build_fix_script()).await;
    world.executor.set_full(true);
    let planner = world.planner().await;
    world.ask().await;
    world.until_it_waits_for_a_slot().await;
    planner.stop().await;
    let planner = world.planner().await;
    assert_eq!(world.waiting_for_slots().await, 1);
    world.executor.set_full(false);
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!((world.executor.open(), world.waiting_for_slots().await), (0, 0));
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_run_leaves_slot_queue() {
    let world = World::start(build_fix_script()).await;
    world.executor.set_full(true);
    let planner = world.planner().await;
    world.ask().await;
    world.until_it_waits_for_a_slot().await;
    world
        .trigger("comment:9", TriggerReason::StopRequested { run: None })
        .await;
    world.finished(1).await;
    world
        .until("the queue is empty", async || {
            (world.waiting_for_slots().await == 0).then_some(())
        })
        .await;
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unclosed_workspace_closes_when_executor_responds() {
    let world = World::start(build_fix_script()).await;
    world.executor.refuse_closes(2);
    let planner = world.planner().await;
    world.ask().await;
    world.finished(1).await;
    world.open_workspaces(0).await;
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pool_records_follow_changes_with_time() {
    let world = World::start(build_fix_script()).await;
    let planner = world.planner().await;
    let table = world.queue.table::<PoolRecord>(KeyValueBucket::Pools);
    let seen = async |wanted: fn(&PoolRecord) -> bool| {
        let mut all = table.list().await.unwrap().into_iter().map(|(_, record)| record);
        all.find(wanted)
    };
    let is = async |what: &str, wanted: fn(&PoolRecord) -> bool| {
        world.until(what, async || seen(wanted).await.map(drop)).await;
        seen(wanted).await.unwrap()
    };
    let ready = is("the executor is ready", |record| {
        record
            .executors
            .iter()
            .any(|one| one.state == ExecutorState::Ready && one.free == 4)
    })
    .await;
    assert_eq!((ready.pool.as_str(), ready.executors.len()), ("default", 1));
    assert_eq!(ready.executors[0].address, world.executor.url);
    assert!(ready.is_fresh(bootstrap::read_wall_clock()));
    world.executor.set_unready("the network is open");
    let unready = is("the executor is unready", |record| {
        record
            .executors
            .iter()
            .any(|one| one.state == ExecutorState::Unready)
    })
    .await;
    assert_eq!(unready.executors[0].why, "the network is open");
    assert_eq!(unready.planner, ready.planner, "one record for each planner");
    planner.stop().await;
    let last = table.list().await.unwrap();
    assert_eq!(last.len(), 1);
    let (_, last) = last.into_iter().next().unwrap();
    assert!(
        !last.is_fresh(bootstrap::read_wall_clock().plus_ms(60_000)),
        "nobody takes it for news later"
    );
    let planner = world.planner().await;
    world.stop(planner).await;
}
