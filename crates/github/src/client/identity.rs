//! Identity of our credentials at GitHub.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::GitHubClient;
use crate::{
    Error, connection::GitHubCall, installation_router::AccountCredentials, transport, wire::WireUser,
};

/// Account that the credentials belong to, with its permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountIdentity {
    /// Login that GitHub shows as author of our comments: `name`, or `slug[bot]` for an App.
    pub login: String,
    /// True for an App, false for a token.
    pub is_app: bool,
    /// True for the token of a user, whose role in a repository GitHub reports.
    pub is_user: bool,
    /// `contents:write` … for an App, OAuth scopes for a token (empty for fine-grained tokens and those of
    /// workflows, whose permissions GitHub does not report).
    pub permissions: Vec<String>,
    /// Webhook events that the App is subscribed to, e.g. `check_run`; empty for a token.
    pub events: Vec<String>,
}

#[derive(Deserialize)]
struct WireAppSelf {
    slug: String,
    #[serde(default)]
    permissions: BTreeMap<String, String>,
    #[serde(default)]
    events: Vec<String>,
}

impl AccountIdentity {
    /// True for an account that no person uses: an App, also by the token of a workflow's job.
    pub fn is_program(&self) -> bool {
        self.is_app || self.login.ends_with("[bot]")
    }
}

impl GitHubClient {
    pub(crate) async fn whoami(&self) -> Result<AccountIdentity, Error> {
        // A failure is not stored, so the next call repeats the request.
        self.0
            .whoami
            .get_or_try_init(|| self.fetch_identity())
            .await
            .cloned()
    }

    /// Reads the identity without the one that the first call remembered.
    pub(crate) async fn fetch_identity(&self) -> Result<AccountIdentity, Error> {
        match self.0.places.credentials() {
            AccountCredentials::App(_) => {
                let app: WireAppSelf = transport::send_call(self.0.places.own(), GitHubCall::Get("/app"))
                    .await?
                    .parse()?;
                let mut permissions: Vec<String> = app
                    .permissions
                    .iter()
                    .map(|(name, level)| format!("{name}:{level}"))
                    .collect();
                permissions.sort();
                Ok(AccountIdentity {
                    login: format!("{}[bot]", app.slug),
                    is_app: true,
                    is_user: false,
                    permissions,
                    events: app.events,
                })
            }
            AccountCredentials::Token(_) => {
                let own = self.0.places.own();
                let user = transport::send_call(own, GitHubCall::Get("/user")).await;
                let is_user = user.is_ok();
                let (login, permissions) = match user {
                    Ok(answer) => (answer.parse::<WireUser>()?.login, answer.scopes()),
                    // The token of a workflow's job belongs to an installation of an App, which has no user.
                    Err(Error::Forbidden { .. }) => (self.fetch_viewer_login().await?, Vec::new()),
                    Err(error) => return Err(error),
                };
                Ok(AccountIdentity {
                    login,
                    is_app: false,
                    is_user,
                    permissions,
                    events: Vec::new(),
                })
            }
        }
    }

    /// Reads the login of a token by GraphQL, which answers to tokens of installations too.
    async fn fetch_viewer_login(&self) -> Result<String, Error> {
        let data = self.query_own("query { viewer { login } }").await?;
        let login = data["viewer"]["login"].as_str();
        login.map(str::to_owned).ok_or_else(|| Error::Malformed {
            detail: "the account of the token has no login".to_owned(),
        })
    }
}
