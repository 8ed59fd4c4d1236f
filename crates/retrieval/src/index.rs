//! Index on disk, and the trees that are searched in it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Weak,
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use tantivy::{IndexReader, ReloadPolicy, Searcher, directory::MmapDirectory, index::IndexBuilder};

use crate::{
    catalog::FileCatalog,
    error::Error,
    name_links::connect_files,
    schema::{self, ChunkFields},
    tree::IndexedTree,
};

/// Index of one repository, in a separate folder.
pub struct CodeIndex {
    pub(crate) folder: PathBuf,
    pub(crate) tantivy: tantivy::Index,
    pub(crate) reader: IndexReader,
    pub(crate) fields: ChunkFields,
    pub(crate) state: RwLock<IndexState>,
    /// Held by an update: one runs at a time.
    pub(crate) updating: Mutex<()>,
    /// Trees in use by callers.
    pub(crate) trees: Mutex<Vec<Weak<IndexedTree>>>,
    graph: Mutex<()>,
}

/// State at the last commit of the index.
#[derive(Clone, Default)]
pub(crate) struct IndexState {
    pub(crate) catalog: FileCatalog,
    /// Number in the name of the catalog's file. The payload of the index's commit contains the same number.
    pub(crate) generation: u64,
}

impl CodeIndex {
    /// Opens the index in this folder or creates an empty one. A damaged one or one of another version is
    /// deleted. Blocks.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let own = folder.join(format!("v{}", schema::VERSION));
        remove_others(folder, &own)?;
        match Self::open_at(own.clone()) {
            Ok(index) => Ok(index),
            Err(_) => {
                // Every damage can be repaired by building the index again.
                if own.exists() {
                    fs::remove_dir_all(&own)?;
                }
                Self::open_at(own)
            }
        }
    }

    fn open_at(folder: PathBuf) -> Result<Self, Error> {
        let inner = folder.join("index");
        fs::create_dir_all(&inner)?;
        let (schema, fields) = schema::build_schema();
        let directory = MmapDirectory::open(&inner).map_err(tantivy::TantivyError::from)?;
        let builder = IndexBuilder::new()
            .schema(schema)
            .tokenizers(schema::build_tokenizers());
        let tantivy = builder.open_or_create(directory)?;
        let payload = tantivy.load_metas()?.payload;
        let state = match payload.as_deref().map(str::parse::<u64>) {
            // Every commit of this crate sets a payload, so an index without one is new and empty.
            None => IndexState::default(),
            Some(Ok(generation)) => IndexState {
                catalog: FileCatalog::read(&catalog_path(&folder, generation))?,
                generation,
            },
            Some(Err(_)) => return Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        };
        // This process is the only writer and reloads after each commit.
        let reader = tantivy.reader_builder().reload_policy(ReloadPolicy::Manual);
        // Only the names to display are stored in documents, so a small cache is enough.
        let reader = reader.doc_store_cache_num_blocks(8).try_into()?;
        Ok(Self {
            folder,
            tantivy,
            reader,
            fields,
            state: RwLock::new(state),
            updating: Mutex::default(),
            trees: Mutex::default(),
            graph: Mutex::default(),
        })
    }

    /// Number of known files, with chunks or with a reason why they have none.
    #[must_use]
    pub fn files(&self) -> usize {
        self.read().catalog.numbers().count()
    }

    /// Number of stored chunks, of all trees.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.searcher().num_docs()
    }

    /// Connects the files of a tree that share names, so that a search can follow them. A search works
    /// without it. Blocks.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn connect(&self, tree: &IndexedTree) -> Result<(), Error> {
        let _one = self.graph.lock();
        if tree.graph.get().is_none() {
            let graph = connect_files(&self.searcher(), self.fields, tree)?;
            // The lock excludes another writer, so the result is ignored.
            let _ = tree.graph.set(graph);
        }
        Ok(())
    }

    pub(crate) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, IndexState> {
        self.state.read()
    }
}

pub(crate) fn catalog_path(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("catalog.{generation}"))
}

/// Deletes the folders of other versions.
fn remove_others(folder: &Path, own: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path != own && path.is_dir() {
            fs::remove_dir_all(path)?;
        }
    }
    Ok(())
}
