//! Discussions and reactions against the fake GitHub.

use std::collections::BTreeSet;

use domain::{ReactionKind, ReactionSubject, Timestamp};
use github::Error;
use testkit::{
    ServiceFault,
    github::{ReactedObject, WRITER_LOGIN},
};

use super::{Hub, build_shop_name, start_hub};

fn open_discussion(hub: &Hub, category: &str) -> u64 {
    let asked = ("Which rounding?", "Up or down?");
    hub.hub
        .start_discussion("acme/shop", "rita", category, asked)
        .unwrap()
}

#[tokio::test]
async fn discussion_is_read_with_threads() {
    let hub = start_hub().await;
    let number = open_discussion(&hub, "Q&A");
    let other = open_discussion(&hub, "General");
    let first = hub
        .hub
        .discuss_as("acme/shop", number, "sam", "Up.", None)
        .unwrap();
    hub.hub
        .discuss_as("acme/shop", number, "rita", "Why?", Some(first))
        .unwrap();
    let read = hub
        .reader
        .discussions()
        .discussion(&build_shop_name(), number)
        .await
        .unwrap();
    assert_eq!(
        hub.writer
            .discussions()
            .discussion(&build_shop_name(), number)
            .await
            .unwrap(),
        read
    );
    assert_eq!(
        (read.title.as_str(), read.body.as_str()),
        ("Which rounding?", "Up or down?")
    );
    assert!(read.is_open && read.is_answerable && read.answer.is_none());
    let said: Vec<(&str, bool)> = read
        .comments
        .iter()
        .map(|comment| (comment.body.as_str(), comment.thread == comment.node_id))
        .collect();
    assert_eq!(said, [("Up.", true), ("Why?", false)], "the second is a reply");

    let changed = hub
        .reader
        .discussions()
        .changed_discussions(&build_shop_name(), Timestamp::default())
        .await
        .unwrap();
    let mut numbers: Vec<u64> = changed.iter().map(|stub| stub.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [number, other]);
    let missing = hub
        .reader
        .discussions()
        .discussion(&build_shop_name(), 99)
        .await
        .unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
    hub.assert_clean();
}

#[tokio::test]
async fn changed_discussions_are_listed_across_pages() {
    let hub = start_hub().await;
    let started: BTreeSet<u64> = (0..120).map(|_| open_discussion(&hub, "General")).collect();
    let list = async |since| {
        let read = hub.reader.discussions();
        read.changed_discussions(&build_shop_name(), since).await.unwrap()
    };
    let changed = list(Timestamp::default()).await;
    assert_eq!(changed.len(), 120, "each once");
    let numbers: BTreeSet<u64> = changed.iter().map(|stub| stub.number).collect();
    assert_eq!(numbers, started);
    let listings = hub.hub.requests().len();
    let later = changed[0].updated_at.plus_ms(1_000);
    assert_eq!(list(later).await, []);
    assert_eq!(hub.hub.requests().len(), listings + 1, "the first page ends it");
    hub.assert_clean();
}

#[tokio::test]
async fn only_own_discussion_comments_are_changed() {
    let hub = start_hub().await;
    let number = open_discussion(&hub, "General");
    let theirs = hub
        .hub
        .discuss_as("acme/shop", number, "sam", "Up.", None)
        .unwrap();
    let read = hub
        .writer
        .discussions()
        .discussion(&build_shop_name(), number)
        .await
        .unwrap();
    let beside = read.comments[0].node_id.clone();
    let own = hub
        .writer
        .discussions()
        .comment_on_discussion(&build_shop_name(), number, None, "A thread of our own")
        .await
        .unwrap();
    hub.writer
        .discussions()
        .comment_on_discussion(&build_shop_name(), number, Some(&beside), "A reply")
        .await
        .unwrap();
    hub.writer
        .discussions()
        .update_discussion_comment(&build_shop_name(), &own, "Other words")
        .await
        .unwrap();
    let said = hub.hub.discussion("acme/shop", number).unwrap().comments;
    let ours: Vec<(&str, Option<u64>)> = said
        .iter()
        .filter(|said| said.author == WRITER_LOGIN)
        .map(|said| (said.body.as_str(), said.reply_to))
        .collect();
    assert_eq!(ours, [("Other words", None), ("A reply", Some(theirs))]);

    hub.writer
        .discussions()
        .delete_discussion_comment(&build_shop_name(), &own)
        .await
        .unwrap();
    let again = hub
        .writer
        .discussions()
        .delete_discussion_comment(&build_shop_name(), &own)
        .await;
    assert!(matches!(again, Err(Error::NotFound { .. })), "{again:?}");
    let gone = hub
        .writer
        .discussions()
        .update_discussion_comment(&build_shop_name(), &own, "x")
        .await;
    assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
    assert_eq!(hub.hub.discussion("acme/shop", number).unwrap().comments.len(), 2);
    hub.assert_clean();
    let refused = hub
        .writer
        .discussions()
        .delete_discussion_comment(&build_shop_name(), &beside)
        .await;
    assert!(matches!(refused, Err(Error::Forbidden { .. })), "{refused:?}");
}

#[tokio::test]
async fn answer_is_marked_in_answerable_category_only() {
    let hub = start_hub().await;
    let (asked, talked) = (open_discussion(&hub, "Q&A"), open_discussion(&hub, "General"));
    let say = async |number| {
        hub.writer
            .discussions()
            .comment_on_discussion(&build_shop_name(), number, None, "Up.")
            .await
            .unwrap()
    };
    let (answer, word) = (say(asked).await, say(talked).await);
    for _ in 0..2 {
        hub.writer
            .discussions()
            .mark_answer(&build_shop_name(), &answer)
            .await
            .unwrap();
    }
    let read = hub
        .writer
        .discussions()
        .discussion(&build_shop_name(), asked)
        .await
        .unwrap();
    assert_eq!(read.answer, Some(answer));
    let refused = hub
        .writer
        .discussions()
        .mark_answer(&build_shop_name(), &word)
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::Rejected { .. }), "{refused}");

    hub.writer
        .discussions()
        .close_discussion(&build_shop_name(), &read.node_id)
        .await
        .unwrap();
    assert!(
        !hub.reader
            .discussions()
            .discussion(&build_shop_name(), asked)
            .await
            .unwrap()
            .is_open
    );
    let again = hub
        .writer
        .discussions()
        .close_discussion(&build_shop_name(), &read.node_id)
        .await;
    assert!(matches!(again, Err(Error::Rejected { .. })), "{again:?}");
    hub.assert_clean();
}

#[tokio::test]
async fn repeated_reaction_is_added_once() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    let said = hub
        .hub
        .comment_as("acme/shop", made.number, "mia", "/stop")
        .unwrap();
    let line = hub.hub.next_id() + 1;
    hub.hub
        .review_lines(
            "acme/shop",
            made.number,
            "rita",
            ("commented", ""),
            &[("a.txt", 1, "Why?")],
        )
        .unwrap();
    let number = open_discussion(&hub, "General");
    let talk = hub
        .hub
        .discuss_as("acme/shop", number, "sam", "Up.", None)
        .unwrap();
    let read = hub
        .reader
        .discussions()
        .discussion(&build_shop_name(), number)
        .await
        .unwrap();
    let in_discussion = ReactionSubject::Discussion {
        repository: build_shop_name(),
        number,
        comment: Some(read.comments[0].node_id.clone()),
    };
    let comment = ReactionSubject::Comment {
        repository: build_shop_name(),
        id: said,
    };
    let line_comment = ReactionSubject::LineComment {
        repository: build_shop_name(),
        id: line,
    };
    for (to, shown) in [
        (
            ReactionSubject::issue(&build_shop_name(), made.number),
            ReactedObject::Issue(made.number),
        ),
        (comment, ReactedObject::Comment(said)),
        (line_comment, ReactedObject::LineComment(line)),
        (
            ReactionSubject::discussion(&build_shop_name(), number),
            ReactedObject::Discussion(number),
        ),
        (in_discussion, ReactedObject::DiscussionComment(talk)),
    ] {
        for reaction in [ReactionKind::Eyes, ReactionKind::Eyes, ReactionKind::Rocket] {
            hub.writer.comments().react(&to, reaction).await.unwrap();
        }
        assert_eq!(
            hub.hub.reactions("acme/shop", shown),
            ["eyes", "rocket"],
            "{to:?}"
        );
    }
    let missing = ReactionSubject::Comment {
        repository: build_shop_name(),
        id: 1,
    };
    let refused = hub
        .writer
        .comments()
        .react(&missing, ReactionKind::Eyes)
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
    hub.assert_clean();
}

#[tokio::test]
async fn discussion_comment_without_id_is_unknown() {
    let hub = start_hub().await;
    let number = open_discussion(&hub, "General");
    let fault = ServiceFault::new("/graphql", 1, 200).with("addDiscussionComment");
    hub.hub
        .fail_next(fault.after_effect().page("application/json", "{\"data\": {}}"));
    let lost = hub
        .writer
        .discussions()
        .comment_on_discussion(&build_shop_name(), number, None, "Once")
        .await
        .unwrap_err();
    assert!(matches!(lost, Error::Unknown { .. }), "{lost:?}");
    assert_eq!(hub.hub.discussion("acme/shop", number).unwrap().comments.len(), 1);
}
