//! Reader and writer against a strict stand-in over real HTTP, as Apps and with tokens.

#[path = "discussions/mod.rs"]
mod discussions;
#[path = "health/mod.rs"]
mod health;
#[path = "reviewing/mod.rs"]
mod reviewing;
#[path = "signatures/mod.rs"]
mod signatures;

use std::time::Duration;

use domain::{ChecksConclusion, CommitId, RepositoryName, TicketKey, Timestamp};
use github::{
    Error, GitHubReader, GitHubWriter, IssueListState, IssuePoll, IssueWish, NewReview, PullRequestPoll,
    PullRequestState, RepositoryComments, RepositoryPermission, ReviewVerdict, Settings, conclude_checks,
};
use secrecy::ExposeSecret;
use serde_json::json;
use testkit::{
    FakeGitHub, GitHubOptions, ServiceFault,
    github::{self as stand_in, LockReach},
    poll_until,
};

struct Hub {
    hub: FakeGitHub,
    reader: GitHubReader,
    writer: GitHubWriter,
    base: CommitId,
}

pub(crate) fn build_shop_name() -> RepositoryName {
    RepositoryName::new("acme", "shop").unwrap()
}

pub(crate) fn as_app(hub: &FakeGitHub, id: u64) -> Settings {
    Settings {
        api_url: hub.api_url(),
        git_url: hub.git_url(),
        app_id: Some(id),
        private_key: Some(stand_in::APP_PRIVATE_KEY.into()),
        ..Settings::default()
    }
}

fn with_token(hub: &FakeGitHub, token: &str) -> Settings {
    Settings {
        api_url: hub.api_url(),
        git_url: hub.git_url(),
        token: Some(token.into()),
        ..Settings::default()
    }
}

async fn start_hub() -> Hub {
    let hub = FakeGitHub::start(GitHubOptions::default()).await.unwrap();
    let base = hub
        .create_repository("acme/shop", &[("README.md", "shop\n")])
        .unwrap();
    let reader = GitHubReader::new(&as_app(&hub, stand_in::READER_APP_ID)).unwrap();
    let writer = GitHubWriter::new(&as_app(&hub, stand_in::WRITER_APP_ID)).unwrap();
    Hub {
        reader,
        writer,
        base: base.parse().unwrap(),
        hub,
    }
}

impl Hub {
    fn branch(&self, name: &str) -> CommitId {
        self.hub
            .commit("acme/shop", name, "work", &[("a.txt", name)])
            .unwrap()
            .parse()
            .unwrap()
    }

    async fn draft(&self, branch: &str) -> github::PullRequest {
        self.branch(branch);
        self.writer
            .pull_requests()
            .create_pull_request(&build_shop_name(), branch, "main", "ENG-1 Login", "Body", true)
            .await
            .unwrap()
    }

    async fn mark_ready(&self, pull_request: &github::PullRequest) {
        self.writer
            .pull_requests()
            .mark_ready(&build_shop_name(), pull_request)
            .await
            .unwrap();
    }

    fn assert_clean(&self) {
        assert_eq!(self.hub.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn app_reads_repository_with_one_token() {
    let hub = start_hub().await;
    let repository = hub.reader.repository(&build_shop_name()).await.unwrap();
    hub.reader.repository(&build_shop_name()).await.unwrap();
    assert_eq!(
        (repository.name, repository.default_branch.as_str()),
        (build_shop_name(), "main")
    );
    let minted = hub
        .hub
        .requests()
        .iter()
        .filter(|request| request.path.contains("access_tokens"))
        .count();
    assert_eq!(minted, 1);
    hub.assert_clean();
}

#[tokio::test]
async fn repositories_of_owner_are_listed() {
    let hub = start_hub().await;
    for name in ["acme/old", "other/shop"] {
        hub.hub.create_repository(name, &[("README.md", "x\n")]).unwrap();
    }
    hub.hub.archive_repository("acme/old").unwrap();
    let with_token = GitHubReader::new(&with_token(&hub.hub, stand_in::READER_TOKEN)).unwrap();
    for reader in [&hub.reader, &with_token] {
        let listed = reader.repositories_of("Acme").await.unwrap();
        let listed: Vec<_> = listed
            .iter()
            .map(|found| {
                (
                    found.name.path(),
                    found.default_branch.as_str(),
                    found.is_archived,
                )
            })
            .collect();
        assert_eq!(
            listed,
            [
                ("acme/old".to_owned(), "main", true),
                ("acme/shop".to_owned(), "main", false)
            ]
        );
    }
    let nowhere = hub.reader.repositories_of("nobody").await.unwrap_err();
    assert!(matches!(nowhere, Error::NotFound { .. }), "{nowhere}");
    for number in 0..101 {
        hub.hub
            .create_repository(&format!("acme/n{number}"), &[("a", "b")])
            .unwrap();
    }
    assert_eq!(hub.reader.repositories_of("acme").await.unwrap().len(), 103);
    hub.assert_clean();
}

#[tokio::test]
async fn installation_after_first_page_is_found() {
    let hub = start_hub().await;
    hub.hub
        .install_elsewhere((0..200).map(|number| format!("other{number}")));
    let listed = hub.reader.repositories_of("acme").await.unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let settings = as_app(&hub.hub, stand_in::READER_APP_ID);
    let app = github::registration::fetch_registered_app(&settings)
        .await
        .unwrap();
    assert_eq!(app.installed.len(), 201);
    let last = app.installed.last().unwrap();
    assert_eq!((last.account.as_str(), last.is_suspended), ("acme", false));
    hub.assert_clean();
}

#[tokio::test]
async fn draft_is_opened_found_and_marked_ready() {
    let hub = start_hub().await;
    let made = hub.draft("feat/ENG-1-login").await;
    assert!(made.draft && made.state == PullRequestState::Open);

    let found = hub
        .writer
        .pull_requests()
        .find_pull_request_by_head(&build_shop_name(), "feat/ENG-1-login")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.number, made.number);
    assert_eq!(
        hub.writer
            .pull_requests()
            .find_pull_request_by_head(&build_shop_name(), "feat/ENG-1")
            .await
            .unwrap(),
        None
    );

    hub.mark_ready(&made).await;
    assert!(
        !hub.reader
            .pull_requests()
            .pull_request(&build_shop_name(), made.number)
            .await
            .unwrap()
            .draft
    );
    hub.assert_clean();
}

#[tokio::test]
async fn second_pull_request_of_branch_conflicts() {
    let hub = start_hub().await;
    hub.draft("feat/x").await;
    let again = hub
        .writer
        .pull_requests()
        .create_pull_request(&build_shop_name(), "feat/x", "main", "again", "", true)
        .await
        .unwrap_err();
    assert!(matches!(again, Error::Conflict { .. }), "{again}");
}

#[tokio::test]
async fn pull_request_is_found_after_lost_answer() {
    let hub = start_hub().await;
    hub.branch("feat/x");
    hub.hub
        .fail_next(ServiceFault::new("/pulls", 1, 502).on("POST").after_effect());
    let lost = hub
        .writer
        .pull_requests()
        .create_pull_request(&build_shop_name(), "feat/x", "main", "t", "", true)
        .await
        .unwrap_err();
    assert!(matches!(lost, Error::Unknown { .. }), "{lost}");
    assert!(
        hub.writer
            .pull_requests()
            .find_pull_request_by_head(&build_shop_name(), "feat/x")
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(hub.hub.pull_requests("acme/shop").len(), 1);
}

#[tokio::test]
async fn own_comments_are_distinguished_from_users() {
    let hub = start_hub().await;
    let number = hub.draft("feat/x").await.number;
    hub.hub.comment_as("acme/shop", number, "mia", "Nice").unwrap();
    let id = hub
        .writer
        .comments()
        .comment(&build_shop_name(), number, "first")
        .await
        .unwrap();
    hub.writer
        .comments()
        .update_comment(&build_shop_name(), id, "second")
        .await
        .unwrap();

    let comments = hub
        .writer
        .comments()
        .list_comments(&build_shop_name(), number)
        .await
        .unwrap();
    let ours: Vec<_> = comments.iter().filter(|comment| comment.by_us).collect();
    assert_eq!((comments.len(), ours.len()), (2, 1));
    assert_eq!((ours[0].id, ours[0].body.as_str()), (id, "second"));
    hub.assert_clean();
}

#[tokio::test]
async fn repository_comments_are_listed_across_pages() {
    let hub = start_hub().await;
    let (one, two) = (hub.draft("feat/x").await.number, hub.draft("feat/y").await.number);
    for index in 0..103 {
        let number = if index % 2 == 0 { one } else { two };
        hub.hub.comment_as("acme/shop", number, "mia", "/stop").unwrap();
    }
    let reader = GitHubReader::new(&with_token(&hub.hub, stand_in::READER_TOKEN)).unwrap();
    let found = reader
        .comments()
        .comments_since(&build_shop_name(), Timestamp::from_unix_ms(0))
        .await
        .unwrap();
    let RepositoryComments { comments, listed_to } = found;
    let on_one = comments.iter().filter(|(number, _)| *number == one).count();
    assert_eq!((comments.len(), on_one, listed_to), (103, 52, None));
    let latest = comments[102].1.created_at.unwrap();
    let later = reader
        .comments()
        .comments_since(&build_shop_name(), latest.plus_ms(60_000))
        .await
        .unwrap();
    assert_eq!(later.comments, []);
    hub.assert_clean();
}

#[tokio::test]
async fn long_listing_of_comments_has_end() {
    let hub = start_hub().await;
    let number = hub.draft("feat/x").await.number;
    for _ in 0..501 {
        hub.hub.comment_as("acme/shop", number, "mia", "/stop").unwrap();
    }
    let found = hub
        .reader
        .comments()
        .comments_since(&build_shop_name(), Timestamp::from_unix_ms(0))
        .await
        .unwrap();
    assert_eq!(found.comments.len(), 500);
    let last = found.comments.last().unwrap();
    assert!(found.listed_to.is_some() && found.listed_to == last.1.updated_at);
}

#[tokio::test]
async fn only_own_comment_is_deleted() {
    let hub = start_hub().await;
    let number = hub.draft("feat/x").await.number;
    let ours = hub
        .writer
        .comments()
        .comment(&build_shop_name(), number, "first")
        .await
        .unwrap();
    hub.writer
        .comments()
        .delete_comment(&build_shop_name(), ours)
        .await
        .unwrap();
    assert_eq!(hub.hub.comments("acme/shop", number), []);
    let again = hub
        .writer
        .comments()
        .delete_comment(&build_shop_name(), ours)
        .await
        .unwrap_err();
    assert!(matches!(again, github::Error::NotFound { .. }), "{again:?}");
    hub.assert_clean();
    let theirs = hub.hub.comment_as("acme/shop", number, "mia", "Nice").unwrap();
    let theirs = hub
        .writer
        .comments()
        .delete_comment(&build_shop_name(), github::GitHubCommentId(theirs))
        .await;
    assert!(
        matches!(theirs, Err(github::Error::Forbidden { .. })),
        "{theirs:?}"
    );
}

#[tokio::test]
async fn labels_are_added() {
    let hub = start_hub().await;
    let number = hub.draft("feat/x").await.number;
    hub.writer
        .issues()
        .add_labels(&build_shop_name(), number, &["journeyman".to_owned()])
        .await
        .unwrap();
    assert_eq!(hub.hub.pull_requests("acme/shop")[0].labels, ["journeyman"]);
}

#[tokio::test]
async fn missing_branch_has_no_head() {
    let hub = start_hub().await;
    let head = hub.branch("feat/x");
    assert_eq!(
        hub.writer
            .branch_head(&build_shop_name(), "feat/x")
            .await
            .unwrap(),
        Some(head)
    );
    assert_eq!(
        hub.writer.branch_head(&build_shop_name(), "main").await.unwrap(),
        Some(hub.base.clone())
    );
    assert_eq!(
        hub.writer
            .branch_head(&build_shop_name(), "feat/y")
            .await
            .unwrap(),
        None
    );
    hub.assert_clean();
}

#[tokio::test]
async fn odd_branch_names_reach_every_call() {
    const BASE: &str = "feature/#12|a+b%20";
    const HEAD: &str = "fix/#12|a+b%20";
    const COPY: &str = "copy/#12|a+b%20";
    let hub = start_hub().await;
    let name = build_shop_name();
    let (base, head) = (hub.branch(BASE), hub.branch(HEAD));
    let tip = hub.writer.branch_head(&name, BASE).await.unwrap();
    assert_eq!(tip.as_ref(), Some(&base));
    let commits = hub.writer.commits();
    commits.create_branch(&name, COPY, &hub.base).await.unwrap();
    commits.forward_branch(&name, COPY, &head).await.unwrap();
    let listed = commits.branches_with_prefix(&name, "copy/#12|").await.unwrap();
    assert_eq!((listed.len(), listed.get(COPY)), (1, Some(&head)));
    let pulls = hub.writer.pull_requests();
    let made = pulls
        .create_pull_request(&name, HEAD, BASE, "ENG-1 Login", "Body", true)
        .await
        .unwrap();
    let found = pulls.find_pull_request_by_head(&name, HEAD).await.unwrap();
    assert_eq!(found.map(|found| found.number), Some(made.number));
    let health = hub.reader.health();
    let seen = health.snapshot(&name, made.number, github::SnapshotScope::default());
    let seen = seen.await.unwrap().base;
    assert_eq!((seen.branch.as_str(), seen.commit), (BASE, base));
    hub.hub.require_checks("acme/shop", BASE, &["test"]).unwrap();
    let required = hub.writer.checks().required_checks(&name, BASE).await.unwrap();
    assert_eq!(required, ["test"]);
    hub.assert_clean();
}

#[tokio::test]
async fn checks_are_read_with_their_ends() {
    let hub = start_hub().await;
    let head = hub.branch("feat/x");
    assert_eq!(
        hub.reader
            .checks()
            .checks(&build_shop_name(), &head)
            .await
            .unwrap(),
        []
    );
    let checks = [
        ("test", stand_in::RunConclusion::Failure, "assert 1 == 2"),
        ("lint", stand_in::RunConclusion::Success, "fine"),
    ];
    hub.hub.run_checks("acme/shop", head.as_str(), &checks).unwrap();
    let found = hub
        .reader
        .checks()
        .checks(&build_shop_name(), &head)
        .await
        .unwrap();
    let test = found.iter().find(|check| check.name == "test").unwrap();
    assert!(test.output_tail.contains("assert 1 == 2") && test.completed_at.is_some());
    assert_eq!(conclude_checks(&found), Some(ChecksConclusion::Failure));
    hub.assert_clean();
}

#[tokio::test]
async fn foreign_pull_request_mentioning_ticket_is_found() {
    let hub = start_hub().await;
    for (branch, title) in [("fix/one", "ENG-1 by hand"), ("fix/two", "ENG-12 other")] {
        hub.branch(branch);
        hub.hub
            .open_pull_request_as("acme/shop", "mia", branch, title, "")
            .unwrap();
    }
    let ticket = TicketKey::jira("ENG-1").unwrap();
    let found = hub
        .reader
        .pull_requests()
        .pull_requests_mentioning(&build_shop_name(), &ticket)
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].branch.as_str(), found[0].author.as_str()),
        ("fix/one", "mia")
    );
    hub.assert_clean();
}

#[tokio::test]
async fn merged_pull_request_is_closed_with_merger() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    hub.mark_ready(&made).await;
    hub.hub.merge("acme/shop", made.number, "mia").unwrap();

    let merged = hub
        .reader
        .pull_requests()
        .pull_request(&build_shop_name(), made.number)
        .await
        .unwrap();
    assert!(merged.merged && merged.state == PullRequestState::Closed);
    assert_eq!(merged.merged_by.as_deref(), Some("mia"));
    let closed = hub
        .reader
        .pull_requests()
        .closed_pull_requests_since(&build_shop_name(), Timestamp::from_unix_ms(0))
        .await
        .unwrap();
    assert_eq!(
        closed
            .iter()
            .map(|closed| (closed.number, closed.merged))
            .collect::<Vec<_>>(),
        [(made.number, true)]
    );
    let future = closed[0].updated_at.unwrap().plus_ms(60_000);
    assert_eq!(
        hub.reader
            .pull_requests()
            .closed_pull_requests_since(&build_shop_name(), future)
            .await
            .unwrap(),
        []
    );
    hub.assert_clean();
}

#[tokio::test]
async fn permissions_are_read_by_account() {
    // Ids that the fake GitHub derives from these names.
    const EVE: u64 = 309357;
    const MIA: u64 = 316638;
    let hub = start_hub().await;
    hub.hub.set_permission("acme/shop", "eve", "read").unwrap();
    assert_eq!(
        hub.reader
            .permission(&build_shop_name(), "eve", EVE)
            .await
            .unwrap(),
        RepositoryPermission::Read
    );
    assert!(
        hub.reader
            .permission(&build_shop_name(), "mia", MIA)
            .await
            .unwrap()
            >= RepositoryPermission::Write
    );
    assert_eq!(
        hub.reader
            .permission(&build_shop_name(), "mia", EVE)
            .await
            .unwrap(),
        RepositoryPermission::None
    );
    hub.assert_clean();
}

#[tokio::test]
async fn writer_returns_identity_and_git_token() {
    let hub = start_hub().await;
    assert_eq!(hub.writer.whoami().await.unwrap().login, stand_in::WRITER_LOGIN);
    let remote = hub.writer.push_remote(&build_shop_name()).await.unwrap();
    assert!(!remote.token.expose_secret().is_empty());
    assert_eq!(remote.url, hub.hub.clone_url("acme/shop"));
}

/// Bodies of the requests for installation tokens.
fn list_token_requests(hub: &FakeGitHub) -> Vec<serde_json::Value> {
    hub.requests()
        .into_iter()
        .filter(|request| request.path.ends_with("/access_tokens"))
        .filter_map(|request| request.body)
        .collect()
}

#[tokio::test]
async fn token_is_limited_to_repository_and_call() {
    let hub = start_hub().await;
    hub.hub.create_repository("acme/other", &[("a", "b")]).unwrap();
    hub.reader.repository(&build_shop_name()).await.unwrap();
    hub.writer.fetch_remote(&build_shop_name()).await.unwrap();
    let push = hub.writer.push_remote(&build_shop_name()).await.unwrap();
    hub.writer.push_remote(&build_shop_name()).await.unwrap();
    let asked = list_token_requests(&hub.hub);
    assert_eq!(asked.len(), 3, "one for each kind of call: {asked:?}");
    assert!(asked.iter().all(|body| body["repositories"] == json!(["shop"])));
    assert_eq!(
        asked[0]["permissions"],
        json!({"metadata": "read", "checks": "read", "discussions": "read", "actions": "read", "statuses": "read", "pull_requests": "read",
            "issues": "read"})
    );
    assert_eq!(
        asked[1]["permissions"],
        json!({"metadata": "read", "contents": "read"})
    );
    assert_eq!(
        asked[2]["permissions"],
        json!({"metadata": "read", "contents": "write"})
    );

    // A leaked token of one repository grants access to no other.
    let stolen = GitHubReader::new(&with_token(&hub.hub, push.token.expose_secret())).unwrap();
    let other = RepositoryName::new("acme", "other").unwrap();
    assert!(stolen.repository(&build_shop_name()).await.is_ok());
    let refused = stolen.repository(&other).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
    hub.assert_clean();
}

#[tokio::test]
async fn revoked_token_is_replaced_at_next_call() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    hub.hub.revoke_tokens();
    hub.reader.repository(&build_shop_name()).await.unwrap();
    hub.writer
        .comments()
        .comment(&build_shop_name(), made.number, "once")
        .await
        .unwrap();
    hub.hub.revoke_tokens();
    hub.mark_ready(&made).await;
    assert_eq!(hub.hub.comments("acme/shop", made.number).len(), 1);
    hub.assert_clean();
}

#[tokio::test]
async fn a_missing_permission_is_named() {
    let hub = start_hub().await;
    hub.branch("feat/x");
    let less = [("metadata", "read"), ("contents", "write"), ("issues", "write")];
    hub.hub.set_app_permissions(stand_in::WRITER_APP_ID, &less);
    let opened = hub
        .writer
        .pull_requests()
        .create_pull_request(&build_shop_name(), "feat/x", "main", "t", "", true)
        .await;
    let refused = opened.unwrap_err();
    assert!(
        matches!(&refused, Error::Forbidden { needs: Some(needs), .. } if needs == "pull_requests:write"),
        "{refused:?}"
    );
    assert!(
        refused
            .to_string()
            .contains("lacks the permission pull_requests:write")
    );
}

#[tokio::test]
async fn missing_rights_are_known_before_writes() {
    let hub = start_hub().await;
    let name = build_shop_name();
    let needed = github::permissions::list_delivery_permissions(true);
    assert_eq!(hub.writer.missing_permissions(&name, &needed).await.unwrap(), []);
    let less = [
        ("metadata", "read"),
        ("contents", "write"),
        ("pull_requests", "read"),
    ];
    hub.hub.set_app_permissions(stand_in::WRITER_APP_ID, &less);
    let missing = hub.writer.missing_permissions(&name, &needed).await.unwrap();
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["pull_requests:write", "issues:write"]);
    // A granted permission counts at once, and so does a token with it.
    hub.hub.reset_app_permissions();
    assert_eq!(hub.writer.missing_permissions(&name, &needed).await.unwrap(), []);
    hub.draft("feat/granted").await;

    let by_token = |token| GitHubWriter::new(&with_token(&hub.hub, token)).unwrap();
    let may_write = by_token(stand_in::WRITER_TOKEN);
    assert_eq!(may_write.missing_permissions(&name, &needed).await.unwrap(), []);
    let may_read = by_token(stand_in::READER_TOKEN);
    let missing = may_read.missing_permissions(&name, &needed).await.unwrap();
    assert_eq!(missing, needed);
    hub.assert_clean();
}

#[tokio::test]
async fn locked_conversation_is_its_own_refusal() {
    let hub = start_hub().await;
    let shop = build_shop_name();
    let ours = hub.draft("feat/locked").await;
    let first = hub.writer.comments();
    let comment = first.comment(&shop, ours.number, "before").await.unwrap();
    hub.hub
        .lock_conversation("acme/shop", ours.number, "ada", LockReach::Tokens)
        .unwrap();
    let found = hub.reader.pull_requests().pull_request(&shop, ours.number).await;
    assert_eq!(found.unwrap().lock.unwrap().reason, "too heated");
    let review = NewReview {
        commit: ours.head.clone(),
        asks_for_changes: false,
        body: "Looks fine.".to_owned(),
        comments: Vec::new(),
    };
    let subject = domain::ReactionSubject::issue(&shop, ours.number);
    let comments = hub.writer.comments();
    let refusals = [
        comments.comment(&shop, ours.number, "x").await.map(drop),
        comments.update_comment(&shop, comment, "x").await,
        comments.react(&subject, domain::ReactionKind::Eyes).await,
        hub.writer
            .reviews()
            .submit_review(&shop, ours.number, &review)
            .await
            .map(drop),
    ];
    for refused in refusals {
        assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
    }
    let limited = hub
        .hub
        .lock_conversation("acme/shop", ours.number, "ada", LockReach::Readers);
    limited.unwrap();
    comments.comment(&shop, ours.number, "allowed").await.unwrap();
    hub.assert_clean();
}

#[tokio::test]
async fn locked_issue_is_read_with_reason() {
    let hub = start_hub().await;
    let shop = build_shop_name();
    let number = hub.hub.open_issue_as("acme/shop", "ada", "Cart", "").unwrap();
    let read = async || hub.reader.issues().issue(&shop, number).await.unwrap().lock;
    assert_eq!(read().await, None);
    hub.hub
        .lock_conversation("acme/shop", number, "ada", LockReach::Readers)
        .unwrap();
    assert_eq!(read().await.unwrap().reason, "too heated");
    hub.assert_clean();
}

#[tokio::test]
async fn moved_pull_request_names_its_place() {
    let hub = start_hub().await;
    let shop = build_shop_name();
    let ours = hub.draft("feat/moved").await;
    hub.hub
        .create_repository("acme/other", &[("a.txt", "a\n")])
        .unwrap();
    // The second target has the same number, as a rename of the repository would have.
    for (to, place) in [
        (("acme/other", 220), "acme/other#220"),
        (("acme/other", ours.number), "acme/other#1"),
        (("else/where", 7), "else/where#7"),
    ] {
        hub.hub.transfer_thread("acme/shop", ours.number, to).unwrap();
        let read = hub.reader.pull_requests().pull_request(&shop, ours.number).await;
        let Err(Error::Transferred(moved)) = read else {
            panic!("{read:?}");
        };
        assert_eq!((moved.number, moved.to.as_str()), (ours.number, place));
        let written = hub.writer.comments().comment(&shop, ours.number, "x").await;
        assert!(matches!(written, Err(Error::Transferred(_))), "{written:?}");
    }
    // The repository itself did not move.
    let repository = hub.reader.repository(&shop).await.unwrap();
    assert_eq!(repository.name, shop);
    assert!(hub.hub.comments("acme/shop", ours.number).is_empty());
    hub.assert_clean();
}

#[tokio::test]
async fn issue_that_left_names_its_end() {
    let hub = start_hub().await;
    let shop = build_shop_name();
    hub.hub
        .create_repository("acme/other", &[("a.txt", "a\n")])
        .unwrap();
    let open = || hub.hub.open_issue_as("acme/shop", "ada", "Cart", "").unwrap();
    let (moved, hidden, deleted) = (open(), open(), open());
    let transfer = |number| hub.hub.transfer_issue("acme/shop", number, "acme/other", "ada");
    let to = transfer(moved).unwrap();
    transfer(hidden).unwrap();
    hub.hub.hide_transfer("acme/shop", hidden).unwrap();
    hub.hub.delete_issue("acme/shop", deleted, "ada").unwrap();
    let issues = hub.reader.issues();
    let Err(Error::Transferred(place)) = issues.issue(&shop, moved).await else {
        panic!("the issue is transferred");
    };
    assert_eq!((place.number, place.to), (moved, format!("acme/other#{to}")));
    let read = issues.issue(&shop, hidden).await;
    assert!(matches!(read, Err(Error::NotFound { .. })));
    let read = issues.issue(&shop, deleted).await;
    assert!(matches!(read, Err(Error::Deleted { .. })));
    let written = hub.writer.comments().comment(&shop, deleted, "x").await;
    assert!(matches!(written, Err(Error::Deleted { .. })), "{written:?}");
    // A pull request is an issue for REST alone.
    let ours = hub.draft("feat/one").await;
    assert_eq!(ours.number, deleted + 1, "no number is given again");
    let read = issues.issue(&shop, ours.number).await;
    assert!(matches!(read, Err(Error::NotFound { .. })));
    hub.assert_clean();
}

#[tokio::test]
async fn unchanged_issue_is_checked_for_free() {
    let hub = start_hub().await;
    let shop = build_shop_name();
    let number = hub.hub.open_issue_as("acme/shop", "ada", "Cart", "").unwrap();
    let first = hub.reader.issues().check_presence(&shop, number, None);
    let tag = first.await.unwrap();
    assert!(tag.is_some());
    let issues = hub.reader.issues();
    let again = issues.check_presence(&shop, number, tag.as_ref()).await.unwrap();
    assert_eq!(again, tag);
    let requests = hub.hub.requests().into_iter();
    let unchanged = requests.filter(|request| request.status == 304);
    assert_eq!(unchanged.count(), 1);
    hub.hub.delete_issue("acme/shop", number, "ada").unwrap();
    let gone = issues.check_presence(&shop, number, tag.as_ref()).await;
    assert!(matches!(gone, Err(Error::Deleted { .. })), "{gone:?}");
    hub.assert_clean();
}

#[tokio::test]
async fn archived_repository_refuses_writes_alone() {
    let hub = start_hub().await;
    let ours = hub.draft("feat/archived").await;
    hub.hub.archive_repository("acme/shop").unwrap();
    let shop = build_shop_name();
    let written = hub.writer.comments().comment(&shop, ours.number, "x").await;
    assert!(matches!(written, Err(Error::Archived { .. })), "{written:?}");
    let read = hub.reader.pull_requests().pull_request(&shop, ours.number).await;
    assert!(read.unwrap().merge.is_archived);
    hub.assert_clean();
}

#[tokio::test]
async fn renamed_repository_is_followed_by_all_calls() {
    for by_token in [false, true] {
        let mut hub = start_hub().await;
        if by_token {
            hub.reader = GitHubReader::new(&with_token(&hub.hub, stand_in::READER_TOKEN)).unwrap();
            hub.writer = GitHubWriter::new(&with_token(&hub.hub, stand_in::WRITER_TOKEN)).unwrap();
        }
        let before = hub.draft("feat/before").await;
        hub.branch("feat/after");
        hub.hub.rename_repository("acme/shop", "acme-inc/store").unwrap();

        let found = hub.reader.repository(&build_shop_name()).await.unwrap();
        assert_eq!(found.name.to_string(), "acme-inc/store");
        hub.writer
            .comments()
            .comment(&build_shop_name(), before.number, "moved")
            .await
            .unwrap();
        assert_eq!(hub.hub.comments("acme-inc/store", before.number).len(), 1);
        let made = hub
            .writer
            .pull_requests()
            .create_pull_request(&build_shop_name(), "feat/after", "main", "t", "", true)
            .await
            .unwrap();
        hub.mark_ready(&made).await;
        let known = hub
            .writer
            .pull_requests()
            .find_pull_request_by_head(&build_shop_name(), "feat/after")
            .await;
        assert_eq!(known.unwrap().unwrap().number, made.number);
        let remote = hub.writer.push_remote(&build_shop_name()).await.unwrap();
        assert_eq!(remote.url, hub.hub.clone_url("acme-inc/store"));
        hub.assert_clean();
    }
}

#[tokio::test]
async fn new_writer_finds_pull_request_after_rename() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    hub.hub.rename_repository("acme/shop", "acme-inc/store").unwrap();
    for settings in [
        as_app(&hub.hub, stand_in::WRITER_APP_ID),
        with_token(&hub.hub, stand_in::WRITER_TOKEN),
    ] {
        let writer = GitHubWriter::new(&settings).unwrap();
        let found = writer
            .pull_requests()
            .find_pull_request_by_head(&build_shop_name(), "feat/x")
            .await
            .unwrap();
        assert_eq!(found.map(|found| found.number), Some(made.number));
    }
}

#[tokio::test]
async fn personal_token_replaces_app() {
    let hub = start_hub().await;
    let writer = GitHubWriter::new(&with_token(&hub.hub, stand_in::WRITER_TOKEN)).unwrap();
    hub.branch("feat/x");
    writer
        .pull_requests()
        .create_pull_request(&build_shop_name(), "feat/x", "main", "t", "", true)
        .await
        .unwrap();
    assert!(!writer.whoami().await.unwrap().is_app);
    let remote = writer.fetch_remote(&build_shop_name()).await.unwrap();
    assert_eq!(remote.token.expose_secret(), stand_in::WRITER_TOKEN);
    let deliveries = GitHubReader::new(&with_token(&hub.hub, stand_in::READER_TOKEN)).unwrap();
    let refused = deliveries
        .deliveries()
        .hook_deliveries(None, Timestamp::from_unix_ms(0), None)
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::Unauthorized { .. }), "{refused}");
}

#[tokio::test]
async fn workflow_token_names_its_app() {
    let hub = start_hub().await;
    let settings = with_token(&hub.hub, stand_in::WORKFLOW_TOKEN);
    let own = GitHubWriter::new(&settings).unwrap().whoami().await.unwrap();
    assert_eq!(own.login, stand_in::WRITER_LOGIN);
    assert!(own.is_program() && !own.is_app, "{own:?}");
    hub.assert_clean();
}

#[tokio::test]
async fn refusals_are_distinguished() {
    let hub = start_hub().await;
    let elsewhere = RepositoryName::new("acme", "nowhere").unwrap();
    let missing = hub.reader.repository(&elsewhere).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");

    let stranger = GitHubReader::new(&with_token(&hub.hub, "wrong-token-value")).unwrap();
    let refused = stranger.repository(&build_shop_name()).await.unwrap_err();
    assert!(matches!(refused, Error::Unauthorized { .. }), "{refused}");
    assert!(!format!("{refused:?}").contains("wrong-token-value"));

    let number = hub.draft("feat/x").await.number;
    let reader_as_writer = GitHubWriter::new(&with_token(&hub.hub, stand_in::READER_TOKEN)).unwrap();
    let forbidden = reader_as_writer
        .comments()
        .comment(&build_shop_name(), number, "x")
        .await
        .unwrap_err();
    assert!(matches!(forbidden, Error::Forbidden { .. }), "{forbidden}");

    hub.hub
        .fail_next(ServiceFault::new("/comments", 1, 429).on("POST"));
    let limited = hub
        .writer
        .comments()
        .comment(&build_shop_name(), number, "x")
        .await
        .unwrap_err();
    assert!(matches!(limited, Error::RateLimited { .. }), "{limited}");
}

#[tokio::test]
async fn unchanged_polls_cost_no_rate_limit() {
    let hub = start_hub().await;
    let number = hub.draft("feat/x").await.number;
    let head = hub.branch("feat/checked");
    hub.hub.comment_as("acme/shop", number, "mia", "first").unwrap();
    // Two polls whose start times differ by seconds request the same URL.
    let step = Timestamp::from_unix_ms(1_700_000_100_000);
    let poll = async |later_ms: i64| {
        let shop = build_shop_name();
        let checks = hub.reader.checks().checks(&shop, &head).await.unwrap();
        let reviews = hub.reader.reviews().reviews(&shop, number).await.unwrap();
        let requests = hub.reader.reviews().review_requests(&shop, number).await.unwrap();
        let commits = hub
            .reader
            .pull_requests()
            .pull_request_commits(&shop, number)
            .await
            .unwrap();
        let remarks = hub.reader.reviews().remarks(&shop, number).await.unwrap();
        let since = step.plus_ms(later_ms);
        let comments = hub.reader.comments().comments_since(&shop, since).await.unwrap();
        (checks, reviews, requests, commits, remarks, comments)
    };
    let first = poll(0).await;
    let (used, sent) = (hub.hub.rate_limit_used(), hub.hub.requests().len());
    assert_eq!(poll(2_000).await, first);
    assert_eq!(hub.hub.rate_limit_used(), used, "nothing changed");
    assert!(hub.hub.requests().len() > sent, "GitHub was asked all the same");

    hub.hub.comment_as("acme/shop", number, "mia", "second").unwrap();
    let (.., remarks, comments) = poll(4_000).await;
    assert_eq!((remarks.len(), comments.comments.len()), (2, 2));
    // The comments of the pull request's conversation, and those of the repository.
    assert_eq!(hub.hub.rate_limit_used(), used + 2);
}

#[tokio::test]
async fn webhook_deliveries_are_listed_newest_first() {
    let hub = start_hub().await;
    hub.hub
        .set_webhook(&format!("{}/nowhere", hub.hub.api_url()), "secret");
    for branch in ["feat/x", "feat/y"] {
        hub.branch(branch);
    }
    let deliveries = poll_until("two deliveries", Duration::from_secs(10), async || {
        let found = hub
            .reader
            .deliveries()
            .hook_deliveries(None, Timestamp::from_unix_ms(0), None)
            .await
            .ok()?;
        (found.attempts.len() >= 2).then_some(found.attempts)
    })
    .await
    .unwrap();
    assert!(
        deliveries
            .windows(2)
            .all(|pair| pair[0].delivered_at >= pair[1].delivered_at)
    );
    assert_eq!(deliveries[0].event, "push");
    let future = deliveries[0].delivered_at.plus_ms(60_000);
    let later = hub.reader.deliveries().hook_deliveries(None, future, None);
    assert_eq!(later.await.unwrap().attempts, []);
}

#[tokio::test]
async fn unchanged_pull_request_poll_is_free() {
    let hub = start_hub().await;
    let open = |branch: &str| {
        hub.hub
            .commit("acme/shop", branch, "change", &[(branch, "x")])
            .unwrap();
        hub.hub
            .open_pull_request_as("acme/shop", "mia", branch, branch, "")
            .unwrap()
    };
    let (first, _second) = (open("one"), open("two"));
    let since = Timestamp::from_unix_ms(0);
    let poll = async |etag: Option<&github::ETag>| {
        hub.reader
            .pull_requests()
            .pull_requests_changed_since(&build_shop_name(), since, etag)
            .await
            .unwrap()
    };
    let changed = |polled: PullRequestPoll| match polled {
        PullRequestPoll::Changed {
            pull_requests,
            etag,
            is_complete: true,
        } => (pull_requests, etag.unwrap()),
        other => panic!("{other:?}"),
    };

    let (found, etag) = changed(poll(None).await);
    assert_eq!(found.len(), 2);
    let used = hub.hub.rate_limit_used();
    assert_eq!(poll(Some(&etag)).await, PullRequestPoll::Unchanged);
    assert_eq!(
        hub.hub.rate_limit_used(),
        used,
        "an answer that did not change is free"
    );

    hub.hub.close("acme/shop", first, "mia").unwrap();
    let (found, newer) = changed(poll(Some(&etag)).await);
    assert_ne!(newer, etag);
    let closed = found.iter().find(|pull| pull.number == first).unwrap();
    assert_eq!(closed.state, PullRequestState::Closed);
    assert_eq!(hub.hub.rate_limit_used(), used + 1);
}

#[tokio::test]
async fn edited_comment_has_time_of_edit() {
    let hub = start_hub().await;
    let number = hub.draft("one").await.number;
    let id = hub.hub.comment_as("acme/shop", number, "mia", "hello").unwrap();
    let since = Timestamp::from_unix_ms(0);
    let read = async || {
        hub.reader
            .comments()
            .comments_since(&build_shop_name(), since)
            .await
            .unwrap()
            .comments[0]
            .1
            .clone()
    };
    let first = read().await;
    assert!(first.updated_at.is_some() && first.updated_at == first.created_at);
    // GitHub's times have a resolution of one second.
    let changed = poll_until("a later second", Duration::from_secs(5), async || {
        hub.hub
            .edit_comment_as("acme/shop", id, "mia", "changed")
            .unwrap();
        let now = read().await;
        (now.updated_at > first.updated_at).then_some(now)
    })
    .await
    .unwrap();
    assert_eq!(
        (changed.body.as_str(), changed.created_at),
        ("changed", first.created_at)
    );
}

#[tokio::test]
async fn job_log_redirect_receives_no_credentials() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    let checks = [("unit", stand_in::RunConclusion::Failure, "AssertionError: 1 != 2")];
    hub.hub
        .run_checks("acme/shop", made.head.as_str(), &checks)
        .unwrap();
    let checks = hub
        .reader
        .checks()
        .checks(&build_shop_name(), &made.head)
        .await
        .unwrap();
    let log = hub
        .reader
        .checks()
        .job_log(&build_shop_name(), &checks[0])
        .await
        .unwrap()
        .unwrap();
    assert!(
        log.contains("AssertionError: 1 != 2") && log.contains("##[error]"),
        "{log}"
    );
    let mut gone = checks[0].clone();
    gone.url = gone.url.replace(&gone.id.to_string(), "1");
    assert_eq!(
        hub.reader
            .checks()
            .job_log(&build_shop_name(), &gone)
            .await
            .unwrap(),
        None
    );
    gone.url = "https://ci.example/1".to_owned();
    assert_eq!(
        hub.reader
            .checks()
            .job_log(&build_shop_name(), &gone)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        hub.reader
            .checks()
            .branch_checks(&build_shop_name(), "feat/x")
            .await
            .unwrap(),
        checks
    );
    hub.assert_clean();
}

#[tokio::test]
async fn reviews_include_comments_and_accept_replies() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    let lines = [("a", 1, "Why?"), ("a", 2, "Round it.")];
    let judged = ("changes_requested", "No.");
    hub.hub
        .review_lines("acme/shop", made.number, "rita", judged, &lines)
        .unwrap();
    let reviews = hub
        .reader
        .reviews()
        .reviews(&build_shop_name(), made.number)
        .await
        .unwrap();
    assert_eq!(reviews.len(), 1);
    assert_eq!(reviews[0].state, ReviewVerdict::ChangesRequested);
    let texts: Vec<&str> = reviews[0]
        .comments
        .iter()
        .map(|comment| comment.body.as_str())
        .collect();
    assert_eq!(texts, ["Why?", "Round it."]);
    let first = reviews[0].comments[0].id;
    hub.writer
        .reviews()
        .reply(&build_shop_name(), made.number, first, "Because.")
        .await
        .unwrap();
    let said = hub
        .writer
        .reviews()
        .line_comments(&build_shop_name(), made.number)
        .await
        .unwrap();
    let reply = said
        .iter()
        .find(|comment| comment.in_reply_to == Some(first))
        .unwrap();
    assert_eq!(reply.body, "Because.");
    let lost = hub
        .writer
        .reviews()
        .reply(&build_shop_name(), made.number, 1, "x")
        .await
        .unwrap_err();
    assert!(matches!(lost, Error::NotFound { .. }), "{lost}");
    let rita = ["rita".to_owned()];
    hub.writer
        .reviews()
        .request_reviewers(&build_shop_name(), made.number, &rita)
        .await
        .unwrap();
    hub.mark_ready(&made).await;
    hub.writer
        .pull_requests()
        .back_to_draft(&build_shop_name(), &made, "> Work in progress")
        .await
        .unwrap();
    hub.writer
        .pull_requests()
        .back_to_draft(&build_shop_name(), &made, "> Work in progress")
        .await
        .unwrap();
    let now = &hub.hub.pull_requests("acme/shop")[0];
    assert!(now.draft && now.requested_reviewers == rita, "{now:?}");
    hub.assert_clean();
}

#[tokio::test]
async fn note_replaces_draft_where_drafts_are_missing() {
    let hub = start_hub().await;
    hub.hub.disable_drafts("acme/shop").unwrap();
    let name = build_shop_name();
    let (body, note) = ("Adds a page.", "> Work in progress");
    for branch in ["fix/one", "fix/two"] {
        hub.branch(branch);
        let made = hub
            .writer
            .pull_requests()
            .create_draft(&name, branch, "main", "ENG-1 Login", body, note)
            .await
            .unwrap();
        assert!(made.draft && made.body.contains(note), "{made:?}");
        assert!(hub.hub.pull_requests("acme/shop").iter().all(|pull| !pull.draft));
        hub.writer.pull_requests().mark_ready(&name, &made).await.unwrap();
        let ready = hub
            .writer
            .pull_requests()
            .pull_request(&name, made.number)
            .await
            .unwrap();
        assert!(!ready.draft && ready.body == body, "{ready:?}");
        hub.writer
            .pull_requests()
            .back_to_draft(&name, &ready, note)
            .await
            .unwrap();
        let again = hub
            .writer
            .pull_requests()
            .pull_request(&name, made.number)
            .await
            .unwrap();
        assert!(again.draft && again.body == made.body, "{again:?}");
        hub.writer
            .pull_requests()
            .back_to_draft(&name, &again, note)
            .await
            .unwrap();
    }
    // The refusal of the first draft is remembered.
    let opened = |request: &&testkit::RecordedRequest| {
        request.method == "POST" && request.path.ends_with("/acme/shop/pulls")
    };
    assert_eq!(hub.hub.requests().iter().filter(opened).count(), 3);
    hub.assert_clean();
}

fn read_login(user: Option<&github::GitHubUser>) -> Option<&str> {
    user.map(|user| user.login.as_str())
}

#[tokio::test]
async fn issue_includes_edits_events_and_actors() {
    let Hub { hub, reader, .. } = start_hub().await;
    let number = hub
        .open_issue_as("acme/shop", "guest", "A title", "A text")
        .unwrap();
    hub.label_issue("acme/shop", number, "ready", "rita").unwrap();
    hub.assign_issue("acme/shop", number, "agent", "grace").unwrap();
    hub.edit_issue_as("acme/shop", number, "guest", Some("Another"), Some("Longer"))
        .unwrap();
    hub.comment_as("acme/shop", number, "dependabot[bot]", "A word")
        .unwrap();
    let issue = reader.issues().issue(&build_shop_name(), number).await.unwrap();
    assert_eq!((issue.title.as_str(), issue.body.as_str()), ("Another", "Longer"));
    assert_eq!(read_login(issue.author.as_ref()), Some("guest"));
    assert_eq!(issue.assigned.assignees, ["agent"]);
    assert_eq!(issue.assigned.labels, ["ready"]);
    let edits: Vec<_> = issue
        .edits
        .iter()
        .map(|edit| read_login(edit.by.as_ref()))
        .collect();
    assert_eq!(edits, [Some("guest"); 2], "title and text");
    let events: Vec<_> = issue
        .events
        .iter()
        .map(|event| (read_login(event.by.as_ref()), event.wish.clone()))
        .collect();
    let labeled = IssueWish::Labeled("ready".to_owned());
    let assigned = IssueWish::Assigned("agent".to_owned());
    assert_eq!(events, [(Some("rita"), labeled), (Some("grace"), assigned)]);
    assert_eq!(
        read_login(issue.comments[0].author.as_ref()),
        Some("dependabot[bot]"),
        "as REST spells it"
    );
    let missing = reader.issues().issue(&build_shop_name(), 99).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
}

#[tokio::test]
async fn opened_issue_becomes_sub_issue_once() {
    let hub = start_hub().await;
    let writer = &hub.writer;
    let new = |title: &str, body: &str| github::NewIssue {
        title: title.to_owned(),
        body: body.to_owned(),
        labels: vec!["planned".to_owned()],
    };
    let parent = writer
        .issues()
        .create_issue(&build_shop_name(), &new("All", "m:1"))
        .await
        .unwrap();
    let part = writer
        .issues()
        .create_issue(&build_shop_name(), &new("One", "m:2"))
        .await
        .unwrap();
    hub.hub
        .open_issue_as("acme/shop", "guest", "A copy", "m:2")
        .unwrap();
    let found = writer
        .issues()
        .find_our_issue(&build_shop_name(), "m:2")
        .await
        .unwrap();
    assert_eq!(
        found.as_ref(),
        Some(&part),
        "what others copied counts for nothing"
    );
    assert_eq!(
        writer
            .issues()
            .find_our_issue(&build_shop_name(), "m:3")
            .await
            .unwrap(),
        None
    );

    writer
        .issues()
        .add_sub_issue(&build_shop_name(), parent.number, part.id)
        .await
        .unwrap();
    let parts = writer
        .issues()
        .sub_issues(&build_shop_name(), parent.number)
        .await
        .unwrap();
    assert_eq!(parts, [part.number]);
    let circle = writer
        .issues()
        .add_sub_issue(&build_shop_name(), part.number, parent.id)
        .await;
    assert!(matches!(circle, Err(Error::Rejected { .. })), "{circle:?}");
    let again = writer
        .issues()
        .add_sub_issue(&build_shop_name(), parent.number, part.id)
        .await;
    assert!(matches!(again, Err(Error::Rejected { .. })), "{again:?}");
    assert_eq!(
        writer
            .issues()
            .opened_issue(&build_shop_name(), part.number)
            .await
            .unwrap(),
        part
    );
    let nowhere = writer
        .issues()
        .add_sub_issue(&build_shop_name(), 99, part.id)
        .await;
    assert!(matches!(nowhere, Err(Error::NotFound { .. })), "{nowhere:?}");
    hub.assert_clean();
}

#[tokio::test]
async fn issue_poll_excludes_pull_requests() {
    let Hub { hub, reader, .. } = start_hub().await;
    let number = hub
        .open_issue_as("acme/shop", "rita", "A title", "A text")
        .unwrap();
    let closed = hub.open_issue_as("acme/shop", "rita", "Old", "").unwrap();
    hub.close_issue("acme/shop", closed, "rita").unwrap();
    hub.commit("acme/shop", "fix", "change", &[("a", "b")]).unwrap();
    hub.open_pull_request_as("acme/shop", "rita", "fix", "A change", "")
        .unwrap();
    let polled = reader
        .issues()
        .open_issues(&build_shop_name(), None, None)
        .await
        .unwrap();
    let IssuePoll::Changed { issues, etag } = polled else {
        panic!("nothing was known")
    };
    assert_eq!(
        issues.iter().map(|issue| issue.number).collect::<Vec<_>>(),
        [number]
    );
    let again = reader
        .issues()
        .open_issues(&build_shop_name(), None, etag.as_ref())
        .await
        .unwrap();
    assert_eq!(again, IssuePoll::Unchanged);

    let listed = async |state| -> Vec<(u64, String)> {
        let listed = reader
            .issues()
            .list_issues(&build_shop_name(), state)
            .await
            .unwrap();
        listed
            .into_iter()
            .map(|issue| (issue.stub.number, issue.title))
            .collect()
    };
    assert_eq!(
        listed(IssueListState::Open).await,
        [(number, "A title".to_owned())]
    );
    assert_eq!(listed(IssueListState::Closed).await, [(closed, "Old".to_owned())]);
    let since = IssueListState::ChangedSince(Timestamp::from_unix_ms(0));
    let both = reader
        .issues()
        .list_issues(&build_shop_name(), since)
        .await
        .unwrap();
    let mut both: Vec<_> = both
        .into_iter()
        .map(|issue| (issue.stub.number, issue.is_open))
        .collect();
    both.sort_unstable();
    assert_eq!(both, [(number, true), (closed, false)]);
    let later = Timestamp::parse("2999-01-01T00:00:00Z").unwrap();
    assert_eq!(listed(IssueListState::ChangedSince(later)).await, []);
}

#[tokio::test]
async fn issue_poll_reads_pages_until_start() {
    let Hub { hub, reader, .. } = start_hub().await;
    for number in 1..=101 {
        let opened = hub.open_issue_as("acme/shop", "rita", "A title", "");
        assert_eq!(opened.unwrap(), number);
    }
    let future = Timestamp::parse("2999-01-01T00:00:00Z");
    for (since, count) in [(None, 100), (future, 100), (Some(Timestamp::default()), 101)] {
        let polled = reader
            .issues()
            .open_issues(&build_shop_name(), since, None)
            .await
            .unwrap();
        let IssuePoll::Changed { issues, .. } = polled else {
            panic!("nothing was known")
        };
        assert_eq!(issues.len(), count, "{since:?}");
    }
}

#[tokio::test]
async fn closing_and_unassigning_issue_is_idempotent() {
    let Hub { hub, writer, .. } = start_hub().await;
    let number = hub
        .open_issue_as("acme/shop", "rita", "A title", "A text")
        .unwrap();
    hub.assign_issue("acme/shop", number, "agent", "rita").unwrap();
    hub.label_issue("acme/shop", number, "two words", "rita").unwrap();
    for _ in 0..2 {
        writer
            .issues()
            .unassign(&build_shop_name(), number, "agent")
            .await
            .unwrap();
        writer
            .issues()
            .remove_label(&build_shop_name(), number, "two words")
            .await
            .unwrap();
        writer
            .issues()
            .close_issue(&build_shop_name(), number)
            .await
            .unwrap();
    }
    assert!(
        !writer
            .issues()
            .is_issue_open(&build_shop_name(), number)
            .await
            .unwrap()
    );
    let issue = hub.issue("acme/shop", number).unwrap();
    assert!(issue.assignees.is_empty() && issue.labels.is_empty());
    assert_eq!(issue.closed_as.as_deref(), Some("completed"));
    assert!(hub.violations().is_empty(), "{:?}", hub.violations());
}

#[tokio::test]
async fn assigning_unassignable_account_returns_false() {
    let Hub { hub, writer, .. } = start_hub().await;
    let number = hub
        .open_issue_as("acme/shop", "rita", "A title", "A text")
        .unwrap();
    hub.set_permission("acme/shop", "eve", "read").unwrap();
    for (login, can) in [
        ("eve", false),
        (stand_in::WRITER_LOGIN, false),
        ("agent", true),
        ("agent", true),
    ] {
        assert_eq!(
            writer
                .issues()
                .assign(&build_shop_name(), number, login)
                .await
                .unwrap(),
            can,
            "{login}"
        );
    }
    assert_eq!(
        writer
            .issues()
            .assignees(&build_shop_name(), number)
            .await
            .unwrap(),
        ["agent"]
    );
    assert!(hub.violations().is_empty(), "{:?}", hub.violations());
}

#[tokio::test]
async fn line_authors_are_counted_by_login() {
    use github::{BlameLines, RepositoryPermission};
    let Hub { hub, writer, .. } = start_hub().await;
    let commit = |login: &str, text: &str| {
        let files = [("total.py", text), ("deep/rate.py", text)];
        hub.commit_by("acme/shop", "main", login, "More", &files).unwrap()
    };
    commit("olga", "a\nb\nc\n");
    let head: CommitId = commit("bob", "a\nb\nC\n").parse().unwrap();
    let lines = |path: &str, first, last| BlameLines {
        path: path.to_owned(),
        first,
        last,
    };
    let asked = [
        lines("total.py", 1, 1),
        lines("total.py", 3, 3),
        lines("deep/rate.py", 1, 9),
        lines("README.md", 1, 1),
    ];
    let counted = writer
        .authors_of(&build_shop_name(), &head, &asked)
        .await
        .unwrap();
    let expected = [("bob".to_owned(), 2), ("olga".to_owned(), 3)];
    assert_eq!(counted, expected.into(), "nobody knows who wrote README.md");
    let missing = writer
        .authors_of(&build_shop_name(), &head, &[lines("no.py", 1, 1)])
        .await;
    assert!(
        matches!(missing, Err(Error::Rejected { .. } | Error::NotFound { .. })),
        "{missing:?}"
    );
    hub.set_permission("acme/shop", "bob", "read").unwrap();
    assert_eq!(
        writer.permission(&build_shop_name(), "bob").await.unwrap(),
        RepositoryPermission::Read
    );
    assert_eq!(
        writer.permission(&build_shop_name(), "olga").await.unwrap(),
        RepositoryPermission::Write
    );
    assert!(hub.violations().is_empty(), "{:?}", hub.violations());
}

#[tokio::test]
async fn own_check_run_is_updated_and_ignored() {
    let hub = start_hub().await;
    let head = hub.branch("fix/rounds");
    let text = |title: &str, passed| github::CheckRunText {
        title: title.to_owned(),
        summary: "| 1 |".to_owned(),
        passed,
    };
    assert!(hub.writer.checks().makes_check_runs(&build_shop_name()));
    assert_eq!(
        hub.writer
            .checks()
            .find_check_run(&build_shop_name(), &head)
            .await
            .unwrap(),
        None
    );
    let made = hub
        .writer
        .checks()
        .create_check_run(&build_shop_name(), &head, &text("1 round", false))
        .await
        .unwrap();
    assert_eq!(
        hub.writer
            .checks()
            .find_check_run(&build_shop_name(), &head)
            .await
            .unwrap(),
        Some(made)
    );
    hub.writer
        .checks()
        .update_check_run(&build_shop_name(), made, &text("2 rounds", true))
        .await
        .unwrap();
    let shown = hub
        .hub
        .check_run("acme/shop", head.as_str(), "Journeyman")
        .unwrap();
    assert_eq!((shown.0.as_str(), shown.2), ("2 rounds", "success"));
    assert!(
        hub.reader
            .checks()
            .checks(&build_shop_name(), &head)
            .await
            .unwrap()
            .is_empty()
    );
    let unknown = hub
        .writer
        .checks()
        .update_check_run(&build_shop_name(), 4_711, &text("3 rounds", true))
        .await;
    assert!(
        matches!(unknown, Err(github::Error::NotFound { .. })),
        "{unknown:?}"
    );
    let by_token = GitHubWriter::new(&with_token(&hub.hub, stand_in::WRITER_TOKEN)).unwrap();
    assert!(!by_token.checks().makes_check_runs(&build_shop_name()));
    hub.assert_clean();
}

#[tokio::test]
async fn issue_type_requires_organization_type() {
    let Hub { hub, writer, .. } = start_hub().await;
    let number = hub.open_issue_as("acme/shop", "rita", "A title", "").unwrap();
    assert_eq!(
        writer
            .issues()
            .issue_type(&build_shop_name(), number)
            .await
            .unwrap(),
        None
    );
    writer
        .issues()
        .set_issue_type(&build_shop_name(), number, "Bug")
        .await
        .unwrap();
    assert_eq!(
        writer
            .issues()
            .issue_type(&build_shop_name(), number)
            .await
            .unwrap()
            .as_deref(),
        Some("Bug")
    );
    let unknown = writer
        .issues()
        .set_issue_type(&build_shop_name(), number, "Saga")
        .await;
    assert!(matches!(unknown, Err(Error::Rejected { .. })), "{unknown:?}");
    let nowhere = writer
        .issues()
        .set_issue_type(&build_shop_name(), 99, "Bug")
        .await;
    assert!(matches!(nowhere, Err(Error::NotFound { .. })), "{nowhere:?}");
    assert_eq!(hub.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn project_item_is_added_once_with_fields() {
    let Hub { hub, writer, .. } = start_hub().await;
    let fields: [(&str, &str, &[&str]); 4] = [
        ("Size", "SINGLE_SELECT", &["S", "M"]),
        ("Points", "NUMBER", &[]),
        ("Team", "TEXT", &[]),
        ("Due", "DATE", &[]),
    ];
    hub.create_project("acme", 3, &fields);
    let number = hub.open_issue_as("acme/shop", "rita", "A title", "").unwrap();
    assert!(!writer.projects().sees_projects(&build_shop_name()));
    let without = writer.projects().project(&build_shop_name(), "acme", 3).await;
    assert!(matches!(without, Err(Error::Unauthorized { .. })), "{without:?}");

    let settings = Settings {
        project_token: Some(stand_in::PROJECT_TOKEN.into()),
        ..as_app(&hub, stand_in::WRITER_APP_ID)
    };
    let writer = GitHubWriter::new(&settings).unwrap();
    assert!(writer.projects().sees_projects(&build_shop_name()));
    let project = writer
        .projects()
        .project(&build_shop_name(), "acme", 3)
        .await
        .unwrap();
    let item = writer
        .projects()
        .put_into_project(&build_shop_name(), number, &project)
        .await
        .unwrap();
    let again = writer
        .projects()
        .put_into_project(&build_shop_name(), number, &project)
        .await
        .unwrap();
    assert_eq!(item, again);
    for (name, text) in [("size", "m"), ("Points", "2.5"), ("Team", "Shop")] {
        let field = project.field(name).unwrap();
        let value = field.value(text).unwrap();
        writer
            .projects()
            .set_project_field(&build_shop_name(), &item, field, &value)
            .await
            .unwrap();
    }
    let values = hub.project_values(("acme", 3), "acme/shop", number).unwrap();
    let values: Vec<String> = values.unwrap().into_values().collect();
    assert_eq!(values, ["2.5", "M", "Shop"]);
    for (name, text) in [("Size", "XXL"), ("Points", "many"), ("Due", "today")] {
        assert_eq!(project.field(name).unwrap().value(text), None, "{name}");
    }
    for (owner, number) in [("acme", 4), ("nobody", 3)] {
        let unknown = writer.projects().project(&build_shop_name(), owner, number).await;
        assert!(matches!(unknown, Err(Error::NotFound { .. })), "{unknown:?}");
    }
    let nowhere = writer
        .projects()
        .put_into_project(&build_shop_name(), 99, &project)
        .await;
    assert!(matches!(nowhere, Err(Error::NotFound { .. })), "{nowhere:?}");
    assert_eq!(hub.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn unsuitable_token_sees_no_project() {
    let Hub { hub, .. } = start_hub().await;
    hub.create_project("acme", 3, &[]);
    let settings = Settings {
        project_token: Some(stand_in::WRITER_TOKEN.into()),
        ..as_app(&hub, stand_in::WRITER_APP_ID)
    };
    let refused = GitHubWriter::new(&settings)
        .unwrap()
        .projects()
        .project(&build_shop_name(), "acme", 3)
        .await;
    assert!(matches!(refused, Err(Error::Forbidden { .. })), "{refused:?}");
}

#[tokio::test]
async fn identity_is_read_per_instance() {
    let hub = start_hub().await;
    let own = hub.reader.identity(None).await.unwrap();
    assert_eq!(own, hub.reader.whoami().await.unwrap());
    assert!(own.is_app && own.login.ends_with("[bot]"));
    hub.assert_clean();
}

#[tokio::test]
async fn required_checks_are_limited_by_reader_permissions() {
    let hub = start_hub().await;
    hub.hub.require_checks("acme/shop", "main", &["test"]).unwrap();
    let may_see = hub
        .writer
        .checks()
        .required_checks(&build_shop_name(), "main")
        .await
        .unwrap();
    assert_eq!(may_see, ["test"]);
    // Without permission for contents, only rulesets are readable; a ruleset without parameters is no error.
    hub.reader
        .checks()
        .required_checks(&build_shop_name(), "main")
        .await
        .unwrap();
}

#[tokio::test]
async fn comparison_of_commits_lists_changed_files() {
    let hub = start_hub().await;
    let head = hub.branch("feat/x");
    let changed = hub
        .reader
        .reviews()
        .changed_since(&build_shop_name(), &hub.base, &head)
        .await
        .unwrap();
    let paths: Vec<&str> = changed.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a.txt"]);
    let gone: CommitId = "d".repeat(40).parse().unwrap();
    let error = hub
        .reader
        .reviews()
        .changed_since(&build_shop_name(), &gone, &head)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
}

#[tokio::test]
async fn waiting_workflow_runs_are_listed() {
    use github::WorkflowRunProgress::{AwaitsApproval, Ended, UnderWay};
    let Hub { hub, reader, .. } = &start_hub().await;
    let head = hub
        .commit("acme/shop", "fix/1", "work", &[("a.txt", "a")])
        .unwrap();
    // Jobs and runs of Journeyman's own action show nothing about the commit.
    let tests = ["test", "Journeyman action", "Journeyman reviews"];
    let tests = tests.map(|name| (name, stand_in::RunConclusion::Success, ""));
    hub.run_checks("acme/shop", &head, &tests).unwrap();
    for (name, state) in [
        ("Journeyman", stand_in::HeldRunState::Queued),
        ("Journeyman reviews", stand_in::HeldRunState::ActionRequired),
        ("Tests", stand_in::HeldRunState::ActionRequired),
        ("Deploy", stand_in::HeldRunState::Waiting),
        ("Lint", stand_in::HeldRunState::Queued),
    ] {
        hub.hold_run("acme/shop", &head, name, state).unwrap();
    }
    let commit: CommitId = head.parse().unwrap();
    let runs = reader
        .checks()
        .workflow_runs(&build_shop_name(), &commit)
        .await
        .unwrap();
    let found: Vec<_> = runs.iter().map(|run| (run.name.as_str(), run.progress)).collect();
    assert_eq!(
        found,
        [
            ("Tests", AwaitsApproval),
            ("Deploy", AwaitsApproval),
            ("Lint", UnderWay),
            ("CI", Ended)
        ]
    );
    assert!(runs.iter().all(|run| run.url.contains("/actions/runs/")));
    let checks = reader.checks().checks(&build_shop_name(), &commit).await.unwrap();
    let names: Vec<_> = checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["test"], "what has not begun has no check runs");
    hub.begin_held_runs("acme/shop").unwrap();
    assert_eq!(
        reader
            .checks()
            .workflow_runs(&build_shop_name(), &commit)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(hub.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn attached_files_are_read_from_github_alone() {
    let hub = start_hub().await;
    let (image, log) = (
        hub.hub.attach_image(b"\x89PNG\xff"),
        hub.hub.attach_file("a.log", b"one\n"),
    );
    let body = format!("![shot]({image}) and [a.log]({log})");
    let number = hub.hub.open_issue_as("acme/shop", "ada", "Crash", &body).unwrap();
    let shop = build_shop_name();
    let read =
        async |address: &str, most: usize| hub.reader.attachments().attachment(&shop, address, most).await;
    assert!(
        hub.reader.attachments().is_readable(&shop, &image)
            && hub.reader.attachments().is_readable(&shop, &log)
    );
    assert_eq!(read(&log, 4).await.unwrap().as_deref(), Some(&b"one\n"[..]));
    assert_eq!(read(&log, 3).await.unwrap(), None);
    // The website shows an image of a private repository to no token.
    assert!(matches!(read(&image, 10).await, Err(Error::NotFound { .. })));
    let rendered = hub
        .reader
        .attachments()
        .rendered_addresses(&shop, number, github::AttachmentThread::Issue)
        .await
        .unwrap();
    let signed = github::find_rendered_address(&image, &rendered).unwrap();
    assert_eq!(
        read(signed, 10).await.unwrap().as_deref(),
        Some(&b"\x89PNG\xff"[..])
    );
    for foreign in [
        "http://127.0.0.1:1/user-attachments/assets/1",
        "file:///etc/passwd",
    ] {
        assert!(!hub.reader.attachments().is_readable(&shop, foreign), "{foreign}");
        assert!(
            matches!(read(foreign, 10).await, Err(Error::Rejected { .. })),
            "{foreign}"
        );
    }
    assert_eq!(hub.hub.violations(), Vec::<String>::new());
}
