//! Fields of a chunk in the index.

use tantivy::{
    TantivyDocument,
    schema::{FAST, Field, INDEXED, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{RawTokenizer, TokenizerManager},
};

use crate::{code_chunk::CodeChunk, tokens::CodeTokenizer};

// Part of the folder's name. Raise it with every change of fields, tokens, chunks or grammars, so that the
// index is built again.
pub(crate) const VERSION: u32 = 2;

const CODE: &str = "code";
const RAW: &str = "raw";

/// Weights of a word by the field that contains it.
pub(crate) const WEIGHTS: FieldWeights = FieldWeights {
    path: 4.0,
    symbols: 3.0,
    head: 2.0,
    body: 1.0,
};

pub(crate) struct FieldWeights {
    pub(crate) path: f32,
    pub(crate) symbols: f32,
    pub(crate) head: f32,
    pub(crate) body: f32,
}

#[derive(Clone, Copy)]
pub(crate) struct ChunkFields {
    /// Number of the file in the catalog.
    pub(crate) file: Field,
    /// First and last line, 32 bits each.
    pub(crate) lines: Field,
    /// Names or title to display.
    pub(crate) shown: Field,
    /// Names of definitions in lower case, not divided into words.
    pub(crate) names: Field,
    pub(crate) path: Field,
    pub(crate) symbols: Field,
    pub(crate) head: Field,
    pub(crate) body: Field,
}

/// Names of the two fields that are read for every hit.
pub(crate) const FILE: &str = "file";
pub(crate) const LINES: &str = "lines";

pub(crate) fn build_schema() -> (Schema, ChunkFields) {
    let mut builder = Schema::builder();
    let words = |tokenizer: &str, option, has_norms| {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(tokenizer)
            .set_index_option(option)
            .set_fieldnorms(has_norms);
        TextOptions::default().set_indexing_options(indexing)
    };
    // Without positions, which would enlarge the index: messages are compared with the text itself.
    let code = || words(CODE, IndexRecordOption::WithFreqs, true);
    let fields = ChunkFields {
        // Indexed too, because the chunks of a file are found and deleted by its number.
        file: builder.add_u64_field(FILE, FAST | INDEXED),
        lines: builder.add_u64_field(LINES, FAST),
        shown: builder.add_text_field("shown", STORED),
        // A name matches or does not match, so neither its frequency nor the length of the field counts.
        names: builder.add_text_field("names", words(RAW, IndexRecordOption::Basic, false)),
        path: builder.add_text_field("path", code()),
        symbols: builder.add_text_field("symbols", code()),
        head: builder.add_text_field("head", code()),
        body: builder.add_text_field("body", code()),
    };
    (builder.build(), fields)
}

pub(crate) fn build_tokenizers() -> TokenizerManager {
    // The default manager has the tokenizers of fields that are not text.
    let manager = TokenizerManager::default();
    manager.register(CODE, CodeTokenizer::default());
    manager.register(RAW, RawTokenizer::default());
    manager
}

impl ChunkFields {
    pub(crate) fn document(&self, file: u32, path: &str, chunk: &CodeChunk, body: &str) -> TantivyDocument {
        let mut document = TantivyDocument::default();
        document.add_u64(self.file, file.into());
        document.add_u64(self.lines, pack_lines(chunk.start, chunk.end));
        for name in &chunk.names {
            document.add_text(self.names, normalize_name(name));
        }
        let names = chunk.names.join(" ");
        document.add_text(self.shown, if names.is_empty() { &chunk.title } else { &names });
        document.add_text(self.path, path);
        document.add_text(self.symbols, &names);
        document.add_text(self.head, &chunk.head);
        document.add_text(self.body, body);
        document
    }
}

/// Search form of a definition's name: `total` for `exports.total`, `cart` for `Cart<T>`.
pub(crate) fn normalize_name(name: &str) -> String {
    let plain = name.split(['<', '(', ' ']).next().unwrap_or_default();
    let last = plain.rsplit(['.', ':']).next().unwrap_or_default();
    last.trim_matches(['_', '$', '&', '*']).to_lowercase()
}

fn pack_lines(start: usize, end: usize) -> u64 {
    let narrow = |line: usize| u64::from(u32::try_from(line).unwrap_or(u32::MAX));
    narrow(start) << 32 | narrow(end)
}

pub(crate) fn unpack_lines(lines: u64) -> (u32, u32) {
    let narrow = |half: u64| u32::try_from(half & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    (narrow(lines >> 32), narrow(lines))
}
