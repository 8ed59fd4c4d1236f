//! Advice for checks that cannot run in the copy of a folder: the setup that they need.

use domain::CheckRow;
use domain::check::CheckOutcome;

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
    use domain::SetupHint;

    use super::*;

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
        let said = render_setup_advice(&[build_check_row(CheckOutcome::Inert, Some(hint))]).join("\n");
        assert!(said.contains("the package `x` is missing here"), "{said}");
        assert!(said.contains("executor: {setup: [\"npm ci\"]}"), "{said}");
        let plain = render_setup_advice(&[build_check_row(CheckOutcome::Inert, None)]).join("\n");
        assert!(plain.contains("Cannot find module 'x'") && plain.contains("executor.setup"));
        assert!(render_setup_advice(&[build_check_row(CheckOutcome::Red, None)]).is_empty());
    }
}
