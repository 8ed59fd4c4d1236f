//! Conversion of Jira's transitions to the form that is matched.

use pullrequest::transition::Offered;

/// Converts a Jira transition to the fields that the match compares.
pub(crate) fn of(transition: &jira::Transition) -> Offered {
    Offered {
        id: transition.id.clone(),
        name: transition.name.clone(),
        leads_to: transition.to.name.clone(),
        fields: transition.asks_for.len(),
    }
}
