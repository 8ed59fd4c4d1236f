//! First fetches in steps: order, interruptions, restarts, and answers that need the missing history.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
    sync::atomic::Ordering,
};

use domain::CommitId;
use git::{BareRepository, Error, GitTransport, StepProgress, StepTarget};

use crate::{
    cutting_proxy::CuttingProxy,
    remote_mirror::{RemoteMirror, generate_noise, generate_noise_files, remote_url, run_git},
};

const BASES: [&str; 1] = ["main"];

/// Commits for `git fast-import`. Marks count from 1.
#[derive(Default)]
struct HistoryWriter {
    stream: Vec<u8>,
    commits: usize,
}

impl HistoryWriter {
    /// Adds a commit with these files to a branch; returns its mark.
    fn commit(&mut self, branch: &str, parents: &[usize], files: &[(String, Vec<u8>)]) -> usize {
        self.commits += 1;
        let (mark, time) = (self.commits, 1_700_000_000 + self.commits * 100);
        let mut head = format!("commit refs/heads/{branch}\nmark :{mark}\n");
        writeln!(head, "committer A <a@b.example> {time} +0000\ndata 2\nx").unwrap();
        for (number, parent) in parents.iter().enumerate() {
            let word = if number == 0 { "from" } else { "merge" };
            writeln!(head, "{word} :{parent}").unwrap();
        }
        self.stream.extend(head.into_bytes());
        for (name, content) in files {
            let head = format!("M 100644 inline {name}\ndata {}\n", content.len());
            self.stream.extend(head.into_bytes());
            self.stream.extend(content);
            self.stream.push(b'\n');
        }
        mark
    }

    fn write(&self, remote: &Path) {
        run_git(remote, &["fast-import", "--quiet", "--force"], &self.stream);
    }
}

fn text_file(name: &str, number: usize) -> (String, Vec<u8>) {
    (
        name.to_owned(),
        format!("line {number}\n").repeat(20).into_bytes(),
    )
}

/// Linear history of `main`, with `new` near its head and `old` near its root. `main` merges a branch of the middle.
fn write_history(world: &RemoteMirror, commits: usize) {
    let mut history = HistoryWriter::default();
    let mut main = history.commit("main", &[], &[text_file("a.txt", 0)]);
    let mut side = 0;
    for number in 1..commits {
        let mut parents = vec![main];
        if number == commits / 4 {
            history.commit("old", &[main], &[text_file("old.txt", 1)]);
        }
        if number == commits / 2 {
            side = history.commit("side", &[main], &[text_file("side.txt", 1)]);
        }
        if number == commits - 10 {
            parents.push(side);
        }
        main = history.commit("main", &parents, &[text_file("a.txt", number)]);
        if number == commits - 2 {
            history.commit("new", &[main], &[text_file("new.txt", 1)]);
        }
    }
    history.write(&world.remote);
}

/// Starts a remote with such a history, and a mirror that has the files of `main` alone.
async fn start_with_tips(commits: usize) -> RemoteMirror {
    let world = RemoteMirror::start().await;
    write_history(&world, commits);
    world.transport().begin_steps().await.unwrap();
    world.fetch_tips(&world.url).await.unwrap();
    world
}

impl RemoteMirror {
    fn target<'a>(&'a self, url: &'a str) -> StepTarget<'a> {
        StepTarget {
            url,
            auth: Some(&self.auth),
            bases: &BASES,
        }
    }

    /// Fetches the files of the present base branch.
    async fn fetch_tips(&self, url: &str) -> Result<(), Error> {
        let heads = BTreeMap::from([("main".to_owned(), self.remote_commit("main"))]);
        self.transport().fetch_tips(self.target(url), &heads).await
    }

    /// Performs the next step with a new transport, as after a restart.
    async fn fetch_step(&self, url: &str) -> Result<StepProgress, Error> {
        self.transport().fetch_step(self.target(url)).await
    }

    fn remote_commit(&self, name: &str) -> CommitId {
        run_git(&self.remote, &["rev-parse", name], b"").parse().unwrap()
    }

    fn count(&self, repository: &Path) -> usize {
        run_git(repository, &["rev-list", "--count", "main"], b"")
            .parse()
            .unwrap()
    }

    async fn finish(&self, url: &str) {
        for _ in 0..100 {
            let progress = self.fetch_step(url).await.unwrap();
            if progress == StepProgress::Finished {
                return;
            }
        }
        panic!("the steps do not end");
    }

    /// Performs all steps over a line that breaks, and returns the number of interruptions.
    async fn finish_with_cuts(&self, url: &str) -> usize {
        let (mut cuts, mut before) = (0, 0);
        loop {
            let step = async {
                if self.open().branch_head("main").unwrap().is_none() {
                    self.fetch_tips(url).await?;
                    return Ok(StepProgress::Unfinished);
                }
                self.fetch_step(url).await
            };
            match step.await {
                Ok(StepProgress::Finished) => return cuts,
                Ok(StepProgress::Unfinished) => {}
                Err(error) => {
                    assert!(matches!(error, Error::Unavailable(_)), "{error}");
                    cuts += 1;
                    assert!(cuts < 60, "{error}");
                }
            }
            if self.open().branch_head("main").unwrap().is_some() {
                let now = self.count(&self.mirror);
                assert!(now >= before, "history was lost: {now} after {before}");
                before = now;
            }
        }
    }

    fn assert_complete(&self) {
        assert!(!self.open().is_incomplete().unwrap());
        assert_eq!(self.count(&self.mirror), self.count(&self.remote));
        run_git(&self.mirror, &["fsck", "--strict", "--no-dangling"], b"");
        let references = run_git(&self.mirror, &["for-each-ref", "refs/wanted"], b"");
        assert_eq!(references, "");
        let left = fs::read_dir(self.mirror.join("objects/pack")).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<_> = left.filter(|name| name.starts_with("tmp_")).collect();
        assert_eq!(left, Vec::<String>::new());
    }
}

#[tokio::test]
async fn base_branch_comes_first_and_history_in_steps() {
    let world = start_with_tips(400).await;
    let (main, new, old) = (
        world.remote_commit("main"),
        world.remote_commit("new"),
        world.remote_commit("old"),
    );
    let mirror = world.open();
    assert_eq!(mirror.branch_head("main").unwrap(), Some(main.clone()));
    assert!(mirror.is_shallow().unwrap() && mirror.is_incomplete().unwrap());
    assert_eq!(world.count(&world.mirror), 1);
    assert_eq!(mirror.branches().unwrap(), BTreeSet::from(["main".to_owned()]));
    assert_eq!(mirror.merge_base(&main, &main).unwrap(), Some(main.clone()));
    // A step of 50 generations reaches the start of one branch and not of the other.
    let step = world.fetch_step(&world.url).await;
    assert_eq!(step.unwrap(), StepProgress::Unfinished);
    for branch in ["new", "old"] {
        let transport = world.transport();
        let fetched = transport.fetch_branch_early(world.target(&world.url), branch);
        assert!(fetched.await.unwrap(), "{branch}");
    }
    let mirror = world.open();
    let base = run_git(&world.remote, &["merge-base", "main", "new"], b"");
    let base: CommitId = base.parse().unwrap();
    assert_eq!(mirror.merge_base(&main, &new).unwrap(), Some(base.clone()));
    assert!(mirror.is_descendant(&main, &base).unwrap());
    assert!(!mirror.is_descendant(&main, &new).unwrap());
    assert_eq!(mirror.commits(&base, &new).unwrap().len(), 1);
    let unknown = [
        mirror.merge_base(&main, &old).err(),
        mirror.is_descendant(&main, &old).err(),
        mirror.commits(&old, &main).err(),
        mirror
            .commit_sources_beyond(&main, std::slice::from_ref(&old))
            .err(),
    ];
    for error in unknown {
        assert!(matches!(error, Some(Error::HistoryIncomplete)), "{error:?}");
    }
    // A commit of the base branch that is older than the received history waits for it.
    let older = world.remote_commit("main~300");
    let transport = world.transport();
    let fetched = transport.fetch_commit_early(world.target(&world.url), &older);
    assert!(!fetched.await.unwrap());
    world.finish(&world.url).await;
    world.assert_complete();
    let mirror = world.open();
    let base = run_git(&world.remote, &["merge-base", "main", "old"], b"");
    assert_eq!(
        mirror.merge_base(&main, &old).unwrap(),
        Some(base.parse().unwrap())
    );
    assert!(mirror.is_descendant(&main, &older).unwrap());
    assert_eq!(mirror.branches().unwrap().len(), 4);
}

#[tokio::test]
async fn commits_of_other_branches_are_brought_early() {
    let world = start_with_tips(400).await;
    world.fetch_step(&world.url).await.unwrap();
    let new = world.remote_commit("new");
    let transport = world.transport();
    let fetched = transport.fetch_commit_early(world.target(&world.url), &new);
    assert!(fetched.await.unwrap());
    let mirror = world.open();
    assert!(mirror.contains(&new));
    assert!(
        mirror
            .merge_base(&world.remote_commit("main"), &new)
            .unwrap()
            .is_some()
    );
    // The remote has no such commit; the mirror is as before.
    let absent: CommitId = "1".repeat(40).parse().unwrap();
    let transport = world.transport();
    let fetched = transport.fetch_commit_early(world.target(&world.url), &absent);
    assert!(!fetched.await.unwrap());
    world.finish(&world.url).await;
    world.assert_complete();
}

#[tokio::test]
async fn moved_and_rewritten_base_branch_is_followed() {
    let world = start_with_tips(300).await;
    // A merge of a branch that began far below the received history.
    let (main, old) = (world.remote_commit("main"), world.remote_commit("old"));
    let parents = ["-p", main.as_str(), "-p", old.as_str(), "-m", "merge"];
    let tree = format!("{main}^{{tree}}");
    let merge = run_git(
        &world.remote,
        &[&["commit-tree", tree.as_str()], &parents[..]].concat(),
        b"",
    );
    run_git(&world.remote, &["update-ref", "refs/heads/main", &merge], b"");
    world.fetch_tips(&world.url).await.unwrap();
    assert_eq!(
        world.open().branch_head("main").unwrap(),
        Some(merge.parse().unwrap())
    );
    assert!(world.count(&world.mirror) < 60, "the whole history came at once");
    // A rewritten branch.
    let rewritten = run_git(
        &world.remote,
        &["commit-tree", tree.as_str(), "-p", "main~40", "-m", "x"],
        b"",
    );
    run_git(&world.remote, &["update-ref", "refs/heads/main", &rewritten], b"");
    world.fetch_tips(&world.url).await.unwrap();
    assert_eq!(
        world.open().branch_head("main").unwrap(),
        Some(rewritten.parse().unwrap())
    );
    world.finish(&world.url).await;
    world.assert_complete();
}

#[tokio::test]
async fn steps_cut_at_several_offsets_end() {
    const FILE: usize = 30_000;
    for (round, after) in [3_000, 60_000, 200_000, 500_000].into_iter().enumerate() {
        let world = RemoteMirror::start().await;
        let mut history = HistoryWriter::default();
        let mut seed = round as u64 * 1_000 + 20;
        let mut main = history.commit("main", &[], &generate_noise_files(seed - 19, 20, FILE));
        let mut noise = |name: String| {
            seed += 1;
            (name, generate_noise(seed, FILE))
        };
        for number in 0..60 {
            main = history.commit("main", &[main], &[noise(format!("{:02}.bin", number % 20))]);
        }
        history.commit("other", &[main], &[noise("other.bin".to_owned())]);
        history.write(&world.remote);
        let proxy = CuttingProxy::start(&world.base_url, after, 4).await;
        let url = remote_url(&proxy.url);
        world.transport().begin_steps().await.unwrap();
        world.finish_with_cuts(&url).await;
        assert_eq!(proxy.cuts.load(Ordering::SeqCst), 0, "{after}");
        world.assert_complete();
        assert_eq!(
            world.open().branch_head("other").unwrap(),
            Some(world.remote_commit("other"))
        );
        // Each interruption loses at most what the line carried in that step.
        let passed = proxy.passed.load(Ordering::SeqCst);
        let whole = (FILE * 81) as u64;
        assert!(
            passed < whole + 4 * after + 400_000,
            "{after}: {passed} bytes for {whole}"
        );
    }
}

#[tokio::test]
async fn files_of_interrupted_head_are_kept() {
    const FILE: usize = 60_000;
    const FILES: u64 = 20;
    let whole = FILE as u64 * FILES;
    let world = RemoteMirror::start().await;
    let mut history = HistoryWriter::default();
    let first = history.commit("main", &[], &[text_file("a.txt", 1)]);
    history.commit("main", &[first], &generate_noise_files(1, FILES, FILE));
    history.write(&world.remote);
    let proxy = CuttingProxy::start(&world.base_url, whole / 2, 2).await;
    let url = remote_url(&proxy.url);
    world.transport().begin_steps().await.unwrap();
    let mut cuts = 0;
    while let Err(error) = world.fetch_tips(&url).await {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        assert_eq!(world.open().branch_head("main").unwrap(), None);
        cuts += 1;
        assert!(cuts < 5, "{error}");
    }
    assert!(cuts > 0);
    assert_eq!(
        world.open().branch_head("main").unwrap(),
        Some(world.remote_commit("main"))
    );
    let passed = proxy.passed.load(Ordering::SeqCst);
    assert!(passed < whole + whole / 3, "{passed} bytes for {whole}");
    world.finish(&url).await;
    world.assert_complete();
}

#[tokio::test]
async fn generation_larger_than_line_is_completed() {
    const FILE: usize = 50_000;
    let world = RemoteMirror::start().await;
    let mut history = HistoryWriter::default();
    let mut main = history.commit("main", &[], &[text_file("a.txt", 0)]);
    main = history.commit("main", &[main], &[text_file("a.txt", 1)]);
    // One commit adds all of these files, and the next one removes their content.
    let large = generate_noise_files(1, 24, FILE);
    main = history.commit("main", &[main], &large);
    let empty: Vec<_> = large.iter().map(|(name, _)| (name.clone(), Vec::new())).collect();
    main = history.commit("main", &[main], &empty);
    history.commit("main", &[main], &[text_file("a.txt", 2)]);
    history.write(&world.remote);
    // The line never carries a half of it. Six interruptions lead to single generations.
    let proxy = CuttingProxy::start(&world.base_url, 500_000, 9).await;
    let url = remote_url(&proxy.url);
    world.transport().begin_steps().await.unwrap();
    let cuts = world.finish_with_cuts(&url).await;
    assert!(cuts >= 6, "{cuts}");
    world.assert_complete();
}

#[tokio::test]
async fn present_history_is_adopted_without_transfer() {
    let world = start_with_tips(300).await;
    // A process that was killed between the pack and the boundary leaves this.
    run_git(&world.remote, &["repack", "-a", "-d", "-q"], b"");
    for entry in fs::read_dir(world.remote.join("objects/pack")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(
            entry.path(),
            world.mirror.join("objects/pack").join(entry.file_name()),
        )
        .unwrap();
    }
    world.fetch_step(&world.url).await.unwrap();
    assert!(!world.open().is_shallow().unwrap());
    assert_eq!(world.count(&world.mirror), world.count(&world.remote));
    world.finish(&world.url).await;
    world.assert_complete();
}

#[tokio::test]
async fn hundred_thousand_branches_open_quickly() {
    const BRANCHES: usize = 100_000;
    let world = RemoteMirror::start().await;
    write_history(&world, 20);
    let main = world.remote_commit("main");
    let mut packed = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
    for number in 0..BRANCHES {
        writeln!(packed, "{main} refs/heads/b/{number:06}").unwrap();
    }
    writeln!(packed, "{main} refs/heads/main").unwrap();
    fs::remove_dir_all(world.remote.join("refs/heads")).unwrap();
    fs::create_dir_all(world.remote.join("refs/heads")).unwrap();
    fs::write(world.remote.join("packed-refs"), packed).unwrap();
    let proxy = CuttingProxy::start(&world.base_url, u64::MAX, 0).await;
    let url = remote_url(&proxy.url);
    world.transport().begin_steps().await.unwrap();
    world.fetch_tips(&url).await.unwrap();
    let passed = proxy.passed.load(Ordering::SeqCst);
    assert!(passed < 20_000, "{passed} bytes before the first use");
    assert_eq!(world.open().branches().unwrap().len(), 1);
    // The other branches come in growing steps, and each is kept.
    let mut before = 1;
    while before < 3_000 {
        let step = world.fetch_step(&url).await;
        assert_eq!(step.unwrap(), StepProgress::Unfinished);
        let now = world.open().branches().unwrap().len();
        assert!(now >= before, "{now} after {before}");
        before = now;
    }
    assert!(world.mirror.join("packed-refs").exists());
}

#[expect(clippy::print_stdout, reason = "the figures are shown with `--nocapture`")]
#[tokio::test]
async fn first_bytes_stay_near_blobless_clone() {
    let world = RemoteMirror::start().await;
    let mut history = HistoryWriter::default();
    let mut main = 0;
    for number in 0..150_usize {
        let parents: Vec<usize> = (main > 0).then_some(main).into_iter().collect();
        // Words that compress like a source file.
        let noise = generate_noise(number as u64 + 1, 8_000);
        let text: Vec<u8> = noise
            .iter()
            .map(|byte| b"abcdefghij klmn\n"[usize::from(byte % 16)])
            .collect();
        let mut files = vec![(format!("src/{:02}.rs", number % 25), text)];
        files.push(text_file(&format!("docs/{number:03}.md"), number));
        main = history.commit("main", &parents, &files);
    }
    history.write(&world.remote);
    run_git(&world.remote, &["config", "uploadpack.allowFilter", "true"], b"");
    let measure = || CuttingProxy::start(&world.base_url, u64::MAX, 0);
    let (blobless, tips, whole) = (measure().await, measure().await, measure().await);
    for (proxy, filter) in [(&blobless, Some("--filter=blob:none")), (&whole, None)] {
        let place = world.root.path().join(format!("clone-{}", filter.is_some()));
        let mut clone = tokio::process::Command::new("git");
        clone.args([
            "-c",
            "http.extraHeader=Authorization: Bearer letmein",
            "clone",
            "--quiet",
        ]);
        clone.args(filter).arg(remote_url(&proxy.url)).arg(place);
        assert!(clone.status().await.unwrap().success());
    }
    let url = remote_url(&tips.url);
    world.transport().begin_steps().await.unwrap();
    world.fetch_tips(&url).await.unwrap();
    let [blobless, tips, whole] = [blobless, tips, whole].map(|proxy| proxy.passed.load(Ordering::SeqCst));
    println!(
        "bytes before the first use: {tips}; blobless clone with files: {blobless}; whole clone: {whole}"
    );
    assert!(2 * tips <= 3 * blobless, "{tips} of {blobless}");
    assert!(tips < whole, "{tips} of {whole}");
}

#[tokio::test]
async fn mirror_with_boundary_can_push() {
    let world = start_with_tips(100).await;
    // The parent of the new commit is the boundary itself.
    let commit = |message: &str| -> CommitId {
        let arguments = ["commit-tree", "main^{tree}", "-p", "main", "-m", message];
        run_git(&world.mirror, &arguments, b"").parse().unwrap()
    };
    let (one, other) = (commit("one"), commit("other"));
    let transport = world.transport();
    let pushed = transport
        .push(&world.url, Some(&world.auth), &one, "fix/x", None)
        .await;
    pushed.unwrap();
    assert_eq!(world.remote_commit("fix/x"), one);
    // A clone of the mirror gets the commit before its branch is fetched.
    world.open().hold_commit(&one).unwrap();
    let held = format!("refs/wanted/{one}");
    assert_eq!(run_git(&world.mirror, &["rev-parse", &held], b""), one.as_str());
    let count = run_git(&world.remote, &["rev-list", "--count", "fix/x"], b"");
    assert_eq!(count, (world.count(&world.remote) + 1).to_string());
    let stale = transport
        .push(&world.url, Some(&world.auth), &other, "fix/x", None)
        .await;
    assert!(matches!(stale, Err(Error::LeaseStale(_))), "{stale:?}");
    run_git(&world.remote, &["fsck", "--strict", "--no-dangling"], b"");
}

#[tokio::test]
async fn mirror_of_incomplete_mirror_is_deepened() {
    let world = start_with_tips(300).await;
    let second = world.root.path().join("second.git");
    BareRepository::init_bare(&second).unwrap();
    let gate = format!("{}/mirror.git", world.base_url);
    let transport = GitTransport::new(&second);
    let specs = ["+refs/heads/*:refs/heads/*"];
    for is_deepened in [false, true] {
        let fetched = transport.fetch_mirror(&gate, Some(&world.auth), &specs, is_deepened);
        fetched.await.unwrap();
        assert_eq!(world.count(&second), 1);
    }
    world.fetch_step(&world.url).await.unwrap();
    let here = world.count(&world.mirror);
    transport
        .fetch_mirror(&gate, Some(&world.auth), &specs, true)
        .await
        .unwrap();
    assert_eq!(world.count(&second), here);
    world.finish(&world.url).await;
    for is_deepened in [false, true] {
        let fetched = transport.fetch_mirror(&gate, Some(&world.auth), &specs, is_deepened);
        fetched.await.unwrap();
    }
    assert!(!BareRepository::open(&second).unwrap().is_shallow().unwrap());
    assert_eq!(world.count(&second), world.count(&world.remote));
    // A repository whose objects are another one's needs its boundary, too.
    let third = world.root.path().join("third.git");
    BareRepository::init_bare(&third).unwrap();
    fs::write(
        second.join("shallow"),
        format!("{}\n", world.remote_commit("main")),
    )
    .unwrap();
    BareRepository::copy_boundary(&second, &third).unwrap();
    assert!(BareRepository::open(&third).unwrap().is_shallow().unwrap());
    fs::remove_file(second.join("shallow")).unwrap();
    BareRepository::copy_boundary(&second, &third).unwrap();
    assert!(!BareRepository::open(&third).unwrap().is_shallow().unwrap());
}

#[tokio::test]
async fn remote_without_base_branch_leaves_steps() {
    let world = RemoteMirror::start().await;
    let mut history = HistoryWriter::default();
    history.commit("trunk", &[], &[text_file("a.txt", 1)]);
    history.write(&world.remote);
    let transport = world.transport();
    transport.begin_steps().await.unwrap();
    let none = BTreeMap::new();
    transport
        .fetch_tips(world.target(&world.url), &none)
        .await
        .unwrap();
    assert!(transport.is_in_steps());
    transport.leave_steps().await.unwrap();
    assert!(!transport.is_in_steps());
    let step = transport.fetch_step(world.target(&world.url)).await;
    assert_eq!(step.unwrap(), StepProgress::Finished);
}
