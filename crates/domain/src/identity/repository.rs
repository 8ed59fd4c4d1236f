//! Names of repositories.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::identity::{InvalidId, instance::InstanceName, text_serde};

const EXPECTED: &str = "a repository such as acme/shop, ghe:acme/shop for one on the instance ghe, or \
                        folder:local/shop for the one in the folder shop";
// Separator of instance and owner in a folder name. Neither an owner nor an instance can contain it.
const IN_FOLDER: char = '+';
// The owner of every repository in a local folder.
const LOCAL_OWNER: &str = "local";

/// Name of a repository: `acme/shop` on the default GitHub, `ghe:acme/shop` on the instance `ghe`,
/// `folder:local/shop` in the local folder `shop`.
///
/// The text is its identity in keys, grants and URLs of Journeyman. [`RepositoryName::path`] is the name on
/// its server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepositoryName {
    instance: Option<InstanceName>,
    owner: String,
    name: String,
}

impl RepositoryName {
    /// Creates the name of a repository on the default instance.
    ///
    /// Both parts consist of ASCII letters, digits, `-`, `_` and `.`, have at most 100 characters, and are
    /// not `.` or `..`. These are GitHub's rules.
    ///
    /// # Errors
    /// [`InvalidId`] when a part breaks these rules.
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

    /// Returns the repository in a local folder, by the folder's name in the settings.
    pub fn in_folder(folder: &InstanceName) -> Self {
        Self {
            instance: Some(InstanceName::local()),
            owner: LOCAL_OWNER.to_owned(),
            name: folder.as_str().to_owned(),
        }
    }

    /// The local folder that contains it; absent: it is on a server.
    pub fn local_folder(&self) -> Option<InstanceName> {
        self.instance
            .as_ref()
            .filter(|instance| instance.is_local())
            .and_then(|_| self.name.parse().ok())
    }

    /// Returns the repository with the same path on this instance (absent: the default one).
    #[must_use]
    pub fn on(self, instance: Option<InstanceName>) -> Self {
        Self { instance, ..self }
    }

    /// The instance; absent: the default one.
    pub fn instance(&self) -> Option<&InstanceName> {
        self.instance.as_ref()
    }

    /// The account or organization that owns it.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The owner with its instance, e.g. `acme` or `ghe:acme`. Budgets use it as the name of an organization.
    pub fn organization(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{instance}:{}", self.owner),
            None => self.owner.clone(),
        }
    }

    /// The name without the owner.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name on its server: `acme/shop`, for any instance. It is not unique.
    pub fn path(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// A relative folder with two levels that is unique per repository: `acme/shop`, `ghe+acme/shop`.
    pub fn folder(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{instance}{IN_FOLDER}{}/{}", self.owner, self.name),
            None => self.path(),
        }
    }

    /// Parses the two levels of [`RepositoryName::folder`].
    pub fn of_folder(owner: &str, name: &str) -> Option<Self> {
        let (instance, owner) = match owner.split_once(IN_FOLDER) {
            Some((instance, owner)) => (Some(InstanceName::of_repository(instance).ok()?), owner),
            None => (None, owner),
        };
        Self::new(owner, name).ok()?.named(instance)
    }

    /// Returns the repository on an instance that a text names; absent for an impossible repository in a
    /// folder.
    fn named(self, instance: Option<InstanceName>) -> Option<Self> {
        // A folder has a single owner, so that its name has one spelling.
        let is_local = instance.as_ref().is_some_and(InstanceName::is_local);
        let named = self.on(instance);
        let is_legal = named.owner == LOCAL_OWNER && named.local_folder().is_some();
        (!is_local || is_legal).then_some(named)
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
            Some((instance, path)) => (Some(InstanceName::of_repository(instance)?), path),
            None => (None, text),
        };
        let invalid = || InvalidId::new(text, EXPECTED);
        let (owner, name) = path.split_once('/').ok_or_else(invalid)?;
        Self::new(owner, name)?.named(instance).ok_or_else(invalid)
    }
}
text_serde!(RepositoryName);
