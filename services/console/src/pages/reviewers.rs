//! Page for reviewers of pull requests. It needs no login, because its readers may have no account except at GitHub.

use maud::{Markup, html};

use crate::layout::ConsolePage;

// Goals of a maintainer, each with the action and the order for it.
const ANSWERS: [(&str, &str, &str); 7] = [
    (
        "a change",
        "submit a review with comments; one push answers the whole review",
        "",
    ),
    ("the work to end", "comment", "/stop"),
    ("another try after a failure", "comment", "/retry"),
    ("to know what it has cost", "comment", "/cost"),
    (
        "to decide about a change that waits for approval",
        "comment",
        "/approve COMMIT, /reject or /feedback TEXT",
    ),
    (
        "to change it yourself",
        "push to its branch: Journeyman goes on from your commit and never overwrites it",
        "",
    ),
    ("to end it", "close the pull request", ""),
];

pub(super) async fn show_reviewers() -> ConsolePage {
    ConsolePage {
        title: "For reviewers".to_owned(),
        place: None,
        body: render_reviewers(),
    }
}

fn render_reviewers() -> Markup {
    html! {
        p { "You received a pull request that Journeyman wrote. You review it and merge it; Journeyman never merges." }
        table.stack {
            caption { "How to steer it" }
            thead { tr { th scope="col" { "You want" } th scope="col" { "Do" } } }
            tbody {
                @for (wish, act, order) in ANSWERS {
                    tr {
                        th scope="row" { (wish) }
                        td data-name="Do" { (act) @if !order.is_empty() { " " code { (order) } } }
                    }
                }
            }
        }
        p {
            "An order stands alone on the first line of its comment. Reviews and orders count from people who may write to the \
             repository. A draft becomes ready when its checks pass."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviewers_find_every_order_of_the_docs() {
        let docs = include_str!("../../../../docs/reviewers.md");
        let page = render_reviewers().into_string();
        for order in ["/stop", "/retry", "/cost", "/approve", "/reject", "/feedback"] {
            assert!(docs.contains(order) && page.contains(order), "{order}");
        }
    }
}
