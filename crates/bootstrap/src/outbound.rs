//! Way of a process to the outside, from the section `[proxy]`.

use std::path::Path;

use serde::Deserialize;
use webproxy::OutboundProxy;

use crate::settings::{self, Error};

#[derive(Default, Deserialize)]
#[serde(default)]
struct ProxySection {
    proxy: webproxy::Settings,
}

/// Makes the proxy of these settings the way of every client that this process builds later. Without
/// `[proxy]`, the variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` count.
///
/// # Errors
/// The first wrong key of `[proxy]`, or those of [`settings::load_settings`].
pub fn install_proxy(
    file: Option<&Path>,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<(), Error> {
    let section: ProxySection = settings::load_settings(file, env)?;
    let way = OutboundProxy::new(&section.proxy).map_err(|wrong| Error::new(wrong.key, wrong.problem))?;
    webproxy::install_proxy(way);
    Ok(())
}

/// Calls [`install_proxy`] with the environment of the process.
///
/// # Errors
/// Those of [`install_proxy`] and [`settings::read_environment`].
pub fn install_process_proxy(file: Option<&Path>) -> Result<(), Error> {
    install_proxy(file, settings::read_environment()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install_variables(variables: &[(&str, &str)]) -> Result<(), Error> {
        let variables = variables.iter();
        install_proxy(
            None,
            variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
    }

    #[test]
    fn wrong_proxy_is_refused_by_key() {
        for (name, value, key) in [
            ("JOURNEYMAN__PROXY__URL", "proxy.corp:3128", "proxy.url"),
            ("JOURNEYMAN__PROXY__USERNAME", "ada", "proxy.url"),
            ("JOURNEYMAN__PROXY__CA", "/no/such", "proxy.ca"),
            ("JOURNEYMAN__PROXY__NO_PROXY", "a:b", "proxy.no_proxy"),
        ] {
            assert_eq!(
                install_variables(&[(name, value)]).unwrap_err().key,
                key,
                "{name}"
            );
        }
    }

    #[test]
    fn password_comes_from_file_of_settings() {
        let folder = tempfile::tempdir().unwrap();
        let (password, file) = (
            folder.path().join("password"),
            folder.path().join("journeyman.toml"),
        );
        std::fs::write(&password, "secret\n").unwrap();
        let text = format!(
            "[proxy]\nurl = \"http://proxy.corp:3128\"\nusername = \"ada\"\npassword = {{ file = {password:?} }}\n\
             no_proxy = [\"10.0.0.0/8\"]\n"
        );
        std::fs::write(&file, text).unwrap();
        let section: ProxySection = settings::load_settings(Some(&file), []).unwrap();
        let password = section
            .proxy
            .password
            .as_ref()
            .map(secrecy::ExposeSecret::expose_secret);
        assert_eq!(password, Some("secret"));
    }
}
