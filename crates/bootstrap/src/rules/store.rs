//! Rules in force, reloaded when a file changes.

use std::{path::PathBuf, sync::Arc, time::Duration};

use domain::{CommitAuthor, cause::format_error_chain};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use super::{ConfiguredInstances, FileProblem, RulesBook, Settings};
use crate::settings;

// Interval between two reads of the directory: soon for a maintainer who saves a file, cheap for a few dozen
// files.
const RELOAD_INTERVAL: Duration = Duration::from_secs(2);

/// Current rules, shared. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RulesStore {
    dir: PathBuf,
    author: Option<CommitAuthor>,
    connections: Arc<ConfiguredInstances>,
    book: Arc<RwLock<Arc<RulesBook>>>,
}

impl RulesStore {
    /// Reads the directory once.
    ///
    /// # Errors
    /// `rules.dir` when the directory cannot be read.
    pub fn open(settings: &Settings, connections: ConfiguredInstances) -> Result<Self, settings::Error> {
        let book = RulesBook::read(&settings.dir, &connections).map_err(|error| {
            settings::Error::new(
                "rules.dir",
                format!("cannot read {}: {error}", settings.dir.display()),
            )
        })?;
        let book = book.with_author(settings.commit_author.as_ref());
        log_problems(&book);
        Ok(Self {
            dir: settings.dir.clone(),
            author: settings.commit_author.clone(),
            connections: Arc::new(connections),
            book: Arc::new(RwLock::new(Arc::new(book))),
        })
    }

    /// Rules of the last successful reading.
    pub fn book(&self) -> Arc<RulesBook> {
        self.book.read().clone()
    }

    /// Reads the directory again every two seconds until shutdown.
    pub async fn run(&self, shutdown: CancellationToken) {
        while shutdown
            .run_until_cancelled(tokio::time::sleep(RELOAD_INTERVAL))
            .await
            .is_some()
        {
            self.reload();
        }
    }

    /// Reads the directory now. If it cannot be read, the previous rules stay in force.
    pub fn reload(&self) {
        let read = RulesBook::read(&self.dir, &self.connections);
        match read.map(|book| book.with_author(self.author.as_ref())) {
            // The directory is read every two seconds. Problems must be logged once and not at every
            // reading.
            Ok(book) if book != *self.book() => {
                tracing::info!(
                    repositories = book.repositories().count(),
                    problems = book.problems().len(),
                    "rules reloaded"
                );
                log_problems(&book);
                *self.book.write() = Arc::new(book);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::error!(dir = %self.dir.display(), error = %format_error_chain(&error), "rules cannot be read")
            }
        }
    }
}

fn log_problems(book: &RulesBook) {
    for FileProblem {
        file,
        line,
        key,
        problem,
        repository,
    } in book.problems()
    {
        let repository = repository.as_ref().map(ToString::to_string);
        tracing::error!(file, line, key, problem, repository, "rules file is disabled");
    }
}
