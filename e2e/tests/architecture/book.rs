//! Pages of `docs/` as a book: every page has a place, and every link resolves.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::find_repository_root;

/// Returns the targets of Markdown links outside code.
fn list_link_targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let parts = line.split('`').step_by(2);
        for rest in parts
            .filter(|_| !is_code)
            .flat_map(|part| part.split("](").skip(1))
        {
            found.extend(rest.split(')').next().map(str::to_owned));
        }
    }
    found
}

/// Returns the anchors of a page. They follow from its headings by the rules of GitHub and mdBook.
fn list_anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| -> String {
        let kept = line.trim_start_matches('#').trim().to_lowercase();
        let kept = kept
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// Returns every page of the book, and the pages beside it whose links lead into the book.
pub(crate) fn list_book_pages() -> Vec<PathBuf> {
    let root = find_repository_root();
    let mut found = Vec::new();
    collect_paths(&root.join("docs"), &mut found);
    found.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    found.extend(["README.md", "ARCHITECTURE.md", "e2e/capabilities.md"].map(|page| root.join(page)));
    found
}

#[test]
fn summary_lists_every_docs_page() {
    let docs = find_repository_root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<PathBuf> = list_link_targets(&summary)
        .iter()
        .map(|link| docs.join(link))
        .collect();
    let missing: Vec<_> = list_book_pages()
        .into_iter()
        .filter(|page| page.starts_with(&docs) && !page.ends_with("SUMMARY.md") && !listed.contains(page))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

#[test]
fn texts_for_people_use_continue() {
    let root = find_repository_root();
    let mut files = list_book_pages();
    for folder in ["cli/src", "services/reporter/src/message"] {
        collect_paths(&root.join(folder), &mut files);
    }
    let other_word = regex::Regex::new(r"(?i)\bgo(?:es)?\s+on\b").unwrap();
    // Images are not text, so they cannot be read as such.
    let has_other_word =
        |file: &PathBuf| std::fs::read_to_string(file).is_ok_and(|text| other_word.is_match(&text));
    let found: Vec<&PathBuf> = files.iter().filter(|file| has_other_word(file)).collect();
    assert!(found.is_empty(), "\"go on\" in place of \"continue\": {found:#?}");
}

#[test]
fn page_links_resolve_to_headings() {
    let mut broken = Vec::new();
    for page in list_book_pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in list_link_targets(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap().join(path)
            };
            let known = match std::fs::read_to_string(&target) {
                Ok(text) => anchor.is_empty() || list_anchors(&text).contains(anchor),
                Err(_) => anchor.is_empty() && target.exists(),
            };
            if !known {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Collects the paths of all files and folders below a folder.
fn collect_paths(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            collect_paths(&path, found);
        }
        found.push(path);
    }
}

/// Returns true for the name of one file or folder. A placeholder such as `<kind>` names many.
fn is_path(code: &str) -> bool {
    let is_file = [".rs", ".md", ".json", ".toml"]
        .iter()
        .any(|ending| code.ends_with(ending));
    (is_file || code.ends_with('/')) && !code.contains([' ', '<', '*'])
}

/// Returns the text between backticks in the table of the files that an addition touches.
fn list_additions_code() -> Vec<String> {
    let text = std::fs::read_to_string(find_repository_root().join("ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("## What do I edit to add something?").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    table.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn additions_table_names_existing_files() {
    let mut paths = Vec::new();
    collect_paths(&find_repository_root(), &mut paths);
    let mut named = list_additions_code();
    named.retain(|code| is_path(code));
    assert!(named.len() > 30, "the table is not read as expected: {named:?}");
    named.retain(|name| !paths.iter().any(|path| path.ends_with(name)));
    assert!(named.is_empty(), "{named:?}");
}

#[test]
fn additions_table_names_existing_items() {
    let mut paths = Vec::new();
    collect_paths(&find_repository_root(), &mut paths);
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let sources: String = paths
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let words: BTreeSet<&str> = sources
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let mut named = list_additions_code();
    named.retain(|code| {
        let is_word = code.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        is_word && code.starts_with(|c: char| c.is_ascii_uppercase())
    });
    assert!(named.len() > 20, "the table is not read as expected: {named:?}");
    named.retain(|name| !words.contains(name.as_str()));
    assert!(named.is_empty(), "{named:?}");
}
