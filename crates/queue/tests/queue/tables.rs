//! Key-value tables.

use queue::{Bucket, Error, Revision, Table};

use crate::world::World;

#[tokio::test]
async fn a_value_changes_only_at_the_revision_it_was_read_at() {
    let world = World::new().await;
    let table: Table<String> = world.queue.table(Bucket::Tickets);
    assert_eq!(table.get("jira:ENG-1").await.unwrap(), None);
    let first = table.put("jira:ENG-1", &"a".to_owned(), None).await.unwrap();
    assert!(matches!(
        table.put("jira:ENG-1", &"b".to_owned(), None).await,
        Err(Error::Conflict)
    ));
    let second = table
        .put("jira:ENG-1", &"b".to_owned(), Some(first))
        .await
        .unwrap();
    assert!(matches!(
        table.put("jira:ENG-1", &"c".to_owned(), Some(first)).await,
        Err(Error::Conflict)
    ));
    assert!(matches!(
        table.put("jira:ENG-2", &"c".to_owned(), Some(Revision(99))).await,
        Err(Error::Conflict)
    ));
    assert_eq!(
        table.get("jira:ENG-1").await.unwrap(),
        Some(("b".to_owned(), second))
    );
}

#[tokio::test]
async fn of_many_writers_at_one_revision_one_wins() {
    let world = World::new().await;
    let tasks: Vec<_> = (0..16_u32)
        .map(|writer| {
            let table: Table<u32> = world.queue.table(Bucket::Effects);
            tokio::spawn(async move { table.put("one", &writer, None).await.is_ok() })
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
async fn a_deleted_key_is_gone_and_may_be_created_again() {
    let world = World::new().await;
    let table: Table<u32> = world.queue.table(Bucket::Branches);
    let key = "acme/shop:feat/ENG-12 *.> ü";
    table.put(key, &1, None).await.unwrap();
    table.delete(key).await.unwrap();
    assert_eq!(table.get(key).await.unwrap(), None);
    assert_eq!(table.list().await.unwrap(), []);
    let revision = table.put(key, &2, None).await.unwrap();
    assert_eq!(table.get(key).await.unwrap(), Some((2, revision)));
}

#[tokio::test]
async fn every_key_is_listed_with_its_last_value() {
    let world = World::new().await;
    let table: Table<u32> = world.queue.table(Bucket::Branches);
    assert_eq!(table.list().await.unwrap(), []);
    let first = table.put("acme/shop:a", &1, None).await.unwrap();
    table.put("acme/shop:b.c", &2, None).await.unwrap();
    table.put("acme/shop:a", &3, Some(first)).await.unwrap();
    let mut listed = table.list().await.unwrap();
    listed.sort();
    assert_eq!(
        listed,
        [("acme/shop:a".to_owned(), 3), ("acme/shop:b.c".to_owned(), 2)]
    );
}
