//! Typed tables over key-value buckets.

use async_nats::jetstream::stream;
use domain::{
    AnyRecord, BranchRecord, IssueIdentity, PullRequestRecord, PullRequestRef, PullRequestStatus, RecordKind,
    StoredRecord, Timestamp,
};
use queue::{Error, KeyValueBucket, Queue, RecordKey, TableRevision, TypedTable};

use serde::{Deserialize, Serialize};

use crate::world::{
    Text, World, await_soon, build_run_id, build_server_settings, build_text, build_ticket_key,
};

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Number {
    number: u32,
}

impl StoredRecord for Number {
    const KIND: RecordKind = RecordKind::Control;
}

fn build_number(number: u32) -> Number {
    Number { number }
}

#[tokio::test]
async fn newer_record_differs_from_broken_one() {
    let world = World::new().await;
    let (table, any) = (
        world.queue.table::<Number>(KeyValueBucket::Effects),
        world.queue.table::<AnyRecord>(KeyValueBucket::Effects),
    );
    let record = |fields: serde_json::Value| -> AnyRecord { serde_json::from_value(fields).unwrap() };
    let newer = record(serde_json::json!({"version": 2, "digits": [1, 2]}));
    any.put("newer", &newer, None).await.unwrap();
    any.put("broken", &record(serde_json::json!({"digits": []})), None)
        .await
        .unwrap();
    table.put("one", &build_number(1), None).await.unwrap();
    let error = table.get("newer").await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Newer {
                kind: RecordKind::Control,
                format: 2,
                ..
            }
        ),
        "{error}"
    );
    assert!(matches!(table.get("broken").await, Err(Error::Corrupt { .. })));
    assert_eq!(
        table.list().await.unwrap(),
        [(RecordKey::from("one"), build_number(1))]
    );
    assert_eq!(any.get("newer").await.unwrap().map(|(kept, _)| kept), Some(newer));
    let ticket = build_ticket_key(1);
    let pause = world.queue.leave_to_newer(&error, Some(&ticket)).await;
    assert_eq!(pause, Some(Error::LEFT_FOR));
    let met = world.queue.newer_records().await.unwrap();
    let [met] = met.as_slice() else { panic!("{met:?}") };
    assert_eq!(
        (met.kind, met.format, met.ticket.as_ref()),
        (RecordKind::Control, 2, Some(&ticket))
    );
}

#[tokio::test]
async fn acknowledged_write_is_read_at_once() {
    let world = World::new().await;
    let other = Queue::connect(&build_server_settings(&world.server), "other")
        .await
        .unwrap();
    let table: TypedTable<Number> = world.queue.table(KeyValueBucket::Tickets);
    let elsewhere: TypedTable<Number> = other.table(KeyValueBucket::Tickets);
    let mut last = None;
    for number in 0..200 {
        let revision = table.put("one", &build_number(number), last).await.unwrap();
        let read = elsewhere.get("one").await.unwrap();
        assert_eq!(read, Some((build_number(number), revision)));
        last = Some(revision);
    }
    assert_eq!(elsewhere.get("two").await.unwrap(), None);
}

#[tokio::test]
async fn mirror_of_operator_answers_no_read() {
    let world = World::new().await;
    let table: TypedTable<Number> = world.queue.table(KeyValueBucket::Tickets);
    let first = table.put("one", &build_number(1), None).await.unwrap();
    let raw = world.raw().await;
    let mut mirror = raw
        .create_stream(stream::Config {
            name: "COPY".to_owned(),
            mirror: Some(stream::Source {
                name: "KV_tickets".to_owned(),
                // The mirror never has the first value.
                start_sequence: Some(2),
                ..stream::Source::default()
            }),
            max_messages_per_subject: 5,
            ..stream::Config::default()
        })
        .await
        .unwrap();
    let mut last = None;
    // The bucket keeps one value of a key, so the mirror must have copied the first one before the second one.
    for number in [2, 3] {
        last = Some(table.put("two", &build_number(number), last).await.unwrap());
        await_soon(async {
            while mirror.info().await.unwrap().state.messages < u64::from(number - 1) {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await;
    }
    let newer = last.unwrap();
    assert!(
        mirror.cached_info().config.mirror_direct,
        "it answers direct reads"
    );
    // Like a mirror that lags behind, it has only the older one of two values then.
    let copied = mirror.cached_info().state.last_sequence;
    assert!(mirror.delete_message(copied).await.unwrap());
    for _ in 0..100 {
        assert_eq!(table.get("one").await.unwrap(), Some((build_number(1), first)));
        assert_eq!(table.get("two").await.unwrap(), Some((build_number(3), newer)));
    }
}

#[tokio::test]
async fn value_changes_only_at_read_revision() {
    let world = World::new().await;
    let table: TypedTable<Text> = world.queue.table(KeyValueBucket::Tickets);
    assert_eq!(table.get("jira:ENG-1").await.unwrap(), None);
    let first = table.put("jira:ENG-1", &build_text("a"), None).await.unwrap();
    assert!(matches!(
        table.put("jira:ENG-1", &build_text("b"), None).await,
        Err(Error::Conflict)
    ));
    let second = table
        .put("jira:ENG-1", &build_text("b"), Some(first))
        .await
        .unwrap();
    assert!(matches!(
        table.put("jira:ENG-1", &build_text("c"), Some(first)).await,
        Err(Error::Conflict)
    ));
    assert!(matches!(
        table
            .put("jira:ENG-2", &build_text("c"), Some(TableRevision(99)))
            .await,
        Err(Error::Conflict)
    ));
    assert_eq!(
        table.get("jira:ENG-1").await.unwrap(),
        Some((build_text("b"), second))
    );
}

#[tokio::test]
async fn newer_value_is_read_once() {
    let world = World::new().await;
    let table: TypedTable<Number> = world.queue.table(KeyValueBucket::Slots);
    let first = table.put("one", &build_number(1), None).await.unwrap();
    table.put("two", &build_number(5), None).await.unwrap();
    assert_eq!(table.get_newer("one", first).await.unwrap(), None);
    let second = table.put("one", &build_number(2), Some(first)).await.unwrap();
    assert_eq!(
        table.get_newer("one", first).await.unwrap(),
        Some((build_number(2), second))
    );
    assert_eq!(table.get_newer("one", second).await.unwrap(), None);
    table.delete_at("one", second).await.unwrap();
    assert_eq!(table.get_newer("one", first).await.unwrap(), None);
}

#[tokio::test]
async fn one_writer_wins_at_each_revision() {
    let world = World::new().await;
    let tasks: Vec<_> = (0..16_u32)
        .map(|writer| {
            let table: TypedTable<Number> = world.queue.table(KeyValueBucket::Effects);
            tokio::spawn(async move { table.put("one", &Number { number: writer }, None).await.is_ok() })
        })
        .collect();
    let won = futures::future::join_all(tasks)
        .await
        .into_iter()
        .filter(|won| matches!(won, Ok(true)))
        .count();
    assert_eq!(won, 1);
}

#[tokio::test]
async fn deleted_key_can_be_created_again() {
    let world = World::new().await;
    let table: TypedTable<Number> = world.queue.table(KeyValueBucket::Branches);
    let key = "acme/shop:feat/ENG-12 *.> ü";
    table.put(key, &build_number(1), None).await.unwrap();
    table.delete(key).await.unwrap();
    assert_eq!(table.get(key).await.unwrap(), None);
    assert_eq!(table.list().await.unwrap(), []);
    let revision = table.put(key, &build_number(2), None).await.unwrap();
    assert_eq!(table.get(key).await.unwrap(), Some((build_number(2), revision)));
}

#[tokio::test]
async fn value_is_deleted_only_at_read_revision() {
    let world = World::new().await;
    let table: TypedTable<Number> = world.queue.table(KeyValueBucket::Control);
    let first = table.put("one", &build_number(1), None).await.unwrap();
    let second = table.put("one", &build_number(2), Some(first)).await.unwrap();
    assert!(matches!(
        table.delete_at("one", first).await,
        Err(Error::Conflict)
    ));
    assert_eq!(table.get("one").await.unwrap(), Some((build_number(2), second)));
    table.delete_at("one", second).await.unwrap();
    assert_eq!(table.get("one").await.unwrap(), None);
    for missing in ["one", "never"] {
        let deleted = table.delete_at(missing, second).await;
        assert!(matches!(deleted, Err(Error::Conflict)), "{missing}: {deleted:?}");
    }
    table.put("one", &build_number(3), None).await.unwrap();
}

#[tokio::test]
async fn list_has_last_value_per_key() {
    let world = World::new().await;
    let table: TypedTable<Number> = world.queue.table(KeyValueBucket::Branches);
    assert_eq!(table.list().await.unwrap(), []);
    let first = table.put("acme/shop:a", &build_number(1), None).await.unwrap();
    table.put("acme/shop:b.c", &build_number(2), None).await.unwrap();
    table
        .put("acme/shop:a", &build_number(3), Some(first))
        .await
        .unwrap();
    let mut listed = table.list().await.unwrap();
    listed.sort();
    assert_eq!(
        listed,
        [
            (RecordKey::from("acme/shop:a"), build_number(3)),
            (RecordKey::from("acme/shop:b.c"), build_number(2))
        ]
    );
}

fn build_branch_record(number: u64, repository: &str, branch: &str) -> BranchRecord {
    BranchRecord {
        repository: repository.parse().unwrap(),
        branch: branch.to_owned(),
        ticket: build_ticket_key(number),
        run: build_run_id(number),
        head: "0".repeat(40).parse().unwrap(),
        pull_request: None,
        signed: Vec::new(),
    }
}

#[tokio::test]
async fn branch_is_found_by_name_and_ticket() {
    let world = World::new().await;
    let branches = world.queue.branches();
    let ours = build_branch_record(1, "acme/shop", "feat/ENG-1.*>-x");
    let first = branches.put(&ours, None).await.unwrap();
    for other in [
        build_branch_record(2, "acme/shop", "feat/ENG-2"),
        build_branch_record(1, "ghe:acme/shop", "feat/ENG-1.*>-x"),
    ] {
        branches.put(&other, None).await.unwrap();
    }
    let found = branches.get(&ours.repository, &ours.branch).await.unwrap();
    assert_eq!(found, Some((ours.clone(), first)));
    let of_first = branches.of_ticket(&build_ticket_key(1)).await.unwrap();
    assert_eq!(of_first.len(), 2, "{of_first:?}");
    assert!(of_first.iter().all(|record| record.ticket == build_ticket_key(1)));
    assert_eq!(branches.list().await.unwrap().len(), 3);
    let moved = BranchRecord {
        head: "1".repeat(40).parse().unwrap(),
        ..ours.clone()
    };
    assert!(matches!(branches.put(&moved, None).await, Err(Error::Conflict)));
    branches.put(&moved, Some(first)).await.unwrap();
    assert!(matches!(
        branches.put(&ours, Some(first)).await,
        Err(Error::Conflict)
    ));
}

#[tokio::test]
async fn one_ticket_wins_contested_branch() {
    let world = World::new().await;
    for round in 0..10 {
        let writes = (1..=8).map(|number| {
            let branches = world.queue.branches();
            async move {
                branches
                    .put(
                        &build_branch_record(number, "acme/shop", &format!("b{round}")),
                        None,
                    )
                    .await
            }
        });
        let won = futures::future::join_all(writes).await;
        assert_eq!(won.iter().filter(|put| put.is_ok()).count(), 1, "{won:?}");
    }
}

#[tokio::test]
async fn withdrawal_never_deletes_newer_branch_record() {
    let world = World::new().await;
    let branches = world.queue.branches();
    for round in 0..50 {
        let name = format!("b{round}");
        let ours = build_branch_record(1, "acme/shop", &name);
        let first = branches.put(&ours, None).await.unwrap();
        // The other record is of the same ticket or of another one: the branch has one record in any case.
        let newer = BranchRecord {
            head: "1".repeat(40).parse().unwrap(),
            ..build_branch_record(1 + round % 2, "acme/shop", &name)
        };
        let (withdrawn, recorded) =
            tokio::join!(branches.withdraw(&ours, first), branches.put(&newer, Some(first)));
        let found = branches.get(&ours.repository, &name).await.unwrap();
        let found = found.map(|(record, _)| record);
        match (withdrawn, recorded) {
            (Ok(()), Err(Error::Conflict)) => assert_eq!(found, None),
            (Err(Error::Conflict), Ok(_)) => assert_eq!(found, Some(newer)),
            outcomes => panic!("one of both wins: {outcomes:?}"),
        }
    }
}

#[tokio::test]
async fn withdrawn_branch_can_be_recorded_again() {
    let world = World::new().await;
    let branches = world.queue.branches();
    let ours = build_branch_record(1, "acme/shop", "feat/x");
    let first = branches.put(&ours, None).await.unwrap();
    branches.withdraw(&ours, first).await.unwrap();
    assert_eq!(branches.get(&ours.repository, &ours.branch).await.unwrap(), None);
    let again = branches.withdraw(&ours, first).await;
    assert!(matches!(again, Err(Error::Conflict)), "{again:?}");
    let theirs = build_branch_record(2, "acme/shop", "feat/x");
    branches.put(&theirs, None).await.unwrap();
}

fn build_pull_request(ticket: u64, number: u64, status: PullRequestStatus) -> PullRequestRecord {
    let branch = build_branch_record(ticket, "acme/shop", "feat/x");
    PullRequestRecord {
        pull_request: PullRequestRef {
            repository: branch.repository,
            number,
            url: String::new(),
            branch: branch.branch,
        },
        ticket: branch.ticket,
        head: Some(branch.head),
        status,
    }
}

#[tokio::test]
async fn pull_request_index_lists_changes_and_deletions() {
    let world = World::new().await;
    let index = world.queue.pull_requests();
    let shop = build_pull_request(1, 1, PullRequestStatus::Open)
        .pull_request
        .repository;
    for (ticket, number) in [(1, 7), (2, 8)] {
        index
            .keep(&build_pull_request(ticket, number, PullRequestStatus::Open))
            .await
            .unwrap();
    }
    let (all, read_to) = index.changes_after(TableRevision::default()).await.unwrap();
    assert_eq!(all.len(), 2);
    let merged = build_pull_request(1, 7, PullRequestStatus::Merged);
    for _ in 0..2 {
        index.keep(&merged).await.unwrap();
    }
    let (changed, read_to) = index.changes_after(read_to).await.unwrap();
    assert_eq!(
        changed,
        vec![merged.clone()],
        "what says the same is not written again"
    );
    let (nothing, unchanged) = index.changes_after(read_to).await.unwrap();
    assert_eq!((nothing, unchanged), (vec![], read_to));
    world.queue.forget_ticket(&merged.ticket).await.unwrap();
    assert_eq!(index.get(&shop, 7).await.unwrap(), None);
    assert_eq!(
        index.get(&shop, 8).await.unwrap(),
        Some(build_pull_request(2, 8, PullRequestStatus::Open))
    );
}

#[tokio::test]
async fn first_key_of_issue_is_kept_once() {
    let world = World::new().await;
    let identities = world.queue.issue_identities();
    let (key, at) = (build_ticket_key(1), Timestamp::from_unix_ms(5));
    let kept = identities.keep_first(7, &key, at).await.unwrap().unwrap();
    assert_eq!(kept, IssueIdentity::new(7, key.clone(), key.clone(), at));
    assert_eq!(identities.of_id(None, 7).await.unwrap(), Some(kept.clone()));
    assert_eq!(identities.of_key(&key).await.unwrap(), Some(kept.clone()));
    let later = Timestamp::from_unix_ms(6);
    for other in [&key, &build_ticket_key(2)] {
        assert_eq!(identities.keep_first(7, other, later).await.unwrap(), None);
    }
    assert_eq!(identities.of_id(None, 7).await.unwrap(), Some(kept));
    assert_eq!(identities.of_key(&build_ticket_key(2)).await.unwrap(), None);
}

#[tokio::test]
async fn simultaneous_first_keys_keep_one_identity() {
    let world = World::new().await;
    let identities = world.queue.issue_identities();
    let (key, at) = (build_ticket_key(1), Timestamp::from_unix_ms(5));
    let keeping = (0..4).map(|_| identities.keep_first(7, &key, at));
    let kept = futures::future::try_join_all(keeping).await.unwrap();
    assert!(kept.iter().any(Option::is_some), "{kept:?}");
    let identity = IssueIdentity::new(7, key.clone(), key.clone(), at);
    assert_eq!(identities.of_id(None, 7).await.unwrap(), Some(identity.clone()));
    assert_eq!(identities.of_key(&key).await.unwrap(), Some(identity));
}

#[tokio::test]
async fn simultaneous_keys_of_issue_agree() {
    let world = World::new().await;
    let identities = world.queue.issue_identities();
    for id in 1..=8 {
        let keys = [build_ticket_key(2 * id), build_ticket_key(2 * id + 1)];
        let at = [5, 6].map(Timestamp::from_unix_ms);
        let (first, second) = tokio::join!(
            identities.keep_first(id, &keys[0], at[0]),
            identities.keep_first(id, &keys[1], at[1]),
        );
        first.unwrap();
        second.unwrap();
        let identity = identities.of_id(None, id).await.unwrap();
        for key in &keys {
            let of_key = identities.of_key(key).await.unwrap();
            // An issue that was known already takes no key from a first record.
            assert!(of_key.is_none() || of_key == identity, "{of_key:?} {identity:?}");
        }
    }
}
