//! Settings that follow from a start on one machine: sockets, addresses, data folders, keys, and the paths that commands of a
//! run must not read.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf, absolute},
};

use anyhow::Context;
use bootstrap::settings;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::IgnoredAny};
use tokio::net::TcpListener;

use crate::secrets::generate_token;

const PREFIX: &str = "JOURNEYMAN__";
// Suffix of a variable that names a file with a setting, usually a secret.
const FILE_SUFFIX: &str = "__FILE";

/// Subset of the settings that decides about the servers and sockets to start.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceSections {
    pub(crate) nats: ServerAddress,
    pub(crate) redis: ServerAddress,
    ingest: ServiceListen,
    planner: ServiceListen,
    executor: ServiceListen,
    reporter: ServiceListen,
    egress: ServiceListen,
    tls: Option<IgnoredAny>,
}

impl ServiceSections {
    /// Rejects settings that are impossible on one machine.
    ///
    /// # Errors
    /// The section `tls`: it is for services in separate processes.
    pub(crate) fn check(&self) -> Result<(), settings::Error> {
        match self.tls {
            None => Ok(()),
            Some(_) => Err(settings::Error::new(
                "tls",
                "is for services apart from each other: here all are one process, which speaks to itself over loopback. Leave the \
                 section out",
            )),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServerAddress {
    pub(crate) url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServiceListen {
    listen: Option<SocketAddr>,
    pools: Option<serde_json::Value>,
    gate_url: Option<String>,
    egress_url: Option<String>,
    hidden: settings::TextList,
}

/// Binds the sockets of the services, at the addresses of the settings or at free ports.
pub(crate) async fn bind_all(
    sections: &ServiceSections,
    free_ports: bool,
) -> anyhow::Result<[TcpListener; 5]> {
    let wanted = [
        (&sections.ingest, 7401),
        (&sections.planner, 7402),
        (&sections.executor, 7403),
        (&sections.reporter, 7404),
        (&sections.egress, 3128),
    ];
    let mut bound = Vec::with_capacity(wanted.len());
    for (listen, port) in wanted {
        let usual = listen
            .listen
            .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let listener = if free_ports {
            // The port stays reserved for a service that a separate process starts there later.
            servers::bind_free_port().and_then(into_async)?
        } else {
            let listener = TcpListener::bind(usual).await;
            listener.with_context(|| format!("cannot listen on {usual}"))?
        };
        bound.push(listener);
    }
    bound.try_into().map_err(|_| anyhow::anyhow!("five listeners"))
}

fn into_async(listener: std::net::TcpListener) -> std::io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Adds the settings that follow from the start: addresses, data folders, a new grant key, an API
/// token.
pub(crate) fn add_derived_settings(
    environment: &mut Vec<(String, String)>,
    sections: &ServiceSections,
    file: Option<&Path>,
    data: &Path,
    listeners: [&TcpListener; 5],
) -> anyhow::Result<SecretString> {
    let [ingest, planner, executor, reporter, egress] = listeners.map(TcpListener::local_addr);
    let (executor, reporter, egress) = (executor?, reporter?, egress?);
    for (section, address) in [
        ("INGEST", ingest?),
        ("PLANNER", planner?),
        ("EXECUTOR", executor),
        ("REPORTER", reporter),
        ("EGRESS", egress),
    ] {
        // Set even when configured: with free ports the bound address differs from the configured
        // one.
        set_variable(environment, &format!("{section}__LISTEN"), address.to_string());
    }
    if sections.planner.pools.is_none() {
        set_variable(
            environment,
            "PLANNER__POOLS__DEFAULT",
            format!("http://{executor}"),
        );
    }
    if sections.planner.gate_url.is_none() {
        set_variable(environment, "PLANNER__GATE_URL", format!("http://{reporter}/git"));
    }
    if sections.planner.egress_url.is_none() {
        set_variable(environment, "PLANNER__EGRESS_URL", format!("http://{egress}"));
    }
    for section in ["EXECUTOR", "REPORTER"] {
        let folder = data.join(section.to_lowercase());
        set_default_variable(
            environment,
            &format!("{section}__DATA_DIR"),
            folder.display().to_string(),
        );
    }
    let hidden = list_hidden_paths(&sections.executor.hidden, data, file, environment)?;
    set_variable(environment, "EXECUTOR__HIDDEN", hidden);
    // The keys are new at each start, so no grant of an earlier start is valid.
    let keys = grant::generate_key_pair();
    set_variable(environment, "PLANNER__GRANT_KEY_ID", keys.id.clone());
    set_variable(
        environment,
        "PLANNER__GRANT_KEY",
        keys.private_key.expose_secret().to_owned(),
    );
    for section in ["EXECUTOR", "REPORTER", "EGRESS"] {
        set_variable(
            environment,
            &format!("{section}__GRANT_KEYS__{}", keys.id),
            keys.public_key.clone(),
        );
    }
    let (token, sha256) = generate_token();
    set_variable(environment, "INGEST__API_TOKENS__LOCAL__SHA256", sha256);
    set_variable(environment, "INGEST__API_TOKENS__LOCAL__ROLE", "admin".to_owned());
    Ok(token)
}

/// Sets a setting and replaces an earlier value.
pub(crate) fn set_variable(environment: &mut Vec<(String, String)>, key: &str, value: String) {
    let name = format!("JOURNEYMAN__{key}");
    environment.retain(|(other, _)| *other != name);
    environment.push((name, value));
}

fn set_default_variable(environment: &mut Vec<(String, String)>, key: &str, value: String) {
    let name = format!("JOURNEYMAN__{key}");
    if !environment.iter().any(|(other, _)| *other == name) {
        environment.push((name, value));
    }
}

/// Comma-separated list of hidden paths: `configured`, the data folder with queue, tokens and work of other runs, the
/// settings file, and the files that the settings file and variables name.
///
/// All services share one machine and one process, so the secrets of each are within reach of the executor.
///
/// # Errors
/// When the working directory is unknown, or a path contains a comma, which the list could not represent.
fn list_hidden_paths(
    configured: &[String],
    data: &Path,
    file: Option<&Path>,
    environment: &[(String, String)],
) -> anyhow::Result<String> {
    let named = environment
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX) && name.ends_with(FILE_SUFFIX))
        .map(|(_, path)| PathBuf::from(path));
    let in_file = file.filter(|file| file.exists()).map(settings::secret_files);
    let named = named.chain(in_file.transpose()?.unwrap_or_default());
    let paths = configured.iter().map(PathBuf::from);
    let paths = paths.chain([data.to_owned()]).chain(file.map(Path::to_owned));
    let mut texts = Vec::new();
    // `std::path::absolute` fails for an empty path, and a variable may be empty.
    for path in paths.chain(named).filter(|path| !path.as_os_str().is_empty()) {
        let text = absolute(&path)?.display().to_string();
        anyhow::ensure!(
            !text.contains(','),
            "{text} cannot be hidden from commands: choose a path without a comma"
        );
        texts.push(text);
    }
    Ok(texts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn derive_settings(given: &[(&str, &str)]) -> Vec<(String, String)> {
        let given = given
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        crate::local::complete_settings(None, given.collect())
            .await
            .unwrap()
    }

    fn find_value<'a>(environment: &'a [(String, String)], key: &str) -> &'a str {
        let found = environment.iter().find(|(name, _)| name == key);
        &found.unwrap_or_else(|| panic!("{key}")).1
    }

    #[tokio::test]
    async fn executors_get_listening_egress_address() {
        let environment = derive_settings(&[]).await;
        let address = find_value(&environment, "JOURNEYMAN__EGRESS__LISTEN");
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        let url = find_value(&environment, "JOURNEYMAN__PLANNER__EGRESS_URL");
        assert_eq!(url, format!("http://{address}"));
        let key_id = find_value(&environment, "JOURNEYMAN__PLANNER__GRANT_KEY_ID");
        find_value(&environment, &format!("JOURNEYMAN__EGRESS__GRANT_KEYS__{key_id}"));
        let elsewhere = ("JOURNEYMAN__PLANNER__EGRESS_URL", "http://proxy.example:3128");
        let environment = derive_settings(&[elsewhere]).await;
        assert_eq!(find_value(&environment, elsewhere.0), elsewhere.1);
    }

    #[tokio::test]
    async fn one_process_speaks_to_itself_without_certificates() {
        let given = ["CERT", "KEY", "CA"].map(|key| (format!("JOURNEYMAN__TLS__{key}"), "a".to_owned()));
        let refused = crate::local::complete_settings(None, given.into())
            .await
            .unwrap_err();
        assert!(refused.to_string().starts_with("tls: "), "{refused}");
    }

    #[test]
    fn settings_and_secret_files_are_hidden() {
        let environment = [
            ("JOURNEYMAN__MODEL__API_KEY__FILE", "/secrets/key"),
            ("JOURNEYMAN__MODEL__NAME", "/not/a/file"),
            ("OTHER__FILE", "/other"),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let list = list_hidden_paths(
            &["/mine".to_owned()],
            Path::new("/data"),
            Some(Path::new("/etc/jm/settings.toml")),
            &environment,
        );
        assert_eq!(list.unwrap(), "/mine,/data,/etc/jm/settings.toml,/secrets/key");
        let relative = list_hidden_paths(&[], Path::new("/data"), Some(Path::new("here.toml")), &[]).unwrap();
        let here = std::env::current_dir().unwrap().join("here.toml");
        assert_eq!(relative, format!("/data,{}", here.display()));
        assert!(list_hidden_paths(&[], Path::new("/a,b"), None, &[]).is_err());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journeyman.toml");
        std::fs::write(&file, "[model]\napi_key = { file = \"/keys/model\" }\n").unwrap();
        let list = list_hidden_paths(&[], Path::new("/data"), Some(&file), &[]).unwrap();
        assert_eq!(list, format!("/data,{},/keys/model", file.display()));
    }
}
