//! Setup of a Jira site: its kind, and the webhook, which only an administrator can register.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use webclient::GatedAccount;

use crate::{
    Error, JiraDialect, Settings,
    client::{JiraClient, JiraMethod},
};

// Events that the endpoint `/webhooks/jira` handles.
const EVENTS: [&str; 3] = ["jira:issue_created", "jira:issue_updated", "comment_created"];
// First release of Jira Data Center that signs its webhooks.
const SIGNS_SINCE: u64 = 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireServer {
    #[serde(default)]
    deployment_type: String,
    #[serde(default)]
    version_numbers: Vec<u64>,
}

/// Kind and release of a Jira site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JiraSite {
    /// Cloud or Data Center.
    pub dialect: JiraDialect,
    /// Release of a Data Center, e.g. 10, 3, 0; empty when the site omits it.
    version: Vec<u64>,
}

impl JiraSite {
    /// Site of this kind with an unknown release.
    pub const fn unknown(dialect: JiraDialect) -> Self {
        Self {
            dialect,
            version: Vec::new(),
        }
    }

    /// True when the site signs its webhooks; ingest refuses unsigned ones.
    pub fn signs_webhooks(&self) -> bool {
        match self.dialect {
            JiraDialect::Cloud => true,
            JiraDialect::DataCenter => self.version.first().is_some_and(|major| *major >= SIGNS_SINCE),
        }
    }
}

impl fmt::Display for JiraSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dialect {
            JiraDialect::Cloud => f.write_str("Jira Cloud"),
            JiraDialect::DataCenter if self.version.is_empty() => f.write_str("Jira Data Center"),
            JiraDialect::DataCenter => {
                let version: Vec<String> = self.version.iter().map(u64::to_string).collect();
                write!(f, "Jira Data Center {}", version.join("."))
            }
        }
    }
}

impl From<WireServer> for JiraSite {
    fn from(wire: WireServer) -> Self {
        Self {
            // A Data Center calls itself `Server`, and some releases use another word.
            dialect: match wire.deployment_type.as_str() {
                "Cloud" => JiraDialect::Cloud,
                _ => JiraDialect::DataCenter,
            },
            version: wire.version_numbers,
        }
    }
}

/// Reads the kind and release of a site. The endpoint is public, so no credentials are sent.
///
/// # Errors
/// Jira's refusal; [`Error::Malformed`] when the answer contains neither kind nor release.
pub async fn fetch_site(settings: &Settings) -> Result<JiraSite, Error> {
    let anonymous = Settings {
        email: String::new(),
        api_token: String::new().into(),
        ..settings.clone()
    };
    let client = JiraClient::new(&anonymous, GatedAccount::default())?;
    // Both kinds have version 2 of this endpoint; the kind is not known yet.
    let server: WireServer = client.get("/rest/api/2/serverInfo").await?;
    if server.deployment_type.is_empty() && server.version_numbers.is_empty() {
        return Err(Error::Malformed {
            detail: "GET /rest/api/2/serverInfo, neither deploymentType nor versionNumbers".to_owned(),
        });
    }
    Ok(server.into())
}

/// Webhook to register at a site.
#[derive(Clone, Copy, Debug)]
pub struct WebhookRegistration<'a> {
    /// Journeyman's URL, `…/webhooks/jira`. It identifies the webhook among those of the site.
    pub url: &'a str,
    /// Secret that signs deliveries.
    pub secret: &'a str,
    /// Keys of the projects with relevant tickets; empty: all. A Data Center always sends events of all
    /// projects.
    pub projects: &'a [String],
}

impl WebhookRegistration<'_> {
    fn request(&self, dialect: JiraDialect) -> (&'static str, Value) {
        let keys: Vec<String> = self.projects.iter().map(|key| format!("\"{key}\"")).collect();
        let filter = if keys.is_empty() {
            String::new()
        } else {
            format!("project in ({})", keys.join(", "))
        };
        let common = [
            ("name", json!("Journeyman")),
            ("url", json!(self.url)),
            ("events", json!(EVENTS)),
        ];
        let common: Map<String, Value> = common
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect();
        dialect.webhook(common, self.secret, &filter)
    }
}

#[derive(Deserialize)]
struct WireHook {
    #[serde(default)]
    url: String,
    /// Number of the webhook at a Data Center; the Cloud has it in `self` only.
    id: Option<Value>,
    #[serde(rename = "self")]
    itself: Option<String>,
}

impl WireHook {
    fn id(&self) -> Option<u64> {
        let number = |id: &Value| id.as_u64().or_else(|| id.as_str()?.parse().ok());
        let last = || self.itself.as_deref()?.rsplit('/').next()?.parse().ok();
        self.id.as_ref().and_then(number).or_else(last)
    }
}

/// Registers the webhook, or updates the one with the same URL, with the account of an administrator. Returns
/// true for a new webhook.
///
/// # Errors
/// Jira's refusal, with the method and path of the refused call.
pub async fn register_webhook(
    admin: &Settings,
    webhook: &WebhookRegistration<'_>,
) -> Result<bool, (String, Error)> {
    let (webhooks, mut body) = webhook.request(admin.deployment);
    let to = |call: &str| {
        let call = format!("{call} {webhooks}");
        move |error| (call, error)
    };
    let client = JiraClient::new(admin, GatedAccount::default()).map_err(to("GET"))?;
    let known: Vec<WireHook> = client.get(webhooks).await.map_err(to("GET"))?;
    // The URL identifies the webhook, because its id is stored nowhere.
    let known = known.iter().find(|hook| hook.url == webhook.url);
    match known.and_then(WireHook::id) {
        Some(id) => {
            if admin.deployment == JiraDialect::DataCenter {
                // A Data Center requires the id in the body too.
                body["id"] = json!(id);
            }
            let path = format!("{webhooks}/{id}");
            let put: Result<Value, Error> = client.write(JiraMethod::Put, &path, &body).await;
            put.map(|_| false).map_err(to("PUT"))
        }
        None => {
            let post: Result<Value, Error> = client.write(JiraMethod::Post, webhooks, &body).await;
            post.map(|_| true).map_err(to("POST"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_webhook_request(dialect: JiraDialect, projects: &[String]) -> (&'static str, Value) {
        let webhook = WebhookRegistration {
            url: "u",
            secret: "s",
            projects,
        };
        webhook.request(dialect)
    }

    #[test]
    fn webhook_filter_names_the_projects() {
        let projects = ["ENG".to_owned(), "OPS".to_owned()];
        let filter = "/filters/issue-related-events-section";
        assert_eq!(
            build_webhook_request(JiraDialect::Cloud, &projects)
                .1
                .pointer(filter)
                .unwrap(),
            "project in (\"ENG\", \"OPS\")"
        );
        assert_eq!(
            build_webhook_request(JiraDialect::Cloud, &[])
                .1
                .pointer(filter)
                .unwrap(),
            ""
        );
    }

    #[test]
    fn webhook_secret_location_depends_on_dialect() {
        let (path, body) = build_webhook_request(JiraDialect::Cloud, &[]);
        assert_eq!(
            (path, &body["secret"]),
            ("/rest/webhooks/1.0/webhook", &json!("s"))
        );
        let (path, body) = build_webhook_request(JiraDialect::DataCenter, &[]);
        assert_eq!(path, "/rest/jira-webhook/1.0/webhooks");
        assert_eq!(body["configuration"]["SECRET"], "s");
        assert_eq!(body["secret"], Value::Null);
    }

    #[test]
    fn data_center_release_ten_signs_webhooks() {
        let site = |kind: &str, version: &[u64]| {
            JiraSite::from(WireServer {
                deployment_type: kind.to_owned(),
                version_numbers: version.to_vec(),
            })
        };
        for (kind, version, signs) in [
            ("Cloud", &[1001, 0, 0][..], true),
            ("Server", &[10, 3, 0], true),
            ("Server", &[9, 12, 5], false),
            ("Data Center", &[11, 0, 1], true),
            ("Server", &[], false),
        ] {
            assert_eq!(site(kind, version).signs_webhooks(), signs, "{kind} {version:?}");
        }
        assert_eq!(site("Server", &[9, 12, 5]).to_string(), "Jira Data Center 9.12.5");
    }
}
