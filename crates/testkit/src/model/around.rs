//! What the model says around the work. It has scripts of its own, so that a story has to tell of the work alone.

use serde_json::{Value, json};

use super::Step;

/// How the first message about a new ticket begins.
pub const INTAKE: &str = "Look at this ticket";
/// How the first message about a plan begins.
pub const PLAN: &str = "Plan the change";
/// How the first message about a review begins.
pub const REVIEW: &str = "Review this change";

/// What the model says around the work, by how the first message begins: go ahead, a plan, no objection.
#[must_use]
pub fn around() -> Vec<(&'static str, Vec<Step>)> {
    let plan = json!({
        "goal": "The ticket is done.",
        "approach": "The smallest change.",
        "steps": [{"what": "Change it.", "files": []}]
    });
    vec![
        (INTAKE, vec![Step::say(intake(&json!({})))]),
        (PLAN, vec![Step::call("submit_plan", plan)]),
        (
            REVIEW,
            vec![Step::call("submit_review", json!({"objections": []}))],
        ),
    ]
}

/// A first look that lets the work begin, but for these fields.
#[must_use]
pub fn intake(fields: &Value) -> String {
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
