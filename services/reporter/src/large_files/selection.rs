//! Choice of the contents that fit the limits.

use std::collections::BTreeMap;

use git::{LfsFile, LfsOid, LfsOmission, LfsPointer};

/// Limits of the contents of one commit, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LfsLimits {
    pub(super) file_bytes: u64,
    pub(super) commit_bytes: u64,
}

/// Contents of a commit, divided by the limits.
#[derive(Debug, Default)]
pub(super) struct LfsSelection {
    pub(super) wanted: Vec<LfsPointer>,
    pub(super) left_out: Vec<LfsOmission>,
}

/// Chooses contents by size, the smallest first, so that as many files as possible have their contents.
pub(super) fn select_contents(files: &[LfsFile], limits: LfsLimits) -> LfsSelection {
    // Several files may have the same content.
    let sizes: BTreeMap<&LfsOid, u64> = files
        .iter()
        .map(|file| (&file.pointer.oid, file.pointer.size))
        .collect();
    let mut pointers: Vec<LfsPointer> = sizes
        .into_iter()
        .map(|(oid, size)| LfsPointer {
            oid: oid.clone(),
            size,
        })
        .collect();
    pointers.sort_by_key(|pointer| pointer.size);
    let mut selection = LfsSelection::default();
    let mut total = 0_u64;
    for pointer in pointers {
        let sum = total.saturating_add(pointer.size);
        let reason = if pointer.size > limits.file_bytes {
            format!("it has more than {} MiB", limits.file_bytes >> 20)
        } else if sum > limits.commit_bytes {
            format!(
                "the files of the commit in Git LFS have more than {} MiB together",
                limits.commit_bytes >> 20
            )
        } else {
            total = sum;
            selection.wanted.push(pointer);
            continue;
        };
        selection.left_out.push(LfsOmission { pointer, reason });
    }
    selection
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn build_file(number: usize, size: u64) -> LfsFile {
        let oid = format!("{number:064x}").parse().unwrap();
        LfsFile {
            path: format!("{number}.psd"),
            pointer: LfsPointer { oid, size },
        }
    }

    fn select(sizes: &[u64]) -> LfsSelection {
        let files: Vec<LfsFile> = sizes
            .iter()
            .enumerate()
            .map(|(number, size)| build_file(number, *size))
            .collect();
        let limits = LfsLimits {
            file_bytes: 4 * MIB,
            commit_bytes: 6 * MIB,
        };
        select_contents(&files, limits)
    }

    #[test]
    fn contents_are_left_out_by_limit() {
        let selection = select(&[4 * MIB, 4 * MIB + 1, MIB, 2 * MIB, 0]);
        let wanted: Vec<u64> = selection.wanted.iter().map(|pointer| pointer.size).collect();
        assert_eq!(wanted, [0, MIB, 2 * MIB]);
        let reasons: Vec<&str> = selection
            .left_out
            .iter()
            .map(|left| left.reason.as_str())
            .collect();
        assert_eq!(
            reasons,
            [
                "the files of the commit in Git LFS have more than 6 MiB together",
                "it has more than 4 MiB"
            ]
        );
    }

    #[test]
    fn equal_contents_count_once() {
        let mut files = vec![build_file(1, 4 * MIB); 3];
        files[1].path = "copy.psd".to_owned();
        let limits = LfsLimits {
            file_bytes: 4 * MIB,
            commit_bytes: 4 * MIB,
        };
        let selection = select_contents(&files, limits);
        assert_eq!((selection.wanted.len(), selection.left_out.len()), (1, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fuzz_selection_respects_limits_for_any_size(sizes in proptest::collection::vec(any::<u64>(), 0..20)) {
            let selection = select(&sizes);
            prop_assert_eq!(selection.wanted.len() + selection.left_out.len(), sizes.len());
            let total: u64 = selection.wanted.iter().map(|pointer| pointer.size).sum();
            prop_assert!(total <= 6 * MIB);
        }
    }
}
