//! Tests of worktrees that cannot be scanned completely.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use domain::CommitAuthor;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use serde_json::json;

use super::*;
use crate::{tools::tests::World, workspace::untracked_files::MAX_NEW_FILES};

/// Runs work on a thread to which file permissions apply, even when the tests run as root.
fn as_ordinary_user<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let done = scope.spawn(|| {
            let now = capabilities(None).unwrap();
            let powers = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            let less = CapabilitySets {
                effective: now.effective - powers,
                ..now
            };
            set_capabilities(None, less).unwrap();
            work()
        });
        done.join().unwrap()
    })
}

fn create_branched_world() -> World {
    let world = World::new();
    world
        .run("create_branch", &json!({ "branch_name": "feat/x" }))
        .unwrap();
    world
}

#[test]
fn unreadable_files_keep_committed_content() {
    let world = create_branched_world();
    let workspace = &world.call.workspace;
    let root = workspace.root().path();
    fs::create_dir(root.join("closed")).unwrap();
    fs::write(root.join("closed/file"), "new").unwrap();
    fs::write(root.join("secret"), "new").unwrap();
    fs::write(root.join("open"), "new").unwrap();
    for name in ["closed", "secret", "README.md", "shop"] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o0)).unwrap();
    }
    let (news, again, committed, snapshot) = as_ordinary_user(|| {
        workspace.has_changed().unwrap();
        let news = workspace.scanner.report_new_omissions();
        let again = workspace.scanner.report_new_omissions();
        let committed = workspace
            .commit_changes("What can be read", false, (&CommitAuthor::journeyman(), 1))
            .unwrap();
        (news, again, committed, workspace.snapshot(1).unwrap())
    });
    for name in ["closed", "secret", "README.md", "shop/cart.py"] {
        assert!(
            news.contains(&format!("  {name}: permission denied")),
            "{name}: {news}"
        );
        assert!(committed.contains(name), "{committed}");
        assert!(snapshot.omitted.iter().any(|omitted| omitted.starts_with(name)));
    }
    assert_eq!(again, "", "reported once");
    for name in ["closed", "secret", "README.md", "shop"] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let repository = workspace.git.open().unwrap();
    let head = workspace.head_or_base();
    let names = |name: &str| repository.read_file(&head, name).unwrap();
    assert_eq!(names("README.md").unwrap(), b"# Shop\n");
    assert!(names("shop/cart.py").is_some() && names("open").is_some());
    assert!(names("secret").is_none() && names("closed/file").is_none());
}

#[test]
fn deep_and_special_files_are_omitted() {
    let world = create_branched_world();
    let workspace = &world.call.workspace;
    let root = workspace.root().path();
    let deep =
        "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\nopen('f', 'w').write('x')\n";
    let made = Command::new("python3")
        .args(["-c", deep])
        .current_dir(root)
        .status()
        .unwrap();
    assert!(made.success());
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    fs::write(root.join("open"), "new").unwrap();
    let text = workspace
        .commit_changes("What can be kept", false, (&CommitAuthor::journeyman(), 1))
        .unwrap();
    assert!(
        text.contains("nested too deep") && text.contains("pipe: neither a file nor a link"),
        "{text}"
    );
    assert!(workspace.diff(10_000).unwrap().text.contains("b/open"));
    let gone = Command::new("rm")
        .args(["-rf", "d"])
        .current_dir(root)
        .status()
        .unwrap();
    assert!(gone.success());
    workspace.has_changed().unwrap();
    fs::remove_file(root.join("pipe")).unwrap();
    workspace.has_changed().unwrap();
    assert_eq!(workspace.scanner.report_omissions(), "");
}

#[test]
fn excess_new_files_are_omitted() {
    let world = create_branched_world();
    let workspace = &world.call.workspace;
    let folder = workspace.root().path().join("generated");
    fs::create_dir(&folder).unwrap();
    for number in 0..MAX_NEW_FILES + 10 {
        fs::write(folder.join(format!("{number:06}")), "x").unwrap();
    }
    let text = workspace
        .commit_changes("Too many", false, (&CommitAuthor::journeyman(), 1))
        .unwrap();
    assert!(
        text.contains("more than 1000 new files; name generated folders in .gitignore"),
        "{text}"
    );
    assert!(
        text.contains(&format!("Committed {MAX_NEW_FILES} changed")),
        "{text}"
    );
}

#[test]
fn oversized_ignore_file_omits_folder() {
    let world = create_branched_world();
    let workspace = &world.call.workspace;
    let folder = workspace.root().path().join("big");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(".gitignore"), "a*b*c*\n".repeat(20_000)).unwrap();
    fs::write(folder.join("new"), "x").unwrap();
    workspace.has_changed().unwrap();
    assert!(
        workspace
            .scanner
            .report_omissions()
            .contains("big: its .gitignore cannot be read"),
        "{}",
        workspace.scanner.report_omissions()
    );
}

/// Returns the paths of the snapshot's tree that the base lacks.
fn new_paths(world: &World) -> Vec<String> {
    let diff = world.call.workspace.diff(1 << 20).unwrap().text;
    let added = diff.lines().filter_map(|line| line.strip_prefix("+++ b/"));
    added.map(str::to_owned).collect()
}

#[test]
fn byproducts_of_commands_stay_out_of_changes() {
    let world = create_branched_world();
    let workspace = &world.call.workspace;
    let root = workspace.root().path();
    for path in [
        "shop/__pycache__/a.pyc",
        "node_modules/x/y.js",
        "dist/app.js",
        "left.tmp",
        "shop/new.py",
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x\n").unwrap();
    }
    fs::write(root.join("tool"), b"\x7fELF\x02").unwrap();
    fs::set_permissions(root.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(new_paths(&world), ["shop/new.py"]);
    let news = workspace.scanner.report_new_omissions();
    for left in [
        "  node_modules: ",
        "  shop/__pycache__: ",
        "  dist: ",
        "  left.tmp: ",
        "  tool: ",
    ] {
        assert!(news.contains(left), "{left}: {news}");
    }
}

#[test]
fn byproducts_are_known_by_their_ecosystem() {
    let world = create_branched_world();
    let workspace = &world.call.workspace;
    let root = workspace.root().path();
    for path in [
        "api/Api.csproj",
        "api/bin/Debug/net8.0/Api.txt",
        "api/obj/Api.csproj.nuget.g.props",
        "env/lib/site.py",
        "env/pyvenv.cfg",
        "junit.xml",
        "tools/bin/release.sh",
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x\n").unwrap();
    }
    assert_eq!(new_paths(&world), ["api/Api.csproj", "tools/bin/release.sh"]);
    let news = workspace.scanner.report_new_omissions();
    for left in ["  api/bin: ", "  api/obj: ", "  env: ", "  junit.xml: "] {
        assert!(news.contains(left), "{left}: {news}");
    }
    world
        .run(
            "write_file",
            &json!({ "path": "api/bin/kept.sh", "content": "x\n" }),
        )
        .unwrap();
    assert!(new_paths(&world).contains(&"api/bin/kept.sh".to_owned()));
}

#[test]
fn byproduct_paths_of_tools_enter_changes() {
    let world = create_branched_world();
    world
        .run("write_file", &json!({ "path": "dist/app.js", "content": "x\n" }))
        .unwrap();
    world
        .run("write_file", &json!({ "path": "left.tmp", "content": "x\n" }))
        .unwrap();
    fs::write(world.call.workspace.root().path().join("dist/made.js"), "x\n").unwrap();
    assert_eq!(new_paths(&world), ["dist/app.js", "left.tmp"]);
}

#[test]
fn ignored_paths_of_tools_are_named() {
    let world = create_branched_world();
    for (path, content) in [(".gitignore", "*.gen.py\n"), ("b.gen.py", "x = 1\n")] {
        world
            .run("write_file", &json!({ "path": path, "content": content }))
            .unwrap();
    }
    assert_eq!(new_paths(&world), [".gitignore"]);
    let news = world.call.workspace.scanner.report_new_omissions();
    assert!(news.contains("  b.gen.py: an ignore rule names it"), "{news}");
    fs::write(world.call.workspace.root().path().join("c.gen.py"), "x = 1\n").unwrap();
    let snapshot = world.call.workspace.snapshot(1).unwrap();
    assert_eq!(
        snapshot.ignored,
        ["b.gen.py"],
        "the file of a command is not named"
    );
}

#[test]
fn new_contents_for_lfs_are_refused() {
    const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    let world = create_branched_world();
    let root = world.call.workspace.root().path();
    let write =
        |path: &str, content: &str| world.run("write_file", &json!({ "path": path, "content": content }));
    write(".gitattributes", "assets/** filter=lfs -text\n*.txt -filter\n").unwrap();
    fs::create_dir(root.join("assets")).unwrap();
    fs::write(root.join("assets/made.bin"), "made\n").unwrap();
    let patch = "--- /dev/null\n+++ b/assets/new.bin\n@@ -0,0 +1 @@\n+new\n";
    let envelope = "*** Begin Patch\n*** Update File: run.sh\n*** Move to: assets/run.bin\n*** End Patch";
    let edit = json!({ "path": "assets/made.bin", "old_string": "made", "new_string": "edited" });
    for refused in [
        write("assets/new.bin", "new\n"),
        world.run("apply_patch", &json!({ "patch": patch })),
        world.run("apply_patch", &json!({ "patch": envelope })),
        world.run("edit_file", &edit),
    ] {
        let error = refused.unwrap_err();
        assert!(
            error.contains("cannot be uploaded") && error.contains("a path without Git LFS"),
            "{error}"
        );
    }
    assert_eq!(world.file("assets/made.bin"), "made\n");
    for (path, content) in [
        ("assets/pointer.bin", POINTER),
        ("assets/empty.bin", ""),
        ("assets/note.txt", "x\n"),
        ("other/new.bin", "new\n"),
    ] {
        write(path, content).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let diff = world.call.workspace.diff(1 << 20).unwrap().text;
    for (path, is_there) in [
        ("assets/pointer.bin", true),
        ("assets/empty.bin", true),
        ("assets/note.txt", true),
        ("other/new.bin", true),
        ("assets/made.bin", false),
        ("assets/new.bin", false),
        ("assets/run.bin", false),
    ] {
        assert_eq!(diff.contains(path), is_there, "{path}: {diff}");
    }
    let news = world.call.workspace.scanner.report_new_omissions();
    assert!(
        news.contains("  assets/made.bin: .gitattributes gives it to Git LFS"),
        "{news}"
    );
}

#[test]
fn removed_files_leave_list_of_written() {
    let world = create_branched_world();
    let workspace = &world.call.workspace;
    let root = workspace.root().path();
    for number in 0..20 {
        let name = format!("draft-{number}");
        world
            .run("write_file", &json!({ "path": name, "content": "x" }))
            .unwrap();
        workspace.has_changed().unwrap();
        fs::remove_file(root.join(&name)).unwrap();
    }
    world
        .run("write_file", &json!({ "path": "kept", "content": "x" }))
        .unwrap();
    workspace.has_changed().unwrap();
    let written: Vec<_> = workspace
        .scanner
        .0
        .lock()
        .memory
        .written
        .iter()
        .cloned()
        .collect();
    assert_eq!(written, [PathBuf::from("kept")]);
}

#[test]
fn names_of_linux_alone_stay_out_of_changes() {
    let world = create_branched_world();
    let root = world.call.workspace.root().path();
    for path in [
        "a:b.md",
        "aux.js",
        "readme.md",
        "Shop/new.py",
        "docs/a.md",
        "docs/A.md",
        "fine.md",
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x\n").unwrap();
    }
    assert_eq!(new_paths(&world), ["docs/A.md", "fine.md"]);
    let news = world.call.workspace.scanner.report_new_omissions();
    for words in [
        "a:b.md: it contains ':', which Windows allows in no name; use a-b.md",
        "aux.js: it has the name of a device of Windows; use aux_.js",
        "readme.md: it differs from README.md only",
        "Shop/new.py: it differs from shop only",
    ] {
        assert!(news.contains(words), "{words}: {news}");
    }
    fs::rename(root.join("README.md"), root.join("readme.md")).unwrap();
    fs::write(root.join("readme.md"), "other\n").unwrap();
    assert!(
        new_paths(&world).contains(&"readme.md".to_owned()),
        "a rename leaves no twin"
    );
}

#[test]
fn tools_refuse_names_of_linux_alone() {
    let world = create_branched_world();
    for (path, words) in [
        ("docs/what?.md", "use docs/what-.md"),
        ("ReadMe.md", "differs from README.md"),
        ("shop/Cart.py", "differs from shop/cart.py"),
        ("Shop/other.py", "differs from shop only"),
        ("trailing.", "use trailing."),
    ] {
        let written = world.run("write_file", &json!({ "path": path, "content": "x\n" }));
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
        let patched = world.run("apply_patch", &json!({ "patch": patch }));
        for error in [written.unwrap_err(), patched.unwrap_err()] {
            assert!(error.contains(words), "{path}: {error}");
        }
    }
    assert_eq!(new_paths(&world), [""; 0]);
}

#[test]
fn tools_reach_files_through_linked_folders() {
    let world = create_branched_world();
    let root = world.call.workspace.root().path();
    std::os::unix::fs::symlink("shop", root.join("store")).unwrap();
    let text = world
        .run("read_file", &json!({ "path": "store/cart.py" }))
        .unwrap();
    assert!(text.contains("def total"), "{text}");
    let written = world.run(
        "write_file",
        &json!({ "path": "store/new.txt", "content": "x\n" }),
    );
    assert!(
        written.unwrap().contains("shop/new.txt"),
        "the answer names the file itself"
    );
    assert_eq!(world.file("shop/new.txt"), "x\n");
    for path in ["out/passwd", "out/x"] {
        assert!(
            world.run("read_file", &json!({ "path": path })).is_err(),
            "{path}"
        );
    }
}
