//! Patches of a pull request: their limits in a model's context, and their difference since our last review.

use domain::{CommitId, Job, PullRequestFile, ReviewedChange, SinceReview, Trigger};

// Limit of compared line pairs. The table of the longest common subsequence takes four bytes for each.
const MOST_PAIRS: usize = 4_000_000;

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

/// Changes since the review of `reviewed`: the current patches against those that the trigger of that review contains.
/// `None` when that trigger has aged out.
pub(crate) fn find_changes_since(
    reviewed: &CommitId,
    history: &[Trigger],
    now: &[PullRequestFile],
) -> Option<SinceReview> {
    let mut earlier = history.iter().rev().filter_map(reviewed_change);
    let then = earlier.find(|change| change.head == *reviewed)?;
    Some(SinceReview {
        commit: reviewed.clone(),
        files: diff_files(&then.files, now),
    })
}

fn reviewed_change(trigger: &Trigger) -> Option<&ReviewedChange> {
    let request = trigger.reason.job_request()?;
    request.about.change().filter(|_| request.job == Job::Review)
}

/// Changed files since the review, each with the lines that were added or removed since.
fn diff_files(then: &[PullRequestFile], now: &[PullRequestFile]) -> Vec<PullRequestFile> {
    let of = |file: &PullRequestFile| {
        let before = then.iter().find(|known| known.path == file.path);
        let patch = match before {
            Some(before) if before.patch == file.patch => return None,
            // A patch that the review did not contain is new as a whole.
            Some(before) if !before.patch.is_empty() => diff_patches(&before.patch, &file.patch),
            _ => file.patch.clone(),
        };
        Some(PullRequestFile {
            path: file.path.clone(),
            patch,
        })
    };
    now.iter().filter_map(of).collect()
}

/// Added or removed line of a patch.
#[derive(Clone, Copy, Debug)]
struct PatchLine<'a> {
    /// Text with the sign.
    text: &'a str,
    /// Line number in the new file; for a removed line, that of the following line.
    at: u32,
}

impl PatchLine<'_> {
    fn is_added(&self) -> bool {
        self.text.starts_with('+')
    }
}

fn parse_patch_lines(patch: &str) -> Vec<PatchLine<'_>> {
    let mut next = 0;
    let mut found = Vec::new();
    for text in patch.lines() {
        if let Some(header) = text.strip_prefix("@@ ") {
            let new = header.split_once('+').map_or("", |(_, new)| new);
            next = new
                .split([',', ' '])
                .next()
                .and_then(|first| first.parse().ok())
                .unwrap_or(next);
        } else if text.starts_with('+') {
            found.push(PatchLine { text, at: next });
            next += 1;
        } else if text.starts_with('-') {
            found.push(PatchLine { text, at: next });
        } else if !text.starts_with('\\') {
            // Git marks a missing line feed at the end of a file by a line that starts with a backslash,
            // which no file contains.
            next += 1;
        }
    }
    found
}

/// Hunks without context: lines that only the new patch adds, and added lines of the old patch that are gone.
fn diff_patches(then: &str, now: &str) -> String {
    let (then, now) = (parse_patch_lines(then), parse_patch_lines(now));
    let kept = find_common_lines(&then, &now);
    let mut hunks = HunkWriter::default();
    let (mut old, mut new) = (0, 0);
    for (in_old, in_new) in kept.into_iter().chain([(then.len(), now.len())]) {
        let at = now.get(new).or(now.last()).map_or(1, |line| line.at);
        for gone in then[old..in_old].iter().filter(|line| line.is_added()) {
            hunks.push(at, &format!("-{}", &gone.text[1..]));
        }
        for line in &now[new..in_new] {
            hunks.push(line.at, line.text);
        }
        (old, new) = (in_old + 1, in_new + 1);
    }
    hunks.text
}

/// Builder of hunks from single lines.
#[derive(Default)]
struct HunkWriter {
    text: String,
    /// Expected position of the next line in the current hunk.
    next: Option<u32>,
}

impl HunkWriter {
    fn push(&mut self, at: u32, line: &str) {
        if self.next != Some(at) {
            self.text.push_str(&format!("@@ +{at} @@\n"));
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.next = Some(at + u32::from(line.starts_with('+')));
    }
}

/// Longest common subsequence of lines by text, as index pairs in order.
fn find_common_lines(old: &[PatchLine<'_>], new: &[PatchLine<'_>]) -> Vec<(usize, usize)> {
    let same = |a: &PatchLine<'_>, b: &PatchLine<'_>| a.text == b.text;
    let start = old.iter().zip(new).take_while(|(a, b)| same(a, b)).count();
    let rest = (&old[start..], &new[start..]);
    let ends = rest.0.iter().rev().zip(rest.1.iter().rev());
    let end = ends.take_while(|(a, b)| same(a, b)).count();
    let (a, b) = (&rest.0[..rest.0.len() - end], &rest.1[..rest.1.len() - end]);
    let mut pairs: Vec<(usize, usize)> = (0..start).map(|index| (index, index)).collect();
    // Above the limit, the remaining lines count as new and are reviewed again.
    if a.len() * b.len() <= MOST_PAIRS {
        pairs.extend(
            find_longest_subsequence(a, b)
                .into_iter()
                .map(|(i, j)| (start + i, start + j)),
        );
    }
    pairs.extend((0..end).map(|index| (old.len() - end + index, new.len() - end + index)));
    pairs
}

fn find_longest_subsequence(a: &[PatchLine<'_>], b: &[PatchLine<'_>]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    let mut best = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            best[i * width + j] = if a[i].text == b[j].text {
                best[(i + 1) * width + j + 1] + 1
            } else {
                best[(i + 1) * width + j].max(best[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        if a[i].text == b[j].text {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn build_changed_file(path: &str, patch: &str) -> PullRequestFile {
        PullRequestFile {
            path: path.to_owned(),
            patch: patch.to_owned(),
        }
    }

    #[test]
    fn only_lines_after_review_are_new() {
        let then = [
            build_changed_file("a", "@@ -1,2 +1,4 @@\n x\n+one\n+two\n y"),
            build_changed_file("same", "@@ -0,0 +1 @@\n+s"),
            build_changed_file("hidden", ""),
        ];
        let now = [
            build_changed_file(
                "a",
                "@@ -1,2 +1,5 @@\n x\n+zero\n+one\n+TWO\n y\n@@ -9 +12 @@\n-old\n+new",
            ),
            build_changed_file("same", "@@ -0,0 +1 @@\n+s"),
            build_changed_file("hidden", "@@ -0,0 +1 @@\n+h"),
            build_changed_file("b", "@@ -0,0 +1 @@\n+b"),
        ];
        let files = diff_files(&then, &now);
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a", "hidden", "b"]);
        assert_eq!(files[0].added_lines(), BTreeSet::from([2, 4, 12]));
        assert_eq!(
            files[0].patch,
            "@@ +2 @@\n+zero\n@@ +4 @@\n-two\n+TWO\n@@ +12 @@\n-old\n+new\n"
        );
    }

    #[test]
    fn lines_that_moved_are_not_new() {
        let then = [build_changed_file("a", "@@ -1 +1,2 @@\n x\n+one")];
        let now = [build_changed_file("a", "@@ -4 +9,2 @@\n x\n+one")];
        let files = diff_files(&then, &now);
        assert!(files[0].added_lines().is_empty(), "{files:?}");
    }

    #[test]
    fn too_long_change_counts_as_new() {
        let long = |word: &str| {
            let lines: Vec<String> = (0..3_000).map(|n| format!("+{word} {n}")).collect();
            format!("@@ -0,0 +1,3000 @@\n{}", lines.join("\n"))
        };
        let files = diff_files(
            &[build_changed_file("a", &long("one"))],
            &[build_changed_file("a", &long("two"))],
        );
        assert_eq!(files[0].added_lines().len(), 3_000);
    }

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
