//! Address and token of the API, for commands that are its clients.

use std::{
    ffi::OsString,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use api::Client;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    args,
    user_files::{self, replace_file},
};

/// File of `journeyman up` with its address and token, in its data folder.
const ACCESS_FILE: &str = "api.json";
/// File of `journeyman login` with addresses and tokens, the last login first.
const LOGINS_FILE: &str = "logins.json";
/// Variable that may hold a token.
const TOKEN_VARIABLE: &str = "JOURNEYMAN_TOKEN";

/// Address with its token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApiAccess {
    /// Base URL.
    pub(crate) url: String,
    pub(crate) token: String,
}

impl ApiAccess {
    /// Access of a client.
    pub(crate) fn of(client: &Client) -> Self {
        Self {
            url: client.url().to_owned(),
            token: client.token().expose_secret().to_owned(),
        }
    }
}

#[cfg(feature = "local")]
impl ApiAccess {
    /// Writes the file for other commands of the same user.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn save(&self, data: &Path) -> anyhow::Result<()> {
        write_private_json(&data.join(ACCESS_FILE), self)
    }

    /// Removes the file.
    pub(crate) fn forget(data: &Path) {
        // A file that is already gone needs no removal, and the process is about to end.
        let _ = std::fs::remove_file(data.join(ACCESS_FILE));
    }
}

/// File of logins whose content is something else. The parser's text is left out, because it may quote a token.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is not a list of logins (line {line}, column {column}), so no login is read or stored: correct it, or remove it \
     by `journeyman login URL --forget`",
    path.display()
)]
pub(crate) struct BrokenLogins {
    path: PathBuf,
    line: usize,
    column: usize,
}

impl BrokenLogins {
    /// Removes the file and returns its path.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub(crate) fn remove(&self) -> anyhow::Result<String> {
        let path = self.path.display().to_string();
        std::fs::remove_file(&self.path).with_context(|| format!("cannot remove {path}"))?;
        Ok(path)
    }
}

/// Logins of this user.
pub(crate) struct SavedLogins {
    path: PathBuf,
    known: Vec<ApiAccess>,
}

impl SavedLogins {
    /// Reads the logins from the user's configuration.
    ///
    /// # Errors
    /// [`BrokenLogins`] for a file that is not a list of logins, and when the file cannot be read or the user has
    /// no folder for configuration.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let path = user_files::find_config_folder()
            .context("logins have no folder, because HOME is not set: set it, or XDG_CONFIG_HOME")?;
        let path = path.join(LOGINS_FILE);
        Self::read_file(path)
    }

    fn read_file(path: PathBuf) -> anyhow::Result<Self> {
        let known = match std::fs::read(&path) {
            // A broken file may hold the tokens of other addresses, so no login replaces it.
            Ok(text) => serde_json::from_slice(&text).map_err(|error| BrokenLogins {
                path: path.clone(),
                line: error.line(),
                column: error.column(),
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        Ok(Self { path, known })
    }

    /// Stores a login and makes it the default.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn keep(mut self, access: ApiAccess) -> anyhow::Result<()> {
        self.known.retain(|known| known.url != access.url);
        self.known.insert(0, access);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        write_private_json(&self.path, &self.known)
    }

    /// Removes a login; false when it does not exist.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn forget(mut self, url: &str) -> anyhow::Result<bool> {
        let before = self.known.len();
        self.known.retain(|known| known.url != url);
        if self.known.len() == before {
            return Ok(false);
        }
        write_private_json(&self.path, &self.known)?;
        Ok(true)
    }
}

/// Writes a file that only this user can read, and replaces an existing one.
fn write_private_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let content = serde_json::to_vec(value)?;
    replace_file(path, &content, 0o600).with_context(|| format!("cannot write {}", path.display()))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Access of the `journeyman up` that uses the folder `.journeyman`.
fn read_local_access() -> Option<ApiAccess> {
    read_json(&Path::new(".journeyman").join(ACCESS_FILE))
}

/// Address of the local `journeyman up`.
#[cfg(feature = "local")]
pub(crate) fn local_url() -> Option<String> {
    read_local_access().map(|access| access.url)
}

/// Client from the arguments, the environment, the `journeyman up` of the folder `.journeyman`, or the last login.
///
/// # Errors
/// When address or token are in none of these places.
pub(crate) fn build_client(arguments: &args::ApiArguments) -> anyhow::Result<Client> {
    let token = match arguments.token_file.as_deref() {
        Some(file) => Some(token_in(file)?),
        None => parse_token_variable(std::env::var_os(TOKEN_VARIABLE))?,
    };
    // Without HOME or with a broken file there are no logins, but the arguments may name address and token.
    let (logins, broken) = match SavedLogins::read() {
        Ok(logins) => (logins.known, None),
        Err(error) => (Vec::new(), error.downcast::<BrokenLogins>().ok()),
    };
    // The local `journeyman up` has precedence, because it belongs to the current folder.
    let known = Vec::from_iter(read_local_access().into_iter().chain(logins));
    let ApiAccess { url, token } = match (choose_access(arguments.url.as_deref(), token, known), broken) {
        (Err(missing), Some(broken)) => return Err(anyhow::Error::from(missing).context(broken)),
        (chosen, _) => chosen?,
    };
    Ok(Client::new(&url, SecretString::from(token))?)
}

/// Token of the environment. An empty variable counts as a missing one.
///
/// # Errors
/// When the variable is not UTF-8.
fn parse_token_variable(value: Option<OsString>) -> anyhow::Result<Option<String>> {
    let Some(value) = value else { return Ok(None) };
    let Ok(token) = value.into_string() else {
        bail!("{TOKEN_VARIABLE} is not UTF-8: set it to a token that `journeyman token` printed");
    };
    Ok(Some(token.trim().to_owned()).filter(|token| !token.is_empty()))
}

/// Token from a file; `-` is standard input.
///
/// # Errors
/// When the file is unreadable or empty.
pub(crate) fn token_in(file: &Path) -> anyhow::Result<String> {
    let text = match file.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()),
        _ => std::fs::read_to_string(file),
    };
    let text = text.with_context(|| format!("cannot read the token in {}", file.display()))?;
    match text.trim() {
        "" => bail!(
            "{} contains no token: write the one that `journeyman token` printed into it",
            file.display()
        ),
        token => Ok(token.to_owned()),
    }
}

/// Missing token, with the remedy as its message.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoToken(String);

/// Picks address and token. A stored token is only ever sent to the address of its login.
fn choose_access(
    url: Option<&str>,
    token: Option<String>,
    known: Vec<ApiAccess>,
) -> Result<ApiAccess, NoToken> {
    let url = url.map(|url| url.trim_end_matches('/'));
    let known = known
        .into_iter()
        // The addresses are compared as texts, and `journeyman login` stores them without a trailing
        // slash.
        .find(|known| url.is_none_or(|url| url == known.url));
    match (url, token, known) {
        (url, None, Some(known)) => Ok(ApiAccess {
            url: url.map_or(known.url, ToOwned::to_owned),
            token: known.token,
        }),
        (Some(url), Some(token), _) => Ok(ApiAccess {
            url: url.to_owned(),
            token,
        }),
        (None, Some(token), Some(known)) => Ok(ApiAccess {
            url: known.url,
            token,
        }),
        (Some(url), None, None) => Err(NoToken(format!(
            "no token for {url}: `journeyman login {url} --token-file FILE`, or give --token-file FILE (or JOURNEYMAN_TOKEN)"
        ))),
        (None, _, None) => Err(NoToken(
            "no API: start `journeyman up` here, or give --api URL and --token-file FILE (or JOURNEYMAN_TOKEN), or `journeyman login URL`"
                .to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_api_access(url: &str, token: &str) -> ApiAccess {
        ApiAccess {
            url: url.to_owned(),
            token: token.to_owned(),
        }
    }

    #[test]
    fn stored_token_goes_to_its_address_only() {
        let known = || {
            vec![
                build_api_access("http://here", "local"),
                build_api_access("https://there", "kept"),
            ]
        };
        let chosen =
            |url, token: Option<&str>| choose_access(url, token.map(ToOwned::to_owned), known()).ok();
        assert_eq!(chosen(None, None), Some(build_api_access("http://here", "local")));
        assert_eq!(
            chosen(Some("https://there/"), None),
            Some(build_api_access("https://there", "kept"))
        );
        assert_eq!(chosen(Some("https://elsewhere"), None), None);
        assert_eq!(
            chosen(Some("https://elsewhere"), Some("own")),
            Some(build_api_access("https://elsewhere", "own"))
        );
        assert_eq!(
            chosen(None, Some("own")),
            Some(build_api_access("http://here", "own"))
        );
    }

    #[test]
    fn empty_token_variable_counts_as_missing() {
        use std::os::unix::ffi::OsStringExt;
        let parse = |text: &str| parse_token_variable(Some(text.into())).unwrap();
        assert_eq!(parse(" jm_1\n").as_deref(), Some("jm_1"));
        assert_eq!(parse(" \n"), None);
        assert_eq!(parse_token_variable(None).unwrap(), None);
        let other = OsString::from_vec(vec![0xff]);
        assert!(parse_token_variable(Some(other)).is_err());
    }

    #[test]
    fn broken_logins_are_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logins.json");
        for text in [
            "",
            "[{\"url\": \"https://a\", \"token\": \"jm_1\"",
            "{\"token\": \"jm_1\"}",
            "\"jm_1\"",
        ] {
            std::fs::write(&path, text).unwrap();
            let refused = SavedLogins::read_file(path.clone()).err().unwrap();
            let shown = format!("{refused:#}");
            assert!(shown.contains("--forget") && !shown.contains("jm_1"), "{shown}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            refused.downcast::<BrokenLogins>().unwrap().remove().unwrap();
            assert!(SavedLogins::read_file(path.clone()).unwrap().known.is_empty());
        }
        // A file that exists and cannot be read is not missing.
        let refused = SavedLogins::read_file(folder.path().to_owned()).err().unwrap();
        assert!(refused.downcast::<BrokenLogins>().is_err());
    }

    #[test]
    fn login_replaces_same_address_and_comes_first() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journeyman/logins.json");
        let logins = || SavedLogins::read_file(path.clone()).unwrap();
        for (url, token) in [("https://a", "1"), ("https://b", "2"), ("https://a", "3")] {
            logins().keep(build_api_access(url, token)).unwrap();
        }
        assert_eq!(
            logins().known,
            [
                build_api_access("https://a", "3"),
                build_api_access("https://b", "2")
            ]
        );
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(logins().forget("https://a").unwrap());
        assert!(!logins().forget("https://a").unwrap());
        assert_eq!(logins().known, [build_api_access("https://b", "2")]);
    }
}
