//! Pages of a run's timeline: each has a limited number of the run's entries, and an address that stays the same.

use std::ops::Range;

use domain::text::group_digits;
use maud::{Markup, html};
use serde::Deserialize;

use super::list_filter::build_list_path;
use crate::words::run_path;

// Most entries of one page.
const ENTRIES: usize = 500;

/// Query of the page.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunPageQuery {
    /// Position of the first entry; absent: the page has the newest entries.
    pub(super) from: Option<usize>,
    /// Begin at the first entry. Addresses that earlier releases wrote have it.
    pub(super) all: bool,
    /// Scroll to the end with every new entry; without scripts, load the page again every 15 seconds.
    pub(super) follow: bool,
}

impl RunPageQuery {
    /// Returns the address of the page with these options.
    pub(super) fn path(self, path: &str) -> String {
        let from = self.first().map_or_else(String::new, |first| first.to_string());
        let follow = if self.follow { "true" } else { "" };
        build_list_path(path, &[("from", from.as_str()), ("follow", follow)])
    }

    /// Returns the position of the first entry, as the address names it.
    fn first(self) -> Option<usize> {
        self.from.or(self.all.then_some(0))
    }

    /// Returns the entries of this page of a journal with `count` entries. A page beyond the end is the newest one.
    pub(super) fn select_entries(self, count: usize) -> Range<usize> {
        let newest = count.saturating_sub(ENTRIES);
        let first = self.first().filter(|first| *first < count).unwrap_or(newest);
        first..count.min(first.saturating_add(ENTRIES))
    }

    /// Renders the place of the page among the entries, and links to the other pages; nothing if all entries are here.
    pub(super) fn render_links(self, path: &str, shown: &Range<usize>, count: usize) -> Markup {
        let begin_at = |from: Option<usize>| {
            let all = false;
            Self { from, all, ..self }.path(path)
        };
        html! {
            @if shown.len() < count {
                p.actions {
                    "Entries " (group_digits(shown.start as u64 + 1)) " to " (group_digits(shown.end as u64)) " of "
                    (group_digits(count as u64))
                    @if let Some(before) = shown.start.checked_sub(1) {
                        a rel="prev" href=(begin_at(Some(find_page_start(before)))) { "Earlier entries" }
                    }
                    @if shown.end < count {
                        a rel="next" href=(begin_at(Some(shown.end))) { "Later entries" }
                        a href=(begin_at(None)) { "Newest entries" }
                    }
                }
            }
        }
    }
}

/// Returns the first position of the page that has an entry.
const fn find_page_start(position: usize) -> usize {
    position / ENTRIES * ENTRIES
}

/// Returns the address of the page that has the entry.
pub(super) fn page_path(run: &str, position: usize) -> String {
    format!("{}?from={}", run_path(run), find_page_start(position))
}

/// Returns the address of an entry on the page that has it.
pub(super) fn entry_path(run: &str, position: u64) -> String {
    let page = page_path(run, usize::try_from(position).unwrap_or(usize::MAX));
    format!("{page}#entry-{position}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_query(from: Option<usize>) -> RunPageQuery {
        RunPageQuery {
            from,
            ..RunPageQuery::default()
        }
    }

    #[test]
    fn page_has_limited_number_of_entries() {
        let first = RunPageQuery {
            all: true,
            ..RunPageQuery::default()
        };
        assert_eq!(first.select_entries(1_234), 0..500);
        for (from, count, expected) in [
            (None, 0, 0..0),
            (None, 500, 0..500),
            (None, 1_234, 734..1_234),
            (Some(500), 1_234, 500..1_000),
            (Some(1_000), 1_234, 1_000..1_234),
            (Some(1_234), 1_234, 734..1_234),
            (Some(usize::MAX), 3, 0..3),
        ] {
            assert_eq!(
                build_query(from).select_entries(count),
                expected,
                "{from:?} of {count}"
            );
        }
    }

    #[test]
    fn links_lead_to_every_page() {
        let links = |query: RunPageQuery| {
            let shown = query.select_entries(1_234);
            query.render_links("/runs/r", &shown, 1_234).into_string()
        };
        let newest = links(build_query(None));
        assert!(newest.contains("Entries 735 to 1,234 of 1,234"), "{newest}");
        assert!(
            newest.contains("rel=\"prev\" href=\"/runs/r?from=500\""),
            "{newest}"
        );
        assert!(
            !newest.contains("Later") && !newest.contains("Newest"),
            "{newest}"
        );
        let middle = RunPageQuery {
            follow: true,
            ..build_query(Some(500))
        };
        let middle = links(middle);
        for part in [
            "href=\"/runs/r?from=0&amp;follow=true\">Earlier",
            "href=\"/runs/r?from=1000&amp;follow=true\">Later",
            "href=\"/runs/r?follow=true\">Newest",
        ] {
            assert!(middle.contains(part), "{part}: {middle}");
        }
        let whole = build_query(None).render_links("/runs/r", &(0..9), 9);
        assert_eq!(whole.into_string(), "");
    }

    #[test]
    fn entry_address_leads_to_its_page() {
        assert_eq!(
            entry_path("jira:ENG-1@3", 62),
            "/runs/jira%3AENG-1%403?from=0#entry-62"
        );
        assert_eq!(
            entry_path("jira:ENG-1@3", 1_000),
            "/runs/jira%3AENG-1%403?from=1000#entry-1000"
        );
    }
}
