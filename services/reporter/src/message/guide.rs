//! Text of the reply to `/help`: the page for reviewers on one screen.

use domain::guide::{REVIEW_CONDITIONS, REVIEW_WAYS, STEERING_CONDITIONS, STEERING_WAYS, SteeringWay};

/// Renders the ways to steer the work as a table.
pub(crate) fn render_guide() -> Vec<String> {
    let who = "Journeyman writes the pull request of this ticket. You review and merge it; Journeyman never merges.";
    render_ways(who, &STEERING_WAYS, STEERING_CONDITIONS)
}

/// Renders the ways to steer the review of another author's pull request.
pub(crate) fn render_review_guide() -> Vec<String> {
    let who =
        "Journeyman reviews this pull request. It changes nothing here, never approves and never merges.";
    render_ways(who, &REVIEW_WAYS, REVIEW_CONDITIONS)
}

/// Renders the line of help for an order that is almost right.
pub(crate) fn render_meant_order(meant: &str) -> String {
    let [meant, help] = [meant, "/help"].map(domain::text::format_code);
    format!(
        "Nothing was done: this is not an order. If you mean {meant}, write it at the start of a comment. {help} lists all orders."
    )
}

fn render_ways(who: &str, ways: &[SteeringWay], conditions: &str) -> Vec<String> {
    let mut lines = vec!["| You want | Do |".to_owned(), "|---|---|".to_owned()];
    lines.extend(ways.iter().map(render_way));
    vec![who.to_owned(), lines.join("\n"), conditions.to_owned()]
}

fn render_way(way: &SteeringWay) -> String {
    let SteeringWay { wish, act, orders } = way;
    // These are orders to Journeyman itself, for people to copy.
    let orders: Vec<String> = orders
        .iter()
        .map(|order| domain::text::format_code(order))
        .collect();
    if orders.is_empty() {
        format!("| {wish} | {act} |")
    } else {
        format!("| {wish} | {act} {} |", orders.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn guide_fits_on_one_screen() {
        assert_snapshot!(render_guide().join("\n\n"), @r"
        Journeyman writes the pull request of this ticket. You review and merge it; Journeyman never merges.

        | You want | Do |
        |---|---|
        | a change | submit a review with comments; one push answers the whole review |
        | the work to stop | comment `/stop` |
        | another try after a failure | comment `/retry` |
        | the cost so far | comment `/cost` |
        | to decide about a change that waits for approval | comment `/approve COMMIT` or `/reject` or `/feedback TEXT` |
        | to change it yourself | push to its branch: Journeyman continues from your commit and never overwrites it |
        | to end it | close the pull request |
        | this list | comment `/help` |

        An order is the first word of its comment. Reviews and orders count from people who may write to the repository. A draft becomes ready when its checks pass.
        ");
    }

    #[test]
    fn meant_order_is_named_in_one_line() {
        assert_snapshot!(
            render_meant_order("/stop"),
            @"Nothing was done: this is not an order. If you mean `/stop`, write it at the start of a comment. `/help` lists all orders."
        );
    }

    #[test]
    fn guide_of_review_promises_no_change() {
        assert_snapshot!(render_review_guide().join("\n\n"), @r"
        Journeyman reviews this pull request. It changes nothing here, never approves and never merges.

        | You want | Do |
        |---|---|
        | a review of the next commit | push; each new head gets one review while the request for it exists |
        | the review to stop | take back the request at GitHub, or comment `/stop` |
        | the cost so far | comment `/cost` |
        | this list | comment `/help` |

        An order is the first word of its comment. Orders count from people who may write to the repository.
        ");
    }

    #[test]
    fn page_for_reviewers_has_every_order() {
        let page = include_str!("../../../../docs/reviewers.md");
        for way in &STEERING_WAYS {
            for order in way.orders {
                assert!(page.contains(order.split(' ').next().unwrap()), "{order}");
            }
        }
    }
}
