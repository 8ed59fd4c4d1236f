//! Kind of Jira, and that kind's names and formats.

use std::fmt;

use serde_json::{Value, json};

use super::adf;
use super::state::{JiraAccount, PEOPLE};
use crate::webhook::WebhookStyle;

/// Kind of Jira that the stand-in imitates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JiraKind {
    /// Jira Cloud: REST v3, ADF, account ids, e-mail addresses with API tokens.
    #[default]
    Cloud,
    /// Jira Data Center of this major release: REST v2, wiki markup, user names, personal access tokens.
    DataCenter(u64),
}

/// Maximum length of a text on a Data Center, in characters.
const MAX_TEXT: usize = 32_767;

/// Address and kind of the site. It displays as its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StandInSite {
    pub(super) url: String,
    pub(super) kind: JiraKind,
    /// Address of the host that stores files.
    pub(super) media: String,
    /// Keys of the service desk projects.
    pub(super) service_projects: Vec<String>,
}

impl fmt::Display for StandInSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl StandInSite {
    pub(super) const fn is_cloud(&self) -> bool {
        matches!(self.kind, JiraKind::Cloud)
    }

    /// Returns the type of a project.
    pub(super) fn project_type(&self, key: &str) -> &'static str {
        if self.service_projects.iter().any(|known| known == key) {
            "service_desk"
        } else {
            "software"
        }
    }

    /// Returns the path of the REST interface.
    pub(super) const fn rest(&self) -> &'static str {
        match self.kind {
            JiraKind::Cloud => "/rest/api/3",
            JiraKind::DataCenter(_) => "/rest/api/2",
        }
    }

    /// Returns the signature scheme of webhooks.
    pub(super) const fn style(&self) -> WebhookStyle {
        match self.kind {
            JiraKind::Cloud => WebhookStyle::Jira,
            JiraKind::DataCenter(major) => WebhookStyle::JiraDataCenter { signs: major >= 10 },
        }
    }

    /// Renders the answer of `serverInfo`.
    pub(super) fn info(&self) -> Value {
        let (deployment, numbers) = match self.kind {
            JiraKind::Cloud => ("Cloud", [1001, 0, 0]),
            // A Data Center reports `Server`, with one node or several.
            JiraKind::DataCenter(major) => ("Server", [major, 3, 0]),
        };
        let version = numbers.map(|number| number.to_string()).join(".");
        json!({
            "baseUrl": self.url, "version": version, "versionNumbers": numbers, "deploymentType": deployment,
        })
    }

    /// Returns plain text in the format of the editor.
    pub(super) fn text(&self, plain: &str) -> Value {
        match self.kind {
            JiraKind::Cloud => adf::from_plain(plain),
            JiraKind::DataCenter(_) => Value::String(plain.to_owned()),
        }
    }

    /// Validates a comment's body as Jira does. It also refuses Markdown, which Jira accepts and displays as
    /// literal characters.
    pub(super) fn check(&self, body: &Value) -> Result<(), String> {
        if self.is_cloud() {
            return adf::validate_document(body);
        }
        let text = body.as_str().ok_or("a comment's body must be a string")?;
        if text.trim().is_empty() {
            return Err("Comment body can not be empty!".to_owned());
        }
        if text.chars().count() > MAX_TEXT {
            return Err(format!(
                "the entered text exceeds the limit of {MAX_TEXT} characters"
            ));
        }
        let is_markdown = text.contains("](http") || text.lines().any(|line| line.starts_with("```"));
        if is_markdown {
            return Err("Markdown is not wiki markup".to_owned());
        }
        Ok(())
    }

    /// Name of the field that identifies an account in requests.
    pub(super) const fn account_field(&self) -> &'static str {
        match self.kind {
            JiraKind::Cloud => "accountId",
            JiraKind::DataCenter(_) => "name",
        }
    }

    /// Returns the account id behind the identifier of a request.
    pub(super) fn id(&self, named: &str) -> String {
        if self.is_cloud() {
            return named.to_owned();
        }
        // The ids of the two service accounts have another prefix than those of users.
        match named.strip_prefix("journeyman-") {
            Some(_) => format!("712020:{named}"),
            None => format!("{PEOPLE}{named}"),
        }
    }

    /// Returns the identifier of an account in changelogs.
    pub(super) fn history_id(&self, account: &JiraAccount) -> String {
        if self.is_cloud() {
            account.id.clone()
        } else {
            account.key()
        }
    }
}

impl JiraAccount {
    /// Returns the user name on a Data Center.
    pub(super) fn user_name(&self) -> &str {
        self.id.rsplit(':').next().unwrap_or_default()
    }

    /// Returns the user key on a Data Center, which differs from the name.
    pub(super) fn key(&self) -> String {
        // The name in hexadecimal digits, so that the key can be converted back.
        let bytes = self.user_name().bytes();
        bytes.fold("JIRAUSER".to_owned(), |key, byte| format!("{key}{byte:02x}"))
    }

    /// Returns the user name behind a key.
    pub(super) fn name_of_key(key: &str) -> Option<String> {
        let digits = key.strip_prefix("JIRAUSER")?.as_bytes();
        let bytes = digits.chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        });
        String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
    }
}
