//! The Jira project of a repository, and what asks for work there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Account, instance::Instance};

/// The Jira project whose tickets belong to the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JiraRules {
    /// The Jira site of the project, a name below `[jira]` in the settings; absent: the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
    /// The site, for links; credentials belong to the services' settings.
    pub base_url: String,
    /// The project key; tickets of this project go to this repository.
    pub project_key: String,
    /// The components of the project whose tickets go to this repository, where several repositories share the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// The labels whose tickets go to this repository, likewise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// A field whose values tell likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<JiraField>,
    /// The board, for links.
    pub board_id: u64,
    /// The account that asks for work when a ticket is assigned to it, by its id or its name; empty: no assignment does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub assignee: String,
    /// A condition in Jira's query language that asks for work on the tickets that it holds for; empty: none does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub jql: String,
    /// The statuses that ask for work once more when a person moves a ticket there that was worked on; empty: none does.
    pub reopen_statuses: Vec<String>,
    /// Whether comments on requests of a service project are for customers too; else they are internal notes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub public_comments: bool,
    /// Values for fields of the screens of transitions, by the fields' names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub transition_fields: BTreeMap<String, String>,
}

/// A field of tickets, and the values of it whose tickets go to the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JiraField {
    /// Its name on Jira's pages.
    pub name: String,
    /// One of them is enough.
    pub values: Vec<String>,
}

/// What a ticket has of what tells repositories of one project apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct TicketMarks<'a> {
    /// Names of its components.
    pub components: &'a [String],
    /// Its labels.
    pub labels: &'a [String],
    /// Names of fields with the values that they have.
    pub fields: &'a [(String, String)],
}

impl JiraField {
    /// Whether a ticket with these fields has one of the values. Case does not matter, as on Jira's pages.
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
    /// Whether only some tickets of the project belong to the repository.
    pub fn is_selective(&self) -> bool {
        !self.components.is_empty() || !self.labels.is_empty() || self.field.is_some()
    }

    /// Whether a ticket with these marks is one of them. Jira compares components without case, and labels with it.
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

    /// Whether it is the account that tickets are assigned to.
    pub fn is_assignee(&self, account: &Account) -> bool {
        !self.assignee.is_empty() && (account.id == self.assignee || account.display_name == self.assignee)
    }

    /// Whether a ticket that was worked on asks for work again there. Jira compares status names without case.
    pub fn reopens(&self, status: &str) -> bool {
        let mut names = self.reopen_statuses.iter();
        names.any(|name| name.to_lowercase() == status.to_lowercase())
    }
}

/// Longest condition, in characters.
const MAX_JQL: usize = 2_000;

/// Whether a text can stand in brackets as one condition of a search: no order, and nothing that closes the bracket.
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
        if depth < 0 {
            return false;
        }
    }
    let mut words = plain.split_whitespace();
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
