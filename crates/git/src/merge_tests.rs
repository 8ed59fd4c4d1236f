use std::{collections::BTreeMap, fs};

use domain::{ConflictKind, DroppedHunk, list_unnamed_hunks};
use proptest::prelude::*;

use super::*;
use crate::repository::convert_commit_id;

type Files = BTreeMap<String, Vec<u8>>;
type FileTexts = &'static [(&'static str, &'static str)];

fn build_files(files: &[(&str, &str)]) -> Files {
    files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
        .collect()
}

/// A repository with an ancestor and both sides of a merge.
struct MergeWorld {
    _folder: tempfile::TempDir,
    repository: BareRepository,
    ours: CommitId,
    theirs: CommitId,
}

impl MergeWorld {
    fn new(before: &Files, ours: &Files, theirs: &Files) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repository = BareRepository::init_bare(&folder.path().join("a.git")).unwrap();
        let ancestor = commit_files(&repository, before, &[]);
        let ours = commit_files(&repository, ours, std::slice::from_ref(&ancestor));
        let theirs = commit_files(&repository, theirs, std::slice::from_ref(&ancestor));
        Self {
            _folder: folder,
            repository,
            ours,
            theirs,
        }
    }

    fn of_texts(before: &str, ours: &str, theirs: &str) -> Self {
        let [before, ours, theirs] = [before, ours, theirs].map(|text| build_files(&[("a.txt", text)]));
        Self::new(&before, &ours, &theirs)
    }

    fn prepare(&self) -> PreparedMerge {
        self.repository.prepare_merge(&self.ours, &self.theirs).unwrap()
    }

    fn audit(&self, result: &Files) -> MergeAudit {
        let head = commit_files(
            &self.repository,
            result,
            &[self.ours.clone(), self.theirs.clone()],
        );
        let audit = self
            .repository
            .audit_merge_commit(&self.ours, &self.theirs, &head);
        audit.unwrap()
    }

    fn audit_text(&self, result: &str) -> MergeAudit {
        self.audit(&build_files(&[("a.txt", result)]))
    }

    fn preview_text(&self, path: &str) -> String {
        let bytes = self.repository.read_file(&self.prepare().preview, path).unwrap();
        String::from_utf8(bytes.unwrap()).unwrap()
    }
}

fn commit_files(repository: &BareRepository, files: &Files, parents: &[CommitId]) -> CommitId {
    let entries = files.iter();
    commit_entries(
        repository,
        entries.map(|(path, content)| (path.as_bytes(), content.as_slice())),
        parents,
    )
}

fn commit_entries<'a>(
    repository: &BareRepository,
    entries: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    parents: &[CommitId],
) -> CommitId {
    let git = repository.objects();
    let mut index = git2::Index::new().unwrap();
    for (path, content) in entries {
        let id = git.blob(content).unwrap();
        let never = || git2::IndexTime::new(0, 0);
        index
            .add(&git2::IndexEntry {
                ctime: never(),
                mtime: never(),
                dev: 0,
                ino: 0,
                mode: 0o100_644,
                uid: 0,
                gid: 0,
                file_size: 0,
                id,
                flags: 0,
                flags_extended: 0,
                path: path.to_vec(),
            })
            .unwrap();
    }
    let tree = git.find_tree(index.write_tree_to(git).unwrap()).unwrap();
    let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(1, 0)).unwrap();
    let parents: Vec<git2::Commit<'_>> = parents
        .iter()
        .map(|parent| repository.commit(parent).unwrap())
        .collect();
    let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
    let id = git.commit(None, &who, &who, "files", &tree, &parents).unwrap();
    convert_commit_id(id).unwrap()
}

const BEFORE: &str = "def total(items):\n    return sum(items)\n\n\ndef name():\n    return 'cart'\n";
const OURS: &str = "def total(items):\n    return sum(items) * RATE\n\n\ndef name():\n    return 'cart'\n";
const THEIRS: &str =
    "def total(items):\n    return round(sum(items), 2)\n\n\ndef name():\n    return 'basket'\n";

#[test]
fn conflict_has_markers_of_both_sides() {
    let world = MergeWorld::of_texts(BEFORE, OURS, THEIRS);
    let merge = world.prepare();
    let [file] = &merge.conflicts[..] else {
        panic!("{merge:?}")
    };
    assert_eq!(
        (file.path.as_str(), file.kind, file.hunks),
        ("a.txt", ConflictKind::Content, 1)
    );
    let text = world.preview_text("a.txt");
    for part in [
        "<<<<<<< pull request\n    return sum(items) * RATE\n",
        "||||||| merge base\n    return sum(items)\n",
        "    return round(sum(items), 2)\n>>>>>>> base branch\n",
        "return 'basket'",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert_eq!(merge, world.prepare(), "the preview is the same everywhere");
}

#[test]
fn kinds_of_conflicts_are_distinguished() {
    let rows: [(&str, FileTexts, FileTexts, FileTexts, ConflictKind); 4] = [
        (
            "both added",
            &[("x", "x\n")],
            &[("x", "x\n"), ("a", "1\n")],
            &[("x", "x\n"), ("a", "2\n")],
            ConflictKind::BothAdded,
        ),
        (
            "removed by us",
            &[("a", "1\n2\n")],
            &[],
            &[("a", "1\n3\n")],
            ConflictKind::RemovedAndChanged,
        ),
        (
            "removed by them",
            &[("a", "1\n2\n")],
            &[("a", "1\n3\n")],
            &[],
            ConflictKind::RemovedAndChanged,
        ),
        (
            "binary",
            &[("a", "1\0")],
            &[("a", "2\0")],
            &[("a", "3\0")],
            ConflictKind::Binary,
        ),
    ];
    for (case, before, ours, theirs, kind) in rows {
        let world = MergeWorld::new(&build_files(before), &build_files(ours), &build_files(theirs));
        let merge = world.prepare();
        let found: Vec<_> = merge
            .conflicts
            .iter()
            .map(|file| (file.path.as_str(), file.kind))
            .collect();
        assert_eq!(found, [("a", kind)], "{case}");
    }
}

#[test]
fn conflicting_file_keeps_changed_mode() {
    const FILE: i32 = 0o100_644;
    const PROGRAM: i32 = 0o100_755;
    let folder = tempfile::tempdir().unwrap();
    let repository = BareRepository::init_bare(&folder.path().join("a.git")).unwrap();
    let git = repository.objects();
    let commit = |file: Option<(i32, &str)>, parents: &[&CommitId]| {
        let mut tree = git.treebuilder(None).unwrap();
        if let Some((mode, text)) = file {
            tree.insert("run.sh", git.blob(text.as_bytes()).unwrap(), mode)
                .unwrap();
        }
        let tree = git.find_tree(tree.write().unwrap()).unwrap();
        let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(1, 0)).unwrap();
        let parents: Vec<git2::Commit<'_>> = parents
            .iter()
            .map(|parent| repository.commit(parent).unwrap())
            .collect();
        let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
        let id = git.commit(None, &who, &who, "files", &tree, &parents).unwrap();
        convert_commit_id(id).unwrap()
    };
    for (before, ours, theirs, merged) in [
        (Some(FILE), FILE, PROGRAM, PROGRAM),
        (Some(FILE), PROGRAM, FILE, PROGRAM),
        (Some(PROGRAM), PROGRAM, FILE, FILE),
        (Some(PROGRAM), PROGRAM, PROGRAM, PROGRAM),
        (None, FILE, PROGRAM, PROGRAM),
        (None, PROGRAM, FILE, PROGRAM),
        (None, FILE, FILE, FILE),
    ] {
        let ancestor = commit(before.map(|mode| (mode, "one\n")), &[]);
        let our_commit = commit(Some((ours, "two\n")), &[&ancestor]);
        let their_commit = commit(Some((theirs, "three\n")), &[&ancestor]);
        let merge = repository.prepare_merge(&our_commit, &their_commit).unwrap();
        assert_eq!(merge.conflicts.len(), 1);
        let preview = repository.commit(&merge.preview).unwrap().tree().unwrap();
        let mode = preview.get_name("run.sh").unwrap().filemode();
        assert_eq!(mode, merged, "{before:?} {ours:o} {theirs:o}");
        // A resolution with this mode and both lines loses nothing.
        let result = commit(Some((merged, "two\nthree\n")), &[&our_commit, &their_commit]);
        let audit = repository.audit_merge_commit(&our_commit, &their_commit, &result);
        assert_eq!(audit.unwrap().lost, [], "{before:?} {ours:o} {theirs:o}");
    }
}

#[test]
fn objects_in_memory_leave_disk_unchanged() {
    let world = MergeWorld::of_texts(BEFORE, OURS, THEIRS);
    let path = world.repository.path().to_owned();
    let list = || {
        let mut found: Vec<_> = walk_files(&path.join("objects"));
        found.sort();
        found
    };
    let before = list();
    let reader = BareRepository::open(&path).unwrap();
    reader.write_to_memory().unwrap();
    let merge = reader.prepare_merge(&world.ours, &world.theirs).unwrap();
    assert!(reader.contains(&merge.preview));
    assert_eq!(list(), before);
}

fn walk_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                walk_files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn resolutions_are_judged_by_their_hunks() {
    let both =
        "def total(items):\n    return round(sum(items) * RATE, 2)\n\n\ndef name():\n    return 'basket'\n";
    let careless = "def total(items):\n    return round(sum(items), 2)\n\n\ndef name():\n    return 'cart'\n";
    let world = MergeWorld::of_texts(BEFORE, OURS, THEIRS);
    let lost_lines = |text: &str| {
        let lost = world.audit_text(text).lost;
        let lines = lost.iter().flat_map(|hunk| &hunk.lines);
        lines.cloned().collect::<Vec<_>>()
    };
    let ours = "return sum(items) * RATE";
    let theirs = "return round(sum(items), 2)";
    for (case, text, lost) in [
        ("one line from both", both, vec![ours, theirs]),
        ("careless", careless, vec![ours, "return 'basket'"]),
        ("only ours", OURS, vec![theirs, "return 'basket'"]),
        ("only theirs", THEIRS, vec![ours]),
        ("neither", BEFORE, vec![ours, theirs, "return 'basket'"]),
    ] {
        assert_eq!(lost_lines(text), lost, "{case}");
    }
    let named = [ours, theirs].map(|quote| DroppedHunk {
        path: "a.txt".to_owned(),
        quote: quote.to_owned(),
        reason: "one line has both".to_owned(),
    });
    assert!(list_unnamed_hunks(&world.audit_text(both).lost, &named).is_empty());
    assert_eq!(
        list_unnamed_hunks(&world.audit_text(careless).lost, &named).len(),
        1
    );
}

#[test]
fn removal_that_returns_is_lost() {
    let world = MergeWorld::of_texts("a\nold\nb\nc\n", "a\nb\nc\n", "a\nold\nb\nnew\nc\n");
    let lost = world.audit_text("a\nold\nb\nnew\nc\n").lost;
    assert_eq!(lost.len(), 1);
    assert_eq!(
        (lost[0].is_removal, &lost[0].lines[..]),
        (true, &["old".to_owned()][..])
    );
    assert_eq!(world.audit_text("a\nb\nnew\nc\n").lost, []);
}

#[test]
fn clean_file_of_base_cannot_be_reverted() {
    let before = build_files(&[("a.txt", BEFORE), ("ci.yml", "run: test\n"), ("gone.txt", "1\n")]);
    let ours = build_files(&[("a.txt", OURS), ("ci.yml", "run: test\n"), ("gone.txt", "1\n")]);
    let theirs = build_files(&[
        ("a.txt", THEIRS),
        ("ci.yml", "run: test --all\n"),
        ("new.txt", "1\n"),
    ]);
    let world = MergeWorld::new(&before, &ours, &theirs);
    let good = build_files(&[
        ("a.txt", THEIRS),
        ("ci.yml", "run: test --all\n"),
        ("new.txt", "1\n"),
    ]);
    let paths = |result: &Files| {
        let lost = world.audit(result).lost;
        lost.into_iter().map(|hunk| hunk.path).collect::<Vec<_>>()
    };
    assert_eq!(paths(&good), ["a.txt"]);
    let mut reverted = good.clone();
    reverted.insert("ci.yml".to_owned(), b"run: test\n".to_vec());
    reverted.insert("gone.txt".to_owned(), b"1\n".to_vec());
    reverted.remove("new.txt");
    assert_eq!(paths(&reverted), ["a.txt", "ci.yml", "gone.txt", "new.txt"]);
}

#[test]
fn leftover_markers_are_found() {
    let world = MergeWorld::of_texts(BEFORE, OURS, THEIRS);
    let preview = world.preview_text("a.txt");
    assert_eq!(world.audit_text(&preview).markers, ["a.txt"]);
    let half = preview.replace("<<<<<<< pull request\n", "");
    assert_eq!(world.audit_text(&half).markers, ["a.txt"], "one marker is enough");
    assert!(world.audit_text(THEIRS).markers.is_empty());
    let title = format!("Title\n=======\n{THEIRS}");
    assert!(world.audit_text(&title).markers.is_empty());
}

/// Change of one line: its index, and the new text; none removes it.
type LineEdit = (usize, Option<u8>);

fn apply_edits(lines: &[String], edits: &[LineEdit], who: &str) -> Vec<String> {
    let mut lines: Vec<Option<String>> = lines.iter().cloned().map(Some).collect();
    for (at, word) in edits {
        let at = at % lines.len();
        lines[at] = word.map(|word| format!("{who} {}", word % 4));
    }
    lines.into_iter().flatten().collect()
}

fn join_lines(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn line_edits() -> impl Strategy<Value = Vec<LineEdit>> {
    prop::collection::vec((0..40usize, prop::option::weighted(0.8, any::<u8>())), 0..6)
}

#[test]
fn rewritten_file_is_compared_with_many_hunks() {
    const LINES: usize = 10_000;
    let text = |change: fn(usize) -> char| -> String {
        (0..LINES)
            .map(|line| format!("{}{line}\n", change(line)))
            .collect()
    };
    let (before, ours) = (text(|_| 'b'), text(|_| 'o'));
    let theirs = text(|line| if line % 2 == 0 { 't' } else { 'b' });
    let world = MergeWorld::of_texts(&before, &ours, &theirs);
    let audit = world.audit(&build_files(&[("a.txt", &ours)]));
    assert_eq!(audit.lost.len(), 200, "each hunk of the base is lost");
    assert!(audit.lost.iter().all(|hunk| hunk.side == domain::MergeSide::Base));
}

#[test]
fn path_that_is_not_utf8_has_no_lines_to_merge() {
    let folder = tempfile::tempdir().unwrap();
    let repository = BareRepository::init_bare(&folder.path().join("a.git")).unwrap();
    let commit = |content: &str, parents: &[CommitId]| {
        commit_entries(
            &repository,
            std::iter::once((&b"caf\xe9.txt"[..], content.as_bytes())),
            parents,
        )
    };
    let ancestor = commit("one\n", &[]);
    let ours = commit("two\n", std::slice::from_ref(&ancestor));
    let theirs = commit("three\n", std::slice::from_ref(&ancestor));
    let merge = repository.prepare_merge(&ours, &theirs).unwrap();
    let kinds: Vec<ConflictKind> = merge.conflicts.iter().map(|file| file.kind).collect();
    assert_eq!(kinds, [ConflictKind::Binary]);
    let head = commit("two\n", &[ours.clone(), theirs.clone()]);
    let audit = repository.audit_merge_commit(&ours, &theirs, &head).unwrap();
    assert_eq!(audit.lost.len(), 1, "the line of the base");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn fuzz_merge_of_git_loses_nothing(
        words in prop::collection::vec(0..8u8, 1..30),
        ours in line_edits(),
        theirs in line_edits(),
    ) {
        let before: Vec<String> = words.iter().map(|word| format!("line {word}")).collect();
        let (ours, theirs) = (apply_edits(&before, &ours, "x"), apply_edits(&before, &theirs, "x"));
        let world = MergeWorld::of_texts(&join_lines(&before), &join_lines(&ours), &join_lines(&theirs));
        let merge = world.prepare();
        if merge.conflicts.is_empty() {
            let audit = world.repository.audit_merge_commit(&world.ours, &world.theirs, &merge.preview).unwrap();
            prop_assert_eq!(audit.lost, vec![]);
            prop_assert!(audit.markers.is_empty());
        } else {
            let audit = world.audit_text(&world.preview_text("a.txt"));
            prop_assert_eq!(audit.markers, vec!["a.txt".to_owned()]);
        }
    }

    #[test]
    fn fuzz_one_sided_result_is_never_silent(
        words in prop::collection::vec(0..200u8, 2..30),
        ours in line_edits(),
        theirs in line_edits(),
    ) {
        let before: Vec<String> = words.iter().map(|word| format!("line {word}")).collect();
        let (ours, theirs) = (apply_edits(&before, &ours, "o"), apply_edits(&before, &theirs, "t"));
        let world = MergeWorld::of_texts(&join_lines(&before), &join_lines(&ours), &join_lines(&theirs));
        let audit = world.audit_text(&join_lines(&ours));
        let added_by_base = theirs.iter().any(|line| line.starts_with('t'));
        let is_named = audit.lost.iter().any(|hunk| hunk.side == MergeSide::Base && !hunk.is_removal);
        prop_assert_eq!(is_named, added_by_base);
    }
}
