//! Filters of lists in the address: their fields, saved filters as links, and the address of the next page.

use domain::address::percent_encode;
use maud::{Markup, html};

/// A saved filter: its name and its fields.
pub(super) struct SavedFilter {
    pub(super) name: &'static str,
    pub(super) fields: &'static [(&'static str, &'static str)],
}

/// Returns the text of a form's field without the spaces around it; `None` if it is empty.
pub(super) fn trim_field(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Builds an address with the fields that have a value.
pub(super) fn build_list_path(path: &str, fields: &[(&str, &str)]) -> String {
    let given = fields.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<_> = given
        .map(|(name, value)| format!("{name}={}", percent_encode(value)))
        .collect();
    if pairs.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", pairs.join("&"))
    }
}

/// Builds the address of a page of a list: after the item `before`, or the first page if it is empty.
pub(super) fn build_page_path(path: &str, search: &str, fields: &[(&str, &str)], before: &str) -> String {
    let fields = [&[("q", search)][..], fields, &[("before", before)][..]].concat();
    build_list_path(path, &fields)
}

/// Renders the saved filters. The one with exactly the fields of the page is marked; each keeps the search.
pub(super) fn render_saved_filters(
    path: &str,
    saved: &[SavedFilter],
    current: &[(&str, &str)],
    search: &str,
) -> Markup {
    let is_current = |one: &SavedFilter| {
        let given: Vec<_> = current.iter().filter(|(_, value)| !value.is_empty()).collect();
        given.len() == one.fields.len() && given.iter().all(|field| one.fields.contains(field))
    };
    html! {
        nav aria-label="Saved filters" {
            ul.filters {
                @for one in saved {
                    @let fields = [one.fields, &[("q", search)][..]].concat();
                    li {
                        a href=(build_list_path(path, &fields)) aria-current=[is_current(one).then_some("true")] { (one.name) }
                    }
                }
            }
        }
    }
}

/// Renders the links to the newest and to the next page of a list.
pub(super) fn render_page_links(name: &str, newest: Option<&str>, older: Option<&str>) -> Markup {
    html! {
        @if newest.is_some() || older.is_some() {
            nav.actions aria-label=(name) {
                @if let Some(newest) = newest { a href=(newest) { "Newest" } }
                @if let Some(older) = older { a href=(older) rel="next" { "Older" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: [SavedFilter; 2] = [
        SavedFilter {
            name: "All",
            fields: &[],
        },
        SavedFilter {
            name: "Failed",
            fields: &[("stop", "failed")],
        },
    ];

    #[test]
    fn saved_filter_is_address_and_keeps_search() {
        let filters =
            render_saved_filters("/runs", &SAVED, &[("stop", "failed"), ("job", "")], "a b").into_string();
        assert!(filters.contains("href=\"/runs?q=a%20b\">All</a>"), "{filters}");
        assert!(
            filters.contains("href=\"/runs?stop=failed&amp;q=a%20b\" aria-current=\"true\">Failed</a>"),
            "{filters}"
        );
    }

    #[test]
    fn further_field_marks_no_saved_filter() {
        let filters =
            render_saved_filters("/runs", &SAVED, &[("stop", "failed"), ("job", "triage")], "").into_string();
        assert!(!filters.contains("aria-current"), "{filters}");
        assert!(filters.contains("href=\"/runs\">All</a>"), "{filters}");
    }
}
