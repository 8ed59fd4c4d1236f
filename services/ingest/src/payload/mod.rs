//! The payloads of webhooks: what the kinds of events read of them.

pub(crate) mod github;
pub(crate) mod jira;

use domain::{Instance, Origin, RepositoryName, json};
use queue::WebhookDelivery;

/// A webhook, as far as every kind of event needs it.
pub(crate) enum Hook<'a> {
    /// Of a Jira site.
    Jira {
        instance: Option<&'a Instance>,
        payload: Box<jira::Payload>,
    },
    /// Of a GitHub instance; `event` is its `X-GitHub-Event`.
    GitHub {
        instance: Option<&'a Instance>,
        event: &'a str,
        body: &'a [u8],
    },
}

impl<'a> Hook<'a> {
    /// Opens a delivery.
    ///
    /// # Errors
    /// [`Unreadable`] when a webhook of Jira's is none.
    pub(crate) fn open(delivery: &'a WebhookDelivery) -> Result<Self, Unreadable> {
        let instance = delivery.source.instance();
        Ok(match &delivery.source {
            Origin::Jira(_) => Self::Jira {
                instance,
                payload: Box::new(read("jira", &delivery.body)?),
            },
            Origin::GitHub(_) => Self::GitHub {
                instance,
                event: &delivery.event,
                body: &delivery.body,
            },
        })
    }

    /// What it is called, for the log.
    pub(crate) fn name(&self) -> String {
        let name = match self {
            Self::Jira { payload, .. } => &payload.webhook_event,
            Self::GitHub { event, .. } => *event,
        };
        name.chars().take(60).collect()
    }

    /// The payload of a webhook of GitHub's.
    ///
    /// # Errors
    /// [`Unreadable`] when it has another shape.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Unreadable> {
        match self {
            Self::GitHub { event, body, .. } => read(event, body),
            Self::Jira { .. } => Err(self.broken("not of GitHub")),
        }
    }

    /// A repository that the payload names, on the webhook's instance.
    pub(crate) fn repository(&self, named: github::Repository) -> RepositoryName {
        let (Self::Jira { instance, .. } | Self::GitHub { instance, .. }) = self;
        named.full_name.on(instance.cloned())
    }

    /// What is wrong with the payload.
    pub(crate) fn broken(&self, problem: &str) -> Unreadable {
        Unreadable {
            event: self.name(),
            problem: problem.to_owned(),
        }
    }
}

/// The body is JSON but not the event that it claims to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event} event is not readable: {problem}")]
pub(crate) struct Unreadable {
    event: String,
    problem: String,
}

/// Reads a payload; the error names the place, never the content.
fn read<T: serde::de::DeserializeOwned>(event: &str, body: &[u8]) -> Result<T, Unreadable> {
    let unreadable = |problem: String| Unreadable {
        event: event.chars().take(60).collect(),
        problem,
    };
    let body = json::replace_broken_characters(body);
    let mut deserializer = json::deserializer(&body).map_err(|error| unreadable(error.to_string()))?;
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let place = place(&error.path().to_string());
        unreadable(format!("{place}{}", problem(error.inner())))
    })?;
    deserializer.end().map_err(|error| unreadable(problem(&error)))?;
    Ok(value)
}

/// Where in the payload, for the operator: names of fields and numbers of items. Whatever else stands in a path was a key
/// of the payload.
fn place(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    let plain: String = path.chars().filter(|c| is_plain(*c)).take(120).collect();
    if plain.chars().any(char::is_alphanumeric) {
        format!("at {plain}: ")
    } else {
        String::new()
    }
}

fn problem(error: &serde_json::Error) -> String {
    // Other messages of the parser quote the content.
    let text = error.to_string();
    let what = if text.starts_with("missing field") {
        text
    } else {
        format!("{:?} error", error.classify())
    };
    format!("{what}, line {}, column {}", error.line(), error.column())
}
