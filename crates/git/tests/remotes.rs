//! Fetches and pushes over lines that break, from histories that are odd, with repositories that were tampered with.

use std::{collections::BTreeMap, fs, path::Path, sync::atomic::Ordering, time::Duration};

use domain::CommitId;
use git::{Error, FetchedBranches, RefusedBranch, maintain_mirror};

use crate::{
    cutting_proxy::CuttingProxy,
    remote_mirror::{RemoteMirror, generate_noise, generate_noise_files, remote_url, run_git},
};

const EVERY_BRANCH: &str = "+refs/heads/*:refs/heads/*";

impl RemoteMirror {
    /// Creates a commit with these files.
    fn commit(&self, parent: Option<&str>, files: &[(impl AsRef<str>, impl AsRef<[u8]>)]) -> String {
        let mut tree = String::new();
        for (name, content) in files {
            let blob = self.write_blob(content.as_ref());
            tree.push_str(&format!("100644 blob {blob}\t{}\n", name.as_ref()));
        }
        let tree = run_git(&self.remote, &["mktree"], tree.as_bytes());
        self.raw_commit(&tree, parent, &build_sound_author())
    }

    fn write_blob(&self, content: &[u8]) -> String {
        run_git(&self.remote, &["hash-object", "-w", "--stdin"], content)
    }

    /// Creates a commit whose parent and author headers are written literally.
    fn raw_commit(&self, tree: &str, parent: Option<&str>, author: &str) -> String {
        let parent = parent
            .map(|parent| format!("parent {parent}\n"))
            .unwrap_or_default();
        let text = format!("tree {tree}\n{parent}{author}\ncommitter {SOUND}\n\nA change\n");
        let arguments = ["hash-object", "-t", "commit", "-w", "--literally", "--stdin"];
        run_git(&self.remote, &arguments, text.as_bytes())
    }

    fn set(&self, branch: &str, commit: &str) {
        run_git(
            &self.remote,
            &["update-ref", &format!("refs/heads/{branch}"), commit],
            b"",
        );
    }

    /// Fetches every branch, `main` first.
    async fn fetch_branches(&self, url: &str) -> Result<FetchedBranches, Error> {
        let none = BTreeMap::new();
        let transport = self.transport();
        transport
            .fetch_branches(url, Some(&self.auth), &["main"], &none)
            .await
    }

    fn head(&self, branch: &str) -> Option<String> {
        self.open()
            .branch_head(branch)
            .unwrap()
            .map(|head| head.to_string())
    }
}

const SOUND: &str = "A <a@b.example> 1243040974 +0000";

fn build_sound_author() -> String {
    format!("author {SOUND}")
}

/// Plants everything that misleads git when it reads the configuration of a repository that an attacker could
/// write.
fn plant_hostile_configuration(mirror: &Path, marker: &Path, elsewhere: &str) {
    let script = format!("env > {}; true", marker.display());
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\talternateRefsCommand = \"{script}\"\n\
         \tsshCommand = \"{script}\"\n\tfsmonitor = \"{script}\"\n\
         [url \"{elsewhere}\"]\n\tinsteadOf = http://127.0.0.1\n\tpushInsteadOf = http://127.0.0.1\n\
         [http]\n\tproxy = {elsewhere}\n\tsslVerify = false\n\tcookieFile = /etc/passwd\n\
         [include]\n\tpath = {}\n[remote \"origin\"]\n\tproxy = {elsewhere}\n",
        marker.display()
    );
    fs::write(mirror.join("config"), config).unwrap();
    fs::create_dir_all(mirror.join("objects/info")).unwrap();
    fs::create_dir_all(mirror.join("info")).unwrap();
    fs::write(mirror.join("objects/info/alternates"), "/nonexistent/objects\n").unwrap();
    fs::write(mirror.join("config.worktree"), "[core]\n\tbare = false\n").unwrap();
}

#[tokio::test]
async fn planted_configuration_runs_nothing_and_redirects_nothing() {
    let world = RemoteMirror::start().await;
    let base = world.commit(None, &[("a.txt", b"one\n")]);
    world.set("main", &base);
    let spy = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("http://{}/", spy.local_addr().unwrap());
    let marker = world.root.path().join("pwned");
    plant_hostile_configuration(&world.mirror, &marker, &elsewhere);
    let transport = world.transport();
    let fetched = transport.fetch(&world.url, Some(&world.auth), &[EVERY_BRANCH], true);
    fetched.await.unwrap();
    assert_eq!(world.head("main").as_deref(), Some(base.as_str()));
    plant_hostile_configuration(&world.mirror, &marker, &elsewhere);
    // A configuration that is a link is replaced, not followed.
    let foreign = world.root.path().join("foreign");
    fs::rename(world.mirror.join("config"), &foreign).unwrap();
    std::os::unix::fs::symlink(&foreign, world.mirror.join("config")).unwrap();
    let commit: CommitId = base.parse().unwrap();
    let pushed = transport.push(&world.url, Some(&world.auth), &commit, "feat/x", None);
    pushed.await.unwrap();
    assert!(!marker.exists(), "a planted command ran");
    assert!(!world.mirror.join("objects/info/alternates").exists());
    assert!(fs::read_to_string(&foreign).unwrap().contains("insteadOf"));
    let nobody = tokio::time::timeout(Duration::from_millis(50), spy.accept()).await;
    assert!(nobody.is_err(), "a request went elsewhere");
}

#[tokio::test]
async fn credential_is_sent_to_its_url_only() {
    let world = RemoteMirror::start().await;
    let base = world.commit(None, &[("a.txt", b"one\n")]);
    world.set("main", &base);
    // The remote redirects to another host: git does not follow and sends no header there.
    let spy = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = format!("http://{}/acme/shop.git/info/refs", spy.local_addr().unwrap());
    let redirecting = axum::Router::new().fallback(move || {
        let target = target.clone();
        async move { axum::response::Redirect::permanent(&target) }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/acme/shop.git", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, redirecting).await.unwrap() });
    let fetched = world
        .transport()
        .fetch(&url, Some(&world.auth), &[EVERY_BRANCH], true)
        .await;
    assert!(fetched.is_err());
    let nobody = tokio::time::timeout(Duration::from_millis(50), spy.accept()).await;
    assert!(nobody.is_err(), "a redirect was followed");
}

#[tokio::test]
async fn odd_history_of_old_tools_is_fetched() {
    let world = RemoteMirror::start().await;
    let mut parent = world.commit(None, &[("a.txt", b"one\n")]);
    let tree = run_git(&world.remote, &["rev-parse", &format!("{parent}^{{tree}}")], b"");
    for author in [
        "author A 1243040974 +0000",
        "author A <a@b.example> 1243040974 +051800",
        "author A <a@b.example> 1243040974 -7530",
        "author A <a@b.example> 01243040974 +0000",
        "author A <a@b.example> 99999999999999999999 +0000",
        "author A <a@b.example>1243040974 +0000",
        "author A<a@b.example> 1243040974 +0000",
        "author <a@b.example> 1243040974 +0000",
        "author A <a@b.example> 1243040974 +0000\nauthor B <b@b.example> 1243040974 +0000",
        "author A <a<b@b.example> 1243040974 +0000",
    ] {
        parent = world.raw_commit(&tree, Some(&parent), author);
    }
    // Modes with a leading zero.
    let blob = world.write_blob(b"x\n");
    let padded = raw_tree(&world.remote, &[("0100644", "b.txt", &blob)]);
    parent = world.raw_commit(&padded, Some(&parent), &build_sound_author());
    world.set("main", &parent);
    let fetched = world.fetch_branches(&world.url).await;
    assert!(fetched.unwrap().refused.is_empty());
    assert_eq!(world.head("main"), Some(parent.clone()));
    // The library can read it too.
    assert!(world.open().contains(&parent.parse().unwrap()));
}

/// Writes a tree byte by byte, without git's checks.
fn raw_tree(remote: &Path, entries: &[(&str, &str, &str)]) -> String {
    let mut content = Vec::new();
    for (mode, name, id) in entries {
        content.extend(format!("{mode} {name}\0").into_bytes());
        let bytes = (0..40)
            .step_by(2)
            .map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap());
        content.extend(bytes);
    }
    let arguments = ["hash-object", "-t", "tree", "-w", "--literally", "--stdin"];
    run_git(remote, &arguments, &content)
}

#[tokio::test]
async fn dangerous_object_blocks_only_its_branches() {
    let world = RemoteMirror::start().await;
    let base = world.commit(None, &[("a.txt", b"one\n")]);
    world.set("main", &base);
    let blob = world.write_blob(b"x\n");
    let zero = "0".repeat(40);
    type TreeEntries<'e> = &'e [(&'e str, &'e str, &'e str)];
    let cases: [(TreeEntries<'_>, &str); 5] = [
        (&[("100644", ".GIT", &blob)], "hasDotgit"),
        (
            &[("100644", "a", &blob), ("100644", "a", &blob)],
            "duplicateEntries",
        ),
        (&[("100644", "..", &blob)], "hasDotdot"),
        (&[("100644", "a", &zero)], "nullSha1"),
        (&[("100644", "b", &blob), ("100644", "a", &blob)], "treeNotSorted"),
    ];
    for (number, (entries, _)) in cases.iter().enumerate() {
        let tree = raw_tree(&world.remote, entries);
        world.set(
            &format!("odd-{number}"),
            &world.raw_commit(&tree, Some(&base), &build_sound_author()),
        );
    }
    for number in 0..9 {
        let name = format!("{number}.txt");
        world.set(
            &format!("work-{number}"),
            &world.commit(Some(&base), &[(&name, b"x\n")]),
        );
    }
    let fetched = world.fetch_branches(&world.url).await.unwrap();
    for (number, (_, fault)) in cases.iter().enumerate() {
        let reason = &fetched.refused[&format!("odd-{number}")].reason;
        // A git remote cannot send an entry with the null id at all.
        let is_named = reason.contains(fault) || (*fault == "nullSha1" && reason.contains("corruption"));
        assert!(is_named, "{reason}");
        assert_eq!(world.head(&format!("odd-{number}")), None);
    }
    assert_eq!(fetched.refused.len(), cases.len());
    assert!((0..9).all(|number| world.head(&format!("work-{number}")).is_some()));
    // The fetch fails at once for the branch of the work, with object and fault.
    let (transport, none) = (world.transport(), BTreeMap::new());
    let refused = transport
        .fetch_branches(&world.url, Some(&world.auth), &["odd-0"], &none)
        .await;
    let Err(Error::RefusedObject { object, fault, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((object.len(), fault.as_str()), (40, "hasDotgit"));
    // Branches that were refused before are not fetched again, and removed branches are pruned.
    let skipped = fetched.refused;
    run_git(&world.remote, &["update-ref", "-d", "refs/heads/work-3"], b"");
    let fetched = transport
        .fetch_branches(&world.url, Some(&world.auth), &["main"], &skipped)
        .await;
    assert_eq!(fetched.unwrap().refused.len(), cases.len());
    assert_eq!(
        (world.head("work-3"), world.head("work-4").is_some()),
        (None, true)
    );
}

#[tokio::test]
async fn branch_replaces_removed_one_beside_refused_one() {
    let world = RemoteMirror::start().await;
    let head = world.commit(None, &[("a.txt", b"one\n")]);
    for branch in ["main", "odd", "fix", "old/part"] {
        world.set(branch, &head);
    }
    world.fetch_branches(&world.url).await.unwrap();
    for (removed, added) in [("fix", "fix/part"), ("old/part", "old")] {
        let name = format!("refs/heads/{removed}");
        run_git(&world.remote, &["update-ref", "-d", &name], b"");
        world.set(added, &head);
    }
    let odd = RefusedBranch {
        head: head.parse().unwrap(),
        reason: "an odd history".to_owned(),
    };
    let skipped = BTreeMap::from([("odd".to_owned(), odd)]);
    let transport = world.transport();
    let fetched = transport
        .fetch_branches(&world.url, Some(&world.auth), &["main"], &skipped)
        .await
        .unwrap();
    assert!(fetched.refused.keys().eq(["odd"]), "{:?}", fetched.refused);
    for (branch, expected) in [
        ("fix", None),
        ("fix/part", Some(&head)),
        ("old/part", None),
        ("old", Some(&head)),
    ] {
        assert_eq!(world.head(branch).as_ref(), expected, "{branch}");
    }
}

#[tokio::test]
async fn twice_interrupted_fetch_keeps_received_objects() {
    const FILE: usize = 200_000;
    const FILES: u64 = 30;
    let world = RemoteMirror::start().await;
    let head = world.commit(None, &generate_noise_files(1, FILES, FILE));
    world.set("main", &head);
    let whole = FILE as u64 * FILES;
    let proxy = CuttingProxy::start(&world.base_url, whole / 2, 2).await;
    let url = remote_url(&proxy.url);
    let mut cuts = 0;
    while let Err(error) = world.fetch_branches(&url).await {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        cuts += 1;
        assert!(cuts < 4, "{error}");
        assert_eq!(world.head("main"), None);
    }
    assert_eq!(
        (world.head("main"), proxy.cuts.load(Ordering::SeqCst)),
        (Some(head), 0)
    );
    let passed = proxy.passed.load(Ordering::SeqCst);
    assert!(passed < whole + whole / 5, "{passed} bytes for {whole}");
    let left = fs::read_dir(world.mirror.join("objects/pack"))
        .unwrap()
        .filter_map(Result::ok);
    let left: Vec<_> = left
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert!(left.iter().all(|name| !name.starts_with("tmp_")), "{left:?}");
    assert!(!world.mirror.join("recovered").exists());
    run_git(&world.mirror, &["fsck", "--strict", "--no-dangling"], b"");
}

#[tokio::test]
async fn fetch_cut_at_several_offsets_continues() {
    const FILE: usize = 60_000;
    const FILES: u64 = 20;
    let whole = FILE as u64 * FILES;
    // Within the first object, in the middle, and shortly before the end.
    for (round, after) in [whole / 50, whole / 3, whole / 2, whole * 9 / 10]
        .into_iter()
        .enumerate()
    {
        let world = RemoteMirror::start().await;
        let files = generate_noise_files(round as u64 * FILES + 1, FILES, FILE);
        let head = world.commit(None, &files);
        world.set("main", &head);
        let proxy = CuttingProxy::start(&world.base_url, after, 2).await;
        let url = remote_url(&proxy.url);
        let mut cuts = 0;
        while let Err(error) = world.fetch_branches(&url).await {
            assert!(matches!(error, Error::Unavailable(_)), "{after}: {error}");
            cuts += 1;
            assert!(cuts < 4, "{after}: {error}");
        }
        assert_eq!(world.head("main"), Some(head), "{after}");
        let passed = proxy.passed.load(Ordering::SeqCst);
        // Each interruption loses at most one object and what was read ahead.
        let limit = whole + whole / 3;
        assert!(passed < limit, "{after}: {passed} bytes for {whole}");
        run_git(&world.mirror, &["fsck", "--strict", "--no-dangling"], b"");
    }
}

#[tokio::test]
async fn recovered_objects_that_are_dangerous_are_refused() {
    let world = RemoteMirror::start().await;
    let blob = world.write_blob(&generate_noise(7, 400_000));
    let other = world.write_blob(&generate_noise(8, 400_000));
    let tree = raw_tree(
        &world.remote,
        &[("100644", ".git", &blob), ("100644", "z", &other)],
    );
    world.set("main", &world.raw_commit(&tree, None, &build_sound_author()));
    let proxy = CuttingProxy::start(&world.base_url, 500_000, 1).await;
    let url = remote_url(&proxy.url);
    for _ in 0..3 {
        let fetched = world.fetch_branches(&url).await;
        if let Err(Error::RefusedObject { fault, .. }) = &fetched {
            assert_eq!(fault, "hasDotgit");
            return;
        }
        assert!(fetched.is_err(), "a dangerous object was taken in");
    }
    panic!("the object was never named");
}

#[tokio::test]
async fn branch_in_the_way_is_named() {
    let world = RemoteMirror::start().await;
    let base = world.commit(None, &[("a.txt", b"one\n")]);
    world.set("main", &base);
    world.set("fix", &base);
    world.set("feat/ENG-1/part", &base);
    let transport = world.transport();
    transport
        .fetch(&world.url, Some(&world.auth), &[EVERY_BRANCH], true)
        .await
        .unwrap();
    let commit: CommitId = base.parse().unwrap();
    for (branch, in_the_way) in [("fix/ENG-2-x", "fix"), ("feat/ENG-1", "feat/ENG-1/part")] {
        let pushed = transport
            .push(&world.url, Some(&world.auth), &commit, branch, None)
            .await;
        let Err(Error::BranchInTheWay { by, .. }) = pushed else {
            panic!("{pushed:?}");
        };
        assert_eq!(by, in_the_way);
    }
    let pushed = transport
        .push(&world.url, Some(&world.auth), &commit, "fix-ENG-2-x", None)
        .await;
    assert!(pushed.is_ok(), "{pushed:?}");
}

#[tokio::test]
async fn stalled_fetch_ends_with_its_helpers() {
    let world = RemoteMirror::start().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/acme/shop.git", silent.local_addr().unwrap());
    let settings = git::FetchSettings {
        progress_limit_s: 1,
        least_kib: 1,
        ..git::FetchSettings::default()
    };
    let transport = world.transport().with_watch(git::FetchWatch::new(settings));
    let fetched = transport.fetch(&url, None, &[EVERY_BRANCH], true).await;
    assert!(matches!(fetched, Err(Error::Stalled(_))), "{fetched:?}");
    // git's helper for the transfer has the URL among its arguments.
    let is_left = || {
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        processes.into_iter().any(|entry| {
            fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&url))
        })
    };
    let gone = async {
        while is_left() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
}

#[tokio::test]
async fn maintenance_packs_a_mirror_and_drops_leftovers() {
    let world = RemoteMirror::start().await;
    let transport = world.transport();
    let mut head = world.commit(None, &[("a.txt", b"0\n")]);
    for number in 0..5 {
        head = world.commit(Some(&head), &[("a.txt", format!("{number}\n"))]);
        world.set("main", &head);
        transport
            .fetch(&world.url, Some(&world.auth), &[EVERY_BRANCH], true)
            .await
            .unwrap();
    }
    let packs = || {
        let entries = fs::read_dir(world.mirror.join("objects/pack"))
            .unwrap()
            .filter_map(Result::ok);
        entries
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "pack"))
            .count()
    };
    assert_eq!(packs(), 5);
    fs::write(
        world.mirror.join("objects/pack/tmp_pack_old"),
        generate_noise(3, 100),
    )
    .unwrap();
    let quarantine = world.mirror.join("objects/tmp_objdir-incoming-old");
    fs::create_dir_all(quarantine.join("pack")).unwrap();
    maintain_mirror(&world.mirror).unwrap();
    assert_eq!(packs(), 1);
    assert!(!world.mirror.join("objects/pack/tmp_pack_old").exists() && !quarantine.exists());
    assert!(
        world.mirror.join("objects/info/commit-graph").exists()
            || world.mirror.join("objects/info/commit-graphs").exists()
    );
    assert_eq!(world.head("main"), Some(head));
}
