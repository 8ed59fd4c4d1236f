//! Payloads of webhooks, as far as the kinds of events read them.

pub(crate) mod github;
pub(crate) mod jira;

use domain::{InstanceName, RepositoryName, ServiceOrigin, TicketKey, json};
use queue::WebhookDelivery;

/// Webhook in the form that every kind of event needs.
pub(crate) enum WebhookPayload<'a> {
    /// Webhook of a Jira site.
    Jira {
        instance: Option<&'a InstanceName>,
        payload: Box<jira::JiraHookPayload>,
    },
    /// Webhook of a GitHub instance; `event` is its `X-GitHub-Event`.
    GitHub {
        instance: Option<&'a InstanceName>,
        event: &'a str,
        body: &'a [u8],
    },
}

impl<'a> WebhookPayload<'a> {
    /// Opens a delivery.
    ///
    /// # Errors
    /// [`UnreadablePayload`] when the body of a Jira webhook is invalid.
    pub(crate) fn open(delivery: &'a WebhookDelivery) -> Result<Self, UnreadablePayload> {
        let instance = delivery.source.instance();
        Ok(match &delivery.source {
            ServiceOrigin::Jira(_) => Self::Jira {
                instance,
                payload: Box::new(parse_jira_payload(&delivery.body)?),
            },
            ServiceOrigin::GitHub(_) => Self::GitHub {
                instance,
                event: &delivery.event,
                body: &delivery.body,
            },
        })
    }

    /// Jira issue of the webhook, with its id.
    pub(crate) fn seen_issue(&self) -> Option<jira::SeenIssue> {
        match self {
            Self::Jira { instance, payload } => payload.seen_issue(*instance),
            Self::GitHub { .. } => None,
        }
    }

    /// New comment of a Jira site whose webhook does not contain the issue.
    pub(crate) fn lone_comment(&self) -> Option<(Option<&'a InstanceName>, &jira::JiraHookComment)> {
        match self {
            Self::Jira { instance, payload } => Some((*instance, payload.lone_comment()?)),
            Self::GitHub { .. } => None,
        }
    }

    /// Adds the Jira issue that the webhook is about.
    pub(crate) fn add_issue(&mut self, id: u64, key: &TicketKey) {
        if let Self::Jira { payload, .. } = self {
            payload.add_issue(id, key);
        }
    }

    /// Jira ticket that the delivery asks to read.
    ///
    /// # Errors
    /// [`UnreadablePayload`] when the body names none.
    pub(crate) fn requested_ticket(&self) -> Result<Option<TicketKey>, UnreadablePayload> {
        match self {
            Self::Jira { instance, payload } => payload.requested_ticket(*instance),
            Self::GitHub { .. } => Ok(None),
        }
    }

    /// Reason why nothing follows from the webhook.
    pub(crate) fn describe_nothing(&self) -> String {
        let part = match self {
            Self::Jira { payload, .. } => payload.missing_part(),
            Self::GitHub { .. } => None,
        };
        part.map_or_else(|| self.name(), str::to_owned)
    }

    /// Name of the event for the log, at most 60 characters.
    pub(crate) fn name(&self) -> String {
        let name = match self {
            Self::Jira { payload, .. } => &payload.webhook_event,
            Self::GitHub { event, .. } => *event,
        };
        name.chars().take(60).collect()
    }

    /// Parses the payload of a GitHub webhook.
    ///
    /// # Errors
    /// [`UnreadablePayload`] when it has another shape.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, UnreadablePayload> {
        match self {
            Self::GitHub { event, body, .. } => parse_payload(event, body),
            Self::Jira { .. } => Err(self.broken("not of GitHub")),
        }
    }

    /// Parses the payload of a GitHub webhook of this event; `None` for any other webhook.
    ///
    /// # Errors
    /// [`UnreadablePayload`] when it has another shape.
    pub(crate) fn read_event<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<T>, UnreadablePayload> {
        match self {
            Self::GitHub { event, .. } if *event == name => self.read().map(Some),
            Self::GitHub { .. } | Self::Jira { .. } => Ok(None),
        }
    }

    /// Repository of the payload, on the webhook's instance.
    pub(crate) fn repository(&self, named: github::GithubHookRepository) -> RepositoryName {
        let (Self::Jira { instance, .. } | Self::GitHub { instance, .. }) = self;
        named.full_name.on(instance.cloned())
    }

    /// Error about the payload.
    pub(crate) fn broken(&self, problem: &str) -> UnreadablePayload {
        UnreadablePayload {
            event: self.name(),
            problem: problem.to_owned(),
        }
    }
}

/// Body that is JSON but does not match its event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event} event is not readable: {problem}")]
pub(crate) struct UnreadablePayload {
    event: String,
    problem: String,
}

/// Parses the payload of a Jira webhook. A body that is no event counts for the issue that it names, because the tool
/// that sent it chooses the shape of its other fields.
fn parse_jira_payload(body: &[u8]) -> Result<jira::JiraHookPayload, UnreadablePayload> {
    parse_payload("jira", body).or_else(|unreadable| {
        let named = parse_payload::<jira::IssueNameBody>("jira", body).ok();
        named
            .and_then(jira::IssueNameBody::into_payload)
            .ok_or(unreadable)
    })
}

/// Parses a payload. The error names the position, never the content.
fn parse_payload<T: serde::de::DeserializeOwned>(event: &str, body: &[u8]) -> Result<T, UnreadablePayload> {
    let unreadable = |problem: String| UnreadablePayload {
        event: event.chars().take(60).collect(),
        problem,
    };
    let body = json::replace_broken_characters(body);
    let mut deserializer = json::create_deserializer(&body).map_err(|error| unreadable(error.to_string()))?;
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let place = render_position(&error.path().to_string());
        unreadable(format!("{place}{}", describe_problem(error.inner())))
    })?;
    deserializer
        .end()
        .map_err(|error| unreadable(describe_problem(&error)))?;
    Ok(value)
}

/// Position in the payload for the operator: field names and indexes. Other characters come from keys of the payload and
/// are dropped.
fn render_position(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    let plain: String = path.chars().filter(|c| is_plain(*c)).take(120).collect();
    if plain.chars().any(char::is_alphanumeric) {
        format!("at {plain}: ")
    } else {
        String::new()
    }
}

fn describe_problem(error: &serde_json::Error) -> String {
    // Other messages of the parser quote the content.
    let text = error.to_string();
    let what = if text.starts_with("missing field") {
        text
    } else {
        format!("{:?} error", error.classify())
    };
    format!("{what}, line {}, column {}", error.line(), error.column())
}
