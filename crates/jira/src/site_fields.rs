//! Custom fields of a site that contain parts of an issue. Their ids differ from site to site.

use serde::Deserialize;

// Type of the field with the key of an issue's epic, at a Data Center and in old projects of the Cloud. The name of
// the field depends on the language of the site.
const EPIC_LINK: &str = "com.pyxis.greenhopper.jira:gh-epic-link";
// A site may have several fields of the same name, of which a ticket fills one.
const MOST_FIELDS: usize = 10;

/// Field in the list of a site.
#[derive(Deserialize)]
pub(crate) struct WireSiteField {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default, rename = "custom")]
    is_custom: bool,
    /// Absent for system fields without a type.
    schema: Option<WireFieldSchema>,
}

#[derive(Deserialize)]
struct WireFieldSchema {
    /// Type of a custom field.
    custom: Option<String>,
}

/// Ids of the custom fields that are read with every issue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IssueFieldIds {
    /// Fields with acceptance criteria.
    pub(crate) criteria: Vec<String>,
    /// Fields with the key of the epic.
    pub(crate) epics: Vec<String>,
}

impl IssueFieldIds {
    /// Chooses from the fields of a site.
    pub(crate) fn choose(listed: &[WireSiteField], holds_criteria: impl Fn(&str) -> bool) -> Self {
        Self {
            criteria: choose_ids(listed, |field| holds_criteria(&field.name)),
            epics: choose_ids(listed, WireSiteField::is_epic_link),
        }
    }

    /// True for a site without such fields.
    pub(crate) fn is_empty(&self) -> bool {
        self.criteria.is_empty() && self.epics.is_empty()
    }

    /// Iterates over all ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        self.criteria.iter().chain(&self.epics)
    }
}

impl WireSiteField {
    /// Name of a custom field; `None` for a system field.
    pub(crate) fn custom_name(&self) -> Option<&str> {
        self.is_custom.then_some(self.name.as_str())
    }

    fn is_epic_link(&self) -> bool {
        let schema = self.schema.as_ref();
        schema.and_then(|schema| schema.custom.as_deref()) == Some(EPIC_LINK)
    }
}

fn choose_ids(listed: &[WireSiteField], is_wanted: impl Fn(&WireSiteField) -> bool) -> Vec<String> {
    let wanted = listed.iter().filter(|field| is_wanted(field));
    wanted.map(|field| field.id.clone()).take(MOST_FIELDS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn epic_link_is_known_by_type() {
        let listed: Vec<WireSiteField> = serde_json::from_value(json!([
            {"id": "summary", "name": "Epic Link", "schema": {"type": "string", "system": "summary"}},
            {"id": "customfield_10000", "name": "Epic Link"},
            {"id": "customfield_10001", "name": "Epic Name",
                "schema": {"type": "string", "custom": "com.pyxis.greenhopper.jira:gh-epic-label"}},
            {"id": "customfield_10002", "name": "Epos-Verkn\u{fc}pfung",
                "schema": {"type": "any", "custom": "com.pyxis.greenhopper.jira:gh-epic-link"}},
            {"id": "customfield_10003", "name": "Acceptance criteria"},
        ]))
        .unwrap();
        let chosen = IssueFieldIds::choose(&listed, |name| name == "Acceptance criteria");
        let expected = IssueFieldIds {
            criteria: vec!["customfield_10003".to_owned()],
            epics: vec!["customfield_10002".to_owned()],
        };
        assert_eq!(chosen, expected);
        assert!(chosen.all().eq(["customfield_10003", "customfield_10002"].iter()));
        assert!(IssueFieldIds::choose(&listed[..2], |_| false).is_empty());
    }
}
