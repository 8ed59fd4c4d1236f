//! Tests of updated scans: each result is that of a whole scan.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
};

use domain::CommitAuthor;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    tools::tests::World,
    workspace::{
        scan_update::{LazyRepository, ScanRepository},
        tests::commit_tree,
    },
};

/// Tree of a scan with the omitted paths.
type ScanOutcome = (Oid, OmittedPaths);

/// Workspace of a small repository whose files were scanned.
struct ScannedWorld {
    world: World,
    /// Folder for files that show the time of the file system.
    clock: tempfile::TempDir,
    /// True when the last scan trusts all states: every later change has a later time.
    is_settled: bool,
}

impl ScannedWorld {
    fn new(is_settled: bool) -> Self {
        let world = Self {
            world: World::new(),
            clock: tempfile::TempDir::new().unwrap(),
            is_settled,
        };
        world
            .world
            .run("create_branch", &json!({ "branch_name": "feat/x" }))
            .unwrap();
        world.scan(ScanScope::Worktree);
        world
    }

    fn scanner(&self) -> &WorktreeScanner {
        &self.world.call.workspace.scanner
    }

    fn place(&self, path: &str) -> PathBuf {
        self.world.call.workspace.root().path().join(path)
    }

    fn with_input<T>(&self, run: impl FnOnce(ScanInput<'_>) -> T) -> T {
        let workspace = &self.world.call.workspace;
        let repository = workspace.git.open().unwrap();
        let head = workspace.head_or_base();
        run(workspace.scan_input(ScanRepository::Open(repository.objects()), &head))
    }

    /// Makes the last scan trust all states, and waits until the file system's time has passed it.
    fn settle(&self) {
        let probe = self.clock.path().join("probe");
        let read_time = || {
            fs::write(&probe, "").unwrap();
            let metadata = fs::metadata(&probe).unwrap();
            (metadata.ctime(), metadata.ctime_nsec())
        };
        let start = read_time();
        while read_time() == start {}
        let mut state = self.scanner().0.lock();
        state.memory.cache.seal_at(i128::MAX / 2);
    }

    fn scan(&self, scope: ScanScope) -> ScanOutcome {
        let tree = self.with_input(|input| self.scanner().scan(input, scope).unwrap());
        let omitted = self.scanner().0.lock().omitted.clone();
        if self.is_settled {
            self.settle();
        }
        (tree, omitted)
    }

    /// Updates the last scan; `None` if only a whole scan is correct.
    fn update(&self) -> Option<ScanOutcome> {
        let scanned = self.with_input(|input| {
            let mut state = self.scanner().0.lock();
            state.memory.update(input, ScanScope::Worktree).unwrap()
        });
        scanned.map(|scanned| (scanned.tree, scanned.omitted))
    }

    /// Scans all files with a scanner that knows none of them.
    fn scan_afresh(&self) -> ScanOutcome {
        let fresh = WorktreeScanner::default();
        let written = self.scanner().0.lock().memory.written.clone();
        fresh.0.lock().memory.written = written;
        let tree = self.with_input(|input| fresh.scan(input, ScanScope::Worktree).unwrap());
        let omitted = fresh.0.lock().omitted.clone();
        (tree, omitted)
    }

    fn write(&self, path: &str, content: &str) {
        let place = self.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    fn write_by_tool(&self, path: &str, content: &str) {
        let input = json!({ "path": path, "content": content });
        self.world.run("write_file", &input).unwrap();
    }

    fn commit(&self, time_s: i64) {
        // The error is ignored: there may be nothing to commit.
        let _ = self.world.call.workspace.commit_changes(
            "Change files",
            false,
            (&CommitAuthor::journeyman(), time_s),
        );
    }
}

#[test]
fn unchanged_worktree_needs_no_repository() {
    let world = ScannedWorld::new(true);
    world.write_by_tool("shop/new.py", "new\n");
    let (tree, _) = world.scan(ScanScope::Worktree);
    let workspace = &world.world.call.workspace;
    let head = workspace.head_or_base();
    let missing = LazyRepository::at(&world.clock.path().join("missing"));
    let scan = || {
        let input = workspace.scan_input(ScanRepository::Lazy(&missing), &head);
        world.scanner().scan(input, ScanScope::Worktree)
    };
    assert_eq!(scan().unwrap(), tree);
    world.settle();
    assert_eq!(scan().unwrap(), tree);
    world.settle();
    world.write("shop/new.py", "newer\n");
    assert!(scan().is_err());
    // After an error the next scan is a whole one.
    assert_eq!(world.scan(ScanScope::Worktree), world.scan_afresh());
}

#[test]
fn failed_cleanup_hides_no_change() {
    let world = ScannedWorld::new(true);
    let workspace = &world.world.call.workspace;
    workspace.has_changed().unwrap();
    world.write_by_tool("shop/new.py", "new\n");
    // This scan finds the change, so that the next one opens no repository.
    world.scan(ScanScope::Worktree);
    let path = workspace.git.path();
    fs::rename(path, path.with_extension("away")).unwrap();
    assert!(workspace.has_changed().unwrap());
}

#[test]
fn new_files_of_tools_follow_ignore_rules() {
    let world = ScannedWorld::new(false);
    for path in ["build/x.txt", "shop/new.py", "run.log", "new/folder/a.txt"] {
        world.write_by_tool(path, "one\n");
        assert_eq!(world.scan(ScanScope::Written), world.scan_afresh(), "{path}");
    }
}

#[test]
fn ordinary_changes_need_no_whole_scan() {
    let world = ScannedWorld::new(true);
    let steps: [(&str, &dyn Fn()); 9] = [
        ("nothing", &|| {}),
        ("edit", &|| world.write("shop/cart.py", "total = 0\n")),
        ("new file", &|| world.write("shop/new.py", "x = 1\n")),
        ("new folder", &|| world.write("a/b/c.txt", "c\n")),
        ("ignored", &|| world.write("build/out.txt", "x\n")),
        ("by-product", &|| world.write("shop/__pycache__/a.pyc", "x")),
        ("removal", &|| fs::remove_file(world.place("README.md")).unwrap()),
        ("mode", &|| {
            fs::set_permissions(world.place("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("move", &|| {
            fs::rename(world.place("a"), world.place("z")).unwrap()
        }),
    ];
    for (name, step) in steps {
        step();
        let updated = world.update();
        assert_eq!(updated, Some(world.scan_afresh()), "{name}");
        world.settle();
    }
}

#[test]
fn first_scan_continues_from_checkout() {
    let world = ScannedWorld {
        world: World::new(),
        clock: tempfile::TempDir::new().unwrap(),
        is_settled: true,
    };
    world.settle();
    world.write("shop/cart.py", "total = 0\n");
    world.write("shop/new.py", "x = 1\n");
    assert_eq!(world.update(), Some(world.scan_afresh()));
}

#[test]
fn commit_needs_no_whole_scan() {
    let world = ScannedWorld::new(true);
    world.write("shop/cart.py", "total = 0\n");
    world.write("shop/more.py", "more = 0\n");
    world.commit(1);
    world.settle();
    assert_eq!(world.update(), Some(world.scan_afresh()));
}

#[test]
fn scan_after_commit_examines_committed_files() {
    let world = ScannedWorld::new(true);
    world.write("shop/cart.py", "total = 0\n");
    world.commit(1);
    let committed = world.with_input(|input| input.head_tree().unwrap().id());
    world.write("README.md", "changed by another process\n");
    assert_eq!(world.scan(ScanScope::Written).0, committed);
    let (tree, _) = world.scan(ScanScope::Worktree);
    assert_ne!(tree, committed);
    assert_eq!(tree, world.scan_afresh().0);
}

#[test]
fn changes_of_rules_need_whole_scan() {
    for path in [
        ".gitignore",
        "shop/.gitignore",
        ".gitattributes",
        "shop/.git/HEAD",
        "shop/setup.cfg",
        "shop/pyvenv.cfg",
    ] {
        let world = ScannedWorld::new(true);
        world.write(path, "*.txt\n");
        assert_eq!(world.update(), None, "{path}");
        assert_eq!(world.scan(ScanScope::Worktree), world.scan_afresh(), "{path}");
    }
}

#[test]
fn new_twin_needs_whole_scan() {
    let world = ScannedWorld::new(true);
    world.write("SHOP/new.py", "x = 1\n");
    assert_eq!(world.update(), None);
    let (_, omitted) = world.scan(ScanScope::Worktree);
    assert!(omitted.named()[0].starts_with("SHOP/new.py: it differs from"));
}

#[test]
fn tool_change_examines_written_path_only() {
    let world = ScannedWorld::new(true);
    let (before, _) = world.scan(ScanScope::Worktree);
    world.write("README.md", "changed by another process\n");
    world.write_by_tool("shop/cart.py", "total = 0\n");
    world.write_by_tool("docs/new.md", "new\n");
    let (tree, _) = world.scan(ScanScope::Written);
    let changed = |tree: Oid| {
        world.with_input(|input| {
            let git = input.git().unwrap();
            let find = |tree| git.find_tree(tree).unwrap();
            let diff = git
                .diff_tree_to_tree(Some(&find(before)), Some(&find(tree)), None)
                .unwrap();
            let paths = diff
                .deltas()
                .filter_map(|delta| delta.new_file().path().map(Path::to_owned));
            paths.collect::<Vec<_>>()
        })
    };
    assert_eq!(changed(tree), ["docs/new.md", "shop/cart.py"].map(PathBuf::from));
    let (tree, _) = world.scan(ScanScope::Worktree);
    assert_eq!(changed(tree).len(), 3);
    assert_eq!(tree, world.scan_afresh().0);
}

#[test]
fn ignored_path_of_tool_stays_out() {
    let world = ScannedWorld::new(true);
    world.write_by_tool("build/out.txt", "x\n");
    world.write_by_tool("shop/new.py", "x = 1\n");
    world.write_by_tool("run.log", "x\n");
    let (tree, omitted) = world.scan(ScanScope::Written);
    for (number, path) in ["build/out.txt", "run.log"].iter().enumerate() {
        let named = &omitted.named()[number];
        assert!(
            named.starts_with(&format!("{path}: an ignore rule names it")),
            "{named}"
        );
    }
    assert_eq!((tree, omitted), world.scan_afresh());
}

#[test]
fn ignored_file_of_repository_is_rewritten() {
    let world = ScannedWorld::new(true);
    world.write_by_tool(".gitignore", "*.py\n");
    let (before, _) = world.scan(ScanScope::Written);
    fs::remove_file(world.place("shop/cart.py")).unwrap();
    assert_ne!(world.scan(ScanScope::Worktree).0, before);
    world.write_by_tool("shop/cart.py", "total = 0\n");
    world.write_by_tool("shop/new.py", "x = 1\n");
    assert_eq!(world.scan(ScanScope::Written), world.scan_afresh());
}

#[test]
fn change_after_command_is_never_missed() {
    let world = ScannedWorld::new(true);
    world.scanner().note_command();
    world.write("README.md", "changed by a command\n");
    world.write_by_tool("shop/cart.py", "total = 0\n");
    assert_eq!(world.scan(ScanScope::Written), world.scan_afresh());
    assert!(!world.scanner().0.lock().memory.has_command, "the scan saw it");
}

#[test]
fn first_file_of_empty_repository_is_found() {
    let world = World::new();
    let mirror = git2::Repository::open(&world.call.workspace.git.mirror).unwrap();
    let tree = mirror.treebuilder(None).unwrap().write().unwrap();
    let world = ScannedWorld {
        world: world.at(commit_tree(&mirror, tree, None)),
        clock: tempfile::TempDir::new().unwrap(),
        is_settled: true,
    };
    world.settle();
    world.write("first.txt", "one\n");
    let scanned = world.update();
    assert_ne!(scanned.as_ref().map(|(found, _)| *found), Some(tree));
    assert_eq!(scanned, Some(world.scan_afresh()));
}

#[test]
fn same_size_rewrite_at_once_is_found() {
    let world = ScannedWorld::new(false);
    for round in 0..50 {
        world.write("shop/cart.py", &format!("total = {}\n", round % 10));
        assert_eq!(world.scan(ScanScope::Worktree), world.scan_afresh(), "{round}");
    }
}

#[test]
fn new_attributes_convert_unchanged_files() {
    let world = ScannedWorld::new(true);
    world.write("notes.txt", "one\r\ntwo\r\n");
    let (before, _) = world.scan(ScanScope::Worktree);
    world.write(".gitattributes", "*.txt text\n");
    let (after, _) = world.scan(ScanScope::Worktree);
    let read = |tree: Oid| {
        world.with_input(|input| {
            let git = input.git().unwrap();
            let tree = git.find_tree(tree).unwrap();
            let id = tree.get_name("notes.txt").unwrap().id();
            git.find_blob(id).unwrap().content().to_vec()
        })
    };
    assert_eq!(read(before), b"one\r\ntwo\r\n");
    assert_eq!(read(after), b"one\ntwo\n");
}

/// Paths of the random changes.
const PATHS: [&str; 15] = [
    "README.md",
    "README.MD",
    "shop/cart.py",
    "shop/new.py",
    "shop",
    "a/b/c.txt",
    "a/b",
    "a/d.txt",
    "build/x.txt",
    "run.log",
    "run.sh",
    "link",
    "shop/__pycache__/m.pyc",
    "shop/__pycache__/n.pyc",
    "dist/app.js",
];
const CONTENTS: [&str; 5] = ["", "one\n", "two\n", "one\r\ntwo\r\n", "\u{7f}ELF binary"];
const ATTRIBUTE_TEXTS: [&str; 3] = ["*.txt text\n", "* text=auto eol=crlf\n", "*.py -text\n"];
const RULE_TEXTS: [&str; 3] = ["build/\n*.log\n", "*.txt\n", "!*.log\na/\n"];

/// Random change of a worktree.
#[derive(Clone, Copy, Debug)]
enum RandomChange {
    Write(usize, usize),
    WriteByTool(usize, usize),
    /// Replaces bytes in place and restores the modification time.
    Rewrite(usize),
    Remove(usize),
    Rename(usize, usize),
    Mode(usize),
    Link(usize),
    Attributes(usize),
    Rules(usize, bool),
    Commit,
}

fn any_change() -> impl Strategy<Value = RandomChange> {
    let path = || 0..PATHS.len();
    prop_oneof![
        4 => (path(), 0..CONTENTS.len()).prop_map(|(path, content)| RandomChange::Write(path, content)),
        2 => (path(), 0..CONTENTS.len()).prop_map(|(path, content)| RandomChange::WriteByTool(path, content)),
        3 => path().prop_map(RandomChange::Rewrite),
        3 => path().prop_map(RandomChange::Remove),
        2 => (path(), path()).prop_map(|(from, to)| RandomChange::Rename(from, to)),
        2 => path().prop_map(RandomChange::Mode),
        1 => path().prop_map(RandomChange::Link),
        1 => (0..ATTRIBUTE_TEXTS.len()).prop_map(RandomChange::Attributes),
        1 => (0..RULE_TEXTS.len(), any::<bool>()).prop_map(|(text, is_root)| RandomChange::Rules(text, is_root)),
        1 => Just(RandomChange::Commit),
    ]
}

impl ScannedWorld {
    /// Applies a change, as far as it is possible. Returns the files that may have changed.
    fn change(&self, change: RandomChange, number: usize) -> ScanScope {
        // Errors are ignored: a path may be a folder, missing, or below a file.
        match change {
            RandomChange::Write(path, content) => {
                let place = self.place(PATHS[path]);
                let _ = fs::create_dir_all(place.parent().unwrap());
                let _ = fs::write(place, CONTENTS[content]);
            }
            RandomChange::WriteByTool(path, content) => {
                let input = json!({ "path": PATHS[path], "content": CONTENTS[content] });
                if self.world.run("write_file", &input).is_ok() {
                    return ScanScope::Written;
                }
            }
            RandomChange::Rewrite(path) => drop(self.rewrite(PATHS[path])),
            RandomChange::Remove(path) => {
                let place = self.place(PATHS[path]);
                let _ = fs::remove_file(&place).or_else(|_| fs::remove_dir_all(&place));
            }
            RandomChange::Rename(from, to) => {
                let to = self.place(PATHS[to]);
                let _ = fs::create_dir_all(to.parent().unwrap());
                let _ = fs::rename(self.place(PATHS[from]), to);
            }
            RandomChange::Mode(path) => {
                let place = self.place(PATHS[path]);
                let is_file = fs::symlink_metadata(&place).is_ok_and(|metadata| metadata.is_file());
                if is_file {
                    let mode = fs::metadata(&place).unwrap().permissions().mode() ^ 0o111;
                    fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
                }
            }
            RandomChange::Link(path) => {
                let place = self.place(PATHS[path]);
                let _ = fs::remove_file(&place);
                let _ = symlink("README.md", place);
            }
            RandomChange::Attributes(text) => self.write(".gitattributes", ATTRIBUTE_TEXTS[text]),
            RandomChange::Rules(text, is_root) => {
                let path = if is_root { ".gitignore" } else { "shop/.gitignore" };
                let _ = fs::write(self.place(path), RULE_TEXTS[text]);
            }
            RandomChange::Commit => self.commit(i64::try_from(number).unwrap()),
        }
        ScanScope::Worktree
    }

    fn rewrite(&self, path: &str) -> std::io::Result<()> {
        let place = self.place(path);
        let metadata = fs::symlink_metadata(&place)?;
        if metadata.is_file() {
            let mut content = fs::read(&place)?;
            content.reverse();
            fs::write(&place, content)?;
            let file = fs::File::options().write(true).open(&place)?;
            file.set_modified(metadata.modified()?)?;
        }
        Ok(())
    }
}

proptest! {
    // Each case writes files and waits for the file system's clock.
    #![proptest_config(ProptestConfig {
        cases: (ProptestConfig::default().cases / 100).max(24),
        ..ProptestConfig::default()
    })]
    #[test]
    fn fuzz_scan_of_changes_equals_whole_scan(
        changes in prop::collection::vec(any_change(), 1..12),
        is_settled in any::<bool>(),
    ) {
        let world = ScannedWorld::new(is_settled);
        for (number, change) in changes.into_iter().enumerate() {
            let scope = world.change(change, number);
            let scanned = world.scan(scope);
            let expected = world.scan_afresh();
            prop_assert!(scanned == expected, "{number}: {change:?}: {scanned:?} instead of {expected:?}");
        }
    }
}
