//! Rules for the Jira project of a repository, and for the events there that request work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::identity::{instance::InstanceName, ticket::TrackerAccount};

/// The Jira project whose tickets belong to the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JiraRules {
    /// The Jira site of the project, a name below `[jira]` in the settings; absent: the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceName>,
    /// URL of the site, for links. The credentials are in the services' settings.
    pub base_url: String,
    /// The project key. Tickets of this project belong to this repository.
    pub project_key: String,
    /// Components of the project whose tickets belong to this repository, if several repositories share the
    /// project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// Labels whose tickets belong to this repository, if several repositories share the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// A field with the values whose tickets belong to this repository, if several repositories share the
    /// project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<JiraField>,
    /// A field with acceptance criteria, by its name on Jira's pages, in addition to those with a usual name; empty:
    /// none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub criteria_field: String,
    /// Number of the board, for links.
    pub board_id: u64,
    /// Id or name of the account that requests work by an assignment; empty: no assignment requests work.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub assignee: String,
    /// A condition in Jira's query language that requests work on its results; empty: no condition does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub jql: String,
    /// Statuses that request work again when a person moves an already processed ticket there; empty: none
    /// does.
    pub reopen_statuses: Vec<String>,
    /// True when comments on requests of a service project are visible to customers; otherwise they are
    /// internal notes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub public_comments: bool,
    /// Values for fields on the screens of transitions, by the names of the fields.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub transition_fields: BTreeMap<String, String>,
}

/// A field of tickets, and the values whose tickets belong to the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JiraField {
    /// Name of the field on Jira's pages.
    pub name: String,
    /// The values, one of which a ticket needs.
    pub values: Vec<String>,
}

/// Properties of a ticket that determine its repository in a shared project.
#[derive(Clone, Copy, Debug, Default)]
pub struct TicketMarks<'a> {
    /// Names of its components.
    pub components: &'a [String],
    /// Labels of the ticket.
    pub labels: &'a [String],
    /// Pairs of field name and value.
    pub fields: &'a [(String, String)],
}

impl JiraField {
    /// Returns true when a ticket with these fields has one of the values. Letter case does not matter, as on
    /// Jira's pages.
    fn is_in(&self, fields: &[(String, String)]) -> bool {
        let is = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        let is_ours = |value: &String| self.values.iter().any(|known| is(known, value));
        fields
            .iter()
            .any(|(name, value)| is(name, &self.name) && is_ours(value))
    }
}

impl Default for JiraRules {
    fn default() -> Self {
        Self {
            instance: None,
            base_url: String::new(),
            project_key: String::new(),
            components: Vec::new(),
            labels: Vec::new(),
            field: None,
            criteria_field: String::new(),
            board_id: 0,
            assignee: String::new(),
            jql: String::new(),
            reopen_statuses: ["To Do", "Reopened"].map(str::to_owned).to_vec(),
            public_comments: false,
            transition_fields: BTreeMap::new(),
        }
    }
}

impl JiraRules {
    /// Returns true when only some tickets of the project belong to the repository.
    pub fn is_selective(&self) -> bool {
        !self.components.is_empty() || !self.labels.is_empty() || self.field.is_some()
    }

    /// Returns true when a ticket with these properties belongs to the repository. Jira compares components
    /// without case, and labels with case.
    pub fn selects(&self, marks: TicketMarks<'_>) -> bool {
        let TicketMarks {
            components,
            labels,
            fields,
        } = marks;
        let is_ours = |component: &String| {
            let mut names = self.components.iter();
            names.any(|name| name.to_lowercase() == component.to_lowercase())
        };
        let by_field = self.field.as_ref().is_some_and(|field| field.is_in(fields));
        by_field || components.iter().any(is_ours) || labels.iter().any(|label| self.labels.contains(label))
    }

    /// Returns true when the account requests work by an assignment.
    pub fn is_assignee(&self, account: &TrackerAccount) -> bool {
        !self.assignee.is_empty() && (account.id == self.assignee || account.display_name == self.assignee)
    }

    /// Returns true when this status requests work again on an already processed ticket. Jira compares status
    /// names without case.
    pub fn reopens(&self, status: &str) -> bool {
        let mut names = self.reopen_statuses.iter();
        names.any(|name| name.to_lowercase() == status.to_lowercase())
    }
}

// Maximum length of a condition, in characters.
const MAX_JQL: usize = 2_000;

/// Returns true when a text is safe as one condition in brackets: it has no `ORDER BY` and cannot close the
/// bracket.
pub(super) fn is_condition(jql: &str) -> bool {
    let (mut depth, mut quote, mut escaped) = (0_i32, None, false);
    let mut plain = String::new();
    for letter in jql.chars() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, letter) => {
                depth += i32::from(letter == '(') - i32::from(letter == ')');
                plain.push(letter);
            }
        }
        // A closing bracket without a partner would end the bracket that the search puts around the
        // condition.
        if depth < 0 {
            return false;
        }
    }
    let mut words = plain.split_whitespace();
    // The search puts the condition into brackets and adds its own order.
    let is_sorted = words.any(|word| word.eq_ignore_ascii_case("order"));
    let is_bounded = jql.chars().count() <= MAX_JQL && !jql.chars().any(char::is_control);
    depth == 0 && quote.is_none() && !is_sorted && is_bounded
}

#[cfg(test)]
mod tests {
    use super::is_condition;

    #[test]
    fn a_condition_cannot_leave_its_bracket() {
        for jql in [
            "",
            "labels = agent",
            "(a = b OR c = \"d)\") AND e = 'x ORDER BY'",
            r#"summary ~ "a \") b""#,
        ] {
            assert!(is_condition(jql), "{jql}");
        }
        for jql in [
            "a = b) OR (c = d",
            "a = (b",
            "a = \"b",
            "a = b ORDER BY key",
            "a = b order by key",
            "a\n= b",
        ] {
            assert!(!is_condition(jql), "{jql}");
        }
        assert!(!is_condition(&"a".repeat(2_001)));
    }
}
