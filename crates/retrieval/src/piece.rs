//! Chunks, done and in the making.

/// Kept of all signatures and comments of a chunk, in bytes.
const MAX_HEADS: usize = 4000;
/// Names of one chunk.
pub(crate) const MAX_NAMES: usize = 40;

/// Some lines of a file, and what they define.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// First line, from 1.
    pub start: usize,
    /// Last line, from 1.
    pub end: usize,
    /// Names that are defined here, in order.
    pub names: Vec<String>,
    /// What people would call it when it defines nothing: a heading.
    pub title: String,
    /// Signatures and comments of what is defined here, and of what it lies in.
    pub head: String,
}

/// A chunk in the making: lines from 0, the end not included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) names: Vec<String>,
    pub(crate) title: String,
    pub(crate) heads: Vec<String>,
}

impl Piece {
    pub(crate) fn of(start: usize, end: usize) -> Self {
        Self {
            start,
            end,
            ..Self::default()
        }
    }

    pub(crate) fn done(self) -> Chunk {
        let mut head = String::new();
        for text in self.heads {
            if head.len() + text.len() > MAX_HEADS || head.contains(&text) {
                continue;
            }
            head.push_str(&text);
            head.push('\n');
        }
        Chunk {
            start: self.start + 1,
            end: self.end,
            names: self.names,
            title: self.title,
            head,
        }
    }

    pub(crate) fn take(&mut self, other: Self) {
        self.end = other.end;
        self.heads.extend(other.heads);
        if self.title.is_empty() {
            self.title = other.title;
        }
        let room = MAX_NAMES.saturating_sub(self.names.len());
        self.names.extend(other.names.into_iter().take(room));
    }
}
