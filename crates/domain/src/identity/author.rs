//! Names and mail addresses in commits: author, committer, co-authors.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Maximum length of a name with its address, in characters.
const MOST_CHARS: usize = 200;

/// A name with a mail address, written `Name <address>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitAuthor {
    name: String,
    address: String,
}

/// Error for a text that does not have the form `Name <address>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongAuthor;

impl fmt::Display for WrongAuthor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("must be `Name <address>` on one line")
    }
}

impl std::error::Error for WrongAuthor {}

impl CommitAuthor {
    /// The author of commits when neither settings nor rules name one. `.invalid` is a reserved domain (RFC
    /// 2606), so the address belongs to no account.
    pub fn journeyman() -> Self {
        Self {
            name: "Journeyman".to_owned(),
            address: "noreply@journeyman.invalid".to_owned(),
        }
    }

    /// The author of commits that releases before the setting made; branches from these releases still
    /// contain it.
    // The address belongs to the GitHub account with this login, which is not ours.
    pub fn of_earlier_releases() -> Self {
        Self {
            name: "Journeyman".to_owned(),
            address: "journeyman@users.noreply.github.com".to_owned(),
        }
    }

    /// Returns the author for a GitHub account by number and login, with the `noreply` address that GitHub
    /// assigns to accounts with private mail.
    ///
    /// `host` is the host name of the server's pages. `None` when the login cannot be part of an author.
    pub fn of_github(host: &str, number: u64, login: &str) -> Option<Self> {
        format!("{login} <{number}+{login}@users.noreply.{host}>")
            .parse()
            .ok()
    }

    /// The name part of the author.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The mail address, without angle brackets.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Default for CommitAuthor {
    fn default() -> Self {
        Self::journeyman()
    }
}

impl FromStr for CommitAuthor {
    type Err = WrongAuthor;

    fn from_str(text: &str) -> Result<Self, WrongAuthor> {
        let text = text.trim();
        let parts = text.strip_suffix('>').and_then(|text| text.split_once(" <"));
        // A line break would add a trailer to the commit message, such as a foreign sign-off.
        let is_plain = |part: &str| {
            !part.trim().is_empty() && !part.contains(['<', '>']) && !part.contains(char::is_control)
        };
        match parts {
            Some((name, address))
                if text.chars().count() <= MOST_CHARS
                    && is_plain(name)
                    && is_plain(address)
                    && address.contains('@')
                    && !address.contains(char::is_whitespace) =>
            {
                Ok(Self {
                    name: name.trim().to_owned(),
                    address: address.to_owned(),
                })
            }
            _ => Err(WrongAuthor),
        }
    }
}

impl TryFrom<String> for CommitAuthor {
    type Error = WrongAuthor;

    fn try_from(text: String) -> Result<Self, WrongAuthor> {
        text.parse()
    }
}

impl From<CommitAuthor> for String {
    fn from(author: CommitAuthor) -> Self {
        author.to_string()
    }
}

impl fmt::Display for CommitAuthor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} <{}>", self.name, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_of_github_has_its_private_address() {
        let author = CommitAuthor::of_github("github.com", 17, "acme-journeyman[bot]").unwrap();
        assert_eq!(
            author.to_string(),
            "acme-journeyman[bot] <17+acme-journeyman[bot]@users.noreply.github.com>"
        );
        assert_eq!(author.to_string().parse(), Ok(author));
        assert_eq!(CommitAuthor::of_github("github.com", 1, "a\nb"), None);
    }

    #[test]
    fn text_without_name_or_address_is_refused() {
        for text in [
            "",
            "Ada",
            "<ada@acme.example>",
            "Ada <ada>",
            "Ada <a@b> <c@d>",
            "A\u{7} <a@b>",
        ] {
            assert_eq!(text.parse::<CommitAuthor>(), Err(WrongAuthor), "{text:?}");
        }
    }
}
