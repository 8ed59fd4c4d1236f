//! Languages with a tree-sitter grammar.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tree_sitter::{Parser, Tree};

/// Limit of a text in bytes; longer texts are not parsed.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;

/// A language with a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum GrammarLanguage {
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Rust,
    Go,
    Java,
    C,
    Cpp,
    Ruby,
    Php,
    Kotlin,
    Shell,
    Json,
    Yaml,
    Toml,
}

impl GrammarLanguage {
    /// Returns the language of a file by its extension.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()? {
            "py" | "pyi" => Self::Python,
            "js" | "jsx" | "mjs" | "cjs" => Self::JavaScript,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "rs" => Self::Rust,
            "go" => Self::Go,
            "java" => Self::Java,
            "c" => Self::C,
            // Headers of C too: nearly all of them are valid in C++.
            "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp" | "hxx" => Self::Cpp,
            "rb" | "rake" => Self::Ruby,
            "php" => Self::Php,
            "kt" | "kts" => Self::Kotlin,
            "sh" | "bash" => Self::Shell,
            "json" => Self::Json,
            "yaml" | "yml" => Self::Yaml,
            "toml" => Self::Toml,
            _ => return None,
        })
    }

    /// Returns true for a language that defines functions and types.
    pub(crate) const fn has_symbols(self) -> bool {
        match self {
            Self::Python
            | Self::JavaScript
            | Self::TypeScript
            | Self::Tsx
            | Self::Rust
            | Self::Go
            | Self::Java
            | Self::C
            | Self::Cpp
            | Self::Ruby
            | Self::Php
            | Self::Kotlin
            | Self::Shell => true,
            Self::Json | Self::Yaml | Self::Toml => false,
        }
    }

    fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Python => tree_sitter_python::LANGUAGE,
            Self::JavaScript => tree_sitter_javascript::LANGUAGE,
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
            Self::Rust => tree_sitter_rust::LANGUAGE,
            Self::Go => tree_sitter_go::LANGUAGE,
            Self::Java => tree_sitter_java::LANGUAGE,
            Self::C => tree_sitter_c::LANGUAGE,
            Self::Cpp => tree_sitter_cpp::LANGUAGE,
            Self::Ruby => tree_sitter_ruby::LANGUAGE,
            Self::Php => tree_sitter_php::LANGUAGE_PHP,
            Self::Kotlin => tree_sitter_kotlin_ng::LANGUAGE,
            Self::Shell => tree_sitter_bash::LANGUAGE,
            Self::Json => tree_sitter_json::LANGUAGE,
            Self::Yaml => tree_sitter_yaml::LANGUAGE,
            Self::Toml => tree_sitter_toml_ng::LANGUAGE,
        }
        .into()
    }
}

/// Parses a text; `None` if it is too long.
pub(super) fn parse_tree(language: GrammarLanguage, text: &str) -> Option<Tree> {
    if text.len() as u64 > MAX_BYTES {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&language.grammar()).ok()?;
    parser.parse(text, None)
}
