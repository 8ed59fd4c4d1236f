//! Result of a run in a folder: places, cost, and advice for checks that cannot run in the copy of the folder.

use anyhow::Context;
use domain::{CheckRow, SpendSum, check::CheckOutcome};

use super::interactive_run::AttendedRun;
use crate::commands::print_result;

/// Prints the places of branch, patch and text, and for a dry run also their content.
pub(super) fn print_run_result(outcome: &AttendedRun, dry_run: bool) -> anyhow::Result<()> {
    if let Some(branch) = &outcome.branch {
        let not = if dry_run { " (not written: --dry-run)" } else { "" };
        print_result(&format!("branch  {branch}{not}"));
    }
    if let Some(patch) = &outcome.patch {
        // The receipt names the patch alone. The reporter writes the text next to it.
        let text = patch.with_file_name("description.md");
        print_result(&format!("patch   {}", patch.display()));
        print_result(&format!("text    {}", text.display()));
        if dry_run {
            for file in [&text, patch] {
                let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
                print_result("");
                print_result(&String::from_utf8_lossy(&bytes));
            }
        }
    }
    print_result(&format!("cost    {}", render_cost(outcome.replies)));
    Ok(())
}

fn render_cost(sum: SpendSum) -> String {
    let dollars = crate::timeline::format_dollars(sum.spend.cost_usd.micros());
    match (sum.replies, u64::from(sum.spend.unpriced)) {
        (0, _) => "nothing: the model did not reply".to_owned(),
        (replies, 0) => format!("{dollars} for {replies} replies of the model"),
        (replies, unpriced) if unpriced == replies => {
            format!("not known: the model's price is not ({replies} replies)")
        }
        (replies, unpriced) => {
            format!("{dollars} for {replies} replies, and what {unpriced} of them without a known price cost")
        }
    }
}

/// Advice about the checks that could not run with the change; empty when every check ran.
pub(super) fn render_setup_advice(rows: &[CheckRow]) -> Vec<String> {
    let not_run: Vec<&CheckRow> = rows
        .iter()
        .filter(|row| row.head == CheckOutcome::Inert)
        .collect();
    let mut lines: Vec<String> = not_run.iter().map(|row| render_failed_check(row)).collect();
    if lines.is_empty() {
        return lines;
    }
    lines.push(
        "the work happens in a copy of the commit: what git ignores (node_modules, .venv, target) is not in it"
            .to_owned(),
    );
    let hints = not_run.iter().filter_map(|row| row.setup_hint.as_ref());
    let commands: Vec<String> = hints
        .flat_map(|hint| &hint.commands)
        .map(|command| format!("{command:?}"))
        .collect();
    let setup = match commands.is_empty() {
        true => "executor.setup".to_owned(),
        false => format!("executor: {{setup: [{}]}}", commands.join(", ")),
    };
    lines.push(format!(
        "to install it there, give --config FILE with {setup}, and under executor.network the hosts that it fetches from"
    ));
    lines
}

fn render_failed_check(row: &CheckRow) -> String {
    match (&row.setup_hint, row.reason.is_empty()) {
        (Some(hint), _) => format!("`{}` cannot be run here: {}", row.command, hint.sentence()),
        (None, false) => format!("`{}` cannot be run here: {}", row.command, row.reason),
        (None, true) => format!("`{}` cannot be run here", row.command),
    }
}

#[cfg(test)]
mod tests {
    use domain::{Dollars, ModelSpend, SetupHint};

    use super::*;

    #[test]
    fn unknown_cost_is_not_zero() {
        let of = |micros, replies, unpriced| {
            render_cost(SpendSum {
                replies,
                spend: ModelSpend {
                    cost_usd: Dollars::from_micros(micros),
                    unpriced,
                    ..ModelSpend::default()
                },
            })
        };
        assert_eq!(of(12_345, 3, 0), "$0.0123 for 3 replies of the model");
        assert!(of(0, 0, 0).starts_with("nothing"));
        assert!(of(0, 3, 3).starts_with("not known"));
        assert!(of(12_345, 3, 1).contains("1 of them without a known price"));
    }

    fn build_check_row(head: CheckOutcome, setup_hint: Option<SetupHint>) -> CheckRow {
        CheckRow {
            command: "npm test".to_owned(),
            base: Some(head),
            head,
            passed: 0,
            broken: Vec::new(),
            missing_count: 0,
            missing: Vec::new(),
            mended: Vec::new(),
            still_failing: Vec::new(),
            flaky: Vec::new(),
            reason: "Cannot find module 'x'".to_owned(),
            setup_hint,
        }
    }

    #[test]
    fn advice_names_setup_that_would_help() {
        let hint = SetupHint {
            missing: "the package `x`".to_owned(),
            commands: vec!["npm ci".to_owned()],
            registry: "npm".to_owned(),
        };
        let advice = render_setup_advice(&[build_check_row(CheckOutcome::Inert, Some(hint))]).join("\n");
        assert!(advice.contains("the package `x` is missing here"), "{advice}");
        assert!(advice.contains("executor: {setup: [\"npm ci\"]}"), "{advice}");
        let plain = render_setup_advice(&[build_check_row(CheckOutcome::Inert, None)]).join("\n");
        assert!(plain.contains("Cannot find module 'x'") && plain.contains("executor.setup"));
        assert!(render_setup_advice(&[build_check_row(CheckOutcome::Red, None)]).is_empty());
    }
}
