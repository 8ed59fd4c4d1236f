//! Rules for the values that a triage may set on a new ticket.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{identity::ticket::TicketKey, journal::record_format::is_default};

// Maximum of `triage.most_sub_issues`: a larger split is a plan, which people or a discussion make.
const MOST_PARTS: usize = 10;
// Placeholder for the name of a priority in the pattern of its label.
const PRIORITY: &str = "{priority}";
// The link type that Jira is installed with.
const LINK_TYPE: &str = "Duplicate";

/// Values that a triage may set on new tickets. Everything else is left to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriageRules {
    /// Labels that the model may choose from.
    pub labels: Vec<String>,
    /// Label of every triaged ticket. A ticket with this label is not triaged again.
    pub done_label: String,
    /// True when tickets of authors without the permission to request work are triaged, too.
    pub anyone: bool,
    /// Label of possible duplicates; empty: no search for duplicates.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub duplicate_label: String,
    /// Link type in Jira between a duplicate and its original; empty: they are not linked.
    #[serde(skip_serializing_if = "is_usual_link")]
    pub link_type: String,
    /// Types that the model may choose from. A GitHub issue with a type keeps it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// True when a Jira ticket, which always has a type, may get another one; otherwise the type is only
    /// suggested.
    #[serde(skip_serializing_if = "is_default")]
    pub change_jira_type: bool,
    /// Priorities that the model may choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<String>,
    /// Label for the priority of a GitHub issue, with the placeholder `{priority}`; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub priority_label: String,
    /// GitHub project that issues are added to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectRules>,
    /// Maximum number of sub-issues that a large GitHub issue may be split into, at most 10; 0: none.
    #[serde(skip_serializing_if = "is_default")]
    pub most_sub_issues: usize,
}

/// A GitHub project, and its fields that a triage may set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProjectRules {
    /// The organization or user that owns it.
    pub owner: String,
    /// Number of the project under its owner.
    pub number: u64,
    /// The field for the priority; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub priority_field: String,
    /// Fields by their names, each with the values that the model may choose from.
    #[serde(
        deserialize_with = "texts_or_numbers",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub fields: BTreeMap<String, Vec<String>>,
}

/// Choices of a model for one ticket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TriageChoices {
    /// Labels, of which any number may be chosen.
    pub labels: Vec<String>,
    /// Types, of which one may be chosen.
    pub types: Vec<String>,
    /// Priorities, of which one may be chosen.
    pub priorities: Vec<String>,
    /// Values per field of the project, of which one may be chosen.
    pub fields: BTreeMap<String, Vec<String>>,
    /// Maximum number of sub-issues; 0: the ticket is not split.
    pub most_parts: usize,
}

impl Default for TriageRules {
    fn default() -> Self {
        Self {
            labels: Vec::new(),
            done_label: "triaged".to_owned(),
            anyone: false,
            duplicate_label: String::new(),
            link_type: LINK_TYPE.to_owned(),
            types: Vec::new(),
            change_jira_type: false,
            priorities: Vec::new(),
            priority_label: String::new(),
            project: None,
            most_sub_issues: 0,
        }
    }
}

impl TriageRules {
    /// Returns true when the rules offer no choice, so that tickets are not triaged.
    pub fn is_off(&self) -> bool {
        self.labels.is_empty()
            && self.duplicate_label.is_empty()
            && self.types.is_empty()
            && self.priorities.is_empty()
            && self.project.is_none()
            && self.most_sub_issues == 0
    }

    /// Returns the choices that the tracker of the ticket can store.
    pub fn choices(&self, ticket: &TicketKey) -> TriageChoices {
        let mut choices = TriageChoices {
            labels: self.labels.clone(),
            types: self.types.clone(),
            priorities: self.priorities.clone(),
            ..TriageChoices::default()
        };
        match ticket {
            TicketKey::Jira { .. } => {}
            TicketKey::GitHub { .. } => {
                let project = self.project.as_ref();
                // GitHub issues have no priority: it needs a label or a field of the project.
                if self.priority_label.is_empty()
                    && project.is_none_or(|project| project.priority_field.is_empty())
                {
                    choices.priorities = Vec::new();
                }
                choices.fields = project.map_or_else(BTreeMap::new, |project| project.fields.clone());
                choices.most_parts = self.most_sub_issues;
            }
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => return TriageChoices::default(),
        }
        choices
    }

    /// Returns the label for a priority, if the rules define one.
    pub fn label_of(&self, priority: &str) -> Option<String> {
        (!self.priority_label.is_empty()).then(|| self.priority_label.replace(PRIORITY, priority))
    }

    /// Returns the invalid key and the instruction for its correction.
    pub(crate) fn problem(&self) -> Option<(&'static str, &'static str)> {
        let mut labels = self.labels.iter().chain([&self.done_label]);
        let is_blank = |text: &String| text.trim().is_empty();
        let is_label = self.priority_label.contains(PRIORITY);
        if labels.any(|label| label.is_empty() || label.contains(' ')) {
            Some(("triage.labels", "must be labels without spaces"))
        } else if self.duplicate_label.contains(' ') {
            Some(("triage.duplicate_label", "must be a label without spaces"))
        } else if self.types.iter().any(is_blank) {
            Some(("triage.types", "must be names of issue types"))
        } else if self.priorities.iter().any(is_blank) {
            Some(("triage.priorities", "must be names of priorities"))
        } else if !self.priority_label.is_empty() && !is_label {
            Some(("triage.priority_label", "must contain {priority}"))
        } else if self.most_sub_issues == 1 || self.most_sub_issues > MOST_PARTS {
            Some(("triage.most_sub_issues", "must be 0, or between 2 and 10"))
        } else if self.most_sub_issues > 0 && self.anyone {
            Some((
                "triage.most_sub_issues",
                "must be 0 where triage.anyone is true: strangers would have issues opened",
            ))
        } else {
            self.project.as_ref().and_then(ProjectRules::problem)
        }
    }
}

impl ProjectRules {
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        let is_blank = |text: &String| text.trim().is_empty();
        let mut fields = self.fields.iter();
        if is_blank(&self.owner) || self.number == 0 {
            Some((
                "triage.project",
                "must have the owner and the number of the project",
            ))
        } else if fields
            .any(|(name, values)| is_blank(name) || values.is_empty() || values.iter().any(is_blank))
        {
            Some((
                "triage.project.fields",
                "must be names of fields, each with the values to choose from",
            ))
        } else if self.fields.contains_key(&self.priority_field) {
            Some((
                "triage.project.priority_field",
                "must not be one of triage.project.fields: it gets the priority",
            ))
        } else {
            None
        }
    }
}

/// Reads field values as texts. YAML authors write the values of number fields as numbers.
fn texts_or_numbers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum FieldScalar {
        Whole(i64),
        Broken(f64),
        Text(String),
    }
    let read = BTreeMap::<String, Vec<FieldScalar>>::deserialize(deserializer)?;
    let text = |scalar| match scalar {
        FieldScalar::Whole(number) => number.to_string(),
        FieldScalar::Broken(number) => number.to_string(),
        FieldScalar::Text(text) => text,
    };
    let named = read.into_iter();
    Ok(named
        .map(|(name, values)| (name, values.into_iter().map(text).collect()))
        .collect())
}

fn is_usual_link(name: &str) -> bool {
    name == LINK_TYPE
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_rules(text: serde_json::Value) -> TriageRules {
        serde_json::from_value(text).unwrap()
    }

    fn build_full_rules() -> TriageRules {
        parse_rules(json!({
            "labels": ["bug"], "types": ["Bug"], "priorities": ["High"], "most_sub_issues": 4,
            "project": {"owner": "acme", "number": 3, "fields": {"Size": ["S", "M"], "Points": [1, 2.5]}},
        }))
    }

    #[test]
    fn triage_choices_fit_the_tracker() {
        let jira: TicketKey = "jira:ENG-1".parse().unwrap();
        let issue: TicketKey = "github:acme/shop#1".parse().unwrap();
        let mut rules = build_full_rules();
        let of_jira = rules.choices(&jira);
        assert_eq!((of_jira.types.len(), of_jira.priorities.len()), (1, 1));
        assert!(of_jira.fields.is_empty() && of_jira.most_parts == 0);
        let of_issue = rules.choices(&issue);
        assert_eq!(of_issue.fields["Points"], ["1", "2.5"]);
        assert_eq!(of_issue.most_parts, 4);
        assert!(of_issue.priorities.is_empty(), "nothing says the priority");
        rules.priority_label = "priority: {priority}".to_owned();
        assert_eq!(rules.choices(&issue).priorities, ["High"]);
        assert_eq!(rules.label_of("High").as_deref(), Some("priority: High"));
        let folder: TicketKey = "folder:shop#1".parse().unwrap();
        assert_eq!(rules.choices(&folder), TriageChoices::default());
    }

    #[test]
    fn any_triage_rule_enables_triage() {
        assert!(TriageRules::default().is_off());
        for one in [
            json!({"labels": ["bug"]}),
            json!({"types": ["Bug"]}),
            json!({"priorities": ["High"]}),
            json!({"duplicate_label": "duplicate"}),
            json!({"most_sub_issues": 2}),
            json!({"project": {"owner": "acme", "number": 3}}),
        ] {
            assert!(!parse_rules(one.clone()).is_off(), "{one}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert_eq!(build_full_rules().problem(), None);
        for (wrong, key) in [
            (json!({"labels": ["a b"]}), "triage.labels"),
            (json!({"types": [" "]}), "triage.types"),
            (json!({"priorities": [""]}), "triage.priorities"),
            (json!({"priority_label": "p1"}), "triage.priority_label"),
            (json!({"most_sub_issues": 1}), "triage.most_sub_issues"),
            (json!({"most_sub_issues": 11}), "triage.most_sub_issues"),
            (
                json!({"most_sub_issues": 2, "anyone": true}),
                "triage.most_sub_issues",
            ),
            (json!({"project": {"owner": "acme"}}), "triage.project"),
            (
                json!({"project": {"owner": "acme", "number": 3, "fields": {"Size": []}}}),
                "triage.project.fields",
            ),
            (
                json!({"project": {"owner": "acme", "number": 3, "priority_field": "Size", "fields": {"Size": ["S"]}}}),
                "triage.project.priority_field",
            ),
        ] {
            let found = parse_rules(wrong.clone()).problem().map(|(key, _)| key);
            assert_eq!(found, Some(key), "{wrong}");
        }
    }

    #[test]
    fn default_triage_rules_pin_former_keys() {
        let pinned = serde_json::to_value(TriageRules::default()).unwrap();
        assert_eq!(
            pinned,
            json!({"labels": [], "done_label": "triaged", "anyone": false})
        );
    }
}
