//! Overviews of runs, folded from the journals.

use domain::{Fact, JournalEntry, RunOverview, RunStatus, StopReason, WaitCondition};
use queue::{KeyValueBucket, RecordKey, RunOverviews, TableMirror};

use crate::world::{World, build_entry, build_run_id, build_started_fact, build_ticket_key};

async fn take_in_all(runs: &RunOverviews) {
    let mut from = runs.place().await.unwrap();
    while let Some(next) = runs.take_in(from).await.unwrap() {
        from = next;
        runs.keep_place(from).await.unwrap();
    }
}

async fn append_facts(world: &World, number: u64, facts: Vec<Fact>) {
    let (journal, run) = (world.queue.journal(), build_run_id(number));
    let mut last = journal.read(&run).await.unwrap().last().map_or(0, |(at, _)| *at);
    let from = journal.read(&run).await.unwrap().len() as u64;
    for (fact, position) in facts.into_iter().zip(from..) {
        let entry = JournalEntry {
            fact,
            ..build_entry(position, &format!("n{position}"))
        };
        last = journal.append(&run, last, &entry).await.unwrap();
    }
}

fn build_parked_fact() -> Fact {
    Fact::Parked {
        waits_for: WaitCondition::Answer,
    }
}

fn build_finished_fact() -> Fact {
    Fact::RunFinished {
        reason: StopReason::Completed,
    }
}

#[tokio::test]
async fn overview_of_run_follows_its_journal() {
    let world = World::new().await;
    let runs = world.queue.runs();
    append_facts(
        &world,
        1,
        vec![build_started_fact(&build_ticket_key(1)), build_parked_fact()],
    )
    .await;
    append_facts(&world, 2, vec![build_started_fact(&build_ticket_key(2))]).await;
    take_in_all(&runs).await;
    let waits = runs.get(&build_run_id(1)).await.unwrap().unwrap();
    assert_eq!(
        waits.status,
        RunStatus::Parked {
            waits_for: WaitCondition::Answer
        }
    );
    assert_eq!(
        runs.get(&build_run_id(2)).await.unwrap().unwrap().status,
        RunStatus::Active
    );
    append_facts(&world, 1, vec![build_finished_fact()]).await;
    take_in_all(&runs).await;
    let over = runs.get(&build_run_id(1)).await.unwrap().unwrap();
    assert_eq!((over.entries, over.finished_at.is_some()), (3, true));
}

#[tokio::test]
async fn lost_overviews_or_position_are_rebuilt() {
    let world = World::new().await;
    let runs = world.queue.runs();
    append_facts(
        &world,
        1,
        vec![
            build_started_fact(&build_ticket_key(1)),
            build_parked_fact(),
            build_finished_fact(),
        ],
    )
    .await;
    take_in_all(&runs).await;
    let whole = runs.get(&build_run_id(1)).await.unwrap().unwrap();
    // An entry that is folded twice counts once.
    runs.keep_place(1).await.unwrap();
    take_in_all(&runs).await;
    assert_eq!(runs.get(&build_run_id(1)).await.unwrap().as_ref(), Some(&whole));
    // A record that broke is read at a later entry of its journal.
    let any = world.queue.table::<domain::AnyRecord>(KeyValueBucket::Runs);
    let key = RecordKey::from(build_run_id(1).ticket()).and("57");
    let (_, revision) = any.get(&key).await.unwrap().unwrap();
    let broken: domain::AnyRecord =
        serde_json::from_value(serde_json::json!({"version": 1, "run": 5})).unwrap();
    any.put(&key, &broken, Some(revision)).await.unwrap();
    runs.keep_place(2).await.unwrap();
    take_in_all(&runs).await;
    assert_eq!(runs.get(&build_run_id(1)).await.unwrap().as_ref(), Some(&whole));
    // The whole bucket is purged.
    let raw = world.raw().await;
    raw.get_stream("KV_runs").await.unwrap().purge().await.unwrap();
    take_in_all(&runs).await;
    assert_eq!(runs.get(&build_run_id(1)).await.unwrap(), Some(whole));
}

/// Starts runs and returns a mirror of their overviews that has caught up.
async fn mirror_started_runs(world: &World, numbers: &[u64]) -> TableMirror<RunOverview> {
    for number in numbers {
        append_facts(
            world,
            *number,
            vec![build_started_fact(&build_ticket_key(*number))],
        )
        .await;
    }
    let runs = world.queue.runs();
    take_in_all(&runs).await;
    let mut mirror = TableMirror::new(runs.table());
    mirror.catch_up().await.unwrap();
    mirror
}

#[tokio::test]
async fn mirror_follows_writes_removals_and_purges() {
    let world = World::new().await;
    let runs = world.queue.runs();
    let mut mirror = mirror_started_runs(&world, &[1, 2, 3]).await;
    assert_eq!(mirror.values().count(), 3);
    append_facts(&world, 2, vec![build_finished_fact()]).await;
    take_in_all(&runs).await;
    runs.table()
        .delete(RecordKey::from(build_run_id(3).ticket()).and("57"))
        .await
        .unwrap();
    mirror.catch_up().await.unwrap();
    let seen: Vec<bool> = mirror.values().map(|run| run.finished_at.is_some()).collect();
    assert_eq!(seen, [false, true]);
    world.queue.forget_ticket(build_run_id(1).ticket()).await.unwrap();
    mirror.catch_up().await.unwrap();
    assert_eq!(
        mirror.values().count(),
        1,
        "a purge leaves nothing that could be followed"
    );
    world
        .raw()
        .await
        .get_stream("KV_runs")
        .await
        .unwrap()
        .purge()
        .await
        .unwrap();
    mirror.catch_up().await.unwrap();
    assert_eq!(mirror.values().count(), 0);
}

#[tokio::test]
async fn mirror_finds_runs_below_ticket() {
    let world = World::new().await;
    let mirror = mirror_started_runs(&world, &[1, 2, 12]).await;
    let run = build_run_id(1);
    let found: Vec<_> = mirror
        .values_below(run.ticket())
        .map(|overview| &overview.run)
        .collect();
    assert_eq!(found, [&run]);
    assert_eq!(mirror.values_below("elsewhere").count(), 0);
}

#[tokio::test]
async fn mirror_version_grows_with_changes_only() {
    let world = World::new().await;
    let runs = world.queue.runs();
    let mut mirror = mirror_started_runs(&world, &[1]).await;
    let first = mirror.version();
    mirror.catch_up().await.unwrap();
    assert_eq!(mirror.version(), first);
    append_facts(&world, 1, vec![build_finished_fact()]).await;
    take_in_all(&runs).await;
    mirror.catch_up().await.unwrap();
    let second = mirror.version();
    assert!(second > first, "{first}, {second}");
    world.queue.forget_ticket(build_run_id(1).ticket()).await.unwrap();
    mirror.catch_up().await.unwrap();
    assert!(
        mirror.version() > second && mirror.shared_values().count() == 0,
        "a purge leaves no revision"
    );
}

/// Number of messages that the server receives while a mirror without news catches up ten times.
async fn count_idle_messages(world: &World, mirror: &mut TableMirror<RunOverview>) -> u64 {
    let before = world.count_received_messages().await;
    for _ in 0..10 {
        mirror.catch_up().await.unwrap();
    }
    world.count_received_messages().await - before
}

#[tokio::test]
async fn foreign_subject_costs_mirror_no_reread() {
    let world = World::new().await;
    let mut mirror = mirror_started_runs(&world, &[1]).await;
    let plain = count_idle_messages(&world, &mut mirror).await;
    let raw = world.raw().await;
    let written = raw.publish("$KV.runs._not=a=key", "x".into()).await.unwrap();
    written.await.unwrap();
    mirror.catch_up().await.unwrap();
    assert_eq!(mirror.values().count(), 1);
    let foreign = count_idle_messages(&world, &mut mirror).await;
    // A read of the bucket costs several messages in each round.
    assert!(foreign < plain + 10, "{plain} before, {foreign} after");
}

#[tokio::test]
async fn mirror_detects_purge_since_last_read() {
    let world = World::new().await;
    let runs = world.queue.runs();
    let mut mirror = mirror_started_runs(&world, &[1, 2]).await;
    append_facts(&world, 2, vec![build_finished_fact()]).await;
    take_in_all(&runs).await;
    world.queue.forget_ticket(build_run_id(2).ticket()).await.unwrap();
    mirror.catch_up().await.unwrap();
    let known: Vec<_> = mirror.values().map(|overview| &overview.run).collect();
    assert_eq!(known, [&build_run_id(1)]);
}

/// Projects from a place on, as a projector does without a restart.
async fn take_in_from(runs: &RunOverviews, mut from: u64) -> u64 {
    while let Some(next) = runs.take_in(from).await.unwrap() {
        from = next;
    }
    from
}

#[tokio::test]
async fn overview_removed_elsewhere_is_folded_again() {
    let world = World::new().await;
    let runs = world.queue.runs();
    let mut from = 1;
    for (number, is_purged) in [(1, false), (2, true)] {
        let started = build_started_fact(&build_ticket_key(number));
        append_facts(&world, number, vec![started, build_parked_fact()]).await;
        from = take_in_from(&runs, from).await;
        assert!(runs.get(&build_run_id(number)).await.unwrap().is_some());
        if is_purged {
            let raw = world.raw().await;
            raw.get_stream("KV_runs").await.unwrap().purge().await.unwrap();
        } else {
            let key = RecordKey::from(build_run_id(number).ticket()).and("57");
            runs.table().delete(key).await.unwrap();
        }
        append_facts(&world, number, vec![build_finished_fact()]).await;
        from = take_in_from(&runs, from).await;
        let over = runs.get(&build_run_id(number)).await.unwrap().unwrap();
        assert_eq!((over.entries, over.finished_at.is_some()), (3, true));
    }
}

#[tokio::test]
async fn two_projectors_of_run_lose_no_entry() {
    let world = World::new().await;
    let (one, other) = (world.queue.runs(), world.queue.runs());
    append_facts(&world, 1, vec![build_started_fact(&build_ticket_key(1))]).await;
    let mut from = take_in_from(&one, 1).await;
    for fact in [build_parked_fact(), build_finished_fact()] {
        append_facts(&world, 1, vec![fact]).await;
        take_in_from(&other, from).await;
        from = take_in_from(&one, from).await;
    }
    let over = one.get(&build_run_id(1)).await.unwrap().unwrap();
    assert_eq!((over.entries, over.finished_at.is_some()), (3, true));
}
