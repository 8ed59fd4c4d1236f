//! Conversion of Jira's transitions to the form that is matched.

use pullrequest::transition::OfferedTransition;

/// Converts a Jira transition to the fields that the match compares.
pub(crate) fn convert_transition(transition: &jira::WorkflowTransition) -> OfferedTransition {
    OfferedTransition {
        id: transition.id.clone(),
        name: transition.name.clone(),
        leads_to: transition.to.name.clone(),
        fields: transition.asks_for.len(),
    }
}
