//! What a parser says about a text.

/// A function, class or type, as a parser found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// First line, from 1.
    pub line: usize,
    /// Last line, from 1.
    pub end: usize,
    /// How many definitions it lies in.
    pub depth: usize,
    /// How it begins.
    pub signature: String,
}
