//! Conversion of conflicts and lost hunks between wire and domain types.

use domain::{ConflictFile, ConflictKind, LostHunk, MergeSide};

use crate::executor as wire;

impl From<ConflictFile> for wire::ConflictFile {
    fn from(file: ConflictFile) -> Self {
        Self {
            path: file.path,
            kind: file.kind.as_str().to_owned(),
            bytes: file.bytes,
            hunks: file.hunks,
        }
    }
}

impl From<wire::ConflictFile> for ConflictFile {
    fn from(file: wire::ConflictFile) -> Self {
        let known = ConflictKind::ALL.iter().find(|kind| kind.as_str() == file.kind);
        Self {
            path: file.path,
            // A kind of a later release is left to people.
            kind: known.copied().unwrap_or(ConflictKind::Binary),
            bytes: file.bytes,
            hunks: file.hunks,
        }
    }
}

impl From<LostHunk> for wire::LostHunk {
    fn from(hunk: LostHunk) -> Self {
        Self {
            is_base: hunk.side == MergeSide::Base,
            path: hunk.path,
            lines: hunk.lines,
            is_removal: hunk.is_removal,
        }
    }
}

impl From<wire::LostHunk> for LostHunk {
    fn from(hunk: wire::LostHunk) -> Self {
        Self {
            side: match hunk.is_base {
                true => MergeSide::Base,
                false => MergeSide::PullRequest,
            },
            path: hunk.path,
            lines: hunk.lines,
            is_removal: hunk.is_removal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_kinds_pass_wire_unchanged() {
        for kind in ConflictKind::ALL {
            let file = ConflictFile {
                path: "a.py".to_owned(),
                kind: *kind,
                bytes: 7,
                hunks: 2,
            };
            assert_eq!(ConflictFile::from(wire::ConflictFile::from(file.clone())), file);
        }
        let later = wire::ConflictFile {
            kind: "of_a_later_release".to_owned(),
            ..wire::ConflictFile::default()
        };
        assert!(ConflictFile::from(later).kind.is_unreadable());
    }
}
