//! Patches of a pull request, within the limits of a model's context.

use domain::PullRequestFile;

/// Limits of a set of patches in characters: per file and in total.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatchLimits {
    file: usize,
    all: usize,
}

impl PatchLimits {
    /// Limits for a change that is the subject of the work.
    pub(crate) const WHOLE: Self = Self {
        file: 40_000,
        all: 120_000,
    };
    /// Limits for a change that is context of the work.
    pub(crate) const BESIDE: Self = Self {
        file: 20_000,
        all: 48_000,
    };
}

/// Files with their patches. A patch that exceeds the remaining room is dropped whole.
pub(crate) fn limit_patches(files: &[PullRequestFile], room: PatchLimits) -> Vec<PullRequestFile> {
    let mut left = room.all;
    let bounded = |file: &PullRequestFile| {
        let chars = file.patch.chars().count();
        let fits = chars <= room.file.min(left);
        left -= if fits { chars } else { 0 };
        PullRequestFile {
            path: file.path.clone(),
            patch: if fits { file.patch.clone() } else { String::new() },
        }
    };
    files.iter().map(bounded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_patch_is_dropped_next_kept() {
        let file = |path: &str, chars: usize| PullRequestFile {
            path: path.to_owned(),
            patch: "+".repeat(chars),
        };
        let room = PatchLimits { file: 6, all: 10 };
        let kept = limit_patches(&[file("a", 7), file("b", 6), file("c", 5), file("d", 4)], room);
        let kept: Vec<(&str, usize)> = kept
            .iter()
            .map(|file| (file.path.as_str(), file.patch.len()))
            .collect();
        assert_eq!(kept, [("a", 0), ("b", 6), ("c", 0), ("d", 4)]);
    }
}
