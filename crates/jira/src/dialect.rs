//! Differences of Jira Cloud and Jira Data Center: paths, bodies and texts. No other module distinguishes the
//! two.

use domain::{TicketKey, address::percent_encode, json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

use crate::{Error, adf, wiki};

// Hits of a page that the next page repeats: an issue that changes between two requests moves to the end, and
// all later hits move up by one.
const OVERLAP: usize = 5;
// Default of a Data Center's setting `jira.text.field.character.limit`, in characters.
const MAX_WIKI_CHARS: usize = 32_767;

/// Kind of a Jira site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JiraDialect {
    /// Jira Cloud: REST v3, texts as documents (ADF), account ids.
    #[default]
    Cloud,
    /// Jira Data Center: REST v2, texts in wiki markup, user names.
    DataCenter,
}

/// Start of the next page of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NextPage {
    Token(String),
    Start(usize),
}

/// Position of a page within a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchPage {
    pub(crate) token: Option<String>,
    /// Number of hits before this page.
    pub(crate) start: usize,
    pub(crate) hits: usize,
    pub(crate) total: usize,
}

/// Location of an issue's history.
pub(crate) enum HistoryPath {
    /// Path of separate pages.
    Pages(String),
    /// Path of the issue, whose answer contains the whole history.
    Within(String),
}

/// Location of the projects that an account sees.
pub(crate) enum ProjectsPath {
    /// Path of the first page.
    Page(String),
    /// Path of the whole list.
    All(String),
}

impl JiraDialect {
    /// Name in the settings: `cloud` or `data-center`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cloud => "cloud",
            Self::DataCenter => "data-center",
        }
    }

    /// Path of a resource in the REST API.
    pub(crate) fn path(self, of: &str) -> String {
        let version = match self {
            Self::Cloud => 3,
            Self::DataCenter => 2,
        };
        format!("/rest/api/{version}/{of}")
    }

    /// Path of an issue; refuses tickets of other trackers.
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

    /// Path of an issue by its id.
    pub(crate) fn issue_of_id(self, id: u64) -> String {
        self.path(&format!("issue/{id}"))
    }

    /// Path of an attachment's content. A Data Center's own address has no counterpart in its REST API, so it has to
    /// begin with one of `bases`.
    pub(crate) fn attachment(self, id: &str, content: &str, bases: &[&str]) -> Result<String, Error> {
        if self == Self::Cloud {
            // Its address in the answer may name another host than that of the API.
            return Ok(self.path(&format!("attachment/content/{}", percent_encode(id))));
        }
        let own = bases.iter().find_map(|base| {
            let path = content.strip_prefix(base)?;
            path.starts_with('/').then(|| path.to_owned())
        });
        own.filter(|path| !path.contains(['#', '\\']) && !path.contains("/../"))
            .ok_or_else(|| Error::Rejected {
                detail: "the address of an attachment is outside of the site".to_owned(),
            })
    }

    /// Converts Markdown to the body of a comment or the value of a field.
    pub(crate) fn text(self, markdown: &str) -> Value {
        match self {
            Self::Cloud => adf::from_markdown(markdown),
            Self::DataCenter => wiki::from_markdown_within(markdown, MAX_WIKI_CHARS).into(),
        }
    }

    /// Converts a text of Jira to Markdown.
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

    /// Reference to an account in a field or assignment; `None` unassigns.
    pub(crate) fn account(self, id: Option<&str>) -> Value {
        match self {
            Self::Cloud => json!({ "accountId": id }),
            Self::DataCenter => json!({ "name": id }),
        }
    }

    /// Path that lists the groups of an account.
    pub(crate) fn groups(self, account: &str) -> String {
        let account = percent_encode(account);
        match self {
            Self::Cloud => self.path(&format!("user/groups?accountId={account}")),
            Self::DataCenter => self.path(&format!("user?username={account}&expand=groups")),
        }
    }

    /// Path of a user by the key that histories contain; `None` in the Cloud, whose histories contain account
    /// ids.
    pub(crate) fn user_of_key(self, key: &str) -> Option<String> {
        match self {
            Self::Cloud => None,
            Self::DataCenter => Some(self.path(&format!("user?key={}", percent_encode(key)))),
        }
    }

    /// Path of our permissions in a project.
    pub(crate) fn permissions(self, project: &str, keys: &[&str]) -> String {
        let of = format!("mypermissions?projectKey={}", percent_encode(project));
        match self {
            Self::Cloud => self.path(&format!("{of}&permissions={}", keys.join(","))),
            // A Data Center always lists all permissions and has no parameter for a selection.
            Self::DataCenter => self.path(&of),
        }
    }

    /// Location of the projects that our account sees.
    pub(crate) fn projects(self, most: usize) -> ProjectsPath {
        match self {
            Self::Cloud => ProjectsPath::Page(self.path(&format!("project/search?maxResults={most}"))),
            Self::DataCenter => ProjectsPath::All(self.path("project")),
        }
    }

    /// Path and body of a search.
    pub(crate) fn search(
        self,
        jql: &str,
        fields: &[&str],
        most: usize,
        next: Option<&NextPage>,
    ) -> (String, Value) {
        let mut body = json!({ "jql": jql, "fields": fields, "maxResults": most });
        match next {
            Some(NextPage::Token(token)) => body["nextPageToken"] = json!(token),
            Some(NextPage::Start(start)) => body["startAt"] = json!(start),
            None => {}
        }
        let path = match self {
            // The Cloud has replaced `search` by `search/jql`, which has page tokens instead of positions.
            Self::Cloud => "search/jql",
            Self::DataCenter => "search",
        };
        (self.path(path), body)
    }

    /// Start of the page after this one; `None` after the last.
    pub(crate) fn next(self, page: SearchPage) -> Option<NextPage> {
        match self {
            Self::Cloud => page.token.map(NextPage::Token),
            Self::DataCenter => {
                let end = page.start + page.hits;
                // A page within the overlap would never advance, so such a search ends.
                let more = end < page.total && page.hits > OVERLAP;
                more.then(|| NextPage::Start(end - OVERLAP))
            }
        }
    }

    /// Location of an issue's history.
    pub(crate) fn history(self, issue: &str) -> HistoryPath {
        match self {
            Self::Cloud => HistoryPath::Pages(format!("{issue}/changelog?")),
            Self::DataCenter => HistoryPath::Within(format!("{issue}?fields=status&expand=changelog")),
        }
    }

    /// True when an update of a comment without a visibility makes the comment public.
    pub(crate) const fn forgets_visibility(self) -> bool {
        matches!(self, Self::DataCenter)
    }

    /// Path and body of a webhook registration by an administrator.
    ///
    /// A Data Center reads the secret in `configuration` only and does not document a filter. It sends events
    /// of all projects; ingest skips those without rules.
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

    /// True when a webhook can be restricted to projects.
    pub const fn filters_webhooks(self) -> bool {
        matches!(self, Self::Cloud)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_page(start: usize, hits: usize, total: usize) -> SearchPage {
        SearchPage {
            start,
            hits,
            total,
            ..SearchPage::default()
        }
    }

    #[test]
    fn data_center_pages_overlap_until_last_hit() {
        let next = |start, issues, total| JiraDialect::DataCenter.next(build_page(start, issues, total));
        assert_eq!(next(0, 100, 103), Some(NextPage::Start(95)));
        assert_eq!(next(95, 8, 103), None);
        assert_eq!(
            next(0, 0, 103),
            None,
            "a site that gives nothing is not asked for ever"
        );
        assert_eq!(next(0, 3, 103), None, "nor one that gives next to nothing");
    }

    #[test]
    fn attachment_path_stays_at_site() {
        let bases = ["https://dc.internal", "https://jira.example"];
        let cloud = JiraDialect::Cloud.attachment("10/1", "https://other.example/x", &bases);
        assert_eq!(cloud.unwrap(), "/rest/api/3/attachment/content/10%2F1");
        let data_center = |content: &str| JiraDialect::DataCenter.attachment("10/1", content, &bases).ok();
        let own = "/secure/attachment/1/x.log";
        for base in bases {
            assert_eq!(data_center(&format!("{base}{own}")).as_deref(), Some(own));
        }
        for foreign in [
            "https://jira.example.evil/secure/attachment/1/x.log",
            "https://jira.example@evil.example/x.log",
            "https://evil.example/x.log",
            "https://jira.example/secure/../admin",
            "",
        ] {
            assert_eq!(data_center(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn the_settings_name_the_two() {
        for (name, dialect) in [
            ("cloud", JiraDialect::Cloud),
            ("data-center", JiraDialect::DataCenter),
        ] {
            let read: JiraDialect = serde_json::from_value(json!(name)).unwrap();
            assert_eq!((read, dialect.as_str()), (dialect, name));
        }
    }
}
