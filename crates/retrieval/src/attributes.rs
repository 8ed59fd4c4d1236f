//! Generated and vendored files according to `.gitattributes`.

use globset::{GlobBuilder, GlobMatcher};

use crate::skip::IndexSkip;

/// Maximum number of rules of all files together.
const MAX_RULES: usize = 500;

/// Rules in their order; the last one that matches a path counts.
#[derive(Clone, Debug, Default)]
pub struct AttributeRules(Vec<(GlobMatcher, Option<IndexSkip>)>);

impl AttributeRules {
    /// Adds the rules of a `.gitattributes` file in a folder; the root is the empty path. Add outer folders
    /// before inner ones.
    pub fn add(&mut self, folder: &str, text: &str) {
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let Some(pattern) = words.next().filter(|word| !word.starts_with('#')) else {
                continue;
            };
            let Some(verdict) = words.filter_map(parse_attribute).next_back() else {
                continue;
            };
            if self.0.len() < MAX_RULES
                && let Ok(glob) = GlobBuilder::new(&build_folder_glob(folder, pattern))
                    .literal_separator(true)
                    .build()
            {
                self.0.push((glob.compile_matcher(), verdict));
            }
        }
    }

    /// Returns the reason that the last matching rule gives for not indexing a file.
    #[must_use]
    pub fn skip(&self, path: &str) -> Option<IndexSkip> {
        let rule = self.0.iter().rev().find(|(glob, _)| glob.is_match(path));
        rule.and_then(|(_, verdict)| *verdict)
    }
}

fn parse_attribute(attribute: &str) -> Option<Option<IndexSkip>> {
    let (name, value) = attribute.split_once('=').unwrap_or((attribute, "true"));
    let (name, is_set) = match name.strip_prefix('-') {
        Some(name) => (name, false),
        None => (name, value == "true"),
    };
    let skip = match name {
        "linguist-generated" => IndexSkip::Generated,
        "linguist-vendored" => IndexSkip::Vendored,
        _ => return None,
    };
    Some(is_set.then_some(skip))
}

/// Glob of a pattern in a folder. A pattern without a slash matches in every folder below.
fn build_folder_glob(folder: &str, pattern: &str) -> String {
    let folder = if folder.is_empty() {
        String::new()
    } else {
        format!("{}/", globset::escape(folder))
    };
    match pattern.trim_end_matches('/').split_once('/') {
        Some(("", rest)) => format!("{folder}{rest}"),
        Some(_) => format!("{folder}{}", pattern.trim_end_matches('/')),
        None => format!("{folder}**/{}", pattern.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rule_that_matches_counts() {
        let mut attributes = AttributeRules::default();
        attributes.add(
            "",
            "# generated\n*.gen.ts linguist-generated\n/api/** linguist-vendored=true\n*.rs text\n",
        );
        attributes.add("web", "keep.gen.ts -linguist-generated\n");
        for (path, skip) in [
            ("a/b.gen.ts", Some(IndexSkip::Generated)),
            ("api/x/y.go", Some(IndexSkip::Vendored)),
            ("other/api/y.go", None),
            ("web/keep.gen.ts", None),
            ("web/a.gen.ts", Some(IndexSkip::Generated)),
            ("a.rs", None),
        ] {
            assert_eq!(attributes.skip(path), skip, "{path}");
        }
    }
}
