//! What a triage may set on a new ticket.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::ticket::TicketKey;

/// More parts than this are a plan, and a plan is made by people or in a discussion.
const MOST_PARTS: usize = 10;
/// Where the name of a priority goes in the pattern of its label.
const PRIORITY: &str = "{priority}";
/// The type of link that Jira comes with.
const LINK_TYPE: &str = "Duplicate";

/// What is set on new tickets. Whatever is not named here is left to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriageRules {
    /// The labels that the model may choose from.
    pub labels: Vec<String>,
    /// The label that is put on every triaged ticket; one that has it is not triaged again.
    pub done_label: String,
    /// Whether tickets of people are triaged too who may not ask for work.
    pub anyone: bool,
    /// The label of tickets that seem to ask for the same as another; empty: nobody looks for such.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub duplicate_label: String,
    /// The type of link at Jira between such a ticket and the other one; empty: they are not linked.
    #[serde(skip_serializing_if = "is_usual_link")]
    pub link_type: String,
    /// The types that the model may choose from. An issue of GitHub that has a type keeps it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Whether a Jira ticket, which always has a type, is given another one; otherwise that is only suggested.
    #[serde(skip_serializing_if = "is_false")]
    pub change_jira_type: bool,
    /// The priorities that the model may choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<String>,
    /// The label that says the priority of an issue of GitHub, with the placeholder `{priority}`; empty: none does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub priority_label: String,
    /// The project of GitHub that issues are put into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectRules>,
    /// Into how many sub-issues an issue of GitHub may be parted that is too large, at most 10; 0: into none.
    #[serde(skip_serializing_if = "is_zero")]
    pub most_sub_issues: usize,
}

/// A project of GitHub, and what may be set there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProjectRules {
    /// The organisation or person that has it.
    pub owner: String,
    /// Its number there.
    pub number: u64,
    /// The field that gets the priority; empty: none does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub priority_field: String,
    /// Fields by their names, each with the values that the model may choose from.
    #[serde(
        deserialize_with = "texts_or_numbers",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub fields: BTreeMap<String, Vec<String>>,
}

/// What the rules let a model choose for one ticket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TriageChoices {
    /// Any of them.
    pub labels: Vec<String>,
    /// One of them.
    pub types: Vec<String>,
    /// One of them.
    pub priorities: Vec<String>,
    /// One for each field of the project.
    pub fields: BTreeMap<String, Vec<String>>,
    /// Into how many parts it may be parted; 0: into none.
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
    /// True when there is nothing to choose, so that tickets are not triaged.
    pub fn is_off(&self) -> bool {
        self.labels.is_empty()
            && self.duplicate_label.is_empty()
            && self.types.is_empty()
            && self.priorities.is_empty()
            && self.project.is_none()
            && self.most_sub_issues == 0
    }

    /// What a model may choose for a ticket: what can be set at its tracker.
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

    /// The label that says this priority, where the rules want one.
    pub fn label_of(&self, priority: &str) -> Option<String> {
        (!self.priority_label.is_empty()).then(|| self.priority_label.replace(PRIORITY, priority))
    }

    /// The key that is wrong and what to change.
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

/// Values of a field that counts are written as numbers.
fn texts_or_numbers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Scalar {
        Whole(i64),
        Broken(f64),
        Text(String),
    }
    let read = BTreeMap::<String, Vec<Scalar>>::deserialize(deserializer)?;
    let text = |scalar| match scalar {
        Scalar::Whole(number) => number.to_string(),
        Scalar::Broken(number) => number.to_string(),
        Scalar::Text(text) => text,
    };
    let named = read.into_iter();
    Ok(named
        .map(|(name, values)| (name, values.into_iter().map(text).collect()))
        .collect())
}

fn is_usual_link(name: &str) -> bool {
    name == LINK_TYPE
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(answer: &bool) -> bool {
    !*answer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(text: serde_json::Value) -> TriageRules {
        serde_json::from_value(text).unwrap()
    }

    fn full() -> TriageRules {
        rules(json!({
            "labels": ["bug"], "types": ["Bug"], "priorities": ["High"], "most_sub_issues": 4,
            "project": {"owner": "acme", "number": 3, "fields": {"Size": ["S", "M"], "Points": [1, 2.5]}},
        }))
    }

    #[test]
    fn a_tracker_is_offered_what_it_can_hold() {
        let jira: TicketKey = "jira:ENG-1".parse().unwrap();
        let issue: TicketKey = "github:acme/shop#1".parse().unwrap();
        let mut rules = full();
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
    fn each_rule_alone_asks_for_a_triage_and_none_for_none() {
        assert!(TriageRules::default().is_off());
        for one in [
            json!({"labels": ["bug"]}),
            json!({"types": ["Bug"]}),
            json!({"priorities": ["High"]}),
            json!({"duplicate_label": "duplicate"}),
            json!({"most_sub_issues": 2}),
            json!({"project": {"owner": "acme", "number": 3}}),
        ] {
            assert!(!rules(one.clone()).is_off(), "{one}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert_eq!(full().problem(), None);
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
            let found = rules(wrong.clone()).problem().map(|(key, _)| key);
            assert_eq!(found, Some(key), "{wrong}");
        }
    }

    #[test]
    fn rules_without_the_new_keys_are_pinned_as_they_were() {
        let pinned = serde_json::to_value(TriageRules::default()).unwrap();
        assert_eq!(
            pinned,
            json!({"labels": [], "done_label": "triaged", "anyone": false})
        );
    }
}
