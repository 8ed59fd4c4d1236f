//! Names that product code defines, and their use in tests.

use std::collections::BTreeSet;

use super::paths::{FilePurpose, classify_path};
use crate::{pattern::LazyPattern, workspace::ChangedFile};

static DEFINITION: LazyPattern = LazyPattern::new(
    r"(?m)^\s*(?:export\s+|default\s+|pub(?:\([^)]*\))?\s+|public\s+|private\s+|protected\s+|internal\s+|static\s+|async\s+|abstract\s+|final\s+)*(?:def|class|fn|func(?:\s+\([^)]*\))?|function|struct|enum|trait|interface|type|module|object|fun)\s+(\w+)",
);
static WORD: LazyPattern = LazyPattern::new(r"[A-Za-z_]\w+");

/// Names that the product's files define before the change, and those that the change removes.
pub(super) struct ProductDefinitions {
    before: BTreeSet<String>,
    gone: BTreeSet<String>,
    /// True when the change adds no name. If it does, a removed name may be renamed instead of a removed
    /// feature.
    has_shrunk: bool,
}

impl ProductDefinitions {
    pub(super) fn of(files: &[ChangedFile]) -> Self {
        let product = || {
            files
                .iter()
                .filter(|file| classify_path(&file.path) == FilePurpose::Product)
        };
        let names = |texts: Vec<&str>| -> BTreeSet<String> {
            let found = texts.iter().flat_map(|text| DEFINITION.all(text));
            found.map(|name| name[1].to_owned()).collect()
        };
        let before = names(product().filter_map(|file| file.before.as_deref()).collect());
        let after = names(product().filter_map(|file| file.after.as_deref()).collect());
        Self {
            gone: before.difference(&after).cloned().collect(),
            has_shrunk: after.difference(&before).next().is_none(),
            before,
        }
    }

    /// Returns true when the change removes everything that a test used of the changed product. If the change
    /// only removes names, one removed name is enough. Such a test is removed with its feature.
    pub(super) fn are_gone(&self, body: &[String]) -> bool {
        let words = body
            .iter()
            .flat_map(|line| WORD.all(line).map(|word| word[0].to_owned()).collect::<Vec<_>>());
        let used: BTreeSet<String> = words.filter(|word| self.before.contains(word)).collect();
        let is_all = !used.is_empty() && used.is_subset(&self.gone);
        is_all || (self.has_shrunk && used.intersection(&self.gone).next().is_some())
    }
}
