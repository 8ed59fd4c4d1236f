//! Tickets: what people talk in.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    instance::Instance,
    invalid::{InvalidId, text_serde},
    origin::Origin,
    repository::RepositoryName,
    time::Timestamp,
};

const EXPECTED: &str = "a ticket such as jira:ENG-12, github:acme/shop#7, github:acme/shop/discussions/7 or \
                        folder:shop#1; with the name of an instance, jira+dc:ENG-12 or github+ghe:acme/shop#7";
/// What a ticket of a folder begins with.
const FOLDER: &str = "folder";
/// What stands between a repository and the number of a discussion, as in GitHub's addresses.
const DISCUSSIONS: &str = "/discussions/";

/// A ticket's identity.
///
/// `jira:ENG-12`, `github:acme/shop#7` for an issue or pull request, `github:acme/shop/discussions/7` for a discussion, or
/// `folder:shop#1` for what somebody asks for in a local folder.
///
/// A ticket that is not on the default instance names its instance: `jira+dc:ENG-12`, `github+ghe:acme/shop#7`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TicketKey {
    /// A Jira issue.
    Jira {
        /// The site; absent: the default one.
        instance: Option<Instance>,
        /// The project: an upper-case letter, then upper-case letters, digits or `_`.
        project: String,
        /// The number in the project, from 1.
        number: u64,
    },
    /// A GitHub issue or pull request.
    GitHub {
        /// Where it lives; it names the instance.
        repository: RepositoryName,
        /// The number in the repository, from 1.
        number: u64,
    },
    /// A discussion on GitHub. Its number is no issue's and no pull request's, but nothing in the number says so, and
    /// other calls read and write it.
    Discussion {
        /// Where it lives; it names the instance.
        repository: RepositoryName,
        /// The number in the repository, from 1.
        number: u64,
    },
    /// A text about the repository in a local folder. No tracker has it: nobody can be told anything on it.
    Folder {
        /// The folder, by the name that the settings give it.
        folder: Instance,
        /// The number in the folder, from 1.
        number: u64,
    },
}

impl TicketKey {
    /// The issue `ENG-12` of the default Jira site.
    ///
    /// # Errors
    /// [`InvalidId`] when the text is not a Jira issue key.
    pub fn jira(key: &str) -> Result<Self, InvalidId> {
        Self::jira_on(None, key)
    }

    /// A ticket as people write it: a whole key, or one of a default instance without what names it, such as `ENG-12`,
    /// `acme/shop#7` and `acme/shop/discussions/7`.
    ///
    /// # Errors
    /// [`InvalidId`] when the text is neither.
    pub fn written(text: &str) -> Result<Self, InvalidId> {
        Self::jira(text).or_else(|_| match text.contains('/') && !text.contains(':') {
            true => format!("github:{text}").parse(),
            false => text.parse(),
        })
    }

    /// The issue `ENG-12` of a Jira site.
    ///
    /// # Errors
    /// [`InvalidId`] when the text is not a Jira issue key.
    pub fn jira_on(instance: Option<Instance>, key: &str) -> Result<Self, InvalidId> {
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

    /// The instance that it lives on; absent: the default one of its tracker, or it has no tracker.
    pub fn instance(&self) -> Option<&Instance> {
        match self {
            Self::Jira { instance, .. } => instance.as_ref(),
            Self::GitHub { repository, .. } | Self::Discussion { repository, .. } => repository.instance(),
            Self::Folder { .. } => None,
        }
    }

    /// The ticket of the same key on this instance (absent: the default one); one of a folder has none.
    #[must_use]
    pub fn on(self, instance: Option<&Instance>) -> Self {
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

    /// How its own tracker and its people write it: `ENG-12`, `acme/shop#7`, whatever the instance; `shop-1` for the
    /// ticket of a folder. Not an identity.
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

/// A number from 1 in its one spelling, so that a key has one text.
fn parse_number(text: &str) -> Option<u64> {
    text.parse()
        .ok()
        .filter(|number: &u64| *number > 0 && number.to_string() == text)
}

impl fmt::Display for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instance = self.instance().cloned();
        match self {
            Self::Jira { .. } => write!(f, "{}:{}", Origin::Jira(instance), self.short()),
            Self::GitHub { .. } => write!(f, "{}:{}", Origin::GitHub(instance), self.short()),
            Self::Discussion { repository, number } => {
                let path = repository.path();
                write!(f, "{}:{path}{DISCUSSIONS}{number}", Origin::GitHub(instance))
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
            Origin::Jira(instance) => Self::jira_on(instance, key).map_err(|_| invalid()),
            Origin::GitHub(instance) => {
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
    /// Whether the author may instruct; what others write is information only.
    #[serde(default)]
    pub may_instruct: bool,
    /// Whether it was said since the ticket was worked on before, by somebody who may instruct.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
}

/// Somebody's account at a tracker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// What identifies it: an account id at Jira Cloud, a name at Data Center, a login at GitHub. Empty: not told.
    pub id: String,
    /// As people see it.
    pub display_name: String,
    /// Whether it belongs to a program.
    pub is_bot: bool,
}
