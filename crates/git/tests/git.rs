//! Transport and repository against a real smart HTTP remote.

use std::{collections::HashMap, path::Path, time::Duration};

use crate::http_backend::HttpBackend;
use domain::CommitId;
use git::{
    BareRepository, ChangeKind, Error, FileMode, GitCredentials, GitTransport, InspectionBudget,
    InspectionCutoff, PackLimits, PushResult,
};
use secrecy::SecretString;
use tempfile::TempDir;

// A usual limit of the policy.
const MAX_FILE: u64 = 10 << 20;

/// Creates a commit on top of `parent` with this content at each path; `None` removes the path.
fn create_commit(
    repository: &BareRepository,
    parent: Option<&CommitId>,
    files: &[(&str, Option<&str>)],
) -> CommitId {
    let git = repository.objects();
    let parent = parent.map(|id| {
        git.find_commit(git2::Oid::from_str(id.as_str()).unwrap())
            .unwrap()
    });
    let mut index = git2::Index::new().unwrap();
    if let Some(parent) = &parent {
        index.read_tree(&parent.tree().unwrap()).unwrap();
    }
    // A large content at many paths is written once.
    let mut blobs = HashMap::new();
    for (path, content) in files {
        index.remove_path(Path::new(path)).ok();
        let Some(content) = content else { continue };
        let mode = match path.rsplit_once('.') {
            Some((_, "link")) => 0o120_000,
            Some((_, "module")) => 0o160_000,
            _ => 0o100_644,
        };
        let id = if mode == 0o160_000 {
            git2::Oid::from_str(content).unwrap()
        } else {
            *blobs
                .entry((content.as_ptr(), content.len()))
                .or_insert_with(|| git.blob(content.as_bytes()).unwrap())
        };
        let time = git2::IndexEntry {
            ctime: git2::IndexTime::new(0, 0),
            mtime: git2::IndexTime::new(0, 0),
            dev: 0,
            ino: 0,
            mode,
            uid: 0,
            gid: 0,
            file_size: 0,
            id,
            flags: 0,
            flags_extended: 0,
            path: path.as_bytes().to_vec(),
        };
        index.add(&time).unwrap();
    }
    let tree = git.find_tree(index.write_tree_to(git).unwrap()).unwrap();
    let who = git2::Signature::new(
        "A Person",
        "person@acme.example",
        &git2::Time::new(1_790_000_000, 0),
    )
    .unwrap();
    let parents: Vec<_> = parent.iter().collect();
    git.commit(None, &who, &who, "A change\n\nWith a reason.", &tree, &parents)
        .unwrap()
        .to_string()
        .parse()
        .unwrap()
}

struct World {
    _root: TempDir,
    remote: BareRepository,
    local: BareRepository,
    transport: GitTransport,
    url: String,
    auth: GitCredentials,
    base: CommitId,
}

async fn start_world() -> World {
    let root = TempDir::new().unwrap();
    let remote = BareRepository::init_bare(&root.path().join("remote/acme/shop.git")).unwrap();
    let base = create_commit(
        &remote,
        None,
        &[("a.txt", Some("one\n")), ("b.txt", Some("1\n2\n3\n4\n"))],
    );
    remote.set_branch("main", &base).unwrap();
    let local = BareRepository::init_bare(&root.path().join("local")).unwrap();
    let backend = HttpBackend::start(root.path().join("remote"), "Bearer letmein").await;
    let transport = GitTransport::new(local.path()).with_deadline(Duration::from_secs(30));
    let auth = GitCredentials::bearer(&SecretString::from("letmein"));
    let url = format!("{}/acme/shop.git", backend.url);
    World {
        _root: root,
        remote,
        local,
        transport,
        url,
        auth,
        base,
    }
}

impl World {
    async fn fetch(&self) -> Result<(), Error> {
        self.transport
            .fetch(&self.url, Some(&self.auth), &["+refs/heads/*:refs/heads/*"], true)
            .await
    }

    async fn push(&self, commit: &CommitId, expected: Option<&CommitId>) -> Result<PushResult, Error> {
        self.transport
            .push(&self.url, Some(&self.auth), commit, "feat/x", expected)
            .await
    }
}

#[tokio::test]
async fn fetch_updates_branches_and_prunes_deleted_ones() {
    let world = start_world().await;
    world.remote.set_branch("old", &world.base).unwrap();
    world.fetch().await.unwrap();
    assert_eq!(world.local.branch_head("old").unwrap(), Some(world.base.clone()));
    world
        .remote
        .objects()
        .find_reference("refs/heads/old")
        .unwrap()
        .delete()
        .unwrap();
    world.fetch().await.unwrap();
    assert_eq!(world.local.branch_head("old").unwrap(), None);
    assert_eq!(world.local.branch_head("main").unwrap(), Some(world.base.clone()));
}

#[tokio::test]
async fn push_creates_moves_and_repeats_branch() {
    let world = start_world().await;
    world.fetch().await.unwrap();
    let first = create_commit(&world.local, Some(&world.base), &[("a.txt", Some("two\n"))]);
    let second = create_commit(&world.local, Some(&first), &[("a.txt", Some("three\n"))]);
    assert_eq!(world.push(&first, None).await.unwrap(), PushResult::Updated);
    assert_eq!(
        world.push(&second, Some(&first)).await.unwrap(),
        PushResult::Updated
    );
    assert_eq!(
        world.push(&second, Some(&first)).await.unwrap(),
        PushResult::UpToDate
    );
    assert_eq!(world.remote.branch_head("feat/x").unwrap(), Some(second));
}

#[tokio::test]
async fn push_over_foreign_commit_is_stale() {
    let world = start_world().await;
    world.fetch().await.unwrap();
    let ours = create_commit(&world.local, Some(&world.base), &[("a.txt", Some("ours\n"))]);
    let theirs = create_commit(&world.remote, Some(&world.base), &[("a.txt", Some("theirs\n"))]);
    world.remote.set_branch("feat/x", &theirs).unwrap();
    for expected in [None, Some(&world.base)] {
        let error = world.push(&ours, expected).await.unwrap_err();
        assert!(matches!(error, Error::LeaseStale(_)), "{error}");
    }
    assert_eq!(world.remote.branch_head("feat/x").unwrap(), Some(theirs));
}

#[tokio::test]
async fn remote_failures_are_classified_without_credential() {
    let world = start_world().await;
    let wrong = GitCredentials::basic("x-access-token", &SecretString::from("hunter2"));
    let denied = world
        .transport
        .fetch(&world.url, Some(&wrong), &["+refs/heads/*:refs/heads/*"], false)
        .await;
    let denied = denied.unwrap_err();
    assert!(matches!(denied, Error::Denied(_)), "{denied}");
    assert!(!format!("{denied:?} {wrong:?}").contains("hunter2"));
    let missing = world.url.replace("shop", "shoes");
    let missing = world
        .transport
        .heads(&missing, Some(&world.auth))
        .await
        .unwrap_err();
    assert!(matches!(missing, Error::NotFound(_)), "{missing}");
    let nobody = world
        .transport
        .heads("http://127.0.0.1:1/a/b.git", None)
        .await
        .unwrap_err();
    assert!(matches!(nobody, Error::Unavailable(_)), "{nobody}");
}

#[tokio::test]
async fn silent_remote_times_out_at_deadline() {
    let world = start_world().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/acme/shop.git", silent.local_addr().unwrap());
    let transport = world.transport.with_deadline(Duration::from_millis(200));
    let error = transport.heads(&url, None).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error}");
}

#[tokio::test]
async fn files_of_this_machine_are_no_remote() {
    let world = start_world().await;
    let url = format!("file://{}", world.remote.path().display());
    assert!(
        world
            .transport
            .fetch(&url, None, &["+refs/heads/*:refs/heads/*"], false)
            .await
            .is_err()
    );
    assert_eq!(world.local.branch_head("main").unwrap(), None);
}

#[tokio::test]
async fn pack_contains_only_objects_missing_at_base() {
    let world = start_world().await;
    world.fetch().await.unwrap();
    let head = create_commit(&world.remote, Some(&world.base), &[("new.txt", Some("new\n"))]);
    let pack = world
        .remote
        .pack(
            std::slice::from_ref(&head),
            std::slice::from_ref(&world.base),
            usize::MAX,
        )
        .unwrap();
    assert_eq!(pack[8..12], 3u32.to_be_bytes());
    world.local.import_pack(&pack, PackLimits::default()).unwrap();
    assert!(world.local.contains(&head));
    assert!(world.local.is_descendant(&head, &world.base).unwrap());
    assert!(!world.local.is_descendant(&world.base, &head).unwrap());
    assert!(world.local.is_known_descendant(&head, &world.base).unwrap());
    let unseen = create_commit(&world.remote, Some(&head), &[("later.txt", Some("x\n"))]);
    assert!(!world.local.is_known_descendant(&head, &unseen).unwrap());
    let other = create_commit(&world.local, Some(&world.base), &[("other.txt", Some("x\n"))]);
    let apart = create_commit(&world.local, None, &[("apart.txt", Some("x\n"))]);
    let parts = |one: &_, other: &_| world.local.merge_base(one, other).unwrap();
    assert_eq!(parts(&head, &other).as_ref(), Some(&world.base));
    assert_eq!(parts(&head, &apart), None, "they share no history");
    assert_eq!(
        world.local.read_file(&head, "new.txt").unwrap().as_deref(),
        Some(&b"new\n"[..])
    );
    assert_eq!(world.local.read_file(&head, "none.txt").unwrap(), None);
    world.local.import_pack(&pack, PackLimits::default()).unwrap();
}

#[tokio::test]
async fn pack_above_size_limit_is_refused() {
    let world = start_world().await;
    let head = create_commit(&world.remote, Some(&world.base), &[("new.txt", Some("new\n"))]);
    let pack = |max_bytes| {
        world.remote.pack(
            std::slice::from_ref(&head),
            std::slice::from_ref(&world.base),
            max_bytes,
        )
    };
    let whole = pack(usize::MAX).unwrap();
    assert_eq!(pack(whole.len()).unwrap(), whole);
    let error = pack(whole.len() - 1).unwrap_err();
    assert!(matches!(error, Error::BadPack(_)), "{error}");
}

#[tokio::test]
async fn file_above_two_mebibytes_shows_no_lines() {
    let world = start_world().await;
    let (small, large) = ("a\n".repeat(1 << 19), "a long line\n".repeat(1 << 18));
    let head = create_commit(
        &world.remote,
        Some(&world.base),
        &[("large.txt", Some(&large)), ("small.txt", Some(&small))],
    );
    let diff = world.remote.unified_diff(&world.base, &head, 16 << 20).unwrap();
    assert_eq!(
        (
            diff.text.lines().filter(|line| *line == "+a").count(),
            diff.files_changed
        ),
        (1 << 19, 2)
    );
    // The policy still sees every line.
    let added: usize = world
        .remote
        .diff(&world.base, &head, &mut InspectionBudget::new(MAX_FILE))
        .unwrap()
        .files
        .iter()
        .map(|file| file.added_lines.len())
        .sum();
    assert_eq!(added, (1 << 19) + (1 << 18));
}

#[tokio::test]
async fn added_lines_are_complete_within_budget() {
    let world = start_world().await;
    let long = format!("{}end\n", "x".repeat(1 << 20));
    let many = "line\n".repeat(100_000) + &"x".repeat(1 << 18) + "end\n";
    let head = create_commit(&world.remote, Some(&world.base), &[("many.txt", Some(&many))]);
    let change = world
        .remote
        .diff(&world.base, &head, &mut InspectionBudget::new(MAX_FILE))
        .unwrap();
    let file = &change.files[0];
    assert_eq!((file.added_lines.len(), &change.cut), (100_001, &None));
    assert!(file.added_lines.iter().last().unwrap().ends_with("xend"));
    // A file above the limit is not read; its size shows the reason.
    let none = world
        .remote
        .diff(&world.base, &head, &mut InspectionBudget::new(1 << 18))
        .unwrap();
    assert!(none.files[0].added_lines.is_empty() && none.files[0].size_bytes > 1 << 18);

    let large = long.repeat(9);
    let names: Vec<String> = (0..8).map(|number| format!("{number}.txt")).collect();
    let contents: Vec<String> = names.iter().map(|name| format!("{name}\n{large}")).collect();
    let files: Vec<_> = names
        .iter()
        .zip(&contents)
        .map(|(name, content)| (name.as_str(), Some(content.as_str())))
        .collect();
    let head = create_commit(&world.remote, Some(&world.base), &files);
    let change = world
        .remote
        .diff(&world.base, &head, &mut InspectionBudget::new(MAX_FILE))
        .unwrap();
    let path = "7.txt".to_owned();
    assert_eq!(
        (change.files.len(), change.cut),
        (7, Some(InspectionCutoff::Content { path }))
    );
}

#[tokio::test]
async fn binary_content_is_inspected_by_printable_runs() {
    let world = start_world().await;
    let wide: String = "secret = \"wide\"\n".chars().flat_map(|c| [c, '\0']).collect();
    let before = "\0old and known\u{1}";
    let after = "\0old and known\u{1}new and readable\u{2}";
    let base = create_commit(&world.remote, Some(&world.base), &[("blob.bin", Some(before))]);
    let head = create_commit(
        &world.remote,
        Some(&base),
        &[("blob.bin", Some(after)), ("wide.ps1", Some(&wide))],
    );
    let change = world
        .remote
        .diff(&base, &head, &mut InspectionBudget::new(MAX_FILE))
        .unwrap();
    let added = |at: usize| change.files[at].added_lines.iter().collect::<Vec<_>>();
    assert_eq!(added(0), ["new and readable"]);
    assert_eq!(added(1), ["secret = \"wide\""]);
}

#[tokio::test]
async fn expensive_comparison_stops_at_budget() {
    let world = start_world().await;
    // Ten mebibytes at thousands of paths, repeated in every other commit.
    let contents = ["a", "b"].map(|line| format!("{}\n", line.repeat(99)).repeat(100_000));
    let names: Vec<String> = (0..4_000).map(|number| format!("{number}.txt")).collect();
    let mut heads = vec![world.base.clone()];
    for content in contents.iter().cycle().take(6) {
        let files: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), Some(content.as_str())))
            .collect();
        heads.push(create_commit(&world.remote, heads.last(), &files));
    }
    let mut budget = InspectionBudget::new(MAX_FILE);
    for step in heads.windows(2) {
        let change = world.remote.diff(&step[0], &step[1], &mut budget).unwrap();
        assert_eq!(change.cut, None, "the same content is compared once");
    }
    assert!(budget.compared_bytes > 400 << 20);
    let more: Vec<String> = (0..5_001).map(|number| format!("{number}.md")).collect();
    let files: Vec<_> = more.iter().map(|name| (name.as_str(), Some("x\n"))).collect();
    let head = create_commit(&world.remote, Some(&world.base), &files);
    let change = world.remote.diff(&world.base, &head, &mut budget).unwrap();
    assert_eq!(
        (change.files.len(), change.cut),
        (0, Some(InspectionCutoff::Files { count: 5_001 }))
    );
}

#[tokio::test]
async fn refused_pack_leaves_no_files() {
    let world = start_world().await;
    let middle = create_commit(&world.remote, Some(&world.base), &[("new.txt", Some("new\n"))]);
    let head = create_commit(&world.remote, Some(&middle), &[("new.txt", Some("newer\n"))]);
    let pack = world
        .remote
        .pack(
            std::slice::from_ref(&head),
            std::slice::from_ref(&world.base),
            usize::MAX,
        )
        .unwrap();
    let refused = |pack: &[u8], limits| {
        let error = world.local.import_pack(pack, limits).unwrap_err();
        assert!(matches!(error, Error::BadPack(_)), "{error}");
        assert!(!world.local.contains(&head));
    };
    refused(
        &pack,
        PackLimits {
            max_objects: 2,
            ..PackLimits::default()
        },
    );
    refused(
        &pack,
        PackLimits {
            max_bytes: 10,
            ..PackLimits::default()
        },
    );
    refused(b"PACKgarbage", PackLimits::default());
    refused(&pack[..pack.len() - 4], PackLimits::default());
    // The local repository has no base yet, so the history is incomplete.
    refused(&pack, PackLimits::default());
    let left = std::fs::read_dir(world.local.path())
        .unwrap()
        .filter_map(Result::ok);
    assert!(
        !left
            .map(|entry| entry.file_name())
            .any(|name| name.to_string_lossy().starts_with("quarantine"))
    );
}

#[test]
fn damaged_pack_is_refused_at_any_byte() {
    let folder = TempDir::new().unwrap();
    let theirs = BareRepository::init_bare(&folder.path().join("theirs")).unwrap();
    let ours = BareRepository::init_bare(&folder.path().join("ours")).unwrap();
    let base = create_commit(&theirs, None, &[("a", Some("a\n"))]);
    let head = create_commit(&theirs, Some(&base), &[("b", Some("b\n"))]);
    let pack = theirs
        .pack(
            std::slice::from_ref(&head),
            std::slice::from_ref(&base),
            usize::MAX,
        )
        .unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(proptest::test_runner::Config {
        cases: 40,
        failure_persistence: None,
        ..Default::default()
    });
    let damage = (0..pack.len(), 1_u8..=255, 0..=pack.len());
    runner
        .run(&damage, |(at, bits, end)| {
            let mut bytes = pack.clone();
            bytes[at] ^= bits;
            bytes.truncate(end);
            proptest::prop_assert!(
                ours.import_pack(&bytes, PackLimits::default()).is_err() || bytes.len() <= 12
            );
            proptest::prop_assert!(!ours.contains(&head));
            Ok(())
        })
        .unwrap();
    let left = std::fs::read_dir(ours.path().join("objects/pack"));
    assert_eq!(left.map_or(0, |entries| entries.count()), 0);
}

/// Builds a pack from objects as type, delta base and content.
fn raw_pack(count: u32, objects: &[(u8, Option<git2::Oid>, &[u8])]) -> Vec<u8> {
    let mut pack = [b"PACK".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    for (kind, base, content) in objects {
        let mut size = content.len();
        let mut byte = (kind << 4) | (size & 15) as u8;
        size >>= 4;
        while size > 0 {
            pack.push(byte | 0x80);
            byte = (size & 127) as u8;
            size >>= 7;
        }
        pack.push(byte);
        pack.extend(base.iter().flat_map(|base| base.as_bytes().to_vec()));
        pack.extend(encode_stored_zlib(content));
    }
    let sum = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &pack);
    pack.extend(sum.as_ref());
    pack
}

/// Encodes content in zlib's format without compression.
fn encode_stored_zlib(content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x78, 0x01];
    let mut blocks = content.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        bytes.push(u8::from(blocks.peek().is_none()));
        let length = block.len() as u16;
        bytes.extend(length.to_le_bytes());
        bytes.extend((!length).to_le_bytes());
        bytes.extend(block);
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in content {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    bytes.extend(((b << 16) | a).to_be_bytes());
    bytes
}

fn encode_varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push((value & 127) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Builds a pack of 64 KiB with instructions to copy them so many times.
fn build_pack_bomb(times: usize) -> Vec<u8> {
    const BASE: usize = 0x1_0000;
    let base = vec![b'x'; BASE];
    let id = git2::Oid::hash_object(git2::ObjectType::Blob, &base).unwrap();
    let copies = vec![0x80; times];
    let delta = [
        encode_varint(BASE as u64),
        encode_varint((BASE * times) as u64),
        copies,
    ]
    .concat();
    raw_pack(2, &[(3, None, &base), (7, Some(id), &delta)])
}

#[test]
fn oversized_pack_is_refused_with_bounded_memory() {
    let folder = TempDir::new().unwrap();
    let ours = BareRepository::init_bare(folder.path()).unwrap();
    let small = PackLimits {
        max_object_bytes: 1024 * 1024,
        max_expanded_bytes: 3 * 1024 * 1024,
        ..PackLimits::default()
    };
    let refused = |pack: &[u8], limits: PackLimits, words: &str| {
        let error = ours.import_pack(pack, limits).unwrap_err();
        assert!(matches!(error, Error::BadPack(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(
        &raw_pack(1_000_000, &[]),
        PackLimits::default(),
        "1000000 objects",
    );
    // The header announces more objects than the pack contains.
    refused(&raw_pack(100_000, &[(3, None, b"x")]), PackLimits::default(), "");
    refused(&build_pack_bomb(17), small, "unpacked");
    // Above git's memory limit the check ends by itself.
    refused(&build_pack_bomb(32_768), PackLimits::default(), "");
    let many: Vec<Vec<u8>> = (0..4_u8).map(|fill| vec![fill; 1_000_000]).collect();
    let many: Vec<_> = many.iter().map(|content| (3, None, content.as_slice())).collect();
    refused(&raw_pack(4, &many), small, "unpacked");
    let left = std::fs::read_dir(ours.path().join("objects/pack"));
    assert_eq!(left.map_or(0, |entries| entries.count()), 0);
    // A delta within the limits is accepted.
    ours.import_pack(&build_pack_bomb(15), small).unwrap();
}

#[tokio::test]
async fn change_set_reports_policy_relevant_properties() {
    let world = start_world().await;
    let git = &world.remote;
    let changes = [
        ("a.txt", None),
        ("b.txt", None),
        ("dir/c.txt", Some("1\n2\n3\n4\n")),
        ("out.link", Some("/etc/passwd")),
        ("s.txt", Some("secret\n")),
    ];
    let head = create_commit(git, Some(&world.base), &changes);
    let change = git
        .diff(&world.base, &head, &mut InspectionBudget::new(MAX_FILE))
        .unwrap();
    let seen: Vec<_> = change
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.kind))
        .collect();
    let expected = [
        ("a.txt", ChangeKind::Deleted),
        ("dir/c.txt", ChangeKind::Renamed),
        ("out.link", ChangeKind::Added),
        ("s.txt", ChangeKind::Added),
    ];
    assert_eq!(seen, expected);
    assert_eq!(change.files[1].old_path.as_deref(), Some("b.txt"));
    assert_eq!(change.files[2].mode, FileMode::Symlink("/etc/passwd".to_owned()));
    assert_eq!(
        (change.files[3].size_bytes, &change.files[3].added_lines),
        (7, &["secret"].into_iter().collect())
    );
    let commits = git.commits(&world.base, &head).unwrap();
    assert_eq!(
        (commits.len(), commits[0].author.as_str()),
        (1, "A Person <person@acme.example>")
    );
}

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";

#[test]
fn submodules_and_lfs_files_are_reported() {
    let folder = TempDir::new().unwrap();
    let git = BareRepository::init_bare(folder.path()).unwrap();
    let (one, two) = ("1".repeat(40), "2".repeat(40));
    let base = create_commit(
        &git,
        None,
        &[
            (".gitattributes", Some("*.psd filter=lfs diff=lfs -text\n")),
            ("art/.gitattributes", Some("plain.psd !filter\n")),
            ("art/logo.psd", Some(POINTER)),
            ("art/plain.psd", Some("small\n")),
            ("raw.psd", Some("was never moved there\n")),
            ("vendor/kit.module", Some(&one)),
            ("vendor/old.module", Some(&one)),
            ("src/main.c", Some("int main;\n")),
        ],
    );
    let elsewhere = git.external_content(&base).unwrap();
    assert_eq!(elsewhere.submodules, ["vendor/kit.module", "vendor/old.module"]);
    assert_eq!(elsewhere.lfs_files, ["art/logo.psd"]);
    assert_eq!(git.lfs_files(&base).unwrap(), [], "its pointer has no SHA-256");
    let whole = POINTER.replace("00", &"0a".repeat(32));
    let next = create_commit(&git, Some(&base), &[("art/logo.psd", Some(&whole))]);
    let files = git.lfs_files(&next).unwrap();
    assert_eq!(
        (files.len(), files[0].path.as_str(), files[0].pointer.size),
        (1, "art/logo.psd", 9)
    );
    let head = create_commit(
        &git,
        Some(&base),
        &[
            // The attributes are removed in the same change and still count.
            (".gitattributes", Some("\n")),
            ("art/logo.psd", Some("content\n")),
            ("art/new.psd", Some("content\n")),
            ("art/empty.psd", Some("")),
            ("art/plain.psd", Some("content\n")),
            ("art/pointer.psd", Some(&POINTER.replace("00", "11"))),
            ("src/main.c", Some("int main();\n")),
            ("vendor/kit.module", Some(&two)),
            ("vendor/old.module", None),
        ],
    );
    let change = git
        .diff(&base, &head, &mut InspectionBudget::new(MAX_FILE))
        .unwrap();
    let named = |wanted: fn(&git::PathChange) -> bool| -> Vec<&str> {
        let files = change.files.iter().filter(|file| wanted(file));
        files.map(|file| file.path.as_str()).collect()
    };
    assert_eq!(named(|file| file.breaks_lfs), ["art/logo.psd", "art/new.psd"]);
    assert_eq!(
        named(|file| file.mode == FileMode::Submodule),
        ["vendor/kit.module", "vendor/old.module"]
    );
}

#[test]
fn submodule_replaced_by_folder_counts_as_submodule() {
    let folder = TempDir::new().unwrap();
    let git = BareRepository::init_bare(folder.path()).unwrap();
    let base = create_commit(&git, None, &[("kit.module", Some(&"1".repeat(40)))]);
    let file = create_commit(&git, None, &[("kit.module/file", Some("x\n"))]);
    let touched = git
        .diff(&base, &file, &mut InspectionBudget::new(MAX_FILE))
        .unwrap()
        .files;
    assert!(
        touched.iter().any(|file| file.mode == FileMode::Submodule),
        "{touched:?}"
    );
}

#[tokio::test]
async fn unified_diff_is_truncated_at_limit() {
    let world = start_world().await;
    let head = create_commit(&world.remote, Some(&world.base), &[("a.txt", Some("two\n"))]);
    let whole = world.remote.unified_diff(&world.base, &head, 10_000).unwrap();
    assert!(
        whole.text.contains("-one\n+two\n") && !whole.truncated,
        "{}",
        whole.text
    );
    let cut = world
        .remote
        .unified_diff(&world.base, &head, whole.text.len() - 1)
        .unwrap();
    assert!(cut.truncated && cut.files_changed == 1 && !cut.text.contains("+two"));
}

#[tokio::test]
async fn takeover_after_killed_git_keeps_content() {
    let world = start_world().await;
    world.fetch().await.unwrap();
    let next = create_commit(&world.remote, Some(&world.base), &[("a.txt", Some("two\n"))]);
    world.remote.set_branch("main", &next).unwrap();
    for left in ["config.lock", "packed-refs.lock", "refs/heads/main.lock"] {
        std::fs::write(world.local.path().join(left), "").unwrap();
    }
    assert!(world.fetch().await.is_err());
    let taken = BareRepository::take_over(world.local.path()).unwrap();
    assert_eq!(taken.branch_head("main").unwrap(), Some(world.base.clone()));
    world.fetch().await.unwrap();
    assert_eq!(taken.branch_head("main").unwrap(), Some(next));
}

#[test]
fn system_and_user_gitconfig_are_ignored() {
    let folder = TempDir::new().unwrap();
    let repository = git::BareRepository::init_bare(&folder.path().join("r")).unwrap();
    for found in [
        git2::Config::find_system(),
        git2::Config::find_global(),
        git2::Config::find_xdg(),
    ] {
        assert!(found.is_err(), "{found:?}");
    }
    let config = repository.objects().config().unwrap();
    assert!(config.get_string("user.name").is_err() && config.get_bool("core.bare").unwrap());
}

#[test]
fn repeated_initialization_rewrites_no_configuration() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("r");
    git::BareRepository::init_bare(&path).unwrap();
    let configuration = path.join("config");
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1);
    let file = std::fs::File::options().write(true).open(&configuration).unwrap();
    file.set_modified(long_ago).unwrap();
    git::BareRepository::init_bare(&path).unwrap();
    let modified = std::fs::metadata(&configuration).unwrap().modified().unwrap();
    assert_eq!(modified, long_ago);
}

#[test]
fn initialization_completes_missing_folders() {
    for missing in ["objects", "refs"] {
        let folder = TempDir::new().unwrap();
        git::BareRepository::init_bare(folder.path()).unwrap();
        std::fs::remove_dir_all(folder.path().join(missing)).unwrap();
        let repository = git::BareRepository::init_bare(folder.path()).unwrap();
        let commit = create_commit(&repository, None, &[("a.txt", Some("one\n"))]);
        repository.set_branch("main", &commit).unwrap();
        assert_eq!(repository.branch_head("main").unwrap(), Some(commit), "{missing}");
    }
}

#[test]
fn initialization_replaces_broken_head() {
    for is_link in [false, true] {
        let folder = TempDir::new().unwrap();
        let (path, outside) = (folder.path().join("r"), folder.path().join("outside"));
        let repository = BareRepository::init_bare(&path).unwrap();
        let commit = create_commit(&repository, None, &[("a.txt", Some("one\n"))]);
        repository.set_branch("main", &commit).unwrap();
        let head = path.join("HEAD");
        if is_link {
            std::fs::remove_file(&head).unwrap();
            std::os::unix::fs::symlink(&outside, &head).unwrap();
        } else {
            std::fs::write(&head, "").unwrap();
        }
        let repository = BareRepository::init_bare(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&head).unwrap(), "ref: refs/heads/main\n");
        assert!(head.symlink_metadata().unwrap().is_file() && !outside.exists());
        let found = repository.objects().head().unwrap().target().unwrap();
        assert_eq!(found.to_string(), commit.as_str());
    }
}
