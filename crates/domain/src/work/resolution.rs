//! Resolution of a conflict with the base branch: conflicting files, and hunks that the result lacks.

use serde::{Deserialize, Serialize};

/// A file that git cannot merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictFile {
    /// Path relative to the root.
    pub path: String,
    /// Kind of the conflict.
    pub kind: ConflictKind,
    /// Size of the file with its markers in bytes; 0 if it has none.
    #[serde(default)]
    pub bytes: u64,
    /// Number of conflicting hunks between markers; 0 for a file without markers.
    #[serde(default)]
    pub hunks: u32,
}

/// Kind of the conflict of a file.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ConflictKind {
    /// Both sides changed the same lines.
    Content,
    /// Both sides added the path with different content.
    BothAdded,
    /// One side removed the file, the other one changed it.
    RemovedAndChanged,
    /// A side renamed the file, and the sides do not fit together.
    Renamed,
    /// A file that is binary, too large to merge by lines, or at a path that is not UTF-8.
    Binary,
    /// The path is a file on one side and a link on the other, or a link with two targets.
    Mode,
    /// A commit of another repository differs.
    Submodule,
}

impl ConflictKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: &[Self] = &[
        Self::Content,
        Self::BothAdded,
        Self::RemovedAndChanged,
        Self::Renamed,
        Self::Binary,
        Self::Mode,
        Self::Submodule,
    ];

    /// Returns true when no text shows both sides, so that a model cannot resolve the conflict.
    pub const fn is_unreadable(self) -> bool {
        match self {
            Self::Binary | Self::Mode | Self::Submodule => true,
            Self::Content | Self::BothAdded | Self::RemovedAndChanged | Self::Renamed => false,
        }
    }

    /// The name in the contract between services and in prompts.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Side of a merge.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MergeSide {
    /// The head of the pull request.
    PullRequest,
    /// The base branch.
    Base,
}

impl MergeSide {
    /// The name in the contract between services and in prompts.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A hunk of one side that the result of a merge lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostHunk {
    /// The side that made the change.
    pub side: MergeSide,
    /// Path of the file on that side.
    pub path: String,
    /// Lines of the hunk that are missing, or that are back although the side removed them; at most
    /// [`Self::LINES`]. Empty: the change of the file as a whole is lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// True when the side removed the lines and the result has them again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_removal: bool,
}

impl LostHunk {
    /// Maximum number of lines of one hunk.
    pub const LINES: usize = 20;
    /// Maximum number of characters of one line.
    pub const LINE_CHARS: usize = 300;

    /// Returns true when the model named this hunk with a reason.
    fn is_named_by(&self, dropped: &DroppedHunk) -> bool {
        let quote = dropped.quote.trim();
        let is_quoted = self.lines.is_empty()
            || (!quote.is_empty() && self.lines.iter().any(|line| line.trim() == quote));
        is_quoted && dropped.path.trim() == self.path && !dropped.reason.trim().is_empty()
    }
}

/// Reason why a run leaves a conflict to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictLeft {
    /// More conflicts than a model can resolve at once.
    TooLarge,
    /// Conflicts without text of both sides.
    Unreadable,
    /// The model dropped hunks without a reason, or left markers, after all returns.
    HunksLost,
}

/// A hunk that the model changed or dropped on purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedHunk {
    /// Path of the file on the side of the hunk.
    pub path: String,
    /// One line of the hunk.
    #[serde(default)]
    pub quote: String,
    /// Reason for people.
    pub reason: String,
}

/// Returns the lost hunks that the model did not name. Each named hunk explains one lost hunk.
pub fn list_unnamed_hunks(lost: &[LostHunk], dropped: &[DroppedHunk]) -> Vec<LostHunk> {
    let mut unused: Vec<&DroppedHunk> = dropped.iter().collect();
    let mut unnamed = Vec::new();
    for hunk in lost {
        match unused.iter().position(|named| hunk.is_named_by(named)) {
            Some(at) => drop(unused.swap_remove(at)),
            None => unnamed.push(hunk.clone()),
        }
    }
    unnamed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_lost(path: &str, lines: &[&str]) -> LostHunk {
        LostHunk {
            side: MergeSide::Base,
            path: path.to_owned(),
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
            is_removal: false,
        }
    }

    fn build_dropped(path: &str, quote: &str, reason: &str) -> DroppedHunk {
        DroppedHunk {
            path: path.to_owned(),
            quote: quote.to_owned(),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn hunk_needs_path_quote_and_reason() {
        let lost = [build_lost("a.py", &["    total += 1", "    return total"])];
        for (named, is_accepted) in [
            (build_dropped("a.py", "total += 1", "both sides count"), true),
            (build_dropped("a.py", "  return total  ", "moved"), true),
            (build_dropped("b.py", "total += 1", "both sides count"), false),
            (build_dropped("a.py", "total", "both sides count"), false),
            (build_dropped("a.py", "", "both sides count"), false),
            (build_dropped("a.py", "total += 1", " "), false),
        ] {
            let unnamed = list_unnamed_hunks(&lost, std::slice::from_ref(&named));
            assert_eq!(unnamed.is_empty(), is_accepted, "{named:?}");
        }
    }

    #[test]
    fn named_hunk_explains_one_loss() {
        let lost = [build_lost("a.py", &["x = 1"]), build_lost("a.py", &["x = 1"])];
        let named = build_dropped("a.py", "x = 1", "once is enough");
        assert_eq!(list_unnamed_hunks(&lost, std::slice::from_ref(&named)).len(), 1);
        assert!(list_unnamed_hunks(&lost, &[named.clone(), named]).is_empty());
    }

    #[test]
    fn whole_file_needs_no_quote() {
        let lost = [build_lost("logo.png", &[])];
        assert!(list_unnamed_hunks(&lost, &[build_dropped("logo.png", "", "the new logo wins")]).is_empty());
    }
}
