//! Which Jira the stand-in is, and how that Jira names things.

use std::fmt;

use serde_json::{Value, json};

use super::adf;
use super::state::{Account, PEOPLE};
use crate::webhook::Style;

/// Which Jira is imitated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JiraKind {
    /// Jira Cloud: REST v3, documents, account ids, addresses with API tokens.
    #[default]
    Cloud,
    /// Jira Data Center of this release: REST v2, wiki markup, names of users, personal access tokens.
    DataCenter(u64),
}

/// The longest text that a Data Center takes, in characters.
const MAX_TEXT: usize = 32_767;

/// Where it is and what it is. It shows as its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) url: String,
    pub(super) kind: JiraKind,
    /// Keys of the projects that are service desks.
    pub(super) service_projects: Vec<String>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl Site {
    pub(super) const fn is_cloud(&self) -> bool {
        matches!(self.kind, JiraKind::Cloud)
    }

    /// The type of a project, as the project says it.
    pub(super) fn project_type(&self, key: &str) -> &'static str {
        match self.service_projects.iter().any(|known| known == key) {
            true => "service_desk",
            false => "software",
        }
    }

    /// The path of its REST interface.
    pub(super) const fn rest(&self) -> &'static str {
        match self.kind {
            JiraKind::Cloud => "/rest/api/3",
            JiraKind::DataCenter(_) => "/rest/api/2",
        }
    }

    /// How it sends its webhooks.
    pub(super) const fn style(&self) -> Style {
        match self.kind {
            JiraKind::Cloud => Style::Jira,
            JiraKind::DataCenter(major) => Style::JiraDataCenter { signs: major >= 10 },
        }
    }

    /// What it says of itself.
    pub(super) fn info(&self) -> Value {
        let (deployment, numbers) = match self.kind {
            JiraKind::Cloud => ("Cloud", [1001, 0, 0]),
            // Its own word, whether it has one node or more.
            JiraKind::DataCenter(major) => ("Server", [major, 3, 0]),
        };
        let version = numbers.map(|number| number.to_string()).join(".");
        json!({
            "baseUrl": self.url, "version": version, "versionNumbers": numbers, "deploymentType": deployment,
        })
    }

    /// Plain text as people's editor keeps it.
    pub(super) fn text(&self, plain: &str) -> Value {
        match self.kind {
            JiraKind::Cloud => adf::from_plain(plain),
            JiraKind::DataCenter(_) => Value::String(plain.to_owned()),
        }
    }

    /// Checks the body of a comment as Jira does, and more: Markdown is no mistake there, and still one of the caller.
    pub(super) fn check(&self, body: &Value) -> Result<(), String> {
        if self.is_cloud() {
            return adf::check(body);
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
            return Err("Markdown is no wiki markup".to_owned());
        }
        Ok(())
    }

    /// The key by which an account is named in requests.
    pub(super) const fn account_field(&self) -> &'static str {
        match self.kind {
            JiraKind::Cloud => "accountId",
            JiraKind::DataCenter(_) => "name",
        }
    }

    /// The account that requests name so.
    pub(super) fn id(&self, named: &str) -> String {
        if self.is_cloud() {
            return named.to_owned();
        }
        match named.strip_prefix("journeyman-") {
            Some(_) => format!("712020:{named}"),
            None => format!("{PEOPLE}{named}"),
        }
    }

    /// What histories name an account by.
    pub(super) fn history_id(&self, account: &Account) -> String {
        if self.is_cloud() {
            account.id.clone()
        } else {
            account.key()
        }
    }
}

impl Account {
    /// Its name at a Data Center.
    pub(super) fn user_name(&self) -> &str {
        self.id.rsplit(':').next().unwrap_or_default()
    }

    /// Its key at a Data Center, which is not its name.
    pub(super) fn key(&self) -> String {
        let bytes = self.user_name().bytes();
        bytes.fold("JIRAUSER".to_owned(), |key, byte| format!("{key}{byte:02x}"))
    }

    /// The name that belongs to a key.
    pub(super) fn name_of_key(key: &str) -> Option<String> {
        let digits = key.strip_prefix("JIRAUSER")?.as_bytes();
        let bytes = digits.chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        });
        String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
    }
}
