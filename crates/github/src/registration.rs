//! Registering the two Apps from manifests, and where they are installed.

use std::sync::Arc;

use domain::RepositoryName;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error, Settings,
    call::Call,
    client::connect::{anonymous_crab, app_crab},
    limits::{Caller, Limits},
    permissions::{EVENTS, Needed, READER, WRITER},
    transport,
};

/// The longest name that GitHub takes for an App.
const MAX_NAME: usize = 34;

/// Which of the two Apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// That of `[github_reader]`.
    Reader,
    /// That of `[github_writer]`.
    Writer,
}

impl Role {
    /// Both, in the order in which they are made.
    pub const ALL: [Self; 2] = [Self::Reader, Self::Writer];

    /// `reader` or `writer`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Writer => "writer",
        }
    }

    /// Its section of the settings.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Reader => "github_reader",
            Self::Writer => "github_writer",
        }
    }

    const fn needed(self) -> &'static [Needed] {
        match self {
            Self::Reader => &READER,
            Self::Writer => &WRITER,
        }
    }

    /// The name that the App of an organisation is proposed; people may choose another one on GitHub's page.
    fn name(self, org: &str) -> String {
        let end = match self {
            Self::Reader => "-journeyman-reader",
            Self::Writer => "-journeyman",
        };
        let org: String = org.chars().take(MAX_NAME - end.len()).collect();
        org + end
    }
}

/// What GitHub is asked to register. `hook` is where webhooks go; without it the App has none, as a hook without address is
/// refused even when it is off. The writer never has one.
pub fn manifest(role: Role, org: &str, home: &str, back_to: &str, hook: Option<&str>) -> Value {
    let permissions = role.needed().iter();
    let permissions = permissions.map(|needed| (needed.name.to_owned(), needed.level.as_str().into()));
    let mut manifest = json!({
        "name": role.name(org),
        "url": home,
        "redirect_url": back_to,
        "public": false,
        "default_permissions": Value::Object(permissions.collect()),
    });
    if let (Role::Reader, Some(url)) = (role, hook) {
        manifest["hook_attributes"] = json!({"url": url, "active": true});
        manifest["default_events"] = EVENTS.map(|event| event.name).to_vec().into();
    }
    manifest
}

/// An App that was registered a moment ago. GitHub tells its key this once.
#[derive(Debug, Deserialize)]
pub struct NewApp {
    /// Its id.
    pub id: u64,
    /// Its name in addresses; people may have changed the one that the manifest proposed.
    pub slug: String,
    /// Its private key, PEM.
    pub pem: SecretString,
    /// What its webhooks are signed with; absent without a webhook.
    pub webhook_secret: Option<SecretString>,
    /// Its page.
    pub html_url: String,
    /// Its owner.
    #[serde(default)]
    owner: Option<NewOwner>,
}

#[derive(Debug, Deserialize)]
struct NewOwner {
    #[serde(default)]
    login: String,
}

impl NewApp {
    /// Its owner; empty where GitHub does not say so.
    pub fn owner(&self) -> &str {
        self.owner.as_ref().map_or("", |owner| owner.login.as_str())
    }
}

/// Takes the App whose code GitHub led back with. A code is good for one call within an hour.
///
/// # Errors
/// What GitHub says, e.g. that it does not know the code.
pub async fn convert(api_url: &str, code: &str) -> Result<NewApp, Error> {
    let is_plain = code
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if code.is_empty() || !is_plain {
        return Err(Error::Rejected {
            detail: "the code of the manifest is not one".to_owned(),
        });
    }
    let caller = Caller {
        crab: Arc::new(anonymous_crab(api_url)?),
        limits: Limits::default(),
    };
    let path = format!("/app-manifests/{code}/conversions");
    let answer = transport::send(&caller, Call::Post(&path, &json!({}))).await;
    let made = answer.and_then(|answer| answer.parse());
    made.map_err(|error| without(code, error))
}

#[derive(Deserialize)]
struct WireNumbered {
    id: u64,
}

/// The number of the account under which an App writes, which is not that of the App. GitHub tells it to anybody; a server that
/// tells nobody without an account refuses.
///
/// # Errors
/// What GitHub says.
pub async fn bot_number(api_url: &str, slug: &str) -> Result<u64, Error> {
    let caller = Caller {
        crab: Arc::new(anonymous_crab(api_url)?),
        limits: Limits::default(),
    };
    let path = format!("/users/{}", domain::address::encode(&format!("{slug}[bot]")));
    let answer = transport::read(&caller, Call::Get(&path)).await?;
    answer.parse::<WireNumbered>().map(|account| account.id)
}

/// Who has the code can take the App, as long as nobody has.
fn without(code: &str, error: Error) -> Error {
    let hidden = |text: String| text.replace(code, "…");
    match error {
        Error::NotFound { what } => Error::NotFound { what: hidden(what) },
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
        other => other,
    }
}

/// A place where an App is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The organisation or person.
    pub account: String,
    /// Whether somebody suspended it.
    pub is_suspended: bool,
}

/// An App as GitHub knows it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name in addresses.
    pub slug: String,
    /// Its page.
    pub html_url: String,
    /// Where it is installed, at most a hundred places.
    pub installed: Vec<Installed>,
}

#[derive(Deserialize)]
struct WireApp {
    slug: String,
    html_url: String,
}

#[derive(Deserialize)]
struct WireInstalled {
    account: Option<WireAccount>,
    suspended_at: Option<String>,
}

#[derive(Deserialize)]
struct WireAccount {
    login: String,
}

/// The App of these settings.
///
/// # Errors
/// When the settings name no App, or what GitHub says.
pub async fn standing(settings: &Settings) -> Result<Standing, Error> {
    let caller = app_caller(settings)?;
    let app: WireApp = transport::read(&caller, Call::Get("/app")).await?.parse()?;
    let path = "/app/installations?per_page=100";
    let found: Vec<WireInstalled> = transport::read(&caller, Call::Get(path)).await?.parse()?;
    let named = found.into_iter().filter_map(|it| {
        Some(Installed {
            account: it.account?.login,
            is_suspended: it.suspended_at.is_some(),
        })
    });
    Ok(Standing {
        slug: app.slug,
        html_url: app.html_url,
        installed: named.collect(),
    })
}

/// The App itself, without an installation.
fn app_caller(settings: &Settings) -> Result<Caller, Error> {
    let (Some(id), Some(key)) = (settings.app_id, &settings.private_key) else {
        return Err(Error::Unauthorized {
            check: "there is no App id and private key".to_owned(),
        });
    };
    Ok(Caller {
        crab: Arc::new(app_crab(&settings.api_url, id, key)?),
        limits: Limits::default(),
    })
}

/// Has the App of these settings send its webhooks to `url`, signed with the secret. Which events it sends only a person can say,
/// on its page.
///
/// # Errors
/// When the settings name no App, or what GitHub says.
pub async fn set_hook(settings: &Settings, url: &str, secret: &SecretString) -> Result<(), Error> {
    let caller = app_caller(settings)?;
    let wanted =
        json!({"url": url, "content_type": "json", "insecure_ssl": "0", "secret": secret.expose_secret()});
    let answer = transport::send(&caller, Call::Patch("/app/hook/config", &wanted)).await?;
    answer.parse::<Value>().map(drop)
}

/// Whether a text can be the name of an organisation.
pub fn is_owner(name: &str) -> bool {
    RepositoryName::new(name, "x").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_asks_for_what_the_lists_say_and_only_the_reader_has_a_webhook() {
        let url = "https://jm.example/webhooks/github";
        let hook = Some(url);
        let made = |role, hook| {
            manifest(
                role,
                "acme",
                "https://github.com/acme",
                "http://127.0.0.1:9/callback",
                hook,
            )
        };
        let reader = made(Role::Reader, hook);
        assert_eq!(
            reader["default_permissions"].as_object().unwrap().len(),
            READER.len()
        );
        assert_eq!(reader["default_permissions"]["issues"], "read");
        assert_eq!(reader["hook_attributes"]["url"], url);
        assert_eq!(reader["default_events"].as_array().unwrap().len(), EVENTS.len());
        let quiet = made(Role::Reader, None);
        assert!(quiet.get("hook_attributes").is_none() && quiet.get("default_events").is_none());
        let writer = made(Role::Writer, hook);
        assert!(writer.get("hook_attributes").is_none() && writer.get("default_events").is_none());
        assert_eq!(writer["default_permissions"]["contents"], "write");
        assert!(writer["default_permissions"].get("workflows").is_none());
        assert_eq!(
            (&reader["public"], &writer["public"]),
            (&json!(false), &json!(false))
        );
    }

    #[test]
    fn a_name_is_never_longer_than_github_takes() {
        assert_eq!(Role::Reader.name("acme"), "acme-journeyman-reader");
        let long = "a".repeat(39);
        for role in Role::ALL {
            assert_eq!(role.name(&long).len(), MAX_NAME, "{role:?}");
        }
    }
}
