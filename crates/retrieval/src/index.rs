//! An index on the disk, and the trees that can be searched in it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError, RwLock, Weak},
};

use tantivy::{IndexReader, ReloadPolicy, Searcher, directory::MmapDirectory, index::IndexBuilder};

use crate::{
    catalog::Catalog,
    connect::connect,
    error::Error,
    schema::{self, Fields},
    tree::Tree,
};

/// The index of one repository, in a folder of its own.
pub struct Index {
    pub(crate) folder: PathBuf,
    pub(crate) tantivy: tantivy::Index,
    pub(crate) reader: IndexReader,
    pub(crate) fields: Fields,
    pub(crate) state: RwLock<State>,
    /// One update at a time.
    pub(crate) updating: Mutex<()>,
    /// Trees that somebody searches.
    pub(crate) trees: Mutex<Vec<Weak<Tree>>>,
    graph: Mutex<()>,
}

/// What the last commit of the index knows.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) catalog: Catalog,
    /// Names the catalog's file; the index's own commit holds the same.
    pub(crate) generation: u64,
}

impl Index {
    /// Opens the index in this folder, or begins an empty one. One that is broken or of another version goes. Blocks.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let own = folder.join(format!("v{}", schema::VERSION));
        remove_others(folder, &own)?;
        match Self::open_at(own.clone()) {
            Ok(index) => Ok(index),
            Err(_) => {
                // Whatever is wrong with it, it can be built again.
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
        let (schema, fields) = schema::schema();
        let directory = MmapDirectory::open(&inner).map_err(tantivy::TantivyError::from)?;
        let builder = IndexBuilder::new()
            .schema(schema)
            .tokenizers(schema::tokenizers());
        let tantivy = builder.open_or_create(directory)?;
        let payload = tantivy.load_metas()?.payload;
        let state = match payload.as_deref().map(str::parse::<u64>) {
            None => State::default(),
            Some(Ok(generation)) => State {
                catalog: Catalog::read(&catalog_path(&folder, generation))?,
                generation,
            },
            Some(Err(_)) => return Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        };
        let reader = tantivy.reader_builder().reload_policy(ReloadPolicy::Manual);
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

    /// Files that are known, with their chunks or with the reason why they have none.
    #[must_use]
    pub fn files(&self) -> usize {
        self.read().catalog.numbers().count()
    }

    /// Chunks that are kept, of every tree.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.searcher().num_docs()
    }

    /// Connects the files of a tree that use each other's names, so that a search can follow them. Without it a search
    /// works too. Blocks.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn connect(&self, tree: &Tree) -> Result<(), Error> {
        let _one = locked(&self.graph);
        if tree.graph.get().is_none() {
            let graph = connect(&self.searcher(), self.fields, tree)?;
            // Nobody else sets it meanwhile.
            let _ = tree.graph.set(graph);
        }
        Ok(())
    }

    pub(crate) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    pub(crate) fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn catalog_path(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("catalog.{generation}"))
}

/// Deletes what other versions left.
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
