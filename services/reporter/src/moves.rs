//! Jira's transitions as they are matched.

use pullrequest::transition::Offered;

/// A transition of Jira, as its name and status are compared.
pub(crate) fn of(transition: &jira::Transition) -> Offered {
    Offered {
        id: transition.id.clone(),
        name: transition.name.clone(),
        leads_to: transition.to.name.clone(),
        fields: transition.asks_for.len(),
    }
}
