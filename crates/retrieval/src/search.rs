//! Search: several ranked lists, fused by rank, verified against the texts, and limited.

use std::{collections::HashSet, sync::Arc};

use crate::{
    error::Error,
    index::CodeIndex,
    judge::ChunkJudge,
    lists::RankedLists,
    ranking::ChunkRanking,
    request::{ChunkKind, ReadContent, SearchAnswer, SearchRequest},
    skip::is_prose,
    tree::{IndexedFile, IndexedTree},
};

impl CodeIndex {
    /// Searches a tree. Blocks for some milliseconds.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn search(
        &self,
        tree: &Arc<IndexedTree>,
        request: &SearchRequest<'_>,
        read: ReadContent<'_>,
    ) -> Result<SearchAnswer, Error> {
        let searcher = self.searcher();
        let ranking = ChunkRanking {
            searcher: &searcher,
            fields: self.fields,
            tree,
            allowed: select_allowed_files(tree, request),
        };
        let words = ranking.words(request.query)?;
        let fused = RankedLists {
            ranking: &ranking,
            request,
            words: &words,
            read,
        }
        .fused()?;
        let judge = ChunkJudge {
            ranking: &ranking,
            request,
            words: &words,
            read,
            word_count: request.query.words.iter().collect::<HashSet<_>>().len(),
        };
        judge.answer(fused)
    }
}

/// Files that may be shown, by position; `None`: all.
fn select_allowed_files(tree: &IndexedTree, request: &SearchRequest<'_>) -> Option<Arc<[bool]>> {
    // The usual search restricts nothing, so it does not visit every file of the tree.
    let is_free = request.scope.is_none() && request.modules.is_empty();
    if is_free && !matches!(request.kind, ChunkKind::Test | ChunkKind::Docs) {
        return None;
    }
    let may = |file: &IndexedFile| {
        let fits = match request.kind {
            ChunkKind::Test => file.is_test,
            ChunkKind::Docs => is_prose(&file.path),
            ChunkKind::Any | ChunkKind::Definition | ChunkKind::Usage => true,
        };
        fits && request.scope.is_none_or(|scope| scope(&file.path)) && request.modules.hold(&file.path)
    };
    Some(tree.files.iter().map(may).collect())
}
