//! Text about the cost of a ticket.

use domain::TicketCost;

use super::words::format_code;

pub(crate) fn render_cost(cost: &TicketCost) -> Vec<String> {
    let more = if cost.is_priced {
        ""
    } else {
        " The price of some models is not known, so it is more."
    };
    let mut lines = vec![
        "| Run | Work | Cost | Tokens |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ];
    lines.extend(cost.runs.iter().map(|run| {
        let id = format_code(&run.run.to_string());
        format!("| {id} | {} | {} | {} |", run.job, run.cost_usd, run.tokens)
    }));
    vec![
        format!(
            "Models have taken {} and {} tokens for this ticket so far.{more}",
            cost.cost_usd, cost.tokens
        ),
        lines.join("\n"),
    ]
}

#[cfg(test)]
mod tests {
    use domain::{Dollars, Job, RunCost, RunId, TicketKey};
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn cost_shows_sum_first_and_missing_prices() {
        let ticket: TicketKey = "jira:ENG-12".parse().unwrap();
        let spent = TicketCost {
            runs: vec![RunCost {
                run: RunId::new(ticket, 3),
                job: Job::Implement,
                cost_usd: Dollars::from_micros(410_000),
                tokens: 21_883,
            }],
            cost_usd: Dollars::from_micros(410_000),
            tokens: 21_883,
            is_priced: false,
        };
        assert_snapshot!(render_cost(&spent).join("\n\n"), @r#"
        Models have taken $0.41 and 21883 tokens for this ticket so far. The price of some models is not known, so it is more.

        | Run | Work | Cost | Tokens |
        |---|---|---|---|
        | `jira:ENG-12@3` | implement | $0.41 | 21883 |
        "#);
    }
}
