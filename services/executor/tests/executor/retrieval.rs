//! Tests of a repository's index as planners and models use it.

use proto::executor::{SeedContextRequest, SeedContextResponse};
use serde_json::json;

use super::*;

const CART: &str = "def cart_total(items):\n    \"\"\"The price of all items.\"\"\"\n    return sum(items)\n";

const MANIFEST: &str = r#"{"nodes": {
    "model.shop.stg_orders": {"resource_type": "model", "name": "stg_orders", "original_file_path": "models/stg_orders.sql"},
    "test.shop.orders": {"resource_type": "test", "name": "orders", "original_file_path": "tests/orders.sql"}}}"#;

/// Commits some files to the remote repository.
fn commit_indexed_files(world: &World) -> String {
    let remote = world.folder.path().join("remote/acme/shop.git");
    let git = git2::Repository::open(remote).unwrap();
    let mut root = git.treebuilder(None).unwrap();
    let mut source = git.treebuilder(None).unwrap();
    let deadly = "a<".repeat(25_000);
    for (name, text) in [
        ("cart.py", CART),
        ("user.py", "def login():\n    pass\n"),
        ("A.java", &deadly),
        ("manifest.json", MANIFEST),
        ("TEMPLATE.md", "## Risk\n"),
    ] {
        source
            .insert(name, git.blob(text.as_bytes()).unwrap(), 0o100_644)
            .unwrap();
    }
    root.insert("shop", source.write().unwrap(), 0o040_000).unwrap();
    let tree = git.find_tree(root.write().unwrap()).unwrap();
    let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(2, 0)).unwrap();
    let id = git
        .commit(Some("refs/heads/shop"), &who, &who, "shop", &tree, &[])
        .unwrap();
    id.to_string()
}

async fn open_base_workspace(world: &World, number: u64, commit: &str) -> Session {
    let fence = RunFence::new(1, 5, 1);
    let opened = world
        .try_open(number, fence, |spec| spec.base_commit = commit.to_owned())
        .await;
    opened.unwrap().0
}

fn build_seed_request(session: &Session, query: &str) -> SeedContextRequest {
    SeedContextRequest {
        workspace_id: session.id.clone(),
        fence: Some(session.fence.into()),
        query: query.to_owned(),
        modules: Vec::new(),
        candidates: 0,
        dbt: Vec::new(),
    }
}

async fn request_seeds(session: &Session, request: SeedContextRequest) -> SeedContextResponse {
    let mut client = session.client.clone();
    client
        .seed_context(add_bearer_token(&session.token, request))
        .await
        .unwrap()
        .into_inner()
}

/// Repeats the request until the index is ready.
async fn await_ready_seeds(session: &Session, query: &str) -> SeedContextResponse {
    let asked_often = async {
        loop {
            let answer = request_seeds(session, build_seed_request(session, query)).await;
            if answer.ready {
                return answer;
            }
            assert!(answer.note.contains("is not ready ("), "{}", answer.note);
            assert!(answer.percent < 100);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asked_often)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexed_repository_answers_ticket_text() {
    let world = World::start(2).await;
    let base = commit_indexed_files(&world);
    let session = open_base_workspace(&world, 1, &base).await;
    let answer = await_ready_seeds(&session, "`cart_total` is wrong for discounts").await;
    let first = answer.chunks.first().unwrap();
    assert_eq!(
        (first.path.as_str(), first.symbol.as_str()),
        ("shop/cart.py", "cart_total")
    );
    assert_eq!((first.start_line, first.end_line), (1, 3));
    assert!(
        first.reason.contains("defines cart_total") && first.text.is_empty(),
        "{}",
        first.reason
    );

    let nothing = request_seeds(
        &session,
        build_seed_request(&session, "Kubernetes ingress annotations"),
    )
    .await;
    assert_eq!(
        (nothing.chunks.len(), nothing.note.as_str()),
        (0, "No confident match.")
    );

    let candidates = SeedContextRequest {
        candidates: 1000,
        modules: vec!["shop".to_owned()],
        ..build_seed_request(&session, "the price of items")
    };
    let answer = request_seeds(&session, candidates).await;
    let cart = answer
        .candidates
        .iter()
        .find(|chunk| chunk.path == "shop/cart.py")
        .unwrap();
    assert_eq!(cart.text, CART);
    assert_eq!(cart.blob.len(), 40);

    // Another workspace of this commit finds the index ready. A grant for one workspace does not open the
    // other.
    let other = open_base_workspace(&world, 2, &base).await;
    assert!(
        request_seeds(&other, build_seed_request(&other, "cart"))
            .await
            .ready
    );
    let mut client = session.client.clone();
    let refused = client
        .seed_context(add_bearer_token(
            &session.token,
            build_seed_request(&other, "cart"),
        ))
        .await;
    assert_eq!(refused.unwrap_err().code(), tonic::Code::PermissionDenied);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dbt_model_is_found_by_name() {
    let world = World::start(1).await;
    let base = commit_indexed_files(&world);
    let opened = world.open_with(1, |spec| {
        spec.base_commit = base.clone();
        spec.template_path = "shop/TEMPLATE.md".to_owned();
    });
    let (session, answer) = opened.await;
    assert_eq!(answer.template, "## Risk\n");
    let project = |manifest: &str| SeedContextRequest {
        dbt: vec![proto::executor::DbtProject {
            path: "shop".to_owned(),
            manifest_path: manifest.to_owned(),
        }],
        ..build_seed_request(&session, "Sums in stg_orders are wrong; orders are late")
    };
    let answer = request_seeds(&session, project("manifest.json")).await;
    let first = &answer.chunks[0];
    assert_eq!(
        (first.path.as_str(), first.symbol.as_str()),
        ("shop/models/stg_orders.sql", "stg_orders")
    );
    assert!(first.reason.contains("shop/manifest.json"), "{}", first.reason);
    let missing = request_seeds(&session, project("")).await;
    assert!(missing.chunks.iter().all(|chunk| chunk.symbol != "stg_orders"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn find_code_marks_changed_files() {
    let world = World::start(1).await;
    let session = open_base_workspace(&world, 1, &commit_indexed_files(&world)).await;
    await_ready_seeds(&session, "cart").await;
    let found = session
        .ok("a", "find_code", json!({ "query": "cart_total" }))
        .await
        .content;
    assert!(
        found.starts_with("shop/cart.py:1-3 cart_total (") && !found.contains("changed"),
        "{found}"
    );
    let changed = json!({ "path": "shop/cart.py", "content": "# New.\n", "force": true });
    session.ok("b", "write_file", changed).await;
    let found = session
        .ok("c", "find_code", json!({ "query": "cart_total" }))
        .await
        .content;
    assert!(
        found.contains("[changed since the base commit, so lines may have moved: shop/cart.py]"),
        "{found}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seeds_without_index_search_literally() {
    let world = World::start_as(1, |_, settings| settings.index = false).await;
    let session = open_base_workspace(&world, 1, &commit_indexed_files(&world)).await;
    let answer = request_seeds(&session, build_seed_request(&session, "`cart_total` is wrong")).await;
    assert!(!answer.ready);
    assert_eq!(
        answer.note,
        "There is no index: indexing is switched off. Only paths and literal text were searched."
    );
    let first = answer.chunks.first().unwrap();
    assert_eq!((first.path.as_str(), first.start_line), ("shop/cart.py", 1));
    let found = session
        .ok("a", "find_code", json!({ "query": "`cart_total`" }))
        .await
        .content;
    assert!(found.starts_with("shop/cart.py:1 ("), "{found}");
    assert!(
        found.contains("there is no index: indexing is switched off"),
        "{found}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn index_in_mirror_hidden_from_commands() {
    let world = World::start(1).await;
    let session = open_base_workspace(&world, 1, &commit_indexed_files(&world)).await;
    await_ready_seeds(&session, "cart").await;
    let folder = world.folder.path().join("data/mirrors/acme/shop.git/code-index");
    assert!(folder.is_dir());
    let shown = session
        .call(
            "a",
            "run_command",
            json!({ "command": format!("ls {}", folder.display()) }),
        )
        .await;
    // The name of the temporary folder is random, so only the error shows that nothing was listed.
    assert!(
        shown.content.contains("No such file or directory"),
        "{}",
        shown.content
    );
}
