//! Attributes of `.gitattributes` files that change the bytes of a file between tree and worktree.

use std::{
    collections::{BTreeMap, HashMap},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix_attributes::{
    Search, StateRef,
    glob::pattern::Case,
    search::{MetadataCollection, Outcome},
};

use super::{
    file_conversion::{FileConversion, WorktreeEncoding},
    iconv_encoding::IconvEncoding,
    line_ends::LineEndRule,
};

/// Name of the files.
pub(in crate::workspace) const ATTRIBUTES: &str = ".gitattributes";
/// Limit of a file in bytes; a larger one has no effect.
pub(in crate::workspace) const MAX_FILE_BYTES: usize = 1 << 20;
// Limits of the files of one tree, in number and bytes; further files have no effect.
const MAX_FILES: usize = 5_000;
const MAX_TOTAL_BYTES: usize = 16 << 20;
// Limit of a line in bytes. Git ignores longer ones.
const MAX_LINE_BYTES: usize = 2048;
// Attributes, in the order in which `AttributeSearch::find` reads them.
const NAMES: [&str; 6] = ["text", "crlf", "eol", "ident", "working-tree-encoding", "filter"];
/// Words of which each line that matters contains one. `binary` is the macro of git itself.
const WORDS: [&[u8]; 7] = [
    b"text",
    b"crlf",
    b"eol",
    b"ident",
    b"encoding",
    b"filter",
    b"binary",
];
const BUILT_IN: &[u8] = b"[attr]binary -diff -merge -text";
/// Value of `filter` without a program: the files are pointers to Git LFS.
const LFS: &str = "lfs";

/// Contents of the `.gitattributes` files of a tree or worktree, by their folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::workspace) struct AttributeFiles {
    by_folder: BTreeMap<PathBuf, Vec<u8>>,
    total_bytes: usize,
}

impl AttributeFiles {
    /// Adds the file of a folder; the root is the empty path. Returns false when a limit is exceeded, so that
    /// the file has no effect.
    pub(in crate::workspace) fn add(&mut self, folder: &Path, content: Vec<u8>) -> bool {
        let total_bytes = self.total_bytes + content.len();
        if content.len() > MAX_FILE_BYTES
            || total_bytes > MAX_TOTAL_BYTES
            || self.by_folder.len() >= MAX_FILES
        {
            return false;
        }
        self.total_bytes = total_bytes;
        self.by_folder.insert(folder.to_owned(), content);
        true
    }

    /// Returns a search in all files; `None` if they change no file.
    pub(in crate::workspace) fn search(&self) -> Option<AttributeSearch> {
        let has_word = |content: &Vec<u8>| {
            WORDS
                .iter()
                .any(|word| content.windows(word.len()).any(|part| part == *word))
        };
        if !self.by_folder.values().any(has_word) {
            return None;
        }
        let mut known = MetadataCollection::default();
        let mut levels = HashMap::new();
        let built_in = parse_level(BUILT_IN, Path::new(""), true, &mut known)?;
        for (folder, content) in &self.by_folder {
            let lines: Vec<&[u8]> = content
                .split(|byte| *byte == b'\n')
                .filter(|line| line.len() < MAX_LINE_BYTES)
                .collect();
            // Git defines macros at the root only.
            let can_define = folder.as_os_str().is_empty();
            let level = parse_level(&lines.join(&b'\n'), folder, can_define, &mut known)?;
            levels.insert(folder.clone(), level);
        }
        let mut outcome = Outcome::default();
        outcome.initialize_with_selection(&known, NAMES);
        Some(AttributeSearch {
            levels,
            built_in,
            outcome,
        })
    }
}

fn parse_level(
    content: &[u8],
    folder: &Path,
    can_define: bool,
    known: &mut MetadataCollection,
) -> Option<Search> {
    let mut level = Search::default();
    let file = folder.join(ATTRIBUTES);
    // It fails only for paths that are not relative.
    level
        .add_patterns_buffer(content, file, Some(Path::new("")), known, can_define)
        .ok()?;
    Some(level)
}

/// Search for the attributes of paths.
pub(in crate::workspace) struct AttributeSearch {
    /// Rules by the folder of their file.
    levels: HashMap<PathBuf, Search>,
    built_in: Search,
    outcome: Outcome,
}

impl AttributeSearch {
    /// Returns the conversion of a file; `None` if it stays as it is.
    pub(in crate::workspace) fn find(&mut self, path: &Path) -> Option<FileConversion> {
        self.outcome.reset();
        let bytes = path.as_os_str().as_bytes();
        let levels = path
            .ancestors()
            .skip(1)
            .filter_map(|folder| self.levels.get(folder));
        for level in levels.chain([&self.built_in]) {
            level.pattern_matching_relative_path(
                bytes.into(),
                Case::Sensitive,
                Some(false),
                &mut self.outcome,
            );
            if self.outcome.is_done() {
                break;
            }
        }
        let mut states = self.outcome.iter_selected().map(|found| found.assignment.state);
        let mut next = || states.next().unwrap_or(StateRef::Unspecified);
        let [text, crlf, eol, ident, encoding, filter] = [next(), next(), next(), next(), next(), next()];
        let filter = value_of(filter).filter(|filter| !filter.is_empty());
        let conversion = FileConversion {
            line_ends: read_line_ends(text, crlf, eol),
            has_ident: ident == StateRef::Set,
            encoding: read_encoding(encoding),
            is_lfs: filter.as_deref() == Some(LFS),
            filter: filter.filter(|filter| filter != LFS),
        };
        Some(conversion).filter(|conversion| *conversion != FileConversion::default())
    }
}

/// Returns the value of an attribute that has one.
fn value_of(state: StateRef<'_>) -> Option<String> {
    match state {
        StateRef::Value(value) => Some(String::from_utf8_lossy(value.as_bstr()).into_owned()),
        StateRef::Set | StateRef::Unset | StateRef::Unspecified => None,
    }
}

/// Rule about the line ends of a file.
#[derive(Clone, Copy)]
enum TextRule {
    Text,
    /// The older value `input`: line ends stay LF in the worktree.
    Input,
    Auto,
    Binary,
}

fn read_text_rule(state: StateRef<'_>) -> Option<TextRule> {
    match state {
        StateRef::Set => Some(TextRule::Text),
        StateRef::Unset => Some(TextRule::Binary),
        StateRef::Unspecified => None,
        StateRef::Value(value) => match &**value.as_bstr() {
            b"input" => Some(TextRule::Input),
            b"auto" => Some(TextRule::Auto),
            _ => None,
        },
    }
}

fn read_line_ends(text: StateRef<'_>, crlf: StateRef<'_>, eol: StateRef<'_>) -> LineEndRule {
    // `crlf` is the older name of `text`.
    let rule = read_text_rule(text).or_else(|| read_text_rule(crlf));
    let eol = match eol {
        StateRef::Value(value) => match &**value.as_bstr() {
            b"lf" => Some(false),
            b"crlf" => Some(true),
            _ => None,
        },
        StateRef::Set | StateRef::Unset | StateRef::Unspecified => None,
    };
    match (rule, eol) {
        (Some(TextRule::Binary), _) | (None, None) => LineEndRule::AsIs,
        (Some(TextRule::Auto), eol) => LineEndRule::Auto {
            has_crlf_in_worktree: eol.unwrap_or(false),
        },
        // `eol` alone makes a file text.
        (Some(TextRule::Text | TextRule::Input) | None, eol) => LineEndRule::Text {
            has_crlf_in_worktree: eol.unwrap_or(false),
        },
    }
}

fn read_encoding(state: StateRef<'_>) -> Option<WorktreeEncoding> {
    let name = match state {
        StateRef::Unspecified => return None,
        StateRef::Set => "true".to_owned(),
        StateRef::Unset => "false".to_owned(),
        StateRef::Value(value) => String::from_utf8_lossy(value.as_bstr()).into_owned(),
    };
    let is_utf8 = ["utf-8", "utf8"]
        .iter()
        .any(|utf8| name.eq_ignore_ascii_case(utf8));
    if name.is_empty() || is_utf8 {
        return None;
    }
    Some(match IconvEncoding::find(&name) {
        Some(encoding) => WorktreeEncoding::Known(name, encoding),
        None => WorktreeEncoding::Unknown(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(files: &[(&str, &str)]) -> AttributeSearch {
        let mut all = AttributeFiles::default();
        for (folder, content) in files {
            assert!(all.add(Path::new(folder), content.as_bytes().to_vec()));
        }
        all.search().unwrap()
    }

    #[test]
    fn files_above_total_limit_have_no_effect() {
        let mut all = AttributeFiles::default();
        let added = (0..20).filter(|number| {
            let folder = format!("f{number}");
            all.add(Path::new(&folder), vec![b'#'; MAX_FILE_BYTES])
        });
        assert_eq!(added.count() * MAX_FILE_BYTES, MAX_TOTAL_BYTES);
    }

    #[test]
    fn nearest_file_and_last_line_decide() {
        let mut search = search(&[
            (
                "",
                "* text=auto\n*.bat eol=crlf\n[attr]dos text eol=crlf\n/a/*.x dos\n*.png binary\n",
            ),
            ("a", "*.bat -text\ndeep/*.y text\n[attr]no text\n*.z no\n"),
            ("a/b", "*.bat !text !eol\n"),
        ]);
        let crlf = |is_auto: bool| {
            if is_auto {
                LineEndRule::Auto {
                    has_crlf_in_worktree: true,
                }
            } else {
                LineEndRule::Text {
                    has_crlf_in_worktree: true,
                }
            }
        };
        let auto = LineEndRule::Auto {
            has_crlf_in_worktree: false,
        };
        let text = LineEndRule::Text {
            has_crlf_in_worktree: false,
        };
        for (path, expected) in [
            ("c.bat", crlf(true)),
            ("a/c.bat", LineEndRule::AsIs),
            ("a/b/c.bat", LineEndRule::AsIs),
            ("a/c.x", crlf(false)),
            ("a/b/c.x", auto),
            ("a/deep/c.y", text),
            ("a/other/c.y", auto),
            ("a/c.z", auto),
            ("x/y.png", LineEndRule::AsIs),
            ("readme", auto),
        ] {
            let found = search.find(Path::new(path)).unwrap_or_default();
            assert_eq!(found.line_ends, expected, "{path}");
        }
    }

    #[test]
    fn encodings_idents_and_filters_are_read() {
        let mut search = search(&[(
            "",
            "*.rc working-tree-encoding=UTF-16\n*.u8 working-tree-encoding=utf-8\n*.e working-tree-encoding=EBCDIC\n\
             *.c ident\n*.psd filter=lfs -text\n*.key filter=git-crypt diff=git-crypt\n*.off filter=x -filter\n",
        )]);
        let mut find = |path: &str| search.find(Path::new(path));
        let rc = find("a.rc").unwrap().encoding;
        assert!(matches!(rc, Some(WorktreeEncoding::Known(name, _)) if name == "UTF-16"));
        assert_eq!(
            find("a.e").unwrap().encoding,
            Some(WorktreeEncoding::Unknown("EBCDIC".to_owned()))
        );
        assert!(find("a.c").unwrap().has_ident);
        assert_eq!(find("a.key").unwrap().filter.as_deref(), Some("git-crypt"));
        let lfs = find("a.psd").unwrap();
        assert!(lfs.is_lfs && lfs.filter.is_none() && lfs.line_ends == LineEndRule::AsIs);
        for path in ["a.u8", "a.off", "other"] {
            assert_eq!(find(path), None, "{path}");
        }
    }

    #[test]
    fn files_about_other_attributes_cost_nothing() {
        let mut files = AttributeFiles::default();
        assert!(files.search().is_none());
        files.add(Path::new(""), b"*.ts linguist-generated\n".to_vec());
        assert!(files.search().is_none());
        assert!(!files.add(Path::new("a"), vec![b'x'; MAX_FILE_BYTES + 1]));
    }

    proptest::proptest! {
        #[test]
        fn fuzz_any_attribute_file_is_read(text in "([a-z*/!\"\\[\\]# =.-]|text|eol=crlf|\n|\u{e9}){0,80}") {
            let mut files = AttributeFiles::default();
            files.add(Path::new(""), text.clone().into_bytes());
            files.add(Path::new("a"), text.into_bytes());
            if let Some(mut search) = files.search() {
                search.find(Path::new("a/b.txt"));
                search.find(Path::new("b"));
            }
        }
    }
}
