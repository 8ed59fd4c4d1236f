//! JSON of an issue's history.

use domain::{Timestamp, TrackerAccount};
use serde::Deserialize;

use super::{account::WireAccount, text_or_number};
use crate::{AssigneeChange, ChangelogId, StatusChange, TextEdit, TextField};

/// Changes of an issue, each kind oldest first.
pub(crate) struct IssueHistory {
    pub(crate) moves: Vec<StatusChange>,
    pub(crate) edits: Vec<TextEdit>,
    pub(crate) assignments: Vec<AssigneeChange>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct WireHistory {
    #[serde(deserialize_with = "text_or_number")]
    id: String,
    author: Option<WireAccount>,
    created: Option<String>,
    #[serde(default)]
    items: Vec<WireHistoryItem>,
}

#[derive(Clone, Deserialize)]
struct WireHistoryItem {
    field: String,
    #[serde(rename = "fromString")]
    from: Option<String>,
    #[serde(rename = "toString")]
    to: Option<String>,
    /// Id of the value that `toString` names.
    #[serde(rename = "to")]
    to_id: Option<String>,
}

impl WireHistoryItem {
    /// Text field that the item changed, with its previous value.
    fn into_text(self, holds_criteria: impl Fn(&str) -> bool) -> Option<(TextField, String)> {
        let field = match self.field.as_str() {
            "summary" => TextField::Summary,
            "description" => TextField::Description,
            name if holds_criteria(name) => TextField::Criteria,
            _ => return None,
        };
        Some((field, self.from.unwrap_or_default()))
    }
}

/// Issue with its history only.
#[derive(Deserialize)]
pub(crate) struct WireWithHistory {
    changelog: WireHistories,
}

#[derive(Deserialize)]
struct WireHistories {
    histories: Vec<WireHistory>,
}

impl WireWithHistory {
    /// Entries sorted by id, thus oldest first: the API promises no order.
    pub(crate) fn histories(self) -> Vec<WireHistory> {
        let mut histories = self.changelog.histories;
        histories.sort_by_key(|history| history.id.parse::<u64>().unwrap_or_default());
        histories
    }
}

impl WireHistory {
    /// Key and name of the author, at a Data Center.
    pub(crate) fn author(&self) -> Option<(&str, &str)> {
        self.author.as_ref()?.key_and_name()
    }

    /// Edit of the issue's text in this entry; `None` for other changes.
    pub(crate) fn into_text_edit(self, holds_criteria: impl Fn(&str) -> bool) -> Option<TextEdit> {
        let items = self.items.into_iter();
        let texts = items.filter_map(|item| item.into_text(&holds_criteria));
        let before: Vec<_> = texts.collect();
        if before.is_empty() {
            return None;
        }
        Some(TextEdit {
            // Callers select edits by their time, so an edit without one is left out.
            at: Timestamp::parse(self.created.as_deref()?)?,
            id: ChangelogId(self.id),
            by: self.author.map(TrackerAccount::from),
            before,
        })
    }

    /// Assignment in this entry; `None` for other changes.
    // An entry may contain a field several times; its last item is the result.
    pub(crate) fn into_assignment(self) -> Option<AssigneeChange> {
        let item = self
            .items
            .into_iter()
            .rev()
            .find(|item| item.field == "assignee")?;
        let display_name = item.to.unwrap_or_default();
        Some(AssigneeChange {
            id: ChangelogId(self.id),
            to: item.to_id.map(|id| TrackerAccount {
                id,
                display_name,
                is_bot: false,
            }),
            at: self.created.as_deref().and_then(Timestamp::parse),
            by: self.author.map(TrackerAccount::from),
        })
    }

    /// Move to another status in this entry; `None` for other changes.
    pub(crate) fn into_status_change(self) -> Option<StatusChange> {
        // The last item is the result, as in `into_assignment`.
        let to = self
            .items
            .into_iter()
            .rev()
            .find(|item| item.field == "status")?
            .to?;
        Some(StatusChange {
            id: ChangelogId(self.id),
            to,
            at: self.created.as_deref().and_then(Timestamp::parse),
            by: self.author.map(TrackerAccount::from),
        })
    }
}
