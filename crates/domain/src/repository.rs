//! Names of repositories.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    instance::Instance,
    invalid::{InvalidId, text_serde},
};

const EXPECTED: &str = "a repository such as acme/shop, or ghe:acme/shop for one on the instance ghe";
/// Separates instance and owner in the name of a folder; no owner and no instance contains it.
const IN_FOLDER: char = '+';

/// A repository: `acme/shop` on the default GitHub, `ghe:acme/shop` on the instance `ghe`.
///
/// The text identifies it everywhere: in keys, grants and addresses of ours. What the server itself calls it is
/// [`RepositoryName::path`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepositoryName {
    instance: Option<Instance>,
    owner: String,
    name: String,
}

impl RepositoryName {
    /// A repository of the default instance. Both parts: ASCII letters, digits, `-`, `_` and `.`; at most 100
    /// characters; not `.` or `..`.
    ///
    /// # Errors
    /// [`InvalidId`] when a part breaks those rules (they are GitHub's).
    pub fn new(owner: &str, name: &str) -> Result<Self, InvalidId> {
        let is_part = |part: &str| {
            !part.is_empty()
                && part.len() <= 100
                && part != "."
                && part != ".."
                && part
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if is_part(owner) && is_part(name) {
            Ok(Self {
                instance: None,
                owner: owner.to_owned(),
                name: name.to_owned(),
            })
        } else {
            Err(InvalidId::new(&format!("{owner}/{name}"), EXPECTED))
        }
    }

    /// The repository of the same path on this instance (absent: the default one).
    #[must_use]
    pub fn on(self, instance: Option<Instance>) -> Self {
        Self { instance, ..self }
    }

    /// The instance; absent: the default one.
    pub fn instance(&self) -> Option<&Instance> {
        self.instance.as_ref()
    }

    /// The account or organisation.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The repository without its owner.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its own server and its people call it: `acme/shop`, whatever the instance. Not an identity.
    pub fn path(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// A folder of its own, two levels deep: `acme/shop`, `ghe+acme/shop`.
    pub fn folder(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{instance}{IN_FOLDER}{}/{}", self.owner, self.name),
            None => self.path(),
        }
    }

    /// The repository whose [`RepositoryName::folder`] has these two levels.
    pub fn of_folder(owner: &str, name: &str) -> Option<Self> {
        let (instance, owner) = match owner.split_once(IN_FOLDER) {
            Some((instance, owner)) => (Some(instance.parse().ok()?), owner),
            None => (None, owner),
        };
        Some(Self::new(owner, name).ok()?.on(instance))
    }
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(instance) = &self.instance {
            write!(f, "{instance}:")?;
        }
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl FromStr for RepositoryName {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (instance, path) = match text.split_once(':') {
            Some((instance, path)) => (Some(instance.parse()?), path),
            None => (None, text),
        };
        let (owner, name) = path
            .split_once('/')
            .ok_or_else(|| InvalidId::new(text, EXPECTED))?;
        Ok(Self::new(owner, name)?.on(instance))
    }
}
text_serde!(RepositoryName);
