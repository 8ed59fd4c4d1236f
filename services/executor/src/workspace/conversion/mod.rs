//! Conversion of files between tree and worktree as `.gitattributes` demands it: the tree has the bytes that
//! `git add` stores, and the worktree those that `git checkout` writes.

mod attributes;
mod file_conversion;
mod iconv_encoding;
mod ident;
mod line_ends;
mod tree_attributes;

#[cfg(test)]
mod git_tests;

pub(super) use attributes::{ATTRIBUTES, AttributeFiles};
pub(super) use file_conversion::ConversionRefusal;
pub(super) use tree_attributes::{
    AttributeIds, CheckoutAttributes, ScanAttributes, StoredContent, find_worktree_conversion,
    hash_attributes, read_attributes,
};
