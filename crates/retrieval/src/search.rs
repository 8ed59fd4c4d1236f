//! Search: several ranked lists, fused by rank, verified against the texts, and limited.

use std::{collections::HashSet, sync::Arc};

use crate::{
    error::Error,
    index::Index,
    judge::Judge,
    lists::Lists,
    ranking::Ranking,
    request::{Answer, Kind, Read, Request},
    skip::is_prose,
    tree::{File, Tree},
};

impl Index {
    /// Searches a tree. Blocks for some milliseconds.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn search(&self, tree: &Arc<Tree>, request: &Request<'_>, read: Read<'_>) -> Result<Answer, Error> {
        let searcher = self.searcher();
        let ranking = Ranking {
            searcher: &searcher,
            fields: self.fields,
            tree,
            allowed: allowed(tree, request),
        };
        let words = ranking.words(request.query)?;
        let fused = Lists {
            ranking: &ranking,
            request,
            words: &words,
            read,
        }
        .fused()?;
        let judge = Judge {
            ranking: &ranking,
            request,
            words: &words,
            read,
            said: request.query.words.iter().collect::<HashSet<_>>().len(),
        };
        judge.answer(fused)
    }
}

/// Files that may be shown, by position; `None`: all.
fn allowed(tree: &Tree, request: &Request<'_>) -> Option<Arc<[bool]>> {
    let is_free = request.scope.is_none() && request.modules.is_empty();
    if is_free && !matches!(request.kind, Kind::Test | Kind::Docs) {
        return None;
    }
    let may = |file: &File| {
        let fits = match request.kind {
            Kind::Test => file.is_test,
            Kind::Docs => is_prose(&file.path),
            Kind::Any | Kind::Definition | Kind::Usage => true,
        };
        fits && request.scope.is_none_or(|scope| scope(&file.path)) && request.modules.hold(&file.path)
    };
    Some(tree.files.iter().map(may).collect())
}
