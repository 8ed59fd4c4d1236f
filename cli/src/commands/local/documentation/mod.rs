//! `journeyman docs`: the documentation of this version.

mod html;
mod pages;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use url::Url;

use self::pages::{CONTENTS, find_page, list_pages};
use super::{print_long, print_result};
use crate::{args::PagerOptions, user_files::replace_file};

// Place of the installed pages below the prefix of the installation.
const INSTALLED: &str = "share/doc/journeyman/html";

/// Show a page of the documentation of this version, or list the pages
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// The page, with a heading after #: setup, or runbook#a-server-does-not-answer
    #[arg(value_name = "PAGE")]
    page: Option<String>,
    /// Write all pages as HTML into this folder, which is created if missing; pictures that it lacks become text
    #[arg(long, value_name = "DIR", conflicts_with = "page")]
    html: Option<PathBuf>,
    #[command(flatten)]
    paging: PagerOptions,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    match (&asked.page, &asked.html) {
        (_, Some(folder)) => write_html(folder)?,
        (Some(page), None) => print_long(read_page(page)?.lines(), asked.paging),
        (None, None) => print_long(render_contents(), asked.paging),
    }
    Ok(ExitCode::SUCCESS)
}

/// Text of a page, or of one section.
fn read_page(wanted: &str) -> anyhow::Result<&'static str> {
    let (name, anchor) = split_anchor(wanted);
    // Other texts name the file in the repository.
    let name = name.strip_prefix("docs/").unwrap_or(name);
    let name = name.strip_suffix(".md").unwrap_or(name);
    let page = match find_page(name) {
        Ok(page) => page,
        Err(Some(meant)) => bail!("there is no page {name}; did you mean {meant}?"),
        Err(None) => bail!("there is no page {name}; `journeyman docs` lists the pages"),
    };
    match anchor {
        None => Ok(page.text),
        Some(anchor) => page
            .find_section(anchor)
            .with_context(|| format!("the page {name} has no heading {anchor}")),
    }
}

/// Name of a page, and the heading after `#`.
fn split_anchor(page: &str) -> (&str, Option<&str>) {
    match page.split_once('#') {
        Some((name, anchor)) => (name, Some(anchor)),
        None => (page, None),
    }
}

fn render_contents() -> Vec<String> {
    let pages = list_pages().iter().filter(|page| page.name != CONTENTS);
    pages
        .map(|page| format!("{:<28} {}", page.name, page.title()))
        .collect()
}

fn write_html(folder: &Path) -> anyhow::Result<()> {
    for page in list_pages() {
        let path = folder.join(html::name_file(page));
        let below = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(below)
            .and_then(|()| replace_file(&path, html::render_page(page, folder).as_bytes(), 0o644))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    print_result(&format!("docs     {}", folder.join("index.html").display()));
    Ok(())
}

/// Place of a page and its heading for a user: the page that is installed with this program, else the command that shows it.
pub(super) fn describe_page(page: &str) -> String {
    // An installation may be started through a symbolic link.
    let program = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let prefix = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    match prefix.and_then(|prefix| find_installed_page(prefix, page)) {
        Some(url) => url.to_string(),
        None => format!("`journeyman docs {page}`"),
    }
}

fn find_installed_page(prefix: &Path, page: &str) -> Option<Url> {
    let (name, anchor) = split_anchor(page);
    let file = prefix.join(INSTALLED).join(format!("{name}.html"));
    let mut url = Url::from_file_path(file.is_file().then_some(file)?).ok()?;
    url.set_fragment(anchor);
    Some(url)
}

/// True when the documentation has this page and heading.
#[cfg(test)]
pub(super) fn has_page(page: &str) -> bool {
    read_page(page).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_or_section_is_read() {
        assert!(read_page("setup").unwrap().starts_with("# Set up the accounts\n"));
        assert_eq!(read_page("docs/setup.md").unwrap(), read_page("setup").unwrap());
        assert!(
            read_page("setup#choose-the-model")
                .unwrap()
                .starts_with("## Choose the model\n")
        );
        for (wanted, part) in [
            ("setp", "there is no page setp; did you mean setup?"),
            ("xyz", "`journeyman docs` lists the pages"),
            ("setup#nothing", "the page setup has no heading nothing"),
        ] {
            let problem = read_page(wanted).unwrap_err().to_string();
            assert!(problem.contains(part), "{part}: {problem}");
        }
        let contents = render_contents();
        assert!(contents.contains(&format!("{:<28} Set up the accounts", "setup")));
    }

    #[test]
    fn installed_page_is_found_below_prefix() {
        let prefix = tempfile::tempdir().unwrap();
        let folder = prefix.path().join(INSTALLED);
        write_html(&folder).unwrap();
        let url = find_installed_page(prefix.path(), "runbook#the-clocks-differ").unwrap();
        assert!(
            url.as_str().starts_with("file:///")
                && url
                    .as_str()
                    .ends_with("/share/doc/journeyman/html/runbook.html#the-clocks-differ"),
            "{url}"
        );
        assert!(find_installed_page(prefix.path(), "nothing").is_none());
        for file in ["index.html", "jobs/implement.html"] {
            assert!(folder.join(file).is_file(), "{file}");
        }
    }
}
