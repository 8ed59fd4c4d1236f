//! `journeyman spend`: spend of models, summed up.

use std::process::ExitCode;

use api::types::{SpendLine, SpendQuery, SpendTotal, SpendView};
use clap::{Args, ValueEnum};
use domain::Dollars;
use serde::Serialize;

use super::{print_json, print_list, print_long};
use crate::{
    access,
    args::{ApiArguments, OutputFormat, PagerOptions},
};

/// Print the spend of models, counted from the stored journals
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example: journeyman spend --since 2026-11-01 --by ticket")]
pub(super) struct Arguments {
    /// From this day (UTC) or RFC 3339 instant on [default: the first of the month]
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// Before this day (UTC) or RFC 3339 instant [default: now]
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
    /// Group of each line
    #[arg(long, value_enum, default_value = "repository")]
    by: SpendBy,
    /// Output format: a table, one JSON object, or one JSON object per line of the table
    #[arg(long, short, value_enum, default_value = "text")]
    output: OutputFormat,
    #[command(flatten)]
    paging: PagerOptions,
    #[command(flatten)]
    api: ApiArguments,
}

/// Grouping of the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SpendBy {
    /// All repositories of an owner.
    Organization,
    /// One repository per line.
    Repository,
    /// One ticket per line.
    Ticket,
    /// One kind of job per line.
    Job,
    /// One model per line.
    Model,
    /// One day per line.
    Day,
}

/// Line of the table: the group and its sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct SpendGroup {
    name: String,
    calls: u64,
    tokens: u64,
    cost_usd: Dollars,
    unpriced: u64,
}

#[derive(Serialize)]
struct SpendTable {
    since: String,
    until: String,
    sums: Vec<SpendGroup>,
    total: SpendGroup,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let client = access::build_client(&asked.api)?;
    let query = SpendQuery {
        since: asked.since,
        until: asked.until,
        from: None,
    };
    let found = client.installation().spend(&query).await?;
    let table = SpendTable {
        sums: list_groups(&found, |line| find_group_name(line, asked.by)),
        total: list_groups(&found, |_| "total").pop().unwrap_or_default(),
        since: found.since,
        until: found.until,
    };
    match asked.output {
        OutputFormat::Json => print_json(&table)?,
        OutputFormat::Jsonl => print_list(&table.sums, false)?,
        OutputFormat::Text => print_long(render_table(&table), asked.paging),
    }
    Ok(ExitCode::SUCCESS)
}

fn find_group_name(line: &SpendLine, by: SpendBy) -> &str {
    match by {
        SpendBy::Organization => &line.organization,
        SpendBy::Repository => &line.repository,
        SpendBy::Ticket => &line.ticket,
        SpendBy::Job => &line.job,
        SpendBy::Model => &line.model,
        SpendBy::Day => &line.day,
    }
}

fn list_groups<'a>(found: &'a SpendView, name_of: impl Fn(&'a SpendLine) -> &'a str) -> Vec<SpendGroup> {
    let group = |(name, total): (&str, SpendTotal)| SpendGroup {
        name: name.to_owned(),
        calls: total.calls,
        tokens: total.tokens,
        cost_usd: total.cost_usd,
        unpriced: total.unpriced,
    };
    found.sum_by(name_of).into_iter().map(group).collect()
}

fn render_table(table: &SpendTable) -> Vec<String> {
    let mut lines = vec![format!("from {} until {}", table.since, table.until)];
    for sum in table.sums.iter().chain([&table.total]) {
        // Without any line the total is a default value, whose name is empty.
        let name = match sum.name.as_str() {
            "" if sum.calls == 0 => "total",
            "" => "not known",
            name => name,
        };
        let unpriced = match sum.unpriced {
            0 => String::new(),
            calls => format!("  ({calls} calls without a known price)"),
        };
        lines.push(format!(
            "{name:<32} {:>10} {:>7} calls {:>12} tokens in and out{unpriced}",
            sum.cost_usd.to_string(),
            sum.calls,
            sum.tokens
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_spend_line(repository: &str, model: &str, micros: u64, unpriced: u64) -> SpendLine {
        SpendLine {
            day: "2026-11-23".to_owned(),
            organization: "acme".to_owned(),
            repository: repository.to_owned(),
            ticket: "jira:ENG-1".to_owned(),
            job: "implement".to_owned(),
            provider: "main".to_owned(),
            model: model.to_owned(),
            calls: 2,
            cost_usd: Dollars::from_micros(micros),
            tokens: 10,
            unpriced,
        }
    }

    #[test]
    fn equal_names_are_summed_with_total() {
        let found = SpendView {
            since: "2026-11-01T00:00:00Z".to_owned(),
            until: "2026-11-24T00:00:00Z".to_owned(),
            lines: vec![
                build_spend_line("acme/web", "large", 1_000_000, 0),
                build_spend_line("acme/shop", "large", 250_000, 0),
                build_spend_line("acme/shop", "small", 250_000, 1),
            ],
            next: None,
        };
        let table = SpendTable {
            sums: list_groups(&found, |line| find_group_name(line, SpendBy::Repository)),
            total: list_groups(&found, |_| "total").pop().unwrap_or_default(),
            since: found.since,
            until: found.until,
        };
        let sums = Vec::from_iter(table.sums.iter().chain([&table.total]).map(|sum| {
            let micros = sum.cost_usd.micros();
            (sum.name.as_str(), micros, sum.calls, sum.tokens, sum.unpriced)
        }));
        assert_eq!(
            sums,
            [
                ("acme/shop", 500_000, 4, 20, 1),
                ("acme/web", 1_000_000, 2, 10, 0),
                ("total", 1_500_000, 6, 30, 1),
            ]
        );
        let shown = render_table(&table);
        assert!(shown[1].starts_with("acme/shop "), "{}", shown[1]);
        assert!(shown[1].contains("20 tokens in and out"), "{}", shown[1]);
        assert!(
            shown[1].ends_with("(1 calls without a known price)"),
            "{}",
            shown[1]
        );
        assert!(shown[3].contains("$1.50"), "{}", shown[3]);
    }

    #[test]
    fn nothing_spent_is_a_total_of_nothing() {
        let table = SpendTable {
            since: String::new(),
            until: String::new(),
            sums: Vec::new(),
            total: SpendGroup::default(),
        };
        assert!(render_table(&table)[1].starts_with("total "));
    }
}
