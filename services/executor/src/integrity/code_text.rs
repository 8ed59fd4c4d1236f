//! Text of a source file without comments, documentation strings and blank lines.

use super::paths::SourceLanguage;

/// Strings and comments of a language.
struct LanguageSyntax {
    /// Marks of comments up to the end of the line.
    line_comments: &'static [&'static str],
    /// Begin and end of a comment over several lines.
    block_comment: Option<(&'static str, &'static str)>,
    /// Strings, longer marks first.
    strings: &'static [StringSyntax],
}

/// One kind of string.
#[derive(Clone, Copy)]
struct StringSyntax {
    begin: &'static str,
    end: &'static str,
    /// True when a backslash protects the next character.
    has_escapes: bool,
    /// True when the string continues after a line without its end. Others end with their line.
    has_lines: bool,
}

const fn build_line_string(mark: &'static str) -> StringSyntax {
    StringSyntax {
        begin: mark,
        end: mark,
        has_escapes: true,
        has_lines: false,
    }
}

const fn build_block_string(mark: &'static str) -> StringSyntax {
    StringSyntax {
        has_lines: true,
        ..build_line_string(mark)
    }
}

const fn build_raw_string(begin: &'static str, end: &'static str) -> StringSyntax {
    StringSyntax {
        begin,
        end,
        has_escapes: false,
        has_lines: true,
    }
}

/// Limit of a regular expression in characters.
const MAX_PATTERN: usize = 1_000;

const DOUBLE: StringSyntax = build_line_string("\"");
const SINGLE: StringSyntax = build_line_string("'");
const SLASHES: &[&str] = &["//"];
const STARS: Option<(&str, &str)> = Some(("/*", "*/"));

const PYTHON_STRINGS: &[StringSyntax] = &[
    build_block_string("\"\"\""),
    build_block_string("'''"),
    DOUBLE,
    SINGLE,
];
const SCRIPT_STRINGS: &[StringSyntax] = &[build_block_string("`"), DOUBLE, SINGLE];
const GO_STRINGS: &[StringSyntax] = &[build_raw_string("`", "`"), DOUBLE, SINGLE];
/// A single quote begins a lifetime more often than a character.
const RUST_STRINGS: &[StringSyntax] = &[
    build_raw_string("r##\"", "\"##"),
    build_raw_string("r#\"", "\"#"),
    build_raw_string("r\"", "\""),
    build_block_string("\""),
    build_raw_string("'\"'", ""),
];
const JVM_STRINGS: &[StringSyntax] = &[build_block_string("\"\"\""), DOUBLE, SINGLE];
const C_SHARP_STRINGS: &[StringSyntax] = &[
    build_raw_string("\"\"\"", "\"\"\""),
    build_raw_string("@\"", "\""),
    DOUBLE,
    SINGLE,
];
const CPP_STRINGS: &[StringSyntax] = &[build_raw_string("R\"(", ")\""), DOUBLE, SINGLE];
const SQL_STRINGS: &[StringSyntax] = &[build_raw_string("'", "'"), DOUBLE];
const SHELL_STRINGS: &[StringSyntax] = &[build_block_string("\""), build_raw_string("'", "'")];

const fn find_syntax(language: SourceLanguage) -> LanguageSyntax {
    let (line_comments, block_comment, strings): (&[&str], _, _) = match language {
        SourceLanguage::Python => (&["#"], None, PYTHON_STRINGS),
        SourceLanguage::Script => (SLASHES, STARS, SCRIPT_STRINGS),
        SourceLanguage::Go => (SLASHES, STARS, GO_STRINGS),
        SourceLanguage::Rust => (SLASHES, STARS, RUST_STRINGS),
        SourceLanguage::Jvm => (SLASHES, STARS, JVM_STRINGS),
        SourceLanguage::CSharp => (SLASHES, STARS, C_SHARP_STRINGS),
        SourceLanguage::Cpp => (SLASHES, STARS, CPP_STRINGS),
        SourceLanguage::Php => (&["//", "#"], STARS, &[DOUBLE, SINGLE]),
        SourceLanguage::Sql => (&["--"], STARS, SQL_STRINGS),
        SourceLanguage::Shell => (&["#"], None, SHELL_STRINGS),
        SourceLanguage::Ruby | SourceLanguage::Yaml | SourceLanguage::Other => {
            (&["#"], None, &[DOUBLE, SINGLE])
        }
    };
    LanguageSyntax {
        line_comments,
        block_comment,
        strings,
    }
}

/// Returns a text without comments, documentation strings and blank lines. Without a grammar a scan can misread a
/// file; one that ends inside a string or a comment is returned with all its lines except blank ones.
pub(super) fn keep_code(language: SourceLanguage, text: &str) -> String {
    let mut scan = CodeScan {
        language,
        syntax: find_syntax(language),
        text,
        at: 0,
        line: String::new(),
        code: String::new(),
        is_bare: true,
        open_brackets: 0,
    };
    match scan.read_text() {
        Some(()) => scan.code,
        None => {
            let lines = text.lines().map(str::trim_end);
            lines
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>()
                .join("\n")
        }
    }
}

/// Scan of a text, which collects its code line by line.
struct CodeScan<'a> {
    language: SourceLanguage,
    syntax: LanguageSyntax,
    text: &'a str,
    /// Position of the scan in `text`, in bytes.
    at: usize,
    /// Code of the current line so far.
    line: String,
    /// Code of the lines before.
    code: String,
    /// True while the current line has only white space and letters that may begin a string.
    is_bare: bool,
    /// Brackets that are open at the position. A Python string inside is never documentation.
    open_brackets: u32,
}

impl CodeScan<'_> {
    /// Reads the whole text; `None` when it ends inside a string or a comment.
    fn read_text(&mut self) -> Option<()> {
        while let Some(next) = self.rest().chars().next() {
            if self.begins_comment() {
                let end = self.rest().find('\n').unwrap_or(self.rest().len());
                self.at += end;
            } else if let Some((begin, end)) = self.syntax.block_comment
                && self.rest().starts_with(begin)
            {
                self.at += begin.len();
                self.at += self.rest().find(end)? + end.len();
            } else if let Some(word) = self.find_here_word() {
                let end = self.find_here_end(word)?;
                self.keep(end);
            } else if let Some(string) = self.find_string() {
                self.read_string(string)?;
            } else if let Some(length) = self.find_pattern() {
                self.keep(length);
            } else {
                self.read_character(next);
            }
        }
        self.end_line();
        Some(())
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Moves the next bytes to the code.
    fn keep(&mut self, length: usize) {
        let kept = self.text.get(self.at..self.at + length).unwrap_or_default();
        self.line.push_str(kept);
        self.is_bare &= kept.chars().all(|c| c.is_whitespace() || "rRuU".contains(c));
        self.at += length;
    }

    fn read_character(&mut self, next: char) {
        match next {
            '\n' => {
                self.at += 1;
                self.end_line();
                return;
            }
            '(' | '[' | '{' => self.open_brackets = self.open_brackets.saturating_add(1),
            ')' | ']' | '}' => self.open_brackets = self.open_brackets.saturating_sub(1),
            _ => {}
        }
        self.keep(next.len_utf8());
        // A quote after a backslash begins no string in these languages.
        if next == '\\'
            && matches!(self.language, SourceLanguage::Shell | SourceLanguage::Rust)
            && let Some(protected) = self.rest().chars().next().filter(|next| *next != '\n')
        {
            self.keep(protected.len_utf8());
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.is_bare = true;
        if !line.trim().is_empty() {
            self.code.push_str(line.trim_end());
            self.code.push('\n');
        }
    }

    /// Returns true if a comment up to the end of the line begins here.
    fn begins_comment(&self) -> bool {
        let rest = self.rest();
        let marks = self.syntax.line_comments;
        let Some(mark) = marks.iter().find(|mark| rest.starts_with(**mark)) else {
            return false;
        };
        let after = rest.get(mark.len()..).unwrap_or_default();
        let is_separate = self.line.is_empty() || self.line.ends_with(char::is_whitespace);
        match self.language {
            SourceLanguage::Shell | SourceLanguage::Yaml => is_separate,
            // Colors and selectors of style sheets, directives and headings begin with the mark, too.
            SourceLanguage::Other => {
                is_separate && (after.is_empty() || after.starts_with([' ', '\t', '\n', '#']))
            }
            SourceLanguage::Ruby => !after.starts_with('{'),
            // Attributes.
            SourceLanguage::Php => *mark != "#" || !after.starts_with('['),
            SourceLanguage::Python
            | SourceLanguage::Script
            | SourceLanguage::Go
            | SourceLanguage::Rust
            | SourceLanguage::Jvm
            | SourceLanguage::CSharp
            | SourceLanguage::Cpp
            | SourceLanguage::Sql => true,
        }
    }

    fn find_string(&self) -> Option<StringSyntax> {
        let rest = self.rest();
        let strings = self.syntax.strings.iter();
        strings.copied().find(|string| rest.starts_with(string.begin))
    }

    /// Reads a string, and drops it when it is documentation; `None` when the text ends inside.
    fn read_string(&mut self, string: StringSyntax) -> Option<()> {
        let is_documentation = string.has_lines && self.is_documentation();
        let inner = self.at + string.begin.len();
        let length = string.begin.len() + find_end(self.text.get(inner..).unwrap_or_default(), string)?;
        if is_documentation {
            self.line.clear();
            self.is_bare = true;
            self.at += length;
        } else {
            self.keep(length);
        }
        Some(())
    }

    /// Returns true if a string of several lines that begins here is a statement of Python, which documents what
    /// is around it.
    fn is_documentation(&self) -> bool {
        let is_continued = self.code.trim_end().ends_with('\\');
        self.language == SourceLanguage::Python && self.is_bare && self.open_brackets == 0 && !is_continued
    }

    /// Returns the word that ends the here document that begins here.
    fn find_here_word(&self) -> Option<&str> {
        let rest = self.rest();
        let mark = match self.language {
            SourceLanguage::Shell => rest.strip_prefix("<<")?.trim_start_matches(['-', ' ']),
            SourceLanguage::Ruby => rest.strip_prefix("<<")?.trim_start_matches(['-', '~']),
            SourceLanguage::Php => rest.strip_prefix("<<<")?.trim_start_matches(' '),
            SourceLanguage::Python
            | SourceLanguage::Script
            | SourceLanguage::Go
            | SourceLanguage::Rust
            | SourceLanguage::Jvm
            | SourceLanguage::CSharp
            | SourceLanguage::Cpp
            | SourceLanguage::Sql
            | SourceLanguage::Yaml
            | SourceLanguage::Other => return None,
        };
        let word = mark.trim_start_matches(['"', '\'', '\\']);
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let word = word.get(..word.find(|c| !is_word(c))?)?;
        // `list << item` of Ruby is no document.
        let is_end = |c: char| {
            c.is_uppercase() || c == '_' || self.language != SourceLanguage::Ruby && c.is_alphabetic()
        };
        word.starts_with(is_end).then_some(word)
    }

    /// Returns the length of a here document: its first line from here, its text, and its last line.
    fn find_here_end(&self, word: &str) -> Option<usize> {
        let mut end = 0;
        for (number, line) in self.rest().split_inclusive('\n').enumerate() {
            end += line.len();
            if number > 0 && line.trim().trim_end_matches(';') == word {
                return Some(end);
            }
        }
        None
    }

    /// Returns the length of a regular expression of JavaScript, whose quotes and marks begin nothing.
    fn find_pattern(&self) -> Option<usize> {
        let pattern = self.rest().strip_prefix('/')?;
        let before = self.line.trim_end();
        let is_operand = before.is_empty()
            || before.ends_with(['(', ',', '=', ':', '[', '!', '&', '|', '?', '{', '}', ';', '>'])
            || before.ends_with("return");
        if self.language != SourceLanguage::Script || !is_operand {
            return None;
        }
        let (mut is_escaped, mut is_class) = (false, false);
        for (at, c) in pattern.char_indices().take(MAX_PATTERN) {
            match c {
                '\n' => return None,
                _ if std::mem::take(&mut is_escaped) => {}
                '\\' => is_escaped = true,
                '[' => is_class = true,
                ']' => is_class = false,
                '/' if !is_class => return Some(at + 2),
                _ => {}
            }
        }
        None
    }
}

/// Returns the length of a string's text with its end; `None` when the text ends first.
fn find_end(text: &str, string: StringSyntax) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        let is_protected = std::mem::take(&mut is_escaped);
        if is_protected {
            continue;
        }
        if text.get(at..).unwrap_or_default().starts_with(string.end) {
            return Some(at + string.end.len());
        }
        match c {
            '\\' => is_escaped = string.has_escapes,
            // The line ends without the end of the string: an apostrophe, or a mistake.
            '\n' if !string.has_lines => return Some(at),
            _ => {}
        }
    }
    (!string.has_lines).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each text is code as a whole, in spite of marks of comments in it.
    #[test]
    fn marks_inside_strings_begin_no_comment() {
        for (language, text) in [
            (
                SourceLanguage::Python,
                "SQL = \"\"\"\nselect 1  # one\n\"\"\"\nx = 1\n",
            ),
            (SourceLanguage::Python, "run('''\n# all\n''')\n"),
            (SourceLanguage::Python, "x = (\n    '''a\n# b''',\n)\n"),
            (SourceLanguage::Python, "x = \\\n'''a\n# b'''\n"),
            (SourceLanguage::Python, "x = 'a\\'# b'\n"),
            (SourceLanguage::Script, "const a = `\n// b\n`;\n"),
            (
                SourceLanguage::Script,
                "s.replace(/[\"/*]/g, '');\nconst t = 1; f('*/');\n",
            ),
            (SourceLanguage::Script, "const u = /https?:\\/\\/[^/]+/;\n"),
            (SourceLanguage::Go, "a := `\n// b\n`\n"),
            (SourceLanguage::Rust, "let a = r#\"\n// \"b\n\"#;\n"),
            (SourceLanguage::Rust, "let a = \"\n// b\n\";\n"),
            (
                SourceLanguage::Rust,
                "fn f<'a>(x: &'a str) -> char { '\"' }\nlet a = \"//\";\n",
            ),
            (SourceLanguage::Jvm, "var a = \"\"\"\n    // b\n    \"\"\";\n"),
            (SourceLanguage::CSharp, "var a = @\"\n// b\n\";\n"),
            (SourceLanguage::Cpp, "auto a = R\"(\n// b\n)\";\n"),
            (SourceLanguage::Php, "#[Test]\n$a = 'http://b';\n"),
            (SourceLanguage::Php, "$a = <<<SQL\n# b\nSQL;\n$c = 1;\n"),
            (SourceLanguage::Ruby, "a = \"#{b}\"\nc = <<~SQL\n  # d\nSQL\n"),
            (SourceLanguage::Sql, "select '\n-- a\n';\n"),
            (SourceLanguage::Shell, "echo ${a#b} $# \"\n# c\n\"\n"),
            (SourceLanguage::Shell, "cat <<'EOF'\n# a\nEOF\necho don\\'t\n"),
            (SourceLanguage::Yaml, "a: b#c\n"),
            (SourceLanguage::Other, "#main { color: #fff }\n"),
        ] {
            assert_eq!(keep_code(language, text), text, "{text}");
        }
    }

    #[test]
    fn comments_around_strings_are_dropped() {
        for (language, text, code) in [
            (
                SourceLanguage::Python,
                "r'''Parse\n>>> it's\n'''\nfrom x import y  # y\n",
                "from x import y\n",
            ),
            (
                SourceLanguage::Python,
                "X = '''\na\n'''\n\ndef f():\n    U\"\"\"Doc.\"\"\"\n    return 1\n",
                "X = '''\na\n'''\ndef f():\n    return 1\n",
            ),
            (
                SourceLanguage::Script,
                "a = b / c; // d's\n/* e` */ f();\n",
                "a = b / c;\n f();\n",
            ),
            (
                SourceLanguage::Rust,
                "fn f<'a>() {} // it's\n/// \"Doc\ng();\n",
                "fn f<'a>() {}\ng();\n",
            ),
            (SourceLanguage::Shell, "a # it's\nb\n", "a\nb\n"),
            (SourceLanguage::Yaml, "a: don't # b\n", "a: don't # b\n"),
            (SourceLanguage::Other, "# a\nb = 1\n", "b = 1\n"),
        ] {
            assert_eq!(keep_code(language, text), code, "{text}");
        }
    }

    #[test]
    fn misread_files_are_code() {
        for (language, text) in [
            (SourceLanguage::Python, "# a\nx = '''b\n# c\n"),
            (SourceLanguage::Script, "// a\nf(); /* b\n"),
            (SourceLanguage::Shell, "# a\necho \"b\n"),
            (SourceLanguage::Shell, "# a\ncat <<END\nb\n"),
        ] {
            assert_eq!(keep_code(language, text), text.trim_end(), "{text}");
        }
    }

    proptest::proptest! {
        /// The scan ends at every text, and returns only lines of it, shortened by comments.
        #[test]
        fn code_is_part_of_text(text in r#"[ab'"`/*#\\\n(){}<r\-@R]{0,80}"#) {
            for language in [
                SourceLanguage::Python, SourceLanguage::Script, SourceLanguage::Go, SourceLanguage::Rust,
                SourceLanguage::Jvm, SourceLanguage::Ruby, SourceLanguage::Php, SourceLanguage::CSharp,
                SourceLanguage::Cpp, SourceLanguage::Sql, SourceLanguage::Shell, SourceLanguage::Yaml,
                SourceLanguage::Other,
            ] {
                let code = keep_code(language, &text);
                let mut rest = text.chars();
                proptest::prop_assert!(code.chars().filter(|c| *c != '\n').all(|kept| rest.any(|c| c == kept)), "{code}");
            }
        }
    }
}
