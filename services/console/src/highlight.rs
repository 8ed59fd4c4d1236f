//! Highlighting of code in differences by `syntect`, with its pure Rust expressions.
//!
//! The code comes from other people, so lines, their length and the time of a page are limited. Beyond a limit the code
//! stays plain.

use std::{ops::Range, path::Path, sync::LazyLock, time::Duration};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};
use tokio::time::Instant;

// Most highlighted lines of a page.
const MOST_LINES: usize = 2_000;
// Longest highlighted line, in bytes. Generated files have longer ones, which no reader reads.
const MOST_BYTES: usize = 300;
// Time after which the rest of a page stays plain.
const TIME_LIMIT: Duration = Duration::from_millis(250);
/// Extensions whose language has no definition, and the extension of a close one.
const RELATED: [(&str, &str); 8] = [
    ("ts", "js"),
    ("tsx", "js"),
    ("mts", "js"),
    ("cts", "js"),
    ("jsx", "js"),
    ("mjs", "js"),
    ("cjs", "js"),
    ("pyi", "py"),
];

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);
static KINDS: LazyLock<Vec<(Scope, TokenKind)>> = LazyLock::new(list_kinds);

/// Kind of a part of a line. Its name is a class of the style sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Plain,
    Comment,
    Literal,
    Number,
    Keyword,
    Name,
}

impl TokenKind {
    /// Returns the style class; empty for plain text.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Comment => "code-comment",
            Self::Literal => "code-literal",
            Self::Number => "code-number",
            Self::Keyword => "code-keyword",
            Self::Name => "code-name",
        }
    }
}

/// Part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeToken {
    pub(crate) kind: TokenKind,
    pub(crate) range: Range<usize>,
}

/// Remaining lines and time for the highlighting of a page.
pub(crate) struct HighlightBudget {
    lines: usize,
    end: Instant,
}

impl Default for HighlightBudget {
    fn default() -> Self {
        // The first page loads the definitions, which takes much of the time that its lines have.
        LazyLock::force(&SYNTAXES);
        Self {
            lines: MOST_LINES,
            end: Instant::now() + TIME_LIMIT,
        }
    }
}

impl HighlightBudget {
    /// Returns a budget that a test cannot spend, however slow its machine is.
    #[cfg(test)]
    pub(crate) fn unlimited() -> Self {
        Self {
            lines: usize::MAX,
            end: Instant::now() + Duration::from_secs(3_600),
        }
    }

    /// Takes one line; false if the budget is spent.
    fn take_line(&mut self, line: &str) -> bool {
        if self.lines == 0 || line.len() > MOST_BYTES || Instant::now() > self.end {
            return false;
        }
        self.lines -= 1;
        true
    }
}

/// Highlighter of consecutive lines of one file.
#[derive(Clone)]
pub(crate) struct LineHighlighter {
    state: ParseState,
    scopes: ScopeStack,
}

impl LineHighlighter {
    /// Creates a highlighter for a file; `None` for an unknown language.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        Some(Self {
            state: ParseState::new(find_syntax(path)?),
            scopes: ScopeStack::new(),
        })
    }

    /// Divides a line into tokens, which cover the whole line in order.
    pub(crate) fn highlight_line(&mut self, line: &str, budget: &mut HighlightBudget) -> Vec<CodeToken> {
        let plain = vec![CodeToken {
            kind: TokenKind::Plain,
            range: 0..line.len(),
        }];
        if !budget.take_line(line) {
            return plain;
        }
        // The definitions expect the end of the line.
        let Ok(changes) = self.state.parse_line(&format!("{line}\n"), &SYNTAXES) else {
            return plain;
        };
        let (mut tokens, mut from) = (Vec::new(), 0);
        for (at, change) in changes {
            push_token(&mut tokens, from..at.min(line.len()), find_kind(&self.scopes));
            from = at.min(line.len());
            if self.scopes.apply(&change).is_err() {
                return plain;
            }
        }
        push_token(&mut tokens, from..line.len(), find_kind(&self.scopes));
        tokens
    }
}

/// Adds a token. Neighbors of one kind become one token.
fn push_token(tokens: &mut Vec<CodeToken>, range: Range<usize>, kind: TokenKind) {
    if range.is_empty() {
        return;
    }
    match tokens.last_mut() {
        Some(last) if last.kind == kind => last.range.end = range.end,
        Some(_) | None => tokens.push(CodeToken { kind, range }),
    }
}

fn find_syntax(path: &str) -> Option<&'static SyntaxReference> {
    let path = Path::new(path);
    let name = path.file_name()?.to_str()?;
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or(name);
    let related = RELATED.iter().find(|(known, _)| *known == extension);
    let extension = related.map_or(extension, |(_, related)| *related);
    SYNTAXES.find_syntax_by_extension(extension)
}

/// Returns the kind of the innermost scope that has one.
fn find_kind(scopes: &ScopeStack) -> TokenKind {
    let kind_of = |scope: &Scope| {
        let known = KINDS.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope));
        known.map(|(_, kind)| *kind)
    };
    let kind = scopes.as_slice().iter().rev().find_map(kind_of);
    kind.unwrap_or(TokenKind::Plain)
}

/// Lists prefixes of scopes, the longer ones first.
fn list_kinds() -> Vec<(Scope, TokenKind)> {
    let kinds = [
        ("comment", TokenKind::Comment),
        ("string", TokenKind::Literal),
        ("constant.character", TokenKind::Literal),
        ("constant.numeric", TokenKind::Number),
        ("constant", TokenKind::Keyword),
        ("keyword.operator", TokenKind::Plain),
        ("keyword", TokenKind::Keyword),
        ("storage", TokenKind::Keyword),
        ("variable.language", TokenKind::Keyword),
        ("entity.name", TokenKind::Name),
        ("support", TokenKind::Name),
    ];
    let kinds = kinds
        .into_iter()
        .filter_map(|(scope, kind)| Some((Scope::new(scope).ok()?, kind)));
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn highlight_lines(path: &str, lines: &[&str]) -> Vec<Vec<(TokenKind, String)>> {
        let mut highlighter = LineHighlighter::of_path(path).unwrap();
        let mut budget = HighlightBudget {
            lines: 3,
            ..HighlightBudget::unlimited()
        };
        let tokens = lines.iter().map(|line| {
            let tokens = highlighter.highlight_line(line, &mut budget);
            tokens
                .into_iter()
                .map(|token| (token.kind, line[token.range].to_owned()))
                .collect()
        });
        tokens.collect()
    }

    #[test]
    fn tokens_cover_lines_with_their_kinds() {
        let lines = ["def total(items):  # sum", "    return \"a\""];
        let tokens = highlight_lines("shop/cart.py", &lines);
        for (line, tokens) in lines.iter().zip(&tokens) {
            let whole: String = tokens.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(whole, *line);
        }
        let has = |kind, part: &str| {
            tokens
                .iter()
                .flatten()
                .any(|(of, text)| *of == kind && text.contains(part))
        };
        assert!(has(TokenKind::Name, "total"), "{tokens:?}");
        assert!(has(TokenKind::Comment, "# sum"), "{tokens:?}");
        assert!(has(TokenKind::Keyword, "return"), "{tokens:?}");
        assert!(has(TokenKind::Literal, "a"), "{tokens:?}");
    }

    #[test]
    fn comment_continues_over_lines() {
        let tokens = highlight_lines("a/b.ts", &["/* one", "two */ let x"]);
        assert_eq!(tokens[1][0].0, TokenKind::Comment, "{tokens:?}");
    }

    #[test]
    fn lines_beyond_budget_stay_plain() {
        let long = format!("# {}", "x".repeat(MOST_BYTES));
        let tokens = highlight_lines("a.py", &[&long, "# 1", "# 2", "# 3", "# 4"]);
        let is_plain: Vec<bool> = tokens.iter().map(|line| line[0].0 == TokenKind::Plain).collect();
        assert_eq!(is_plain, [true, false, false, false, true]);
    }

    #[test]
    fn unknown_language_has_no_highlighter() {
        for path in ["data.unknown", "", "/"] {
            assert!(LineHighlighter::of_path(path).is_none(), "{path}");
        }
        for path in [
            "src/main.rs",
            "main.go",
            "Cart.java",
            "run.sh",
            "Makefile",
            "web/cart.tsx",
        ] {
            assert!(LineHighlighter::of_path(path).is_some(), "{path}");
        }
    }
}
