//! Result of a run in a folder: places and cost.

use anyhow::Context;
use domain::SpendSum;

use super::interactive_run::AttendedRun;
use crate::commands::print_result;

/// Prints the places of branch, patch and text, and for a dry run also their content.
pub(super) fn print_run_result(came: &AttendedRun, dry_run: bool) -> anyhow::Result<()> {
    if let Some(branch) = &came.branch {
        let not = if dry_run { " (not written: --dry-run)" } else { "" };
        print_result(&format!("branch  {branch}{not}"));
    }
    if let Some(patch) = &came.patch {
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
    print_result(&format!("cost    {}", render_cost(came.replies)));
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

#[cfg(test)]
mod tests {
    use domain::{Dollars, ModelSpend};

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
}
