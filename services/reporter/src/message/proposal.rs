//! Text that asks a person to decide about a plan.

use domain::{ChangePlan, CommitId, RepositoryName, RunId};

use super::words::{format_code, quote_markdown, sanitize_line};

/// Renders the whole plan, and the orders for a decision.
pub(crate) fn render_plan(
    repository: &RepositoryName,
    id: &CommitId,
    plan: &ChangePlan,
    run: Option<&RunId>,
) -> Vec<String> {
    let run = run.map(ToString::to_string).unwrap_or_default();
    let id = id.short();
    let mut paragraphs = vec![
        format!("A plan for `{repository}` waits for your decision before the work begins: plan `{id}`."),
        quote_markdown(&plan.goal),
        sanitize_line(&plan.approach),
        list_steps(plan),
    ];
    let lists = [
        ("Tests", &plan.tests),
        ("Risks", &plan.risks),
        ("Not done", &plan.not_doing),
    ];
    for (name, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        paragraphs.push(format!("**{name}**"));
        let lines: Vec<String> = lines
            .iter()
            .map(|line| format!("- {}", sanitize_line(line)))
            .collect();
        paragraphs.push(lines.join("\n"));
    }
    paragraphs.push(format!(
        "Decide in a comment: `/approve {id}`, `/reject`, or `/feedback` and what to change. Or with `journeyman decide {run} \
         approve --head {id}`. An approval covers this plan only."
    ));
    paragraphs
}

fn list_steps(plan: &ChangePlan) -> String {
    let lines = plan.steps.iter().enumerate().map(|(number, step)| {
        let files: Vec<String> = step.files.iter().map(|file| format_code(file)).collect();
        let files = match files.is_empty() {
            true => String::new(),
            false => format!(" ({})", files.join(", ")),
        };
        format!("{}. {}{files}", number + 1, sanitize_line(&step.what))
    });
    lines.collect::<Vec<_>>().join("\n")
}
