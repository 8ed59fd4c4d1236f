//! Text output of an evaluation.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    record::EvalRunRecord,
    summary::{EvalComparison, EvalSummary},
};
use api::view::format_dollars;

/// Line of a run with a result.
pub fn render_run_line(record: &EvalRunRecord) -> String {
    let verdict = match (&record.infra, record.resolved) {
        (Some(_), _) => "infra",
        (None, true) => "resolved",
        (None, false) if record.delivered => "false_done",
        (None, false) => "unresolved",
    };
    let evidence = record
        .evidence
        .map_or_else(|| "-".to_owned(), |level| level.to_string());
    let mut line = format!(
        "{verdict:<10} {:<32} run {}  {evidence:<2}  {} turns  {}  {} s  {}",
        record.key.instance,
        record.key.run,
        record.turns,
        format_dollars(record.cost_micros),
        record.duration_ms / 1000,
        record.stop,
    );
    if record.leak.is_some() {
        line.push_str("  leak");
    }
    if let Some(infra) = &record.infra {
        // Writing to a `String` does not fail.
        let _ = write!(line, "  ({infra})");
    }
    line
}

/// Text of the whole evaluation, with one line per run first.
pub fn render_evaluation(summary: &EvalSummary, records: &[EvalRunRecord]) -> String {
    let mut lines: Vec<String> = records.iter().map(render_run_line).collect();
    let frame = &summary.frame;
    for invalid in &frame.invalid {
        lines.push(format!(
            "{:<10} {:<32} {}",
            "invalid", invalid.instance, invalid.reason
        ));
    }
    lines.push(String::new());
    let mut row = |name: &str, value: String| lines.push(format!("{name:<18} {value}"));
    row("model", frame.model.clone());
    row(
        "release, settings",
        format!("{}, {}", frame.release, frame.settings),
    );
    row(
        "instances",
        format!("{} valid, {} invalid", frame.instances, frame.invalid.len()),
    );
    row(
        "runs",
        format!("{} finished, {} missing", summary.finished, summary.missing),
    );
    add_result_rows(summary, &mut row);
    add_cost_rows(summary, &mut row);
    if let Some(comparison) = &summary.comparison {
        row("compared", render_comparison(comparison));
    }
    if let Some(why) = &frame.ended_early {
        row("ended early", why.clone());
    }
    lines.join("\n")
}

fn add_result_rows(summary: &EvalSummary, row: &mut impl FnMut(&str, String)) {
    let resolved = &summary.resolved;
    row(
        "resolved",
        format!(
            "{} of {} runs, {} (95 %: {} to {})",
            resolved.runs,
            summary.finished,
            render_percent(resolved.share),
            render_percent(resolved.low),
            render_percent(resolved.high)
        ),
    );
    if let Some(power) = resolved.pass_power {
        row(
            &format!("pass^{}", summary.frame.runs_each),
            render_percent(power),
        );
    }
    row("false done", summary.false_done.to_string());
    row("infra failures", summary.infra.to_string());
    row("evidence", render_counts(&summary.evidence));
    row("ended", render_counts(&summary.stops));
    if !summary.leaks.is_empty() {
        row("leak", summary.leaks.join(", "));
    }
}

fn add_cost_rows(summary: &EvalSummary, row: &mut impl FnMut(&str, String)) {
    let each = summary
        .cost
        .usd_per_resolved
        .map_or_else(String::new, |usd| format!(", ${usd:.4} for each resolved run"));
    let unpriced = match summary.cost.unpriced_replies {
        0 => String::new(),
        replies => format!(", without {replies} replies whose price is not known"),
    };
    row("cost", format!("${:.4}{each}{unpriced}", summary.cost.usd));
    row(
        "turns, minutes",
        format!("{}, {:.1}", summary.turns, summary.minutes),
    );
    let tokens = summary.tokens;
    row(
        "tokens",
        format!(
            "{} read, {} of them cached, {} written",
            tokens.input, tokens.cached, tokens.output
        ),
    );
}

fn render_comparison(comparison: &EvalComparison) -> String {
    let names = |list: &[String]| {
        if list.is_empty() {
            "none".to_owned()
        } else {
            list.join(", ")
        }
    };
    format!(
        "{} resolved here, {} there, of {} instances of both (McNemar p = {:.3}); only here: {}; only there: {}",
        comparison.here,
        comparison.there,
        comparison.instances,
        comparison.p,
        names(&comparison.gained),
        names(&comparison.lost)
    )
}

fn render_percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn render_counts(all: &BTreeMap<String, usize>) -> String {
    let each: Vec<_> = all
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record::tests::build_run_record, summary::*};

    #[test]
    fn table_contains_every_figure() {
        let mut lost = build_run_record("b", 1, false);
        lost.leak = Some("x".to_owned());
        let records = [build_run_record("a", 1, true), lost];
        let frame = EvalFrame {
            release: "1.0".to_owned(),
            model: "m".to_owned(),
            settings: "s".to_owned(),
            instances: 2,
            runs_each: 2,
            invalid: vec![InvalidInstance {
                instance: "c".to_owned(),
                reason: "passes on the base already: t".to_owned(),
            }],
            ended_early: Some("--max-cost is reached".to_owned()),
        };
        let other = [build_run_record("a", 1, false)];
        let text = render_evaluation(&EvalSummary::of(frame, &records, Some(&other)), &records);
        for said in [
            "resolved   a                                run 1  E3  4 turns  $0.0100  60 s  completed",
            "false_done b                                run 1  E3  4 turns  $0.0100  60 s  completed  leak",
            "invalid    c                                passes on the base already: t",
            "instances          2 valid, 1 invalid",
            "runs               2 finished, 2 missing",
            "resolved           1 of 2 runs, 50.0 % (95 %: 9.5 % to 90.5 %)",
            "false done         1",
            "evidence           2 E3",
            "ended              2 completed",
            "leak               b",
            "cost               $0.0200, $0.0200 for each resolved run",
            "turns, minutes     8, 2.0",
            "tokens             2000 read, 1000 of them cached, 200 written",
            "compared           1 resolved here, 0 there, of 1 instances of both (McNemar p = 1.000); only here: a; only there: none",
            "ended early        --max-cost is reached",
        ] {
            assert!(text.contains(said), "{said}\n{text}");
        }
        assert!(!text.contains("pass^"), "{text}");
    }
}
