//! JSON of comments and their properties.

use domain::{TrackerAccount, json};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{account::WireAccount, parse_instant, text_or_number};
use crate::{Error, JiraComment, JiraCommentId, JiraDialect, adf};

/// Key of the comment property that holds our marker.
pub(crate) const MARKER: &str = "journeyman";

/// Key of the comment property that makes a comment internal on a service desk.
pub(crate) const SERVICE_DESK: &str = "sd.public.comment";

// Replacement for the text of a comment that is nested too deeply.
const TOO_DEEP: &str = "[This comment is nested too deeply to be read.]";

#[derive(Deserialize)]
pub(crate) struct WireComment {
    #[serde(deserialize_with = "text_or_number")]
    id: String,
    author: Option<WireAccount>,
    created: String,
    updated: Option<String>,
    body: Option<Box<RawValue>>,
    #[serde(default)]
    properties: Vec<WireProperty>,
}

/// Visibility of a comment; absent for a public one.
#[derive(Deserialize)]
pub(crate) struct WireVisibility {
    pub(crate) visibility: Option<Value>,
}

#[derive(Deserialize)]
struct WireProperty {
    key: String,
    /// Other apps store values of any depth, so the value is parsed separately.
    value: Option<Box<RawValue>>,
}

impl WireProperty {
    /// The field `id` of our property's value.
    fn id(&self) -> Option<String> {
        let value: Value = json::from_slice(self.value.as_deref()?.get().as_bytes()).ok()?;
        value["id"].as_str().map(str::to_owned)
    }
}

/// Text of a comment. One that is nested too deeply becomes a notice, so that the other comments stay
/// readable.
fn render_comment_text(raw: Option<&RawValue>, dialect: JiraDialect) -> Result<String, Error> {
    let Some(raw) = raw else { return Ok(String::new()) };
    match dialect.markdown(raw, "a comment") {
        Err(Error::TooDeep { .. }) => Ok(TOO_DEEP.to_owned()),
        text => text,
    }
}

/// Ids of the accounts that a document mentions; empty for wiki markup, whose text contains the names.
fn collect_mentions(raw: Option<&RawValue>, dialect: JiraDialect) -> Vec<String> {
    match (dialect, raw) {
        (JiraDialect::Cloud, Some(raw)) => {
            let document: Option<Value> = json::from_slice(raw.get().as_bytes()).ok();
            document.as_ref().map(adf::mentioned_accounts).unwrap_or_default()
        }
        (JiraDialect::Cloud, None) | (JiraDialect::DataCenter, _) => Vec::new(),
    }
}

impl WireComment {
    pub(crate) fn into_comment(
        self,
        us: &TrackerAccount,
        dialect: JiraDialect,
    ) -> Result<JiraComment, Error> {
        let by_customer = self.author.as_ref().is_some_and(WireAccount::is_customer);
        let author = self.author.map(TrackerAccount::from);
        let by_bot = author.as_ref().is_some_and(|author| author.is_bot);
        let (account, name) = author.map_or_else(Default::default, |author| (author.id, author.display_name));
        let marker = self.properties.iter().find(|property| property.key == MARKER);
        let marker = marker.and_then(WireProperty::id).unwrap_or_default();
        let created = parse_instant(&self.created)?;
        Ok(JiraComment {
            id: JiraCommentId(self.id),
            author: name,
            by_bot,
            by_customer,
            // An anonymous comment has an empty account, which must not match.
            by_us: !account.is_empty() && account == us.id,
            author_account_id: account,
            updated: self.updated.as_deref().map_or(Ok(created), parse_instant)?,
            created,
            text: render_comment_text(self.body.as_deref(), dialect)?,
            mentioned: collect_mentions(self.body.as_deref(), dialect),
            marker,
        })
    }
}
