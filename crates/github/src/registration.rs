//! Registration of the two Apps from manifests, and their installations.

use domain::RepositoryName;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error, Settings,
    connection::{ApiConnection, GitHubCall},
    installation_router::list_installations,
    limits::{AccountLimits, ApiCaller},
    permissions::{EVENTS, READER, RequiredAppPermission, WRITER},
    transport::{self, GitHubAnswer},
};

// The longest name that GitHub accepts for an App.
const MAX_NAME: usize = 34;

/// Role of one of the two Apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppRole {
    /// The App of `[github_reader]`.
    Reader,
    /// The App of `[github_writer]`.
    Writer,
}

impl AppRole {
    /// Both roles, in the order of their registration.
    pub const ALL: [Self; 2] = [Self::Reader, Self::Writer];

    /// Name of the role: `reader` or `writer`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Writer => "writer",
        }
    }

    /// Section of the settings for the App.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Reader => "github_reader",
            Self::Writer => "github_writer",
        }
    }

    const fn needed(self) -> &'static [RequiredAppPermission] {
        match self {
            Self::Reader => &READER,
            Self::Writer => &WRITER,
        }
    }

    /// Proposed name for an organization's App. The user can choose another name on GitHub's page.
    fn name(self, org: &str) -> String {
        let end = match self {
            Self::Reader => "-journeyman-reader",
            Self::Writer => "-journeyman",
        };
        // The organization's part is shortened, because the ending distinguishes the two Apps.
        let org: String = org.chars().take(MAX_NAME - end.len()).collect();
        org + end
    }
}

/// Builds the manifest of an App. `hook` is the address for webhooks of the reader; the writer receives none.
pub fn build_manifest(role: AppRole, org: &str, home: &str, back_to: &str, hook: Option<&str>) -> Value {
    let permissions = role.needed().iter();
    let permissions = permissions.map(|needed| (needed.name.to_owned(), needed.level.as_str().into()));
    let mut manifest = json!({
        "name": role.name(org),
        "url": home,
        "redirect_url": back_to,
        "public": false,
        "default_permissions": Value::Object(permissions.collect()),
    });
    // Without an address the manifest has no hook at all: GitHub refuses a hook without a URL even when it is
    // inactive.
    if let (AppRole::Reader, Some(url)) = (role, hook) {
        manifest["hook_attributes"] = json!({"url": url, "active": true});
        manifest["default_events"] = EVENTS.map(|event| event.name).to_vec().into();
    }
    manifest
}

/// App that GitHub has just registered. GitHub shows the private key only in this answer.
#[derive(Debug, Deserialize)]
pub struct NewApp {
    /// Id of the App.
    pub id: u64,
    /// Name in URLs; the user may have changed the name that the manifest proposed.
    pub slug: String,
    /// Private key in PEM format.
    pub pem: SecretString,
    /// Secret that signs its webhooks; absent without a webhook.
    pub webhook_secret: Option<SecretString>,
    /// Link to its page.
    pub html_url: String,
    /// Owner of the App.
    #[serde(default)]
    owner: Option<NewOwner>,
}

#[derive(Debug, Deserialize)]
struct NewOwner {
    #[serde(default)]
    login: String,
}

impl NewApp {
    /// Login of its owner; empty when GitHub omits it.
    pub fn owner(&self) -> &str {
        self.owner.as_ref().map_or("", |owner| owner.login.as_str())
    }
}

/// Exchanges the code that GitHub redirected back with for the App. A code is valid for one call within an
/// hour.
///
/// # Errors
/// [`Error::Rejected`] for a malformed code; otherwise GitHub's refusal, e.g. of an unknown code.
pub async fn convert_manifest_code(api_url: &str, code: &str) -> Result<NewApp, Error> {
    // The code becomes part of a path, in which other characters would change the URL.
    let is_plain = code
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if code.is_empty() || !is_plain {
        return Err(Error::Rejected {
            detail: "the code of the manifest is not one".to_owned(),
        });
    }
    let caller = build_anonymous_caller(api_url)?;
    let path = format!("/app-manifests/{code}/conversions");
    let answer = transport::send_call(&caller, GitHubCall::Post(&path, &json!({}))).await;
    let made = answer.and_then(|answer| answer.parse());
    made.map_err(|error| redact_code(code, error))
}

#[derive(Deserialize)]
struct WireNumbered {
    id: u64,
}

/// Reads the id of the account `<slug>[bot]` under which an App writes; it differs from the App's id. The
/// request is anonymous, so a server that requires a login refuses it.
///
/// # Errors
/// GitHub's refusal, e.g. of an unknown account.
pub async fn fetch_bot_id(api_url: &str, slug: &str) -> Result<u64, Error> {
    let answer = fetch_account(api_url, &format!("{slug}[bot]")).await?;
    answer.parse::<WireNumbered>().map(|account| account.id)
}

/// True when a user or an organization has this name. The request is anonymous, so a server that requires a login
/// refuses it.
///
/// # Errors
/// GitHub's refusal, except for an unknown name.
pub async fn has_account(api_url: &str, name: &str) -> Result<bool, Error> {
    let answer = fetch_account(api_url, name).await;
    Error::none_if_missing(answer).map(|found| found.is_some())
}

/// Reads a user, an organization or the account of an App, without a login.
async fn fetch_account(api_url: &str, login: &str) -> Result<GitHubAnswer, Error> {
    let caller = build_anonymous_caller(api_url)?;
    let path = format!("/users/{}", domain::address::percent_encode(login));
    transport::send_call(&caller, GitHubCall::Get(&path)).await
}

fn build_anonymous_caller(api_url: &str) -> Result<ApiCaller, Error> {
    Ok(ApiCaller {
        connection: ApiConnection::anonymous(api_url)?,
        limits: AccountLimits::default(),
    })
}

/// Replaces the code in an error: until the code is used, its holder can obtain the App with its key.
fn redact_code(code: &str, error: Error) -> Error {
    let hidden = |text: String| text.replace(code, "…");
    match error {
        Error::NotFound { what } => Error::NotFound { what: hidden(what) },
        Error::Deleted { what } => Error::Deleted { what: hidden(what) },
        Error::Malformed { detail } => Error::Malformed {
            detail: hidden(detail),
        },
        Error::Unavailable { detail, source } => Error::Unavailable {
            detail: hidden(detail),
            source,
        },
        Error::Unknown { detail, source } => Error::Unknown {
            detail: hidden(detail),
            source,
        },
        Error::Forbidden { detail, needs } => Error::Forbidden {
            detail: hidden(detail),
            needs,
        },
        Error::Rejected { detail } => Error::Rejected {
            detail: hidden(detail),
        },
        Error::Locked { detail } => Error::Locked {
            detail: hidden(detail),
        },
        Error::Archived { detail } => Error::Archived {
            detail: hidden(detail),
        },
        other => other,
    }
}

/// Account on which an App is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledAccount {
    /// Login of the organization or user.
    pub account: String,
    /// True when the installation is suspended.
    pub is_suspended: bool,
}

/// Present state of an App at GitHub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredApp {
    /// Name in URLs.
    pub slug: String,
    /// Link to its page.
    pub html_url: String,
    /// Installations of the App, at most 5,000.
    pub installed: Vec<InstalledAccount>,
}

#[derive(Deserialize)]
struct WireApp {
    slug: String,
    html_url: String,
}

/// Reads the App of these settings, with its installations.
///
/// # Errors
/// [`Error::Unauthorized`] when the settings name no App; otherwise GitHub's refusal.
pub async fn fetch_registered_app(settings: &Settings) -> Result<RegisteredApp, Error> {
    let caller = build_app_caller(settings)?;
    let app: WireApp = transport::send_call(&caller, GitHubCall::Get("/app"))
        .await?
        .parse()?;
    let named = list_installations(&caller).await?.into_iter().filter_map(|it| {
        Some(InstalledAccount {
            account: it.account?.login,
            is_suspended: it.suspended_at.is_some(),
        })
    });
    Ok(RegisteredApp {
        slug: app.slug,
        html_url: app.html_url,
        installed: named.collect(),
    })
}

/// Caller for the App itself, without an installation.
fn build_app_caller(settings: &Settings) -> Result<ApiCaller, Error> {
    let (Some(id), Some(key)) = (settings.app_id, &settings.private_key) else {
        return Err(Error::Unauthorized {
            check: "there is no App id and private key".to_owned(),
        });
    };
    Ok(ApiCaller {
        connection: ApiConnection::anonymous(&settings.api_url)?.with_app(id, key)?,
        limits: AccountLimits::default(),
    })
}

/// Sets the webhook address and secret of the settings' App. GitHub has no endpoint for the subscribed
/// events; a user selects them on the App's page.
///
/// # Errors
/// [`Error::Unauthorized`] when the settings name no App; otherwise GitHub's refusal.
pub async fn set_app_webhook(settings: &Settings, url: &str, secret: &SecretString) -> Result<(), Error> {
    let caller = build_app_caller(settings)?;
    let wanted =
        json!({"url": url, "content_type": "json", "insecure_ssl": "0", "secret": secret.expose_secret()});
    let answer = transport::send_call(&caller, GitHubCall::Patch("/app/hook/config", &wanted)).await?;
    answer.parse::<Value>().map(drop)
}

/// True when a text can be the login of an organization.
pub fn is_valid_owner(name: &str) -> bool {
    RepositoryName::new(name, "x").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_requests_listed_permissions_and_reader_webhook() {
        let url = "https://jm.example/webhooks/github";
        let hook = Some(url);
        let made = |role, hook| {
            build_manifest(
                role,
                "acme",
                "https://github.com/acme",
                "http://127.0.0.1:9/callback",
                hook,
            )
        };
        let reader = made(AppRole::Reader, hook);
        assert_eq!(
            reader["default_permissions"].as_object().unwrap().len(),
            READER.len()
        );
        assert_eq!(reader["default_permissions"]["issues"], "read");
        assert_eq!(reader["hook_attributes"]["url"], url);
        assert_eq!(reader["default_events"].as_array().unwrap().len(), EVENTS.len());
        let quiet = made(AppRole::Reader, None);
        assert!(quiet.get("hook_attributes").is_none() && quiet.get("default_events").is_none());
        let writer = made(AppRole::Writer, hook);
        assert!(writer.get("hook_attributes").is_none() && writer.get("default_events").is_none());
        assert_eq!(writer["default_permissions"]["contents"], "write");
        assert!(writer["default_permissions"].get("workflows").is_none());
        assert_eq!(
            (&reader["public"], &writer["public"]),
            (&json!(false), &json!(false))
        );
    }

    #[test]
    fn app_name_fits_github_limit() {
        assert_eq!(AppRole::Reader.name("acme"), "acme-journeyman-reader");
        let long = "a".repeat(39);
        for role in AppRole::ALL {
            assert_eq!(role.name(&long).len(), MAX_NAME, "{role:?}");
        }
    }
}
