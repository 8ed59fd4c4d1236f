//! Comparison of the list of sites with the sources.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that fails fails its test"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

fn find_workspace_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap().to_owned()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_skipped = path.ends_with("failpoint") || path.ends_with("target");
        if path.is_dir() && !is_skipped {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Literals in the first argument of `around` and `around_kind`.
fn sites_in(text: &str) -> Vec<String> {
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
    let mut files = Vec::new();
    for folder in ["crates", "services"] {
        rust_files(&find_workspace_root().join(folder), &mut files);
    }
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let mut found: Vec<String> = texts.flat_map(|text| sites_in(&text)).collect();
    found.sort();
    assert_eq!(
        found,
        failpoint::SITES,
        "keep crates/failpoint/src/sites.rs as the sources are"
    );
}
