//! Comparison of the list of failpoints with the sources.

use std::fs;

use crate::{find_repository_root, rust_files};

/// Literals in the first argument of `around` and `around_kind`.
fn find_sites(text: &str) -> Vec<String> {
    let calls = text.split("failpoint::around").skip(1);
    let literal = |call: &str| {
        let arguments = call.strip_prefix("_kind").unwrap_or(call).strip_prefix('(')?;
        let quoted = arguments.trim_start().strip_prefix('"');
        Some(quoted.expect("a site is a literal").split('"').next()?.to_owned())
    };
    calls.filter_map(literal).collect()
}

#[test]
fn listed_sites_match_sources_exactly() {
    let mut found = Vec::new();
    for folder in ["crates", "services"] {
        for file in rust_files(&find_repository_root().join(folder)) {
            if !file.starts_with(find_repository_root().join("crates/failpoint")) {
                found.extend(find_sites(&fs::read_to_string(file).unwrap()));
            }
        }
    }
    found.sort();
    assert_eq!(
        found,
        failpoint::SITES,
        "keep crates/failpoint/src/sites.rs as the sources are"
    );
}
