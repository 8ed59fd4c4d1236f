//! Names of additional Jira sites and GitHub servers, and of local folders.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::identity::{InvalidId, text_serde};

const EXPECTED: &str = "the name of an instance, such as ghe or dc-2: at most 32 lower-case letters, digits and \
                        hyphens, a letter first, and not jira, github or folder, which are reserved";
const RESERVED: [&str; 3] = ["jira", "github", LOCAL];
// The instance of all repositories in local folders. Settings cannot give a server this name, because it is
// reserved.
const LOCAL: &str = "folder";
const MAX_CHARS: usize = 32;

/// Name of an additional Jira site or GitHub server in the settings, or of local folders: `ghe`, `dc`,
/// `shop`.
// An instance is a part of names, and services select the client by the name. So no caller can send a
// credential to another server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceName(String);

impl InstanceName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The instance of repositories in local folders.
    pub(crate) fn local() -> Self {
        Self(LOCAL.to_owned())
    }

    /// Returns true for [`InstanceName::local`].
    pub(crate) fn is_local(&self) -> bool {
        self.0 == LOCAL
    }

    /// Parses the instance in a repository's name, including the reserved instance of local folders.
    pub(crate) fn of_repository(text: &str) -> Result<Self, InvalidId> {
        if text == LOCAL {
            Ok(Self::local())
        } else {
            text.parse()
        }
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for InstanceName {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_name = text.len() <= MAX_CHARS
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && !text.ends_with('-')
            && text.chars().all(is_legal);
        if is_name && !RESERVED.contains(&text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId::new(text, EXPECTED))
        }
    }
}
text_serde!(InstanceName);
