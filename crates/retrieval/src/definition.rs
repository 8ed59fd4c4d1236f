//! Definitions that a parser finds in a text.

/// Function, class or type that a parser found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeDefinition {
    /// Name of the definition.
    pub name: String,
    /// First line, from 1.
    pub line: usize,
    /// Last line, from 1.
    pub end: usize,
    /// Number of definitions that enclose it.
    pub depth: usize,
    /// Beginning of the definition, with its parameters.
    pub signature: String,
}
