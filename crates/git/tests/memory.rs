//! Memory of comparisons.
#![expect(clippy::print_stdout, reason = "the test prints what it measured")]

use domain::CommitId;
use git::{BareRepository, InspectionBudget};
use tempfile::TempDir;

// Maximum memory of a comparison, in MiB; a comparison line by line would take some hundred bytes per line.
const MAX_GROWTH_MIB: u64 = 200;

/// Peak memory of this process since the previous call, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    kib / 1024
}

fn create_commit(git: &git2::Repository, parent: Option<&CommitId>, files: &[(&str, Vec<u8>)]) -> CommitId {
    let parent = parent.map(|id| git.find_commit(id.as_str().parse().unwrap()).unwrap());
    let mut tree = git.treebuilder(None).unwrap();
    for (name, content) in files {
        tree.insert(name, git.blob(content).unwrap(), 0o100_644).unwrap();
    }
    let tree = git.find_tree(tree.write().unwrap()).unwrap();
    let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(1, 0)).unwrap();
    let parents: Vec<_> = parent.iter().collect();
    let id = git.commit(None, &who, &who, "x", &tree, &parents).unwrap();
    id.to_string().parse().unwrap()
}

#[test]
fn ten_million_lines_compare_in_bounded_memory() {
    if !testkit::enter_own_process("memory::ten_million_lines_compare_in_bounded_memory") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let repository = BareRepository::init_bare(folder.path()).unwrap();
    let git = repository.objects();
    let base = create_commit(git, None, &[("c.txt", b"x\n".repeat(4_000_000))]);
    let head = create_commit(
        git,
        Some(&base),
        &[
            ("a.txt", vec![b'\n'; 9_900_000]),
            ("b.txt", vec![b'\n'; 9_900_001]),
            ("c.txt", b"y\n".repeat(4_000_000)),
            ("d.txt", vec![b'\n'; 1_000_000]),
        ],
    );
    peak_mib();
    let before = peak_mib();
    let change = repository
        .diff(&base, &head, &mut InspectionBudget::new(10 << 20))
        .unwrap();
    assert!(
        change.files.len() == 4 && change.cut.is_none(),
        "{:?}",
        change.cut
    );
    let shown = repository.unified_diff(&base, &head, 8 << 20).unwrap();
    assert_eq!(shown.files_changed, 4);
    let grown = peak_mib().saturating_sub(before);
    assert!(grown < MAX_GROWTH_MIB, "{grown} MiB");
    println!("comparing 30 MB of empty and short lines took {grown} MiB");
}
