//! Tests of mirrors: requests at the git gate for each open, and the commits that a run sees.

use axum::http::StatusCode;

use super::*;

const DIGEST: &str = "GET /acme/shop.git/digest";
const FETCH: &str = "GET /acme/shop.git/info/refs";
const DIGEST_PATH: &str = "/acme/shop.git/digest";

/// Opens a workspace at the current head of the base branch. Returns its base commit.
async fn open_at_head(world: &World, number: u64) -> (Session, String) {
    let opened = world.open_with(number, |spec| {
        spec.base_commit = String::new();
    });
    let (session, answer) = opened.await;
    (session, answer.base_commit)
}

fn open_remote(world: &World) -> git::BareRepository {
    git::BareRepository::open(&world.folder.path().join("remote/acme/shop.git")).unwrap()
}

/// Adds a commit to the base branch of the remote.
fn push_to_base(world: &World, message: &str) -> String {
    create_commit(world, message, Some("refs/heads/main"))
}

/// Creates a commit on top of the base branch of the remote, and moves a reference to it.
fn create_commit(world: &World, message: &str, reference: Option<&str>) -> String {
    let remote = open_remote(world);
    let git = remote.objects();
    let head = git.refname_to_id("refs/heads/main").unwrap();
    let parent = git.find_commit(head).unwrap();
    let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(2, 0)).unwrap();
    let tree = parent.tree().unwrap();
    let id = git.commit(reference, &who, &who, message, &tree, &[&parent]);
    id.unwrap().to_string()
}

/// Opens a workspace at a head of the base branch that contains this commit. Returns its base commit.
async fn open_with_commit(world: &World, number: u64, reported: &str) -> Result<String, Status> {
    let opened = world.try_open(number, RunFence::new(1, 5, 1), |spec| {
        spec.base_commit = String::new();
        spec.reported_base = reported.to_owned();
    });
    opened.await.map(|(_, answer)| answer.base_commit)
}

/// Checks that the planner repeats the refused request.
fn assert_not_ready(refused: &Status) {
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    let progress = refused.metadata().get(proto::executor::NOT_READY);
    assert_eq!(progress.map(|progress| progress.to_str().unwrap()), Some(""));
}

/// Number of fetches among these requests.
fn count_fetches(requests: &[String]) -> usize {
    requests.iter().filter(|request| *request == FETCH).count()
}

/// Ends the executor and starts another one on the same data.
async fn restart_executor(world: &mut World) {
    world.stop.cancel();
    (&mut world.server).await.unwrap().unwrap();
    let pair = grant::generate_key_pair();
    world.signer = GrantSigner::new(&pair.id, &pair.private_key).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.address = listener.local_addr().unwrap();
    let config = build_config(world.folder.path(), world.address, pair);
    world.stop = CancellationToken::new();
    world.server = tokio::spawn(bootstrap::serve_app::<executor::ExecutorApp>(
        config,
        listener,
        world.stop.clone(),
    ));
    world.client = ExecutorServiceClient::connect(format!("http://{}", world.address))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_mirror_is_opened_without_fetch() {
    let world = World::start(2).await;
    let (_first, base) = open_at_head(&world, 1).await;
    let requests = world.gate.take_requests();
    assert_eq!((base, count_fetches(&requests)), (world.base.to_string(), 1));
    assert!(
        !requests.contains(&DIGEST.to_owned()),
        "an empty mirror cannot be equal: {requests:?}"
    );
    let (_second, base) = open_at_head(&world, 2).await;
    assert_eq!(base, world.base.to_string());
    assert_eq!(world.gate.take_requests(), [DIGEST]);
}

#[tokio::test(flavor = "multi_thread")]
async fn present_base_commit_needs_no_request() {
    let world = World::start(2).await;
    let _first = world.open(1).await;
    assert_eq!(count_fetches(&world.gate.take_requests()), 1);
    let _second = world.open(2).await;
    assert_eq!(world.gate.take_requests(), [] as [String; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn push_to_base_is_fetched_by_next_open() {
    let world = World::start(3).await;
    let _first = open_at_head(&world, 1).await;
    world.gate.take_requests();
    let pushed = push_to_base(&world, "second");
    let (_second, base) = open_at_head(&world, 2).await;
    assert_eq!(base, pushed);
    let requests = world.gate.take_requests();
    assert_eq!(
        (requests.first().map(String::as_str), count_fetches(&requests)),
        (Some(DIGEST), 1)
    );
    let (_third, base) = open_at_head(&world, 3).await;
    assert_eq!(
        (base, world.gate.take_requests()),
        (pushed, vec![DIGEST.to_owned()])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn open_waits_for_reported_base() {
    let world = World::start(3).await;
    let _first = open_at_head(&world, 1).await;
    let reported = create_commit(&world, "second", None);
    for reference in ["no branch", "another branch"] {
        world.gate.take_requests();
        let refused = open_with_commit(&world, 2, &reported).await.unwrap_err();
        assert_not_ready(&refused);
        let requests = world.gate.take_requests();
        assert_eq!(requests[0], format!("{DIGEST} {reported}"), "{reference}");
        let names_commit = |request: &String| request.ends_with(&reported);
        assert!(requests.iter().all(names_commit), "{reference}: {requests:?}");
        let remote = open_remote(&world);
        remote.set_branch("topic", &reported.parse().unwrap()).unwrap();
    }
    let remote = open_remote(&world);
    remote.set_branch("main", &reported.parse().unwrap()).unwrap();
    assert_eq!(open_with_commit(&world, 2, &reported).await.unwrap(), reported);
    let newer = push_to_base(&world, "third");
    assert_eq!(open_with_commit(&world, 3, &reported).await.unwrap(), newer);
}

#[tokio::test(flavor = "multi_thread")]
async fn rewritten_base_opens_without_reported_commit() {
    let world = World::start(2).await;
    let absent = "5".repeat(40);
    for _ in 0..2 {
        let refused = open_with_commit(&world, 1, &absent).await.unwrap_err();
        assert_not_ready(&refused);
    }
    let opened = open_with_commit(&world, 1, "").await;
    assert_eq!(opened.unwrap(), world.base.to_string());
    let pinned = world.try_open(2, RunFence::new(1, 5, 1), |spec| spec.reported_base = absent);
    assert_eq!(pinned.await.unwrap().1.base_commit, world.base.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_branch_frees_its_name() {
    let world = World::start(2).await;
    let remote = open_remote(&world);
    remote.set_branch("fix/x", &world.base).unwrap();
    let (session, _) = open_at_head(&world, 1).await;
    let branch = json!({ "branch_name": "fix/x" });
    let created = session.ok("branch", "create_branch", branch.clone()).await;
    assert!(created.content.contains("fix/x-2"), "{}", created.content);
    world.gate.take_requests();
    remote
        .objects()
        .find_reference("refs/heads/fix/x")
        .unwrap()
        .delete()
        .unwrap();
    let (session, base) = open_at_head(&world, 2).await;
    assert_eq!(base, world.base.to_string());
    assert_eq!(count_fetches(&world.gate.take_requests()), 1);
    let created = session.ok("branch", "create_branch", branch).await;
    assert!(!created.content.contains("fix/x-2"), "{}", created.content);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_opens_share_one_fetch() {
    let world = World::start(4).await;
    let opened = tokio::join!(
        open_at_head(&world, 1),
        open_at_head(&world, 2),
        open_at_head(&world, 3),
        open_at_head(&world, 4)
    );
    for base in [&opened.0.1, &opened.1.1, &opened.2.1, &opened.3.1] {
        assert_eq!(*base, world.base.to_string());
    }
    let requests = world.gate.take_requests();
    let digests = requests.iter().filter(|request| *request == DIGEST).count();
    assert_eq!((count_fetches(&requests), digests), (1, 3), "{requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn restarted_executor_compares_its_mirror() {
    let mut world = World::start(1).await;
    let (session, _) = open_at_head(&world, 1).await;
    session.close().await;
    drop(session);
    world.gate.take_requests();
    restart_executor(&mut world).await;
    // A lock file of a killed fetch must not remain.
    let lock = world
        .folder
        .path()
        .join("data/mirrors/acme/shop.git/refs/heads/main.lock");
    std::fs::write(&lock, "").unwrap();
    let (session, base) = open_at_head(&world, 2).await;
    assert_eq!(base, world.base.to_string());
    assert_eq!(world.gate.take_requests(), [DIGEST]);
    session.close().await;
    let pushed = push_to_base(&world, "second");
    let (session, base) = open_at_head(&world, 3).await;
    assert!(base == pushed && !lock.exists());
    drop(session);
    // The guard of the world ends the first process alone.
    world.stop.cancel();
    world.server.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_grant_opens_no_workspace() {
    let world = World::start(2).await;
    let _first = open_at_head(&world, 1).await;
    let refused = world.try_open(2, RunFence::new(1, 5, 1), |spec| {
        spec.base_commit = String::new();
        spec.gate_grant = "another".to_owned();
    });
    let refused = refused.await.map(|_| ()).unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_without_digests_is_fetched_from() {
    let world = World::start(2).await;
    world.gate.serve_digests(false);
    let _first = open_at_head(&world, 1).await;
    world.gate.take_requests();
    let pushed = push_to_base(&world, "second");
    let (_second, base) = open_at_head(&world, 2).await;
    assert_eq!((base, count_fetches(&world.gate.take_requests())), (pushed, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_failure_ends_open_without_fetch() {
    let world = World::start(2).await;
    let _first = open_at_head(&world, 1).await;
    for (words, percent) in [
        (format!("{}: 40 %\n", git::NOT_READY), Some("40")),
        ("the remote does not respond\n".to_owned(), None),
    ] {
        world.gate.take_requests();
        let answer = words.into_bytes();
        world
            .gate
            .set_refusal(DIGEST_PATH.to_owned(), StatusCode::SERVICE_UNAVAILABLE, answer);
        let refused = world.try_open(2, RunFence::new(1, 5, 1), |spec| {
            spec.base_commit = String::new();
        });
        let refused = refused.await.map(|_| ()).unwrap_err();
        let progress = refused.metadata().get(proto::executor::NOT_READY);
        assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
        assert_eq!(progress.map(|progress| progress.to_str().unwrap()), percent);
        assert_eq!(world.gate.take_requests(), [DIGEST]);
    }
}
