//! Names of repositories.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    instance::Instance,
    invalid::{InvalidId, text_serde},
};

const EXPECTED: &str = "a repository such as acme/shop, ghe:acme/shop for one on the instance ghe, or \
                        folder:local/shop for the one in the folder shop";
/// Separates instance and owner in the name of a folder; no owner and no instance contains it.
const IN_FOLDER: char = '+';
/// The owner of every repository in a local folder.
const LOCAL_OWNER: &str = "local";

/// A repository: `acme/shop` on the default GitHub, `ghe:acme/shop` on the instance `ghe`, `folder:local/shop` in the
/// local folder `shop`.
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

    /// The repository in a local folder, by the name that the settings give the folder.
    pub fn in_folder(folder: &Instance) -> Self {
        Self {
            instance: Some(Instance::local()),
            owner: LOCAL_OWNER.to_owned(),
            name: folder.as_str().to_owned(),
        }
    }

    /// The local folder that it is in; absent: it is on a server.
    pub fn local_folder(&self) -> Option<Instance> {
        self.instance
            .as_ref()
            .filter(|instance| instance.is_local())
            .and_then(|_| self.name.parse().ok())
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

    /// The owner's name on its instance, e.g. `acme` or `ghe:acme`: what budgets call an organization.
    pub fn organization(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{instance}:{}", self.owner),
            None => self.owner.clone(),
        }
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
            Some((instance, owner)) => (Some(Instance::of_repository(instance).ok()?), owner),
            None => (None, owner),
        };
        Self::new(owner, name).ok()?.named(instance)
    }

    /// The same on an instance that a text names; absent when it would be in a folder that cannot be.
    fn named(self, instance: Option<Instance>) -> Option<Self> {
        let is_local = instance.as_ref().is_some_and(Instance::is_local);
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
            Some((instance, path)) => (Some(Instance::of_repository(instance)?), path),
            None => (None, text),
        };
        let invalid = || InvalidId::new(text, EXPECTED);
        let (owner, name) = path.split_once('/').ok_or_else(invalid)?;
        Self::new(owner, name)?.named(instance).ok_or_else(invalid)
    }
}
text_serde!(RepositoryName);
