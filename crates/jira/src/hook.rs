//! What a set-up asks of a site: what it is, and the webhook, which only an administrator may register.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error, Settings,
    client::{Client, Method},
    limits::Limits,
};

const WEBHOOKS: &str = "/rest/webhooks/1.0/webhook";
/// What `/webhooks/jira` listens to.
const EVENTS: [&str; 3] = ["jira:issue_created", "jira:issue_updated", "comment_created"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireServer {
    #[serde(default)]
    deployment_type: String,
}

/// Whether the site is Jira Cloud; Journeyman does not speak with others.
///
/// # Errors
/// What Jira says.
pub async fn is_cloud(settings: &Settings) -> Result<bool, Error> {
    let client = Client::new(settings, Limits::default())?;
    let server: WireServer = client.get("/rest/api/2/serverInfo").await?;
    Ok(server.deployment_type == "Cloud")
}

/// Where Jira tells what happens.
#[derive(Clone, Copy, Debug)]
pub struct Webhook<'a> {
    /// Journeyman's address, `…/webhooks/jira`. A webhook with this address is the same one.
    pub url: &'a str,
    /// What deliveries are signed with.
    pub secret: &'a str,
    /// Keys of the projects whose tickets matter; empty: all.
    pub projects: &'a [String],
}

impl Webhook<'_> {
    fn json(&self) -> Value {
        let keys: Vec<String> = self.projects.iter().map(|key| format!("\"{key}\"")).collect();
        let filter = match keys.is_empty() {
            true => String::new(),
            false => format!("project in ({})", keys.join(", ")),
        };
        json!({
            "name": "Journeyman", "url": self.url, "events": EVENTS, "excludeBody": false, "secret": self.secret,
            "filters": {"issue-related-events-section": filter},
        })
    }
}

#[derive(Deserialize)]
struct WireHook {
    #[serde(default)]
    url: String,
    #[serde(rename = "self")]
    itself: String,
}

/// Registers the webhook, or brings the one with this address up to date; `admin` is the account of an administrator. Gives
/// whether it is new.
///
/// # Errors
/// What Jira says, with the call that it said it to.
pub async fn register(admin: &Settings, webhook: &Webhook<'_>) -> Result<bool, (String, Error)> {
    let to = |call: &str| {
        let call = format!("{call} {WEBHOOKS}");
        move |error| (call, error)
    };
    let client = Client::new(admin, Limits::default()).map_err(to("GET"))?;
    let known: Vec<WireHook> = client.get(WEBHOOKS).await.map_err(to("GET"))?;
    let id = known.iter().find(|hook| hook.url == webhook.url);
    let id = id.and_then(|hook| hook.itself.rsplit('/').next());
    let body = webhook.json();
    match id.filter(|id| id.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(id) => {
            let path = format!("{WEBHOOKS}/{id}");
            let put: Result<Value, Error> = client.write(Method::Put, &path, &body).await;
            put.map(|_| false).map_err(to("PUT"))
        }
        None => {
            let post: Result<Value, Error> = client.write(Method::Post, WEBHOOKS, &body).await;
            post.map(|_| true).map_err(to("POST"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tickets_of_the_projects_are_told() {
        let projects = ["ENG".to_owned(), "OPS".to_owned()];
        let hook = |projects| {
            Webhook {
                url: "u",
                secret: "s",
                projects,
            }
            .json()
        };
        let filter = "/filters/issue-related-events-section";
        assert_eq!(
            hook(&projects).pointer(filter).unwrap(),
            "project in (\"ENG\", \"OPS\")"
        );
        assert_eq!(hook(&[]).pointer(filter).unwrap(), "");
    }
}
