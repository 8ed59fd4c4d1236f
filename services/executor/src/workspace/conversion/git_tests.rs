//! Comparison of checkouts and trees with those of the installed git.

use std::{fs, path::PathBuf, process::Command};

use domain::CommitId;
use git2::{FileMode, build::TreeUpdateBuilder};

use crate::workspace::{PreparedCheckout, Workspace, WorkspaceStart, tests::commit_tree};

/// Repository with commits on `main`, a clone of git, and a folder for workspaces.
struct GitWorld {
    folder: tempfile::TempDir,
    commits: Vec<CommitId>,
}

type Files<'a> = &'a [(&'a str, &'a [u8])];

impl GitWorld {
    /// Commits these files, byte by byte, and clones the repository.
    fn new(commits: &[Files<'_>]) -> Self {
        let folder = tempfile::TempDir::new().unwrap();
        let mirror = git::BareRepository::init_bare(&folder.path().join("mirror")).unwrap();
        let git = mirror.objects();
        let empty = git.treebuilder(None).unwrap().write().unwrap();
        let empty = git.find_tree(empty).unwrap();
        let mut ids: Vec<CommitId> = Vec::new();
        for files in commits {
            let mut update = TreeUpdateBuilder::new();
            for (path, content) in *files {
                update.upsert(*path, git.blob(content).unwrap(), FileMode::Blob);
            }
            let tree = update.create_updated(git, &empty).unwrap();
            let commit = commit_tree(git, tree, ids.last());
            mirror.set_branch("main", &commit).unwrap();
            ids.push(commit);
        }
        let world = Self { commits: ids, folder };
        let folder = world.folder.path();
        run_git(
            Command::new("git")
                .args(["clone", "-q", "-b", "main", "mirror", "clone"])
                .current_dir(folder),
        );
        world
    }

    fn clone_path(&self) -> PathBuf {
        self.folder.path().join("clone")
    }

    fn start(&self, commit: usize) -> WorkspaceStart {
        WorkspaceStart::sample(self.folder.path(), self.commits[commit].clone())
    }

    /// Opens a workspace at the last commit, over a prepared checkout of another one if there is one.
    fn open(&self, prepared: Option<usize>) -> Workspace {
        let folder = self.folder.path().join("workspaces");
        fs::create_dir_all(&folder).unwrap();
        let ready = prepared.map(|commit| {
            PreparedCheckout::create(&self.folder.path().join("ready"), self.start(commit)).unwrap()
        });
        Workspace::create(&folder, self.start(self.commits.len() - 1), ready).unwrap()
    }

    /// Returns the tree of `git add -A` in the clone.
    fn added_tree(&self) -> String {
        let clone = self.clone_path();
        run_git(Command::new("git").args(["add", "-A"]).current_dir(&clone));
        run_git(Command::new("git").arg("write-tree").current_dir(&clone))
            .trim()
            .to_owned()
    }
}

fn run_git(command: &mut Command) -> String {
    let settings = [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_ATTR_NOSYSTEM", "1"),
    ];
    read_output(command.envs(settings))
}

/// Runs git as commands of the model run it.
fn run_git_in(workspace: &Workspace, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(args).current_dir(workspace.root().path());
    read_output(command.env_clear().envs(workspace.environment()))
}

fn read_output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn tree_of(workspace: &Workspace) -> String {
    let repository = workspace.git.open().unwrap();
    workspace.tree(repository.objects()).unwrap().to_string()
}

fn base_tree(workspace: &Workspace) -> String {
    let repository = workspace.git.open().unwrap();
    workspace.git.base_tree(repository.objects()).unwrap().to_string()
}

/// Returns the added and removed lines of a unified difference.
fn changed_lines(diff: &str) -> Vec<String> {
    let lines = diff
        .split('\n')
        .filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---"));
    lines.map(str::to_owned).collect()
}

const CONTENTS: &[&[u8]] = &[
    b"",
    b"a\nb\n",
    b"a\r\nb\r\n",
    b"a\nb\r\n",
    b"a\r\nb\n",
    b"a\rb\r",
    b"a\rb\n",
    b"a\rb\r\nc\n",
    b"no end",
    b"no end\r\nlast",
    b"\n",
    b"\r\n",
    b"\r\r\n",
    b"\r",
    b"nul\0byte\n",
    b"nul\0byte\r\n",
    b"\xef\xbb\xbfbom\r\nb\r\n",
    b"\x01\x02\x03\x04\n",
    b"dos\r\nend\r\n\x1a",
    b"$Id$\r\n$Id: x $\n",
    b"\xff\xfea\0\n\0",
];
const SETTINGS: &[&str] = &[
    "text",
    "-text",
    "text=auto",
    "text eol=lf",
    "text eol=crlf",
    "text=auto eol=lf",
    "text=auto eol=crlf",
    "eol=crlf",
    "eol=lf",
    "crlf",
    "crlf=input",
    "-crlf",
    "binary",
    "ident",
    "ident text eol=crlf",
    "text=other",
    "-text eol=crlf",
];

#[test]
fn line_ends_are_those_of_git_in_both_directions() {
    for setting in SETTINGS {
        let attributes = format!("* {setting}\n.gitattributes -text\n");
        let names: Vec<String> = (0..CONTENTS.len())
            .map(|number| format!("f{number:02}"))
            .collect();
        let mut files: Vec<(&str, &[u8])> = names
            .iter()
            .map(String::as_str)
            .zip(CONTENTS.iter().copied())
            .collect();
        files.push((".gitattributes", attributes.as_bytes()));
        let world = GitWorld::new(&[&files]);
        let (workspace, clone) = (world.open(None), world.clone_path());
        let root = workspace.root().path();
        for name in &names {
            let expected = fs::read(clone.join(name)).unwrap();
            assert_eq!(fs::read(root.join(name)).unwrap(), expected, "{setting}: {name}");
        }
        assert_eq!(tree_of(&workspace), base_tree(&workspace), "{setting}: untouched");
        for line in ["new\n", "new\r\n", "\r"] {
            for name in &names {
                let mut content = fs::read(clone.join(name)).unwrap();
                content.extend(line.as_bytes());
                fs::write(clone.join(name), &content).unwrap();
                fs::write(root.join(name), &content).unwrap();
            }
            assert_eq!(tree_of(&workspace), world.added_tree(), "{setting}: {line:?}");
            // The index of the clone must be the committed one again.
            run_git(Command::new("git").args(["reset", "-q"]).current_dir(&clone));
        }
    }
}

#[test]
fn encodings_are_those_of_git_in_both_directions() {
    let cases = [
        ("UTF-16", "\u{e9}t\u{e9} \u{1f600}"),
        ("UTF-16LE", "\u{e9}t\u{e9}"),
        ("UTF-16BE", "\u{e9}t\u{e9}"),
        ("UTF-16LE-BOM", "\u{e9}t\u{e9}"),
        ("UTF-32", "\u{e9}t\u{e9}"),
        (
            "SHIFT-JIS",
            "\u{65e5}\u{672c}\u{a5}\u{203e}\u{301c}\u{2212}\u{ff71}",
        ),
        ("CP932", "\u{65e5}\u{672c}\\~\u{ff5e}\u{2460}"),
        ("EUC-JP", "\u{65e5}\u{672c}\\~\u{301c}\u{2016}\u{ff71}"),
        ("ISO-2022-JP", "\u{65e5}\u{672c}\u{301c} a \u{8a9e}"),
        ("BIG5", "\u{4e2d}\u{6587}\u{ff0c}\u{2027}"),
        ("GBK", "\u{4e2d}\u{6587}\u{20ac}\u{3001}"),
        ("CP949", "\u{d55c}\u{ae00}\u{ac02}"),
        ("windows-1252", "\u{e9}\u{20ac}\u{201c}"),
        ("KOI8-R", "\u{43f}\u{440}\u{438}\u{2500}"),
        ("ISO-8859-1", "\u{e9}\u{93}\u{ff}"),
        ("ISO-8859-15", "\u{e9}\u{20ac}"),
    ];
    for (name, words) in cases {
        let before = format!("first {words}\nsecond\nthird {words}\n");
        let after = format!("first {words}\nsecond {words} changed\nthird {words}\n");
        for end in ["", " text eol=crlf"] {
            let attributes = format!("*.x working-tree-encoding={name}{end}\n");
            let files: Files<'_> = &[
                (".gitattributes", attributes.as_bytes()),
                ("a.x", before.as_bytes()),
                ("b.x", after.as_bytes()),
            ];
            let world = GitWorld::new(&[files]);
            let (workspace, clone) = (world.open(None), world.clone_path());
            let root = workspace.root().path();
            let expected = fs::read(clone.join("b.x")).unwrap();
            if String::from_utf8_lossy(&expected).replace('\r', "") == after {
                // The iconv of this machine does not have the encoding.
                continue;
            }
            for file in ["a.x", "b.x"] {
                let expected = fs::read(clone.join(file)).unwrap();
                assert_eq!(
                    fs::read(root.join(file)).unwrap(),
                    expected,
                    "{name}{end}: {file}"
                );
            }
            assert_eq!(
                run_git_in(&workspace, &["status", "--porcelain"]),
                "",
                "{name}{end}"
            );
            for folder in [clone.as_path(), root] {
                fs::write(folder.join("a.x"), &expected).unwrap();
            }
            assert_eq!(tree_of(&workspace), world.added_tree(), "{name}{end}");
            let diff = workspace.diff(1 << 20).unwrap();
            assert_eq!(changed_lines(&diff.text).len(), 2, "{name}{end}: {}", diff.text);
        }
    }
}

#[test]
fn nested_files_and_macros_count_as_in_git() {
    let world = GitWorld::new(&[&[
        (
            ".gitattributes",
            b"*.bat text eol=crlf\n[attr]dos text eol=crlf\n*.cmd dos\n*.png binary\n",
        ),
        ("a.bat", b"echo\n"),
        ("a.cmd", b"echo\n"),
        ("a.png", b"x\r\ny\n"),
        ("in/.gitattributes", b"*.bat -text\nkeep/** text eol=crlf\n"),
        ("in/a.bat", b"echo\n"),
        ("in/keep/deep/a.txt", b"echo\n"),
        ("out/a.txt", b"echo\n"),
    ]]);
    let (workspace, clone) = (world.open(None), world.clone_path());
    for path in [
        "a.bat",
        "a.cmd",
        "a.png",
        "in/a.bat",
        "in/keep/deep/a.txt",
        "out/a.txt",
    ] {
        let expected = fs::read(clone.join(path)).unwrap();
        assert_eq!(
            fs::read(workspace.root().path().join(path)).unwrap(),
            expected,
            "{path}"
        );
    }
    assert_eq!(run_git_in(&workspace, &["status", "--porcelain"]), "");
    for root in [clone.as_path(), workspace.root().path()] {
        fs::write(root.join("in/a.bat"), "echo\r\nnew\r\n").unwrap();
        fs::write(root.join("a.bat"), "echo\r\nnew\r\n").unwrap();
        fs::write(root.join("new.cmd"), "new\r\n").unwrap();
        fs::write(root.join("out/.gitattributes"), "*.txt text\n").unwrap();
        fs::write(root.join("out/a.txt"), "new\r\n").unwrap();
    }
    assert_eq!(tree_of(&workspace), world.added_tree());
}

#[test]
fn change_of_one_line_is_one_line_of_difference() {
    let world = GitWorld::new(&[&[
        (".gitattributes", b"*.bat text eol=crlf\n*.c ident\n"),
        ("run.bat", b"one\ntwo\nthree\n"),
        ("a.c", b"/* $Id$ */\nint a;\n"),
    ]]);
    let workspace = world.open(None);
    let root = workspace.root().path();
    assert_eq!(run_git_in(&workspace, &["status", "--porcelain"]), "");
    assert_eq!(workspace.diff(1 << 20).unwrap().files_changed, 0);
    fs::write(root.join("run.bat"), "one\r\n2\r\nthree\r\n").unwrap();
    let source = fs::read_to_string(root.join("a.c")).unwrap();
    assert!(source.starts_with("/* $Id: "), "{source}");
    fs::write(root.join("a.c"), source.replace("int a", "long a")).unwrap();
    let ours = changed_lines(&workspace.diff(1 << 20).unwrap().text);
    assert_eq!(ours, ["-int a;", "+long a;", "-two", "+2"]);
    assert_eq!(ours, changed_lines(&run_git_in(&workspace, &["diff"])));
}

#[test]
fn unsupported_filters_and_encodings_are_named_when_changed() {
    let world = GitWorld::new(&[&[
        (
            ".gitattributes",
            b"*.key filter=git-crypt\n*.e working-tree-encoding=EBCDIC-US\n*.u working-tree-encoding=UTF-16\n",
        ),
        ("a.key", b"secret\n"),
        ("a.e", b"text\n"),
        ("a.u", b"text\n"),
    ]]);
    let workspace = world.open(None);
    let root = workspace.root().path();
    assert_eq!(tree_of(&workspace), base_tree(&workspace));
    assert_eq!(workspace.scanner.report_omissions(), "");
    for name in ["a.key", "a.e", "a.u", "new.key"] {
        fs::write(root.join(name), "changed\n").unwrap();
    }
    fs::write(root.join("other"), "new\n").unwrap();
    assert_eq!(workspace.diff(1 << 20).unwrap().files_changed, 1);
    let note = workspace.scanner.report_omissions();
    for words in [
        "a.key: .gitattributes gives it to the filter git-crypt",
        "new.key: .gitattributes gives it to the filter git-crypt",
        "a.e: its encoding EBCDIC-US in .gitattributes is not supported here",
        "a.u: .gitattributes says that it is UTF-16, but the file has no byte order mark",
    ] {
        assert!(note.contains(words), "{words}: {note}");
    }
}

#[test]
fn other_attributes_of_another_commit_reach_unchanged_files() {
    let world = GitWorld::new(&[
        &[("a.bat", b"echo\n"), ("b.txt", b"b\n")],
        &[
            (".gitattributes", b"*.bat text eol=crlf\n"),
            ("a.bat", b"echo\n"),
            ("b.txt", b"b\n"),
        ],
    ]);
    let workspace = world.open(Some(0));
    let bat = workspace.root().path().join("a.bat");
    assert_eq!(fs::read(&bat).unwrap(), b"echo\r\n");
    assert_eq!(tree_of(&workspace), base_tree(&workspace));
    assert_eq!(run_git_in(&workspace, &["status", "--porcelain"]), "");
    // An undo converts the files back, too.
    workspace.has_changed().unwrap();
    fs::remove_file(workspace.root().path().join(".gitattributes")).unwrap();
    fs::write(&bat, "echo\nnew\n").unwrap();
    assert!(workspace.has_changed().unwrap());
    workspace.undo().unwrap();
    assert_eq!(fs::read(&bat).unwrap(), b"echo\r\n");
}
