//! Boundary of a shallow repository: commits whose parents were not fetched yet, as `git` stores them in `shallow`.
//!
//! A boundary commit reads like a root commit. So every answer that depends on older history is refused with
//! [`Error::HistoryIncomplete`] instead.

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    io::{self, Write as _},
    path::Path,
};

use git2::{ObjectType, Oid};

use crate::{BareRepository, Error, fetch_steps::StepRecord};

// File in a git directory with the ids of the boundary commits, one in each line.
const SHALLOW: &str = "shallow";

/// Reads the boundary of a repository; empty for complete history.
pub(crate) fn read_boundary(git_dir: &Path) -> Result<BTreeSet<Oid>, Error> {
    let text = match fs::read_to_string(git_dir.join(SHALLOW)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error.into()),
    };
    Ok(text.lines().map(Oid::from_str).collect::<Result<_, _>>()?)
}

/// Replaces the boundary of a repository. Processes that read it meanwhile see the old or the new one.
pub(crate) fn write_boundary(git_dir: &Path, boundary: &BTreeSet<Oid>) -> Result<(), Error> {
    let place = git_dir.join(SHALLOW);
    if boundary.is_empty() {
        return match fs::remove_file(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    let mut written = tempfile::Builder::new()
        .prefix("shallow-")
        .tempfile_in(git_dir)
        .map_err(|error| Error::failed("the boundary of the history cannot be written", error))?;
    for id in boundary {
        writeln!(written, "{id}")?;
    }
    written.as_file().sync_all()?;
    written
        .persist(&place)
        .map_err(|error| Error::failed("the boundary of the history cannot be written", error.error))?;
    Ok(())
}

/// Moves a boundary to the oldest commits that are present. `present_parents` returns the parents of a present
/// commit, `None` for a missing one.
///
/// Every commit between the old and the new boundary has all of its parents.
pub(crate) fn settle_boundary(
    boundary: &BTreeSet<Oid>,
    mut present_parents: impl FnMut(Oid) -> Result<Option<Vec<Oid>>, Error>,
) -> Result<BTreeSet<Oid>, Error> {
    let (mut settled, mut seen) = (BTreeSet::new(), HashSet::new());
    let mut queue: Vec<Oid> = boundary.iter().copied().collect();
    while let Some(commit) = queue.pop() {
        if !seen.insert(commit) {
            continue;
        }
        let Some(parents) = present_parents(commit)? else {
            // No branch leads here anymore.
            continue;
        };
        let mut is_complete = true;
        for parent in &parents {
            is_complete &= present_parents(*parent)?.is_some();
        }
        if is_complete {
            queue.extend(parents);
        } else {
            settled.insert(commit);
        }
    }
    Ok(settled)
}

impl BareRepository {
    /// True while older commits of the history are missing.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn is_shallow(&self) -> Result<bool, Error> {
        Ok(!read_boundary(self.path())?.is_empty())
    }

    /// True while a first fetch in steps is not finished: commits or branches of the remote can be missing.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn is_incomplete(&self) -> Result<bool, Error> {
        Ok(StepRecord::exists(self.path()) || self.is_shallow()?)
    }

    /// Takes over the boundary of the repository whose objects this one reads.
    ///
    /// # Errors
    /// [`Error::Failed`] when the disk cannot be read or written.
    pub fn copy_boundary(from: &Path, to: &Path) -> Result<(), Error> {
        let boundary = read_boundary(from)?;
        if boundary == read_boundary(to)? {
            return Ok(());
        }
        write_boundary(to, &boundary)
    }

    /// Fails when a boundary commit is among the commits of `heads` that are not in the history of `hidden`: then an
    /// answer about them can be wrong.
    pub(crate) fn require_history(&self, heads: &[Oid], hidden: &[Oid]) -> Result<(), Error> {
        let boundary = read_boundary(self.path())?;
        if boundary.is_empty() {
            return Ok(());
        }
        let mut walk = self.objects().revwalk()?;
        for head in heads {
            walk.push(*head)?;
        }
        for commit in hidden {
            walk.hide(*commit)?;
        }
        for id in walk {
            if boundary.contains(&id?) {
                return Err(Error::HistoryIncomplete);
            }
        }
        Ok(())
    }

    /// Returns those boundary commits to which a branch or another reference leads.
    pub(crate) fn reachable_boundary(&self, boundary: &BTreeSet<Oid>) -> Result<BTreeSet<Oid>, Error> {
        let mut walk = self.objects().revwalk()?;
        walk.push_glob("refs/*")?;
        let mut found = BTreeSet::new();
        for id in walk {
            let id = id?;
            if boundary.contains(&id) {
                found.insert(id);
            }
        }
        Ok(found)
    }

    /// Returns the parents that a commit names, regardless of the boundary; `None` for a missing commit.
    pub(crate) fn named_parents(&self, commit: Oid) -> Result<Option<Vec<Oid>>, Error> {
        let odb = self.objects().odb()?;
        let object = match odb.read(commit) {
            Ok(object) => object,
            Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if object.kind() != ObjectType::Commit {
            return Ok(None);
        }
        let header = object.data().split(|byte| *byte == b'\n');
        let lines = header.take_while(|line| !line.is_empty());
        let parents = lines.filter_map(|line| line.strip_prefix(b"parent "));
        let parents = parents.map(|id| Oid::from_str(&String::from_utf8_lossy(id)));
        Ok(Some(parents.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn build_id(number: usize) -> Oid {
        Oid::from_str(&format!("{number:040x}")).unwrap()
    }

    /// Parents of each commit, by number; a parent has a smaller number.
    type CommitGraph = Vec<Vec<usize>>;

    fn settle(graph: &CommitGraph, present: &[bool], boundary: &[usize]) -> BTreeSet<Oid> {
        let parents: BTreeMap<Oid, Vec<Oid>> = graph
            .iter()
            .enumerate()
            .filter(|(number, _)| present[*number])
            .map(|(number, parents)| {
                let parents = parents.iter().map(|parent| build_id(*parent)).collect();
                (build_id(number), parents)
            })
            .collect();
        let boundary = boundary.iter().map(|number| build_id(*number)).collect();
        settle_boundary(&boundary, |id| Ok(parents.get(&id).cloned())).unwrap()
    }

    #[test]
    fn boundary_settles_at_oldest_present_commits() {
        // 0 ← 1 ← 2 ← 3, and 4 merges 2 and 3.
        let graph = vec![vec![], vec![0], vec![1], vec![2], vec![2, 3]];
        let all = [true; 5];
        for (present, boundary, settled) in [
            (all, vec![4], vec![]),
            ([false, true, true, true, true], vec![4], vec![1]),
            ([false, false, true, false, true], vec![4], vec![4]),
            ([false, false, true, true, true], vec![3], vec![2]),
            ([true, true, false, true, true], vec![3, 4], vec![3, 4]),
            (all, vec![], vec![]),
        ] {
            let expected: BTreeSet<Oid> = settled.into_iter().map(build_id).collect();
            assert_eq!(
                settle(&graph, &present, &boundary),
                expected,
                "{present:?} {boundary:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn fuzz_settled_boundary_has_no_gap_above(
            graph in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 1..40),
            present in prop::collection::vec(any::<bool>(), 40),
            chosen in prop::collection::vec(any::<bool>(), 40),
        ) {
            let graph: CommitGraph = graph
                .iter()
                .enumerate()
                .map(|(number, parents)| match number {
                    0 => Vec::new(),
                    _ => parents.iter().map(|parent| parent.index(number)).collect(),
                })
                .collect();
            let boundary: Vec<usize> = (0..graph.len()).filter(|number| present[*number] && chosen[*number]).collect();
            let settled = settle(&graph, &present, &boundary);
            // A walk from the old boundary meets no missing commit above the new boundary.
            let mut queue = boundary;
            let mut seen = BTreeSet::new();
            while let Some(number) = queue.pop() {
                prop_assert!(present[number], "{number} is missing");
                if seen.insert(number) && !settled.contains(&build_id(number)) {
                    queue.extend(&graph[number]);
                }
            }
            // A second pass changes nothing.
            let again: Vec<usize> = (0..graph.len()).filter(|number| settled.contains(&build_id(*number))).collect();
            prop_assert_eq!(settle(&graph, &present, &again), settled);
        }
    }

    #[test]
    fn boundary_is_written_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let boundary: BTreeSet<Oid> = [build_id(7), build_id(9)].into();
        assert_eq!(read_boundary(folder.path()).unwrap(), BTreeSet::new());
        write_boundary(folder.path(), &boundary).unwrap();
        assert_eq!(read_boundary(folder.path()).unwrap(), boundary);
        write_boundary(folder.path(), &BTreeSet::new()).unwrap();
        assert!(!folder.path().join(SHALLOW).exists());
    }
}
