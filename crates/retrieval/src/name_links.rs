//! Search for files that use names which other files define.

use std::collections::BTreeMap;

use tantivy::{
    DocSet, Searcher, SegmentReader, TERMINATED,
    postings::SegmentPostings,
    schema::{Field, IndexRecordOption},
};

use crate::{
    error::Error,
    graph::NameGraph,
    schema::{ChunkFields, FILE},
    tree::IndexedTree,
};

// A shorter name is rarely specific, in bytes.
const MIN_NAME: usize = 4;
// A name that more files define or more chunks use is not specific.
const MAX_DEFINING: usize = 4;
const MAX_USING: u32 = 150;
/// Limit of the collected pairs of files.
// A pair has 8 bytes, so the list has at most about 24 MB.
const MAX_PAIRS: usize = 3_000_000;
// Names are read in this many passes, so that only a part of them is in memory.
const PARTS: usize = 16;

/// Connects the files of a tree with those that define the names they use. Blocks.
pub(crate) fn connect_files(
    searcher: &Searcher,
    fields: ChunkFields,
    tree: &IndexedTree,
) -> Result<NameGraph, Error> {
    let columns = read_file_columns(searcher)?;
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for part in 0..PARTS {
        for (name, places) in find_defining_files(searcher, fields.names, &columns, tree, part)? {
            if places.len() > MAX_DEFINING || pairs.len() > MAX_PAIRS {
                continue;
            }
            for user in find_using_files(searcher, fields.body, &name, &columns, tree)? {
                for place in places.iter().filter(|place| **place != user) {
                    // Both directions: a search follows uses and definitions alike.
                    pairs.push((user, *place));
                    pairs.push((*place, user));
                }
            }
        }
    }
    Ok(NameGraph::of_pairs(pairs, tree.files.len()))
}

type FileColumn = std::sync::Arc<dyn tantivy::columnar::ColumnValues<u64>>;

fn read_file_columns(searcher: &Searcher) -> Result<Vec<FileColumn>, Error> {
    let column = |segment: &SegmentReader| segment.fast_fields().column_first_or_default(FILE);
    let columns: Result<Vec<FileColumn>, _> = searcher.segment_readers().iter().map(column).collect();
    Ok(columns?)
}

/// Files of a tree that define the names of one part.
fn find_defining_files(
    searcher: &Searcher,
    names: Field,
    columns: &[FileColumn],
    tree: &IndexedTree,
    part: usize,
) -> Result<BTreeMap<Box<str>, Vec<u32>>, Error> {
    let mut defining: BTreeMap<Box<str>, Vec<u32>> = BTreeMap::new();
    for (segment, column) in searcher.segment_readers().iter().zip(columns) {
        let inverted = segment.inverted_index(names)?;
        let mut terms = inverted.terms().stream()?;
        while terms.advance() {
            let Ok(name) = std::str::from_utf8(terms.key()) else {
                continue;
            };
            let is_specific = name.len() >= MIN_NAME && terms.value().doc_freq <= MAX_USING;
            if !is_specific || part_of(name) != part {
                continue;
            }
            let postings = inverted.read_postings_from_terminfo(terms.value(), IndexRecordOption::Basic)?;
            let places = read_places(postings, column, tree);
            if places.is_empty() {
                continue;
            }
            let known = defining.entry(name.into()).or_default();
            known.extend(places);
            known.sort_unstable();
            known.dedup();
        }
    }
    Ok(defining)
}

/// Part of a name. The hash distributes names evenly.
fn part_of(name: &str) -> usize {
    let mixed = name.bytes().fold(0_usize, |mixed, byte| {
        mixed.wrapping_mul(31).wrapping_add(usize::from(byte))
    });
    mixed % PARTS
}

/// Files of a tree that use a name; empty if too many chunks use it.
fn find_using_files(
    searcher: &Searcher,
    body: Field,
    name: &str,
    columns: &[FileColumn],
    tree: &IndexedTree,
) -> Result<Vec<u32>, Error> {
    let term = tantivy::Term::from_field_text(body, name);
    let mut found = Vec::new();
    let mut uses = 0;
    for (segment, column) in searcher.segment_readers().iter().zip(columns) {
        let inverted = segment.inverted_index(body)?;
        let Some(info) = inverted.get_term_info(&term).map_err(Error::Folder)? else {
            continue;
        };
        uses += info.doc_freq;
        if uses > MAX_USING {
            return Ok(Vec::new());
        }
        let postings = inverted.read_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
        found.extend(read_places(postings, column, tree));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn read_places(mut postings: SegmentPostings, column: &FileColumn, tree: &IndexedTree) -> Vec<u32> {
    let mut found = Vec::new();
    let mut document = postings.doc();
    while document != TERMINATED {
        found.extend(tree.place(column.get_val(document)));
        document = postings.advance();
    }
    found
}
