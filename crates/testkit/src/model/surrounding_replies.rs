//! Model replies around the work: triage, plan, review. They have separate scripts, so that a test scripts
//! the work alone.

use serde_json::{Value, json};

use super::ScriptStep;

/// Start of the first message about a new ticket.
pub const INTAKE: &str = "Look at this ticket";
/// Start of the first message about a plan.
pub const PLAN: &str = "Plan the change";
/// Start of the first message about a review.
pub const REVIEW: &str = "Review this change";

/// Default scripts by the start of the first message: an intake that lets the work begin, a plan, a review
/// without objections.
#[must_use]
pub fn build_surrounding_scripts() -> Vec<(&'static str, Vec<ScriptStep>)> {
    let plan = json!({
        "goal": "The ticket is done.",
        "approach": "The smallest change.",
        "steps": [{"what": "Change it.", "files": []}]
    });
    vec![
        (INTAKE, vec![ScriptStep::reply(render_intake(&json!({})))]),
        (PLAN, vec![ScriptStep::call("submit_plan", plan)]),
        (
            REVIEW,
            vec![ScriptStep::call("submit_review", json!({"objections": []}))],
        ),
    ]
}

/// Intake reply that lets the work begin, with some of its fields replaced.
#[must_use]
pub fn render_intake(fields: &Value) -> String {
    let mut form = json!({
        "kind": "bug", "one_liner": "Do what the ticket asks for.", "root_cause": "", "criteria": [], "components": [], "modules": [],
        "files": [], "class": "normal", "assumptions": [], "decision": "go", "questions": [], "decline_kind": null, "repeats": "",
        "reason": "",
    });
    if let (Some(form), Some(fields)) = (form.as_object_mut(), fields.as_object()) {
        form.extend(fields.clone());
    }
    form.to_string()
}
