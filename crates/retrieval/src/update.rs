//! Update of an index for a tree: only new files are read, divided and indexed.

use std::{collections::HashSet, fs, ops::ControlFlow, sync::Arc};

use tantivy::{
    IndexWriter, Term,
    indexer::{IndexWriterOptions, NoMergePolicy},
};

use crate::{
    attributes::AttributeRules,
    catalog::{CatalogEntry, FileCatalog},
    chunk::divide_file,
    error::Error,
    file::{ContentSource, SharedReadFailure, TreeFile},
    index::{self, CodeIndex, IndexState},
    skip::{self, MAX_FILE_BYTES},
    tree::{self, IndexedTree},
};

/// Memory for chunks that are not written yet, in bytes.
// tantivy refuses less than 15 MB per thread.
const BUFFER: usize = 24 << 20;
// New files between two commits, so that an interruption loses little work.
const COMMIT_EVERY: usize = 10_000;
/// Number of segments above which they are merged.
const MAX_SEGMENTS: usize = 8;
// Unused files are deleted if there are this many and more than half as many as used ones.
const MIN_UNUSED: usize = 1000;

/// Progress of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateProgress {
    /// Number of new files that are done.
    pub done: usize,
    /// Number of all new files.
    pub all: usize,
}

/// Result of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateSummary {
    /// Files of the tree that the index already had.
    pub known: usize,
    /// Files that were read and divided into chunks.
    pub indexed: usize,
    /// New files that are not indexed, each for a reason.
    pub skipped: usize,
    /// Files that could not be read now.
    pub unread: usize,
}

impl CodeIndex {
    /// Makes a tree searchable. Blocks.
    ///
    /// `progress` is called before each new file and can interrupt the update. Committed files are kept then.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when `progress` interrupts, otherwise when the disk fails.
    pub fn update(
        &self,
        files: &[TreeFile],
        attributes: &AttributeRules,
        source: &mut dyn ContentSource,
        progress: &mut dyn FnMut(UpdateProgress) -> ControlFlow<()>,
    ) -> Result<(Arc<IndexedTree>, UpdateSummary), Error> {
        // tantivy refuses a second writer, so updates wait here for each other.
        let _one = self.updating.lock();
        let mut catalog = self.read().catalog.clone();
        let new: Vec<&TreeFile> = files.iter().filter(|file| catalog.find(file).is_none()).collect();
        let mut updated = UpdateSummary {
            known: files.len() - new.len(),
            ..UpdateSummary::default()
        };
        if !new.is_empty() {
            let mut writer = self.writer()?;
            for (done, file) in new.iter().enumerate() {
                if progress(UpdateProgress { done, all: new.len() }).is_break() {
                    // The writer drops the chunks since its last commit, and the catalog here is a copy,
                    // so both stay at that commit.
                    return Err(Error::Interrupted);
                }
                self.add(&writer, &mut catalog, file, source, &mut updated)?;
                if (done + 1) % COMMIT_EVERY == 0 {
                    self.commit(&mut writer, &catalog)?;
                }
            }
            self.commit(&mut writer, &catalog)?;
        }
        let tree = Arc::new(tree_of(&catalog, files, attributes));
        let mut trees = self.trees.lock();
        trees.retain(|tree| tree.strong_count() > 0);
        trees.push(Arc::downgrade(&tree));
        Ok((tree, updated))
    }

    /// Merges small segments, and deletes the chunks of files that no tree in use has if there are many.
    /// Blocks.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn tidy(&self) -> Result<(), Error> {
        let _one = self.updating.lock();
        let mut catalog = self.read().catalog.clone();
        let unused = self.unused(&catalog);
        let segments = self.tantivy.searchable_segment_ids()?;
        if unused.is_empty() && segments.len() <= MAX_SEGMENTS {
            return Ok(());
        }
        let mut writer = self.writer()?;
        for number in &unused {
            writer.delete_term(Term::from_field_u64(self.fields.file, u64::from(*number)));
            catalog.remove(*number);
        }
        self.commit(&mut writer, &catalog)?;
        let segments = self.tantivy.searchable_segment_ids()?;
        if segments.len() > 1 {
            // A commit only marks deleted chunks. A merge removes them from the disk.
            writer.merge(&segments).wait()?;
        }
        writer.garbage_collect_files().wait()?;
        writer.wait_merging_threads()?;
        // The merge replaced the segments of the last reload, and the reader would keep their files
        // open.
        self.reader.reload()?;
        Ok(())
    }

    fn writer(&self) -> Result<IndexWriter, Error> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(BUFFER)
            .build();
        let writer: IndexWriter = self.tantivy.writer_with_options(options)?;
        // Merging once at the end costs less than merging during the update.
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(writer)
    }

    fn add(
        &self,
        writer: &IndexWriter,
        catalog: &mut FileCatalog,
        file: &TreeFile,
        source: &mut dyn ContentSource,
        updated: &mut UpdateSummary,
    ) -> Result<(), Error> {
        let content = match skip::by_path(&file.path) {
            Some(skip) => Err(skip),
            None => match source.read(file.blob, MAX_FILE_BYTES) {
                Ok(content) => skip::by_content(&content).map_or(Ok(content), Err),
                Err(SharedReadFailure::TooLarge) => Err(skip::IndexSkip::TooLarge),
                Err(SharedReadFailure::Missing) => {
                    // Without an entry in the catalog, the next update reads the file again.
                    updated.unread += 1;
                    return Ok(());
                }
            },
        };
        let number = catalog.next();
        match &content {
            Ok(content) => {
                let text = String::from_utf8_lossy(content);
                let outline = source.outline(&file.path, &text);
                let lines = crate::text::SharedTextLines::new(&text);
                for chunk in divide_file(&file.path, &text, &outline) {
                    let body = lines.text(chunk.start - 1, chunk.end);
                    writer.add_document(self.fields.document(number, &file.path, &chunk, body))?;
                }
                updated.indexed += 1;
            }
            Err(_) => updated.skipped += 1,
        }
        // A skipped file gets an entry as well, so that no later update reads it again.
        catalog.add(CatalogEntry {
            blob: file.blob,
            path: file.path.as_str().into(),
            skip: content.err(),
        });
        Ok(())
    }

    /// Stores catalog and chunks together: the commit of the index names the generation of its catalog.
    fn commit(&self, writer: &mut IndexWriter, catalog: &FileCatalog) -> Result<(), Error> {
        let before = self.read().generation;
        let generation = before + 1;
        // The catalog first: a commit without its catalog would be a damaged index.
        catalog.write(&index::catalog_path(&self.folder, generation))?;
        let mut prepared = writer.prepare_commit()?;
        prepared.set_payload(&generation.to_string());
        prepared.commit()?;
        self.reader.reload()?;
        let catalog = catalog.clone();
        *self.state.write() = IndexState { catalog, generation };
        // A file that stays is overwritten later or deleted with the folder.
        let _ = fs::remove_file(index::catalog_path(&self.folder, before));
        Ok(())
    }

    fn unused(&self, catalog: &FileCatalog) -> Vec<u32> {
        let trees = self.trees.lock();
        let trees: Vec<Arc<IndexedTree>> = trees.iter().filter_map(std::sync::Weak::upgrade).collect();
        if trees.is_empty() {
            // Without a tree in use, no file is known to be unused.
            return Vec::new();
        }
        let used: HashSet<u32> = trees
            .iter()
            .flat_map(|tree| tree.files.iter().map(|file| file.number))
            .collect();
        let unused: Vec<u32> = catalog
            .numbers()
            .filter(|number| !used.contains(number))
            .collect();
        let is_worth = unused.len() >= MIN_UNUSED && unused.len() * 2 > used.len();
        if is_worth { unused } else { Vec::new() }
    }
}

fn tree_of(catalog: &FileCatalog, files: &[TreeFile], attributes: &AttributeRules) -> IndexedTree {
    let known = files.iter().filter_map(|file| {
        let number = catalog.find(file)?;
        let entry = catalog.get(number)?;
        // Attributes belong to a tree and not to a content, so the catalog does not contain their
        // reasons.
        let skip = entry.skip.or_else(|| attributes.skip(&file.path));
        Some(tree::build_indexed_file(&entry.path, entry.blob, number, skip))
    });
    IndexedTree::new(known.collect())
}
