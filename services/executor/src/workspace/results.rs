//! Results of which the model saw a part. The whole result is stored outside of the worktree, where commands
//! cannot reach it, and is deleted with the workspace.

use std::{
    collections::VecDeque,
    fs, io,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;

/// Limit of a stored result in bytes; a longer one is truncated.
pub(crate) const MAX_RESULT_BYTES: usize = 4 * 1024 * 1024;
/// Limit of all stored results in bytes; the oldest are deleted first.
const MAX_TOTAL_BYTES: usize = 64 * 1024 * 1024;

/// Stored results of one workspace.
pub(crate) struct ResultStore {
    folder: PathBuf,
    kept: Mutex<StoredResults>,
    most: usize,
}

#[derive(Default)]
struct StoredResults {
    /// Number of the last result.
    last: u32,
    /// Numbers and sizes, the oldest first.
    all: VecDeque<(u32, usize)>,
    bytes: usize,
}

impl ResultStore {
    /// Creates the store in a folder of the workspace.
    pub(super) fn beneath(folder: &Path) -> Self {
        Self {
            folder: folder.join("results"),
            kept: Mutex::default(),
            most: MAX_TOTAL_BYTES,
        }
    }

    /// Stores the beginning of a result and returns its number, from 1. Blocks.
    pub(crate) fn keep(&self, whole: &[u8]) -> io::Result<u32> {
        let whole = &whole[..whole.len().min(MAX_RESULT_BYTES)];
        let mut kept = self.kept.lock();
        while kept.bytes + whole.len() > self.most {
            let Some((oldest, size)) = kept.all.pop_front() else {
                break;
            };
            kept.bytes -= size;
            fs::remove_file(self.file(oldest))?;
        }
        // Numbers are never reused: the model may ask for a result that was deleted.
        let number = kept.last + 1;
        fs::create_dir_all(&self.folder)?;
        fs::write(self.file(number), whole)?;
        // Recorded after the write, so that a failed write leaves no result that cannot be read.
        kept.last = number;
        kept.all.push_back((number, whole.len()));
        kept.bytes += whole.len();
        Ok(number)
    }

    /// Returns a result; `None` if its number is unknown or the result was deleted. Blocks.
    pub(crate) fn read(&self, number: u32) -> io::Result<Option<Vec<u8>>> {
        let kept = self.kept.lock();
        if !kept.all.iter().any(|(known, _)| *known == number) {
            return Ok(None);
        }
        fs::read(self.file(number)).map(Some)
    }

    fn file(&self, number: u32) -> PathBuf {
        self.folder.join(number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_results_are_removed_at_limit() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = ResultStore::beneath(folder.path());
        results.most = 25;
        for number in 1..=3 {
            assert_eq!(
                results.keep(&[b'0' + u8::try_from(number).unwrap(); 10]).unwrap(),
                number
            );
        }
        assert_eq!(results.read(1).unwrap(), None);
        assert_eq!(results.read(2).unwrap().unwrap(), b"2222222222");
        assert_eq!(results.read(3).unwrap().unwrap(), b"3333333333");
        assert_eq!(results.read(4).unwrap(), None);
        let files = fs::read_dir(folder.path().join("results")).unwrap();
        assert_eq!(files.count(), 2);
    }

    #[test]
    fn long_result_keeps_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let results = ResultStore::beneath(folder.path());
        let number = results.keep(&vec![b'x'; MAX_RESULT_BYTES + 1]).unwrap();
        assert_eq!(results.read(number).unwrap().unwrap().len(), MAX_RESULT_BYTES);
    }
}
