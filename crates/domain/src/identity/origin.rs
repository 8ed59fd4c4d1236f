//! External services that events come from.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::identity::{InvalidId, instance::InstanceName, text_serde};

/// A Jira site or GitHub server: `jira`, `github`, `jira+dc`, `github+ghe`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ServiceOrigin {
    /// A Jira site; the default one without an instance.
    Jira(Option<InstanceName>),
    /// A GitHub server; the default one without an instance.
    GitHub(Option<InstanceName>),
}

impl ServiceOrigin {
    /// The kind of service, for labels and limits that ignore instances.
    pub const fn service(&self) -> &'static str {
        match self {
            Self::Jira(_) => "jira",
            Self::GitHub(_) => "github",
        }
    }

    /// The instance; absent: the default one.
    pub const fn instance(&self) -> Option<&InstanceName> {
        match self {
            Self::Jira(instance) | Self::GitHub(instance) => instance.as_ref(),
        }
    }
}

impl fmt::Display for ServiceOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.service())?;
        match self.instance() {
            Some(instance) => write!(f, "+{instance}"),
            None => Ok(()),
        }
    }
}

impl FromStr for ServiceOrigin {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (service, instance) = match text.split_once('+') {
            Some((service, instance)) => (service, Some(instance.parse()?)),
            None => (text, None),
        };
        match service {
            "jira" => Ok(Self::Jira(instance)),
            "github" => Ok(Self::GitHub(instance)),
            _ => Err(InvalidId::new(
                text,
                "jira, github, or one of their instances such as github+ghe",
            )),
        }
    }
}
text_serde!(ServiceOrigin);
