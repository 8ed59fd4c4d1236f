//! Lists the pages of `docs/` for the command, which contains them.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut pages = Vec::new();
    list_pages(&docs, &docs, &mut pages)?;
    // A folder has no defined order.
    pages.sort();
    let mut code = "static PAGES: &[DocumentationPage] = &[\n".to_owned();
    for (name, path) in pages {
        // Writing to a `String` does not fail.
        let _ = writeln!(
            code,
            "    DocumentationPage {{ name: {name:?}, text: include_str!({:?}) }},",
            path.display().to_string()
        );
    }
    code.push_str("];\n");
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("documentation_pages.rs"), code)
}

/// Adds the Markdown files below a folder, by their path below `docs` without the ending.
fn list_pages(docs: &Path, folder: &Path, pages: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    // Cargo watches a folder with everything below it.
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list_pages(docs, &path, pages)?;
        } else if path.extension().is_some_and(|ending| ending == "md") {
            let name = path.strip_prefix(docs).unwrap_or(&path).with_extension("");
            pages.push((name.display().to_string(), path));
        }
    }
    Ok(())
}
