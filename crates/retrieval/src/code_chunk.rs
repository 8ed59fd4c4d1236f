//! Chunks, finished and in construction.

/// Limit of all signatures and comments of a chunk, in bytes.
const MAX_HEADS: usize = 4000;
/// Maximum number of names of one chunk.
pub(crate) const MAX_NAMES: usize = 40;

/// Consecutive lines of a file with their definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeChunk {
    /// First line, from 1.
    pub start: usize,
    /// Last line, from 1.
    pub end: usize,
    /// Names that the lines define, in order.
    pub names: Vec<String>,
    /// Heading of a chunk of Markdown; otherwise empty.
    pub title: String,
    /// Signatures and comments of the chunk's definitions and of the enclosing ones.
    pub head: String,
}

/// Chunk in construction: lines from 0, `end` exclusive.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkDraft {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) names: Vec<String>,
    pub(crate) title: String,
    pub(crate) heads: Vec<String>,
}

impl ChunkDraft {
    pub(crate) fn of(start: usize, end: usize) -> Self {
        Self {
            start,
            end,
            ..Self::default()
        }
    }

    pub(crate) fn done(self) -> CodeChunk {
        let mut head = String::new();
        for text in self.heads {
            if head.len() + text.len() > MAX_HEADS || head.contains(&text) {
                continue;
            }
            head.push_str(&text);
            head.push('\n');
        }
        CodeChunk {
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
