//! Tests of submodules and Git LFS files.

use git::{LfsListing, LfsOid, LfsOmission, LfsPointer};

use super::*;

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";

/// Commits a base with one submodule and one Git LFS file in addition.
fn seed_external_content(world: &World) -> String {
    let remote = git::BareRepository::open(&world.folder.path().join("remote/acme/shop.git")).unwrap();
    let git = remote.objects();
    let parent = git2::Oid::from_str(world.base.as_str()).unwrap();
    let parent = git.find_commit(parent).unwrap();
    let mut root = git.treebuilder(Some(&parent.tree().unwrap())).unwrap();
    for (name, content) in [
        (".gitattributes", "*.psd filter=lfs -text\n"),
        ("logo.psd", POINTER),
    ] {
        root.insert(name, git.blob(content.as_bytes()).unwrap(), 0o100_644)
            .unwrap();
    }
    root.insert("kit", parent.id(), 0o160_000).unwrap();
    let tree = git.find_tree(root.write().unwrap()).unwrap();
    let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(1, 0)).unwrap();
    let main = Some("refs/heads/main");
    git.commit(main, &who, &who, "next", &tree, &[&parent])
        .unwrap()
        .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn external_content_is_named_on_open() {
    let world = World::start(2).await;
    let base = seed_external_content(&world);
    // The second workspace is created from a prepared checkout.
    for number in 1..=2 {
        let opened = world.open_with(number, |spec| spec.base_commit = base.clone());
        let (session, answer) = opened.await;
        assert_eq!(
            (answer.submodules, answer.lfs_files),
            (vec!["kit".to_owned()], vec!["logo.psd".to_owned()])
        );
        for (id, name, input, words) in [
            (
                "c1",
                "read_file",
                json!({ "path": "kit/src/lib.rs" }),
                "submodule kit",
            ),
            ("c2", "read_file", json!({ "path": "logo.psd" }), "Git LFS"),
            ("c3", "list_directory", json!({ "path": "kit" }), "submodule kit"),
            (
                "c4",
                "write_file",
                json!({ "path": "kit/x", "content": "x" }),
                "submodule kit",
            ),
        ] {
            let result = session.call(id, name, input).await;
            assert_eq!(result.status(), ToolStatus::Error);
            assert!(
                result.content.contains(words) && result.content.contains("Work without"),
                "{name}: {}",
                result.content
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submodule_folder_files_skip_snapshot() {
    let world = World::start(1).await;
    let base = seed_external_content(&world);
    let opened = world.open_with(1, |spec| spec.base_commit = base.clone());
    let session = opened.await.0;
    session
        .shell("c1", "mkdir -p kit/src && echo x > kit/src/x && echo y > y")
        .await;
    let (info, pack) = session.snapshot().await;
    assert_eq!(info.files_changed, 1);
    let remote = git::BareRepository::open(&world.folder.path().join("remote/acme/shop.git")).unwrap();
    remote.import_pack(&pack, git::PackLimits::default()).unwrap();
    let change = remote.diff(
        &base.parse().unwrap(),
        &info.snapshot_commit.parse().unwrap(),
        &mut git::InspectionBudget::new(u64::MAX),
    );
    let paths: Vec<String> = change.unwrap().files.into_iter().map(|file| file.path).collect();
    assert_eq!(paths, ["y"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_lfs_file_is_refused_at_once() {
    let world = World::start(1).await;
    let base = seed_external_content(&world);
    let opened = world.open_with(1, |spec| spec.base_commit = base.clone());
    let session = opened.await.0;
    let written = json!({ "path": "new.psd", "content": "x" });
    let refused = session.call("c1", "write_file", written).await;
    assert_eq!(refused.status(), ToolStatus::Error);
    assert!(
        refused
            .content
            .contains("new.psd: .gitattributes gives it to Git LFS"),
        "{}",
        refused.content
    );
    let made = session.shell("c2", "echo x > made.psd; echo y > logo.psd").await;
    for path in ["made.psd", "logo.psd"] {
        assert!(
            made.contains(&format!("  {path}: .gitattributes gives it to Git LFS")),
            "{path}: {made}"
        );
    }
    let (info, _) = session.snapshot().await;
    assert_eq!(
        (info.files_changed, info.omitted.len()),
        (0, 2),
        "{:?}",
        info.omitted
    );
}

fn build_pointer(content: &[u8]) -> LfsPointer {
    LfsPointer {
        oid: LfsOid::of(content),
        size: content.len() as u64,
    }
}

/// Commits files that Git LFS keeps.
fn seed_lfs_files(world: &World, files: &[(&str, &LfsPointer)]) -> String {
    let attributes = "*.csv filter=lfs diff=lfs merge=lfs -text\n*.psd filter=lfs -text\n";
    let mut texts = vec![(".gitattributes", attributes.to_owned())];
    texts.extend(files.iter().map(|(name, pointer)| (*name, pointer.render())));
    let files: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    setups::commit_base_files(world, &files)
}

/// Makes the gate serve contents at a commit.
fn serve_contents(world: &World, base: &str, contents: &[(&LfsPointer, &[u8])], left_out: Vec<LfsOmission>) {
    let listing = LfsListing {
        contents: contents.iter().map(|(pointer, _)| (*pointer).clone()).collect(),
        left_out,
    };
    let path = format!("/acme/shop.git/lfs/{base}");
    for (pointer, content) in contents {
        let path = format!("{path}/{}", pointer.oid);
        world.gate.set_answer(path, content.to_vec());
    }
    world.gate.set_answer(path, serde_json::to_vec(&listing).unwrap());
}

async fn open_with_lfs(world: &World, number: u64, base: &str) -> (Session, OpenWorkspaceResponse) {
    let opened = world.open_with(number, |spec| {
        spec.base_commit = base.to_owned();
        spec.lfs = true;
    });
    opened.await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lfs_contents_replace_pointers() {
    let world = World::start(2).await;
    let content = b"name,total\nada,7\n";
    let (table, large) = (build_pointer(content), build_pointer(b"large"));
    let base = seed_lfs_files(&world, &[("table.csv", &table), ("large.psd", &large)]);
    let left_out = LfsOmission {
        pointer: large.clone(),
        reason: "it has more than 1 MiB".to_owned(),
    };
    serve_contents(&world, &base, &[(&table, content)], vec![left_out]);
    // The second workspace is created from a prepared checkout.
    for number in 1..=2 {
        let (session, answer) = open_with_lfs(&world, number, &base).await;
        assert_eq!(
            (answer.lfs_files, answer.lfs_contents),
            (vec!["large.psd".to_owned()], vec!["table.csv".to_owned()])
        );
        let read = session
            .ok("c1", "read_file", json!({ "path": "table.csv" }))
            .await;
        assert!(read.content.contains("ada,7"), "{}", read.content);
        for (id, name, input, words) in [
            (
                "c2",
                "read_file",
                json!({ "path": "large.psd" }),
                "more than 1 MiB",
            ),
            (
                "c3",
                "write_file",
                json!({ "path": "table.csv", "content": "x" }),
                "cannot be uploaded",
            ),
        ] {
            let result = session.call(id, name, input).await;
            assert_eq!(result.status(), ToolStatus::Error);
            assert!(result.content.contains(words), "{}", result.content);
        }
        let status = session.shell("c4", "cat table.csv; git status --porcelain").await;
        assert!(
            status.contains("ada,7") && !status.contains("M table.csv"),
            "{status}"
        );
        let (info, _) = session.snapshot().await;
        assert_eq!(info.files_changed, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moved_lfs_file_keeps_its_pointer() {
    let world = World::start(1).await;
    let content = b"\0layers";
    let logo = build_pointer(content);
    let base = seed_lfs_files(&world, &[("logo.psd", &logo)]);
    serve_contents(&world, &base, &[(&logo, content)], Vec::new());
    let (session, _) = open_with_lfs(&world, 1, &base).await;
    session
        .shell("c1", "mkdir art && mv logo.psd art/ && touch art/logo.psd")
        .await;
    let (info, pack) = session.snapshot().await;
    let remote = git::BareRepository::open(&world.folder.path().join("remote/acme/shop.git")).unwrap();
    remote.import_pack(&pack, git::PackLimits::default()).unwrap();
    let snapshot = info.snapshot_commit.parse().unwrap();
    let stored = remote.read_file(&snapshot, "art/logo.psd").unwrap();
    assert_eq!(stored.unwrap(), logo.render().into_bytes());
    assert_eq!(remote.read_file(&snapshot, "logo.psd").unwrap(), None);
    session.ok("c2", "undo", json!({})).await;
    let restored = session.shell("c3", "od -c logo.psd | head -1; ls art").await;
    assert!(restored.contains("\\0   l   a   y"), "{restored}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusable_lfs_contents_stay_pointers() {
    let world = World::start(2).await;
    let logo = build_pointer(b"content");
    let base = seed_lfs_files(&world, &[("logo.psd", &logo)]);
    // This gate knows no contents.
    let (session, answer) = open_with_lfs(&world, 1, &base).await;
    assert_eq!(answer.lfs_files, ["logo.psd"]);
    let result = session
        .call("c1", "read_file", json!({ "path": "logo.psd" }))
        .await;
    assert!(
        result.content.contains("the git gate refuses"),
        "{}",
        result.content
    );
    // This one serves another content.
    serve_contents(&world, &base, &[(&logo, b"CONTENT")], Vec::new());
    let (session, answer) = open_with_lfs(&world, 2, &base).await;
    assert_eq!(answer.lfs_files, ["logo.psd"]);
    let result = session
        .call("c1", "read_file", json!({ "path": "logo.psd" }))
        .await;
    assert!(result.content.contains("SHA-256"), "{}", result.content);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setup_result_needs_same_lfs_contents() {
    let world = World::start(1).await;
    let content = b"name,total\nada,7\n";
    let table = build_pointer(content);
    setups::commit_base_files(&world, &[("Cargo.lock", "1")]);
    let base = seed_lfs_files(&world, &[("table.csv", &table)]);
    serve_contents(&world, &base, &[(&table, content)], Vec::new());
    for (number, lfs, words, is_reused) in [
        (1, false, "oid sha256", false),
        (2, true, "ada,7", false),
        (3, true, "ada,7", true),
        (4, false, "oid sha256", true),
    ] {
        let opened = world.open_with(number, |spec| {
            spec.base_commit = base.clone();
            spec.setup = vec!["mkdir ignored && cp table.csv ignored/copy".to_owned()];
            spec.lfs = lfs;
        });
        let (session, answer) = opened.await;
        let log = answer.setup.unwrap().log_tail;
        assert_eq!(log.contains("reused"), is_reused, "{number}: {log}");
        let copy = session.shell("c1", "cat ignored/copy").await;
        assert!(copy.contains(words), "{number}: {copy}");
        session.close().await;
        setups::wait_for_free_path(&world).await;
    }
}
