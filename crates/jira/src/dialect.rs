//! What Jira Cloud and Jira Data Center call things: paths, bodies and texts. Nothing else in this crate asks which of the two
//! a site is.

use domain::{TicketKey, address::encode, json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

use crate::{Error, adf, wiki};

/// Hits of a search of which the next page is asked for again: what changes between two pages moves to the end, and everything
/// behind it one place up.
const OVERLAP: usize = 5;
/// The longest text that a Data Center takes unless its administrator says otherwise, in characters.
const MAX_WIKI_CHARS: usize = 32_767;

/// Which Jira a site is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Jira Cloud: REST v3, texts as documents (ADF), account ids.
    #[default]
    Cloud,
    /// Jira Data Center: REST v2, texts in wiki markup, names of users.
    DataCenter,
}

/// Where the next page of a search begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Token(String),
    Start(usize),
}

/// What a page of a search says of the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) token: Option<String>,
    /// How many hits are before it.
    pub(crate) start: usize,
    pub(crate) hits: usize,
    pub(crate) total: usize,
}

/// Where the history of an issue is.
pub(crate) enum History {
    /// In pages of its own.
    Pages(String),
    /// In the issue, whole.
    Within(String),
}

impl Dialect {
    /// As the settings say it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cloud => "cloud",
            Self::DataCenter => "data-center",
        }
    }

    /// The address of something of the REST interface.
    pub(crate) fn path(self, of: &str) -> String {
        let version = match self {
            Self::Cloud => 3,
            Self::DataCenter => 2,
        };
        format!("/rest/api/{version}/{of}")
    }

    /// The issue's address; refuses tickets of other trackers.
    pub(crate) fn issue(self, key: &TicketKey) -> Result<String, Error> {
        match key {
            TicketKey::Jira { .. } => Ok(self.path(&format!("issue/{}", key.short()))),
            TicketKey::GitHub { .. } | TicketKey::Discussion { .. } | TicketKey::Folder { .. } => {
                Err(Error::Rejected {
                    detail: format!("{key} is not a Jira issue"),
                })
            }
        }
    }

    /// A Markdown text as the body of a comment or the value of a field.
    pub(crate) fn text(self, markdown: &str) -> Value {
        match self {
            Self::Cloud => adf::from_markdown(markdown),
            Self::DataCenter => wiki::from_markdown_within(markdown, MAX_WIKI_CHARS).into(),
        }
    }

    /// A text of Jira as Markdown.
    pub(crate) fn markdown(self, raw: &RawValue, what: &str) -> Result<String, Error> {
        match (self, json::from_slice::<Value>(raw.get().as_bytes())) {
            (Self::DataCenter, Ok(Value::String(text))) => Ok(wiki::to_markdown(&text)),
            (Self::Cloud | Self::DataCenter, Ok(document)) => Ok(adf::to_markdown(&document)),
            (_, Err(json::Error::TooDeep)) => Err(Error::TooDeep {
                what: what.to_owned(),
            }),
            (_, Err(json::Error::Unreadable(_))) => Err(Error::Malformed {
                detail: what.to_owned(),
            }),
        }
    }

    /// An account as the value of a field, and who gets an issue; `None`: nobody.
    pub(crate) fn account(self, id: Option<&str>) -> Value {
        match self {
            Self::Cloud => json!({ "accountId": id }),
            Self::DataCenter => json!({ "name": id }),
        }
    }

    /// Where the groups of an account are told.
    pub(crate) fn groups(self, account: &str) -> String {
        let account = encode(account);
        match self {
            Self::Cloud => self.path(&format!("user/groups?accountId={account}")),
            Self::DataCenter => self.path(&format!("user?username={account}&expand=groups")),
        }
    }

    /// Where a user is told by the key that histories name them by; absent where these have the ids of accounts.
    pub(crate) fn user_of_key(self, key: &str) -> Option<String> {
        match self {
            Self::Cloud => None,
            Self::DataCenter => Some(self.path(&format!("user?key={}", encode(key)))),
        }
    }

    /// Where our permissions in a project are told.
    pub(crate) fn permissions(self, project: &str, keys: &[&str]) -> String {
        let of = format!("mypermissions?projectKey={}", encode(project));
        match self {
            Self::Cloud => self.path(&format!("{of}&permissions={}", keys.join(","))),
            // It tells them all.
            Self::DataCenter => self.path(&of),
        }
    }

    /// A search: its address and its body.
    pub(crate) fn search(
        self,
        jql: &str,
        fields: &[&str],
        most: usize,
        next: Option<&Next>,
    ) -> (String, Value) {
        let mut body = json!({ "jql": jql, "fields": fields, "maxResults": most });
        match next {
            Some(Next::Token(token)) => body["nextPageToken"] = json!(token),
            Some(Next::Start(start)) => body["startAt"] = json!(start),
            None => {}
        }
        let path = match self {
            Self::Cloud => "search/jql",
            Self::DataCenter => "search",
        };
        (self.path(path), body)
    }

    /// What to ask for after a page of a search.
    pub(crate) fn next(self, page: Page) -> Option<Next> {
        match self {
            Self::Cloud => page.token.map(Next::Token),
            Self::DataCenter => {
                let end = page.start + page.hits;
                let more = end < page.total && page.hits > OVERLAP;
                more.then(|| Next::Start(end - OVERLAP))
            }
        }
    }

    /// Where the history of an issue is.
    pub(crate) fn history(self, issue: &str) -> History {
        match self {
            Self::Cloud => History::Pages(format!("{issue}/changelog?")),
            Self::DataCenter => History::Within(format!("{issue}?fields=status&expand=changelog")),
        }
    }

    /// Whether a comment is for everybody after a change that does not say for whom it is.
    pub(crate) const fn forgets_visibility(self) -> bool {
        matches!(self, Self::DataCenter)
    }

    /// Where administrators register webhooks, and the body that does it. A Data Center takes the secret in the configuration
    /// alone, whose filter it does not document: it tells of every project, and those without rules are passed over.
    pub(crate) fn webhook(
        self,
        mut common: Map<String, Value>,
        secret: &str,
        filter: &str,
    ) -> (&'static str, Value) {
        match self {
            Self::Cloud => {
                common.insert("excludeBody".to_owned(), json!(false));
                common.insert("secret".to_owned(), json!(secret));
                common.insert(
                    "filters".to_owned(),
                    json!({ "issue-related-events-section": filter }),
                );
                ("/rest/webhooks/1.0/webhook", Value::Object(common))
            }
            Self::DataCenter => {
                common.insert("active".to_owned(), json!(true));
                common.insert("scopeType".to_owned(), json!("global"));
                common.insert(
                    "configuration".to_owned(),
                    json!({ "SECRET": secret, "EXCLUDE_BODY": "false" }),
                );
                ("/rest/jira-webhook/1.0/webhooks", Value::Object(common))
            }
        }
    }

    /// Whether a webhook is of the named projects alone.
    pub const fn filters_webhooks(self) -> bool {
        matches!(self, Self::Cloud)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(start: usize, hits: usize, total: usize) -> Page {
        Page {
            start,
            hits,
            total,
            ..Page::default()
        }
    }

    #[test]
    fn a_page_of_a_data_center_overlaps_with_the_one_before_and_the_last_one_ends_the_search() {
        let next = |start, issues, total| Dialect::DataCenter.next(page(start, issues, total));
        assert_eq!(next(0, 100, 103), Some(Next::Start(95)));
        assert_eq!(next(95, 8, 103), None);
        assert_eq!(
            next(0, 0, 103),
            None,
            "a site that gives nothing is not asked for ever"
        );
        assert_eq!(next(0, 3, 103), None, "nor one that gives next to nothing");
    }

    #[test]
    fn the_settings_name_the_two() {
        for (name, dialect) in [("cloud", Dialect::Cloud), ("data-center", Dialect::DataCenter)] {
            let read: Dialect = serde_json::from_value(json!(name)).unwrap();
            assert_eq!((read, dialect.as_str()), (dialect, name));
        }
    }
}
