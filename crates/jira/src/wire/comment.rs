//! Comments and their properties.

use domain::{Account, json};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    account::WireAccount,
    value::{instant, text_or_number},
};
use crate::{Comment, CommentId, Dialect, Error, adf};

/// Key of the comment property that holds our marker.
pub(crate) const MARKER: &str = "journeyman";

/// Key of the comment property that says whether customers of a service desk see the comment.
pub(crate) const SERVICE_DESK: &str = "sd.public.comment";

/// Stands for a comment that is nested too deeply.
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

/// For whom a comment is; absent: everybody.
#[derive(Deserialize)]
pub(crate) struct WireVisibility {
    pub(crate) visibility: Option<Value>,
}

#[derive(Deserialize)]
struct WireProperty {
    key: String,
    /// Other apps keep theirs there, as deep as they like.
    value: Option<Box<RawValue>>,
}

impl WireProperty {
    /// The id that it holds, if it holds one.
    fn id(&self) -> Option<String> {
        let value: Value = json::from_slice(self.value.as_deref()?.get().as_bytes()).ok()?;
        value["id"].as_str().map(str::to_owned)
    }
}

/// One comment that is nested too deeply keeps nobody from reading the others.
fn comment_text(raw: Option<&RawValue>, dialect: Dialect) -> Result<String, Error> {
    let Some(raw) = raw else { return Ok(String::new()) };
    match dialect.markdown(raw, "a comment") {
        Err(Error::TooDeep { .. }) => Ok(TOO_DEEP.to_owned()),
        text => text,
    }
}

/// Ids of the accounts that a document mentions; none of wiki markup, whose text has them.
fn mentioned(raw: Option<&RawValue>, dialect: Dialect) -> Vec<String> {
    match (dialect, raw) {
        (Dialect::Cloud, Some(raw)) => {
            let document: Option<Value> = json::from_slice(raw.get().as_bytes()).ok();
            document.as_ref().map(adf::mentioned_accounts).unwrap_or_default()
        }
        (Dialect::Cloud, None) | (Dialect::DataCenter, _) => Vec::new(),
    }
}

impl WireComment {
    pub(crate) fn into_comment(self, us: &Account, dialect: Dialect) -> Result<Comment, Error> {
        let by_customer = self.author.as_ref().is_some_and(WireAccount::is_customer);
        let author = self.author.map(Account::from);
        let by_bot = author.as_ref().is_some_and(|author| author.is_bot);
        let (account, name) = author.map_or_else(Default::default, |author| (author.id, author.display_name));
        let marker = self.properties.iter().find(|property| property.key == MARKER);
        let marker = marker.and_then(WireProperty::id).unwrap_or_default();
        let created = instant(&self.created)?;
        Ok(Comment {
            id: CommentId(self.id),
            author: name,
            by_bot,
            by_customer,
            by_us: !account.is_empty() && account == us.id,
            author_account_id: account,
            updated: self.updated.as_deref().map_or(Ok(created), instant)?,
            created,
            text: comment_text(self.body.as_deref(), dialect)?,
            mentioned: mentioned(self.body.as_deref(), dialect),
            marker,
        })
    }
}
