//! Page for reviewers of pull requests. It needs no login, because its readers may have no account except at GitHub.

use domain::guide::{STEERING_CONDITIONS, STEERING_WAYS};
use maud::{Markup, html};

use crate::layout::ConsolePage;

pub(super) async fn show_reviewers() -> ConsolePage {
    ConsolePage::public("For reviewers", render_reviewers())
}

fn render_reviewers() -> Markup {
    html! {
        p { "You received a pull request that Journeyman wrote. You review it and merge it; Journeyman never merges." }
        table.stack {
            caption { "How to steer it" }
            thead { tr { th scope="col" { "You want" } th scope="col" { "Do" } } }
            tbody {
                @for way in &STEERING_WAYS {
                    tr {
                        th scope="row" { (way.wish) }
                        td data-name="Do" { (way.act) @for order in way.orders { " " code { (order) } } }
                    }
                }
            }
        }
        p { (STEERING_CONDITIONS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviewers_find_every_order_of_the_docs() {
        let docs = include_str!("../../../../docs/reviewers.md");
        let page = render_reviewers().into_string();
        for order in [
            "/stop",
            "/retry",
            "/cost",
            "/help",
            "/approve",
            "/reject",
            "/feedback",
        ] {
            assert!(docs.contains(order) && page.contains(order), "{order}");
        }
    }
}
