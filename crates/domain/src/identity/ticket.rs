//! Tickets: their identities, texts, comments and questions.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::identity::{
    InvalidId, attachment::TicketAttachment, instance::InstanceName, origin::ServiceOrigin,
    repository::RepositoryName, text_serde, time::Timestamp,
};

const EXPECTED: &str = "a ticket such as jira:ENG-12, github:acme/shop#7, github:acme/shop/discussions/7 or \
                        folder:shop#1; with the name of an instance, jira+dc:ENG-12 or github+ghe:acme/shop#7";
// Prefix of a folder ticket.
const FOLDER: &str = "folder";
// Separator of the repository and the number of a discussion, as in GitHub's URLs.
const DISCUSSIONS: &str = "/discussions/";

/// The identity of a ticket.
///
/// `jira:ENG-12`, `github:acme/shop#7` for an issue or pull request, `github:acme/shop/discussions/7` for a
/// discussion, or `folder:shop#1` for a request about a local folder.
///
/// A ticket outside of the default instance names its instance: `jira+dc:ENG-12`, `github+ghe:acme/shop#7`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TicketKey {
    /// A Jira issue.
    Jira {
        /// The site; absent: the default one.
        instance: Option<InstanceName>,
        /// The project: an upper-case letter, then upper-case letters, digits or `_`.
        project: String,
        /// The number in the project, from 1.
        number: u64,
    },
    /// A GitHub issue or pull request.
    GitHub {
        /// The repository, which determines the instance.
        repository: RepositoryName,
        /// The number in the repository, from 1.
        number: u64,
    },
    /// A discussion on GitHub. Issues, pull requests and discussions of a repository have one sequence of
    /// numbers, so a number does not show the kind, but other API calls read and write discussions.
    Discussion {
        /// The repository, which determines the instance.
        repository: RepositoryName,
        /// The number in the repository, from 1.
        number: u64,
    },
    /// A request about the repository in a local folder. No tracker contains it, so no comments are posted.
    Folder {
        /// The folder, by its name in the settings.
        folder: InstanceName,
        /// The number in the folder, from 1.
        number: u64,
    },
}

impl TicketKey {
    /// Parses the key `ENG-12` of an issue on the default Jira site.
    ///
    /// # Errors
    /// [`InvalidId`] when the text is not a Jira issue key.
    pub fn jira(key: &str) -> Result<Self, InvalidId> {
        Self::jira_on(None, key)
    }

    /// Parses a ticket that a user typed: a whole key, or one of a default instance without its prefix, such
    /// as `ENG-12`, `acme/shop#7` and `acme/shop/discussions/7`.
    ///
    /// # Errors
    /// [`InvalidId`] when the text has neither form.
    pub fn written(text: &str) -> Result<Self, InvalidId> {
        Self::jira(text).or_else(|_| {
            if text.contains('/') && !text.contains(':') {
                format!("github:{text}").parse()
            } else {
                text.parse()
            }
        })
    }

    /// Parses the key `ENG-12` of an issue on a Jira site.
    ///
    /// # Errors
    /// [`InvalidId`] when the text is not a Jira issue key.
    pub fn jira_on(instance: Option<InstanceName>, key: &str) -> Result<Self, InvalidId> {
        let invalid = || InvalidId::new(key, "a Jira issue key such as ENG-12");
        let (project, number) = key.rsplit_once('-').ok_or_else(invalid)?;
        let is_project = project.len() <= 64
            && project.starts_with(|c: char| c.is_ascii_uppercase())
            && project
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        match parse_number(number) {
            Some(number) if is_project => Ok(Self::Jira {
                instance,
                project: project.to_owned(),
                number,
            }),
            Some(_) | None => Err(invalid()),
        }
    }

    /// The instance of its tracker; absent: the default one, or the ticket has no tracker.
    pub fn instance(&self) -> Option<&InstanceName> {
        match self {
            Self::Jira { instance, .. } => instance.as_ref(),
            Self::GitHub { repository, .. } | Self::Discussion { repository, .. } => repository.instance(),
            Self::Folder { .. } => None,
        }
    }

    /// Returns the ticket with the same key on this instance (absent: the default one). A folder ticket
    /// remains unchanged.
    #[must_use]
    pub fn on(self, instance: Option<&InstanceName>) -> Self {
        match self {
            Self::Jira { project, number, .. } => Self::Jira {
                instance: instance.cloned(),
                project,
                number,
            },
            Self::GitHub { repository, number } => Self::GitHub {
                repository: repository.on(instance.cloned()),
                number,
            },
            Self::Discussion { repository, number } => Self::Discussion {
                repository: repository.on(instance.cloned()),
                number,
            },
            Self::Folder { .. } => self,
        }
    }

    /// The key in its tracker: `ENG-12`, `acme/shop#7`, for any instance; `shop-1` for a folder ticket. It is
    /// not unique.
    pub fn short(&self) -> String {
        match self {
            Self::Jira { project, number, .. } => format!("{project}-{number}"),
            Self::GitHub { repository, number } | Self::Discussion { repository, number } => {
                format!("{}#{number}", repository.path())
            }
            Self::Folder { folder, number } => format!("{folder}-{number}"),
        }
    }
}

/// Parses a number from 1 in its canonical spelling, so that a key has exactly one text.
fn parse_number(text: &str) -> Option<u64> {
    text.parse()
        .ok()
        // One spelling per ticket: `ENG-012` or `ENG-+12` would be separate keys of the same issue.
        .filter(|number: &u64| *number > 0 && number.to_string() == text)
}

impl fmt::Display for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instance = self.instance().cloned();
        match self {
            Self::Jira { .. } => write!(f, "{}:{}", ServiceOrigin::Jira(instance), self.short()),
            Self::GitHub { .. } => write!(f, "{}:{}", ServiceOrigin::GitHub(instance), self.short()),
            Self::Discussion { repository, number } => {
                let path = repository.path();
                write!(
                    f,
                    "{}:{path}{DISCUSSIONS}{number}",
                    ServiceOrigin::GitHub(instance)
                )
            }
            Self::Folder { folder, number } => write!(f, "{FOLDER}:{folder}#{number}"),
        }
    }
}

impl FromStr for TicketKey {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidId::new(text, EXPECTED);
        let (place, key) = text.split_once(':').ok_or_else(invalid)?;
        if place == FOLDER {
            let (folder, number) = key.rsplit_once('#').ok_or_else(invalid)?;
            return Ok(Self::Folder {
                folder: folder.parse().map_err(|_| invalid())?,
                number: parse_number(number).ok_or_else(invalid)?,
            });
        }
        match place.parse().map_err(|_| invalid())? {
            ServiceOrigin::Jira(instance) => Self::jira_on(instance, key).map_err(|_| invalid()),
            ServiceOrigin::GitHub(instance) => {
                let discussion = key.split_once(DISCUSSIONS);
                let (path, number) = discussion.or_else(|| key.rsplit_once('#')).ok_or_else(invalid)?;
                let (owner, name) = path.split_once('/').ok_or_else(invalid)?;
                let repository = RepositoryName::new(owner, name).map_err(|_| invalid())?;
                let (repository, number) =
                    (repository.on(instance), parse_number(number).ok_or_else(invalid)?);
                Ok(match discussion {
                    Some(_) => Self::Discussion { repository, number },
                    None => Self::GitHub { repository, number },
                })
            }
        }
    }
}
text_serde!(TicketKey);

/// Text of a ticket at the time of the trigger, pinned and sanitized: a later edit never reaches an active
/// job.
// The text is pinned once, also for repairs and reviews: an edit of the ticket never redirects work on an
// open pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketText {
    /// The title on one line.
    pub summary: String,
    /// The body as Markdown.
    pub description: String,
    /// Type of the ticket: `Story`, `Bug`, `Task` …
    pub kind: String,
    /// Priority: `High`, `Medium` …; empty when the tracker has none.
    pub priority: String,
    /// Labels of the ticket.
    pub labels: Vec<String>,
    /// Comments up to the trigger, oldest first.
    pub comments: Vec<TicketComment>,
    /// Attachments up to the trigger, those that the text shows first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<TicketAttachment>,
    /// URL of the ticket's page.
    pub url: String,
    /// SHA-256 (hexadecimal) of summary, description and comments as pinned.
    pub sha256: String,
}

/// One comment of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketComment {
    /// Display name of the author in the tracker.
    pub author: String,
    /// Time of the comment.
    pub at: Timestamp,
    /// The comment as Markdown.
    pub text: String,
    /// True when the author is allowed to give instructions; other comments are information only.
    #[serde(default)]
    pub may_instruct: bool,
    /// True when a user with that permission wrote it after the previous work on the ticket.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
}

/// An account at a tracker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackerAccount {
    /// Its identity: the account id on Jira Cloud, the name on Data Center, the login on GitHub. Empty:
    /// unknown.
    pub id: String,
    /// Display name of the account.
    pub display_name: String,
    /// True when it belongs to a program.
    pub is_bot: bool,
}

/// A question to the participants of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketQuestion {
    /// Text of a single question.
    pub text: String,
    /// Suggested answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}
