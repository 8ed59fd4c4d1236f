//! Tickets: what people talk in.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{InvalidId, RepositoryName, Timestamp, ids::text_serde};

/// A ticket's identity: `jira:ENG-12`, or `github:acme/shop#7` for an issue, pull request or discussion.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TicketKey {
    /// A Jira issue.
    Jira {
        /// The project: an upper-case letter, then upper-case letters, digits or `_`.
        project: String,
        /// The number in the project, from 1.
        number: u64,
    },
    /// A GitHub issue, pull request or discussion.
    GitHub {
        /// Where it lives.
        repository: RepositoryName,
        /// The number in the repository, from 1.
        number: u64,
    },
}

impl TicketKey {
    /// The Jira issue `ENG-12`.
    ///
    /// # Errors
    /// [`InvalidId`] when the text is not a Jira issue key.
    pub fn jira(key: &str) -> Result<Self, InvalidId> {
        let invalid = || InvalidId::new(key, "a Jira issue key such as ENG-12");
        let (project, number) = key.rsplit_once('-').ok_or_else(invalid)?;
        let is_project = project.len() <= 64
            && project.starts_with(|c: char| c.is_ascii_uppercase())
            && project
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        match parse_number(number) {
            Some(number) if is_project => Ok(Self::Jira {
                project: project.to_owned(),
                number,
            }),
            Some(_) | None => Err(invalid()),
        }
    }

    /// How people write it: `ENG-12`, `acme/shop#7`.
    pub fn short(&self) -> String {
        match self {
            Self::Jira { project, number } => format!("{project}-{number}"),
            Self::GitHub { repository, number } => format!("{repository}#{number}"),
        }
    }
}

/// A number from 1 in its one spelling, so that a key has one text.
fn parse_number(text: &str) -> Option<u64> {
    text.parse()
        .ok()
        .filter(|number: &u64| *number > 0 && number.to_string() == text)
}

impl fmt::Display for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jira { .. } => write!(f, "jira:{}", self.short()),
            Self::GitHub { .. } => write!(f, "github:{}", self.short()),
        }
    }
}

impl FromStr for TicketKey {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidId::new(text, "a ticket such as jira:ENG-12 or github:acme/shop#7");
        match text.split_once(':') {
            Some(("jira", key)) => Self::jira(key).map_err(|_| invalid()),
            Some(("github", rest)) => {
                let (repository, number) = rest.rsplit_once('#').ok_or_else(invalid)?;
                let number = parse_number(number).ok_or_else(invalid)?;
                Ok(Self::GitHub {
                    repository: repository.parse().map_err(|_| invalid())?,
                    number,
                })
            }
            Some(_) | None => Err(invalid()),
        }
    }
}
text_serde!(TicketKey);

/// A ticket's text as it was at the trigger: pinned and sanitised, so that a later edit never reaches a running job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketText {
    /// The one-line title.
    pub summary: String,
    /// The body as Markdown.
    pub description: String,
    /// `Story`, `Bug`, `Task` …
    pub kind: String,
    /// `High`, `Medium` …; empty when the tracker has none.
    pub priority: String,
    /// Labels.
    pub labels: Vec<String>,
    /// Comments up to the trigger, oldest first.
    pub comments: Vec<TicketComment>,
    /// Link for people.
    pub url: String,
    /// SHA-256 (hex) over summary, description and comments as pinned.
    pub sha256: String,
}

/// One comment of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketComment {
    /// Who wrote it, as the tracker shows the name.
    pub author: String,
    /// When.
    pub at: Timestamp,
    /// Markdown.
    pub text: String,
}
