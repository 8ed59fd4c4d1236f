//! Texts about the effort of work: an estimate, the result, and the cost of a ticket.

use domain::{Dollars, EffortEstimate, RunEffort, TicketCost};

use super::words::{format_code, format_count, group_digits};

/// Renders the effort of similar work.
pub(crate) fn render_forecast(forecast: &EffortEstimate) -> String {
    let cost = forecast.cost_micros.map_or_else(String::new, |cost| {
        format!(" and {} for models", Dollars::from_micros(cost.median))
    });
    let (time, spread) = (forecast.busy_ms, forecast.lines);
    format!(
        "Similar tickets of this repository took about {}{cost} (the middle of {}; half of them {} to {}), and changed {} to {}.",
        format_duration(time.median),
        group_digits(forecast.runs.into()),
        format_duration(time.low),
        format_duration(time.high),
        group_digits(spread.low),
        format_count(spread.high, "line")
    )
}

/// Renders the effort of finished work.
pub(super) fn render_effort(effort: &RunEffort) -> String {
    let cost = match effort.cost_micros {
        Some(cost) => format!("{} for models", Dollars::from_micros(cost)),
        None => format!(
            "{} of models whose price is not known",
            format_count(effort.tokens, "token")
        ),
    };
    format!("It took {} of work and {cost}.", format_duration(effort.busy_ms))
}

fn format_duration(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{} s", ms.div_ceil(1_000)),
        60_000..3_600_000 => format!("{} min", (ms + 30_000) / 60_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

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
        let tokens = group_digits(run.tokens);
        format!("| {id} | {} | {} | {tokens} |", run.job, run.cost_usd)
    }));
    vec![
        format!(
            "Models have taken {} and {} for this ticket so far.{more}",
            cost.cost_usd,
            format_count(cost.tokens, "token")
        ),
        lines.join("\n"),
    ]
}

#[cfg(test)]
mod tests {
    use domain::{Job, RunCost, RunId, TicketKey};
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn amounts_are_rounded_up_for_people() {
        let took = |busy_ms, cost_micros| {
            render_effort(&RunEffort {
                busy_ms,
                cost_micros,
                tokens: 1_028_061,
                lines: 3,
            })
        };
        assert_eq!(
            took(59_000, Some(0)),
            "It took 59 s of work and $0.00 for models."
        );
        assert_eq!(
            took(754_000, Some(804_999)),
            "It took 13 min of work and $0.81 for models."
        );
        assert_eq!(
            took(3_700_000, None),
            "It took 1 h 1 min of work and 1,028,061 tokens of models whose price is not known."
        );
    }

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
        Models have taken $0.41 and 21,883 tokens for this ticket so far. The price of some models is not known, so it is more.

        | Run | Work | Cost | Tokens |
        |---|---|---|---|
        | `jira:ENG-12@3` | implement | $0.41 | 21,883 |
        "#);
    }
}
