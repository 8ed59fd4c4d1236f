//! Pages of the documentation of this version, which the command contains.

use bootstrap::suggestion::find_nearest;

// The build script writes the list.
include!(concat!(env!("OUT_DIR"), "/documentation_pages.rs"));

/// Page with the table of contents.
pub(super) const CONTENTS: &str = "SUMMARY";

/// Page of `docs/`.
#[derive(Debug)]
pub(super) struct DocumentationPage {
    /// Path below `docs/` without the ending, e.g. `jobs/implement`.
    pub(super) name: &'static str,
    /// Markdown text.
    pub(super) text: &'static str,
}

/// All pages in the order of their names, with the table of contents.
pub(super) fn list_pages() -> &'static [DocumentationPage] {
    PAGES
}

/// Page of a name.
///
/// # Errors
/// The name that was probably meant.
pub(super) fn find_page(name: &str) -> Result<&'static DocumentationPage, Option<&'static str>> {
    let known = || PAGES.iter().map(|page| page.name);
    let found = PAGES.iter().find(|page| page.name == name);
    found.ok_or_else(|| find_nearest(name, known()))
}

/// Heading of a page, with its place in the text.
struct PageHeading {
    level: usize,
    anchor: String,
    start: usize,
}

impl DocumentationPage {
    /// First heading.
    pub(super) fn title(&self) -> &'static str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("# "));
        line.unwrap_or(self.name)
    }

    /// Text from a heading to the next one of its level.
    pub(super) fn find_section(&self, anchor: &str) -> Option<&'static str> {
        let headings = self.list_headings();
        let at = headings.iter().position(|heading| heading.anchor == anchor)?;
        let (own, rest) = headings.get(at..)?.split_first()?;
        let end = rest.iter().find(|heading| heading.level <= own.level);
        let end = end.map_or(self.text.len(), |heading| heading.start);
        self.text.get(own.start..end)
    }

    fn list_headings(&self) -> Vec<PageHeading> {
        let (mut headings, mut start, mut is_code) = (Vec::new(), 0, false);
        for line in self.text.split_inclusive('\n') {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            let level = line.chars().take_while(|c| *c == '#').count();
            let title = line.get(level..).and_then(|rest| rest.strip_prefix(' '));
            if let (false, 1..=6, Some(title)) = (is_code, level, title) {
                let anchor = build_anchor(title);
                headings.push(PageHeading { level, anchor, start });
            }
            start += line.len();
        }
        headings
    }
}

/// Anchor of a heading, by the rules of GitHub and mdBook.
pub(super) fn build_anchor(title: &str) -> String {
    let lower = title.trim().to_lowercase();
    let kept = lower
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_docs_are_contained() {
        for name in ["install", "setup", "jobs/implement", CONTENTS] {
            let page = find_page(name).unwrap();
            let file = format!("{}/../docs/{name}.md", env!("CARGO_MANIFEST_DIR"));
            assert_eq!(page.text, std::fs::read_to_string(file).unwrap());
        }
        assert_eq!(find_page("setup").unwrap().title(), "Set up the accounts");
        assert_eq!(find_page("instal").unwrap_err(), Some("install"));
        assert_eq!(find_page("xyz").unwrap_err(), None);
    }

    #[test]
    fn section_ends_at_next_heading_of_its_level() {
        let page = DocumentationPage {
            name: "page",
            text: "# Page\n\nLead.\n\n## How does `it` work?\n\nSo.\n\n```sh\n# no heading\n```\n\n### Deeper\n\nMore.\n\n## Next\n",
        };
        let section = page.find_section("how-does-it-work").unwrap();
        assert!(
            section.starts_with("## How does `it` work?\n") && section.ends_with("More.\n\n"),
            "{section}"
        );
        assert!(section.contains("# no heading"), "{section}");
        assert_eq!(page.find_section("next"), Some("## Next\n"));
        assert_eq!(page.find_section("no-heading"), None);
    }
}
