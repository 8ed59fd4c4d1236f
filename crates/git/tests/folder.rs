//! A folder of somebody's machine: what is read of it, what is written, and what must stay as it is.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use domain::CommitId;
use git::{BareRepository, Error, FolderRepository, PushResult, UnusableRepository};
use tempfile::TempDir;

struct Scene {
    root: TempDir,
    mirror: BareRepository,
}

impl Scene {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let scene = Self {
            mirror: BareRepository::init_bare(&root.path().join("mirror")).unwrap(),
            root,
        };
        fs::create_dir(scene.path()).unwrap();
        scene.git(&["init", "-q", "-b", "trunk"]);
        scene.write("a.txt", "one\n");
        scene.commit("first");
        scene
    }

    fn path(&self) -> PathBuf {
        self.root.path().join("folder")
    }

    fn folder(&self) -> FolderRepository {
        FolderRepository::open(&self.path()).unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path().join(file), text).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=A", "-c", "user.email=a@b.example", "-C"])
            .arg(self.path())
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, message: &str) -> CommitId {
        self.git(&["add", "--all"]);
        self.git(&["commit", "-q", "-m", message]);
        self.head()
    }

    fn head(&self) -> CommitId {
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    /// Creates a commit in the mirror only, on top of the folder's head.
    fn change(&self, parent: &CommitId, text: &str) -> CommitId {
        let git = self.mirror.objects();
        let id = |commit: &CommitId| git2::Oid::from_str(commit.as_str()).unwrap();
        let parent = git.find_commit(id(parent)).unwrap();
        let mut tree = git.treebuilder(Some(&parent.tree().unwrap())).unwrap();
        let blob = git.blob(text.as_bytes()).unwrap();
        tree.insert("a.txt", blob, 0o100_644).unwrap();
        let tree = git.find_tree(tree.write().unwrap()).unwrap();
        let who = git2::Signature::now("J", "j@b.example").unwrap();
        let made = git.commit(None, &who, &who, "fix: a thing\n", &tree, &[&parent]);
        made.unwrap().to_string().parse().unwrap()
    }

    /// Captures the state that must stay unchanged: head, targets of branches except ours, index, and every
    /// file with its content.
    fn untouched(&self) -> (String, Vec<u8>, String) {
        (
            fs::read_to_string(self.path().join(".git/HEAD")).unwrap(),
            fs::read(self.path().join(".git/index")).unwrap(),
            self.git(&["--no-optional-locks", "status", "--porcelain"]),
        )
    }
}

#[test]
fn written_branch_leaves_folder_otherwise_unchanged() {
    let scene = Scene::new();
    scene.write("a.txt", "mine\n");
    scene.write("new.txt", "mine too\n");
    let before = scene.untouched();
    let (folder, base) = (scene.folder(), scene.head());
    let head = folder.head().unwrap();
    assert_eq!((head.branch.as_str(), &head.commit), ("trunk", &base));
    assert_eq!(
        folder.uncommitted().unwrap(),
        1,
        "files that git does not know do not count"
    );

    folder.fetch_into(&scene.mirror).unwrap();
    folder.fetch_into(&scene.mirror).unwrap();
    assert_eq!(scene.mirror.branch_head("trunk").unwrap().as_ref(), Some(&base));
    let change = scene.change(&base, "two\n");
    let write = |expected: Option<&CommitId>| {
        folder.write_branch(&scene.mirror, "fix/shop-1", [&base, &change], expected)
    };
    assert_eq!(write(None).unwrap(), PushResult::Updated);
    assert_eq!(write(None).unwrap(), PushResult::UpToDate);
    assert_eq!(scene.git(&["show", "fix/shop-1:a.txt"]), "two");
    scene.git(&["fsck", "--strict"]);
    assert_eq!(scene.untouched(), before);

    let more = scene.change(&change, "three\n");
    let update = |expected: Option<&CommitId>| {
        folder.write_branch(&scene.mirror, "fix/shop-1", [&base, &more], expected)
    };
    assert!(matches!(update(None), Err(Error::LeaseStale(_))));
    assert!(matches!(update(Some(&base)), Err(Error::LeaseStale(_))));
    assert_eq!(update(Some(&change)).unwrap(), PushResult::Updated);
    assert_eq!(scene.git(&["show", "fix/shop-1:a.txt"]), "three");
}

#[test]
fn checked_out_branch_is_never_moved() {
    let scene = Scene::new();
    let (folder, base) = (scene.folder(), scene.head());
    folder.fetch_into(&scene.mirror).unwrap();
    let change = scene.change(&base, "two\n");
    let moved = folder.write_branch(&scene.mirror, "trunk", [&base, &change], Some(&base));
    let refused = moved.unwrap_err();
    assert!(matches!(refused, Error::BranchNotWritable { .. }), "{refused:?}");
    assert_eq!(
        refused.to_string(),
        "the branch trunk cannot be written: it is checked out"
    );
    assert_eq!(scene.head(), base);
}

#[test]
fn branch_in_the_way_of_folder_is_named() {
    let scene = Scene::new();
    let (folder, base) = (scene.folder(), scene.head());
    folder.fetch_into(&scene.mirror).unwrap();
    let change = scene.change(&base, "two\n");
    let write = |branch: &str| folder.write_branch(&scene.mirror, branch, [&base, &change], None);
    scene.git(&["branch", "fix"]);
    scene.git(&["branch", "docs/shop/old"]);
    for (branch, other) in [("fix/shop-1", "fix"), ("docs/shop", "docs/shop/old")] {
        let Err(Error::BranchInTheWay { branch: refused, by }) = write(branch) else {
            panic!("{branch} was not refused")
        };
        assert_eq!((refused.as_str(), by.as_str()), (branch, other));
    }
    assert_eq!(write("fix-shop-1").unwrap(), PushResult::Updated);
}

#[test]
fn folder_hooks_and_configured_programs_never_run() {
    let scene = Scene::new();
    let ran = scene.root.path().join("ran");
    let program = scene.root.path().join("program");
    fs::write(&program, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let text = program.display().to_string();
    scene.write(".gitattributes", "* filter=x\n");
    scene.commit("filtered");
    for hook in [
        "post-checkout",
        "reference-transaction",
        "post-merge",
        "pre-receive",
        "update",
    ] {
        let path = scene.path().join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(&program, path).unwrap();
    }
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "uploadpack.packObjectsHook",
        "filter.x.smudge",
        "filter.x.clean",
        "filter.x.process",
        "diff.external",
        "credential.helper",
    ] {
        scene.git(&["config", key, &text]);
    }
    let config = fs::read_to_string(scene.path().join(".git/config")).unwrap();
    assert!(config.contains("fsmonitor") && !ran.exists(), "{config}");

    let folder = scene.folder();
    let base = folder.head().unwrap().commit;
    folder.uncommitted().unwrap();
    folder.fetch_into(&scene.mirror).unwrap();
    let change = scene.change(&base, "two\n");
    let written = folder.write_branch(&scene.mirror, "fix/shop-1", [&base, &change], None);
    assert_eq!(written.unwrap(), PushResult::Updated);
    folder.check_out("fix/shop-1").unwrap();
    assert_eq!(fs::read_to_string(scene.path().join("a.txt")).unwrap(), "two\n");
    assert!(!ran.exists());
}

#[test]
fn checkout_refuses_to_overwrite_changed_files() {
    let scene = Scene::new();
    let (folder, base) = (scene.folder(), scene.head());
    folder.fetch_into(&scene.mirror).unwrap();
    let change = scene.change(&base, "two\n");
    folder
        .write_branch(&scene.mirror, "fix/shop-1", [&base, &change], None)
        .unwrap();
    scene.write("a.txt", "mine\n");
    let refused = folder.check_out("fix/shop-1");
    assert!(
        matches!(&refused, Err(Error::CheckoutRefused { branch, .. }) if branch == "fix/shop-1"),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(scene.path().join("a.txt")).unwrap(), "mine\n");
    assert_eq!(scene.git(&["symbolic-ref", "HEAD"]), "refs/heads/trunk");
    scene.git(&["checkout", "-q", "--", "a.txt"]);
    folder.check_out("fix/shop-1").unwrap();
    assert_eq!(scene.git(&["symbolic-ref", "HEAD"]), "refs/heads/fix/shop-1");
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
}

#[test]
fn work_starts_from_detached_head_and_worktree() {
    let scene = Scene::new();
    scene.git(&["checkout", "-q", "--detach"]);
    let head = scene.folder().head().unwrap();
    assert_eq!(head.revision(), head.commit.short());
    assert_eq!((head.branch.as_str(), head.commit), ("detached", scene.head()));
    scene.folder().fetch_into(&scene.mirror).unwrap();
    assert_eq!(scene.mirror.branch_head("detached").unwrap(), Some(scene.head()));
    let linked = scene.root.path().join("linked");
    scene.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    fs::create_dir(linked.join("deep")).unwrap();
    let folder = FolderRepository::open(&linked.join("deep")).unwrap();
    assert_eq!(folder.head().unwrap().branch, "side");
    assert_eq!(folder.path(), fs::canonicalize(&linked).unwrap());
    folder.fetch_into(&scene.mirror).unwrap();
    assert_eq!(scene.mirror.branch_head("side").unwrap(), Some(scene.head()));
}

#[test]
fn unusable_folder_is_refused_with_reason() {
    let scene = Scene::new();
    let none = FolderRepository::open(scene.root.path()).err().unwrap();
    assert!(matches!(none, Error::NotFound(_)), "{none}");
    let empty = scene.root.path().join("empty");
    git2::Repository::init(&empty).unwrap();
    let unborn = FolderRepository::open(&empty).unwrap().head().unwrap_err();
    assert!(unborn.to_string().contains("a first commit"), "{unborn}");
    let shallow = scene.root.path().join("shallow");
    scene.write("a.txt", "more\n");
    scene.commit("second");
    let url = format!("file://{}", scene.path().display());
    scene.git(&["clone", "-q", "--depth", "1", &url, shallow.to_str().unwrap()]);
    let cut = FolderRepository::open(&shallow).err().unwrap();
    let words = domain::cause::format_error_chain(&cut);
    assert!(words.contains("git fetch --unshallow"), "{words}");
}

#[test]
fn emails_of_change_apply_to_base() {
    let scene = Scene::new();
    let (folder, base) = (scene.folder(), scene.head());
    folder.fetch_into(&scene.mirror).unwrap();
    let first = scene.change(&base, "caf\u{e9}\n");
    let second = scene.change(&first, "\u{0}binary\n");
    let mails = scene.mirror.mails(&base, &second).unwrap();
    let file = scene.root.path().join("change.patch");
    fs::write(&file, mails).unwrap();
    scene.git(&["am", "-q", file.to_str().unwrap()]);
    assert_eq!(scene.git(&["rev-list", "--count", "HEAD"]), "3");
    assert_eq!(
        fs::read(Path::new(&scene.path()).join("a.txt")).unwrap(),
        b"\0binary\n"
    );
}

/// Creates a repository with one commit by `git init` with an argument.
fn init_repository(place: &Path, format: &str) {
    for arguments in [
        &["init", "-q", format, "."][..],
        &[
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@b.example",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
    ] {
        let status = Command::new("git").arg("-C").arg(place).args(arguments).status();
        assert!(status.unwrap().success(), "{arguments:?}");
    }
}

#[test]
fn other_formats_are_refused_by_name() {
    for (format, property) in [
        ("--object-format=sha256", UnusableRepository::Sha256),
        ("--ref-format=reftable", UnusableRepository::Reftable),
    ] {
        let place = TempDir::new().unwrap();
        let is_known = Command::new("git")
            .args(["init", "-q", format])
            .arg(place.path().join("probe"))
            .status();
        if !is_known.unwrap().success() {
            // The installed git is older than the format.
            continue;
        }
        init_repository(place.path(), format);
        match FolderRepository::open(place.path()) {
            Err(Error::Unusable(found)) => assert_eq!(found, property),
            Err(other) => panic!("{format}: {other}"),
            Ok(_) => panic!("{format} was opened"),
        }
    }
}

#[test]
fn folder_of_another_user_names_safe_directory() {
    let place = TempDir::new().unwrap();
    init_repository(place.path(), "-q");
    // Only root can give a folder away; other users cannot create the case.
    if std::os::unix::fs::chown(place.path(), Some(65_534), Some(65_534)).is_err() {
        return;
    }
    let Err(error) = FolderRepository::open(place.path()) else {
        // The settings of this user trust every folder, or the library trusts root.
        return;
    };
    let words = error.to_string();
    assert!(
        words.contains("another user") && words.contains("safe.directory"),
        "{words}"
    );
}
