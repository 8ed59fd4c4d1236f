//! Tests of submodules and Git LFS files.

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
        let opened = world.try_open(number, RunFence::new(1, 5, 1), |spec| {
            spec.base_commit = base.clone()
        });
        let (session, answer) = opened.await.unwrap();
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
    let opened = world.try_open(1, RunFence::new(1, 5, 1), |spec| spec.base_commit = base.clone());
    let session = opened.await.unwrap().0;
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
