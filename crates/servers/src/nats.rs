//! Real `nats-server` with `JetStream` on a loopback port.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::process::{DataDir, ServerProcess, launch_at_free_port, write_private};
use crate::{Error, ServerRemains, find_program};

const NAME: &str = "nats-server";
const VARIABLE: &str = "JOURNEYMAN_NATS_SERVER";
// Largest message in bytes, as in the manifests.
const MAX_PAYLOAD: u32 = 8 * 1024 * 1024;

/// Time at which messages of the file store reach the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileSync {
    /// At the server's default interval of two minutes: fast. A crash of the host loses the last messages, a
    /// crash of the process none.
    #[default]
    Interval,
    /// Before every acknowledgment, as in the cluster of the manifests.
    Always,
}

/// Options of a `nats-server`.
#[derive(Debug, Clone, Default)]
pub struct NatsOptions {
    /// Path of the program; absent: `$JOURNEYMAN_NATS_SERVER`, `PATH` and `.tools/venv/bin` are searched.
    pub program: Option<PathBuf>,
    /// Directory of data, settings and log; absent: a temporary one that is deleted with the server.
    pub data_dir: Option<PathBuf>,
    /// Port on 127.0.0.1; absent: a free one.
    pub port: Option<u16>,
    /// Time at which messages reach the disk.
    pub sync: FileSync,
    /// Block `authorization` of the configuration; absent: every process on this host has all rights.
    pub authorization: Option<String>,
    /// Files of the server's certificate; absent: connections are plain.
    pub tls: Option<TlsFiles>,
    /// Limit of the file store in bytes; absent: the server's default, a share of the free disk.
    pub max_file_store: Option<u64>,
    /// Servers of the cluster; absent: a single server.
    pub cluster: Option<ClusterMember>,
}

/// Position of one server in a cluster.
#[derive(Debug, Clone)]
pub struct ClusterMember {
    /// Name of the server, unique in the cluster.
    pub name: String,
    /// Port on 127.0.0.1 for the routes from the other servers.
    pub route_port: u16,
    /// Route ports of all servers of the cluster.
    pub peer_ports: Vec<u16>,
}

/// PEM files of a server.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Certificate of the server.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
    /// Authorities of client certificates, which the server then requires.
    pub clients: Option<PathBuf>,
}

/// Running `nats-server` with a file store. Dropping it kills and reaps the process.
pub struct NatsServer {
    process: ServerProcess,
    program: PathBuf,
    settings: NatsServerSettings,
    port: u16,
    // Declared last: the directory may be deleted only after the process has ended.
    data: DataDir,
}

impl NatsServer {
    /// Starts a server in a temporary directory on a free port and waits until it answers, at most a minute.
    ///
    /// # Errors
    /// See [`Error`]; the error of a server that does not start contains the end of its log.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(NatsOptions::default()).await
    }

    /// Starts a server like [`NatsServer::start`], with its data in `directory`, which is created and kept.
    ///
    /// # Errors
    /// See [`NatsServer::start`].
    pub async fn start_in(directory: &Path) -> Result<Self, Error> {
        Self::start_with(NatsOptions {
            data_dir: Some(directory.to_path_buf()),
            ..NatsOptions::default()
        })
        .await
    }

    /// Starts a server like [`NatsServer::start`], with these options.
    ///
    /// # Errors
    /// See [`NatsServer::start`].
    pub async fn start_with(options: NatsOptions) -> Result<Self, Error> {
        let program = find_program(NAME, options.program.as_deref(), VARIABLE)?;
        let data = DataDir::new(options.data_dir.as_deref())?;
        let settings = NatsServerSettings {
            sync: options.sync,
            authorization: options.authorization,
            tls: options.tls,
            max_file_store: options.max_file_store,
            cluster: options.cluster,
        };
        let (process, port) = match options.port {
            Some(port) => (launch_nats(&program, data.path(), port, &settings).await?, port),
            None => {
                launch_at_free_port(async |port| launch_nats(&program, data.path(), port, &settings).await)
                    .await?
            }
        };
        Ok(Self {
            process,
            program,
            settings,
            port,
            data,
        })
    }

    /// Address for clients, such as `nats://127.0.0.1:4222`; unchanged by a restart.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.settings.tls.is_some() {
            "tls"
        } else {
            "nats"
        };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Server that an earlier start left in the data directory because it did not end in order.
    #[must_use]
    pub fn remains(&self) -> Option<&ServerRemains> {
        self.process.remains()
    }

    /// Process id; changed by a restart.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Directory of data, settings and log.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// Folder with the files of a stream, in the data directory of a server.
    #[must_use]
    pub fn stream_files(data_dir: &Path, stream: &str) -> PathBuf {
        data_dir.join("nats/jetstream/$G/streams").join(stream)
    }

    /// Port on 127.0.0.1 for clients; unchanged by a restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Status and body of the server's monitoring endpoint at a path such as `/healthz`.
    ///
    /// # Errors
    /// When the endpoint does not answer.
    pub async fn monitor(&self, path: &str) -> std::io::Result<(u16, String)> {
        let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "the monitor has no port");
        let file = std::fs::read_to_string(self.data.path().join(format!("{NAME}_{}.ports", self.pid())))?;
        let port = port_in(&file, "monitoring").ok_or_else(missing)?;
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        // With HTTP/1.0 the server closes the connection after its answer, which ends the read below.
        let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let status = answer.split_ascii_whitespace().nth(1);
        let status = status
            .and_then(|status| status.parse().ok())
            .ok_or_else(missing)?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        Ok((status, body.to_owned()))
    }

    /// Stops the server with SIGTERM; its data remains until the value is dropped.
    pub async fn stop(&mut self) {
        self.process.stop().await;
    }

    /// Kills the server at once, like a crash.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Restarts the server with the same data on the same port. Stops it first if it runs.
    ///
    /// # Errors
    /// See [`NatsServer::start`].
    pub async fn restart(&mut self) -> Result<(), Error> {
        // The port and the store are free only after the old process has ended.
        self.stop().await;
        self.process = launch_nats(&self.program, self.data.path(), self.port, &self.settings).await?;
        Ok(())
    }
}

/// Version of the `nats-server` that [`NatsServer`] would start.
///
/// # Errors
/// When the program is missing, or prints no version.
pub fn nats_version(explicit: Option<&Path>) -> Result<semver::Version, Error> {
    crate::program_search::version_of(&find_program(NAME, explicit, VARIABLE)?)
}

async fn launch_nats(
    program: &Path,
    data: &Path,
    port: u16,
    settings: &NatsServerSettings,
) -> Result<ServerProcess, Error> {
    let file = data.join("nats.conf");
    write_private(&file, &settings.text(data, port))?;
    let args = [Path::new("--config"), file.as_path()];
    let mut process = ServerProcess::spawn(NAME, program, &args, &data.join("nats.log"))?;
    process.ready(async |pid| await_greeting(data, pid).await).await?;
    Ok(process)
}

/// Settings that a restart keeps.
struct NatsServerSettings {
    sync: FileSync,
    authorization: Option<String>,
    tls: Option<TlsFiles>,
    max_file_store: Option<u64>,
    cluster: Option<ClusterMember>,
}

impl NatsServerSettings {
    fn text(&self, data: &Path, port: u16) -> String {
        let sync = match self.sync {
            FileSync::Interval => "2m",
            FileSync::Always => "always",
        };
        let data = data.display();
        let authorization = self.authorization.as_deref().unwrap_or_default();
        let tls = self.tls.as_ref().map_or_else(String::new, |files| {
            let (certificate, key) = (files.certificate.display(), files.key.display());
            let clients = files.clients.as_ref().map_or_else(String::new, |file| {
                format!(", ca_file: \"{}\", verify: true", file.display())
            });
            format!("tls {{ cert_file: \"{certificate}\", key_file: \"{key}\"{clients} }}\n")
        });
        let limit = self
            .max_file_store
            .map_or_else(String::new, |bytes| format!(", max_file_store: {bytes}"));
        let cluster = self
            .cluster
            .as_ref()
            .map_or_else(String::new, ClusterMember::text);
        format!(
            "host: \"127.0.0.1\"\nport: {port}\nhttp: \"127.0.0.1:-1\"\nports_file_dir: \"{data}\"\nmax_payload: {MAX_PAYLOAD}\n\
             jetstream {{ store_dir: \"{data}/nats\", sync_interval: {sync}{limit} }}\n{cluster}{tls}{authorization}"
        )
    }
}

impl ClusterMember {
    fn text(&self) -> String {
        let Self {
            name,
            route_port,
            peer_ports,
        } = self;
        let routes: Vec<String> = peer_ports
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"))
            .collect();
        format!(
            "server_name: \"{name}\"\ncluster {{ name: journeyman, listen: \"127.0.0.1:{route_port}\", routes: [{}] }}\n",
            routes.join(", ")
        )
    }
}

/// Waits for the greeting of the server with this process id, at the port in the file that it writes; `None` without one.
async fn await_greeting(data: &Path, pid: u32) -> Option<()> {
    let file = std::fs::read_to_string(data.join(format!("{NAME}_{pid}.ports"))).ok()?;
    let port = port_in(&file, "nats")?;
    let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let mut greeting = String::new();
    BufReader::new(stream).read_line(&mut greeting).await.ok()?;
    // Every caller uses `JetStream`, so a server without it does not count as ready.
    (greeting.starts_with("INFO ") && greeting.contains("\"jetstream\":true")).then_some(())
}

fn port_in(ports_file: &str, service: &str) -> Option<u16> {
    let (_, rest) = ports_file.split_once(&format!("\"{service}\":["))?;
    let (_, rest) = rest.split_once("://")?;
    let (address, _) = rest.split_once('"')?;
    address.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::is_port_in_use;

    #[test]
    fn port_is_parsed_from_ports_file() {
        let file = r#"{"nats":["nats://127.0.0.1:4222"],"monitoring":["http://127.0.0.1:8222"]}"#;
        assert_eq!(port_in(file, "nats"), Some(4222));
        assert_eq!(port_in(file, "monitoring"), Some(8222));
        assert_eq!(port_in("{}", "nats"), None);
    }

    #[tokio::test]
    async fn nats_keeps_address_over_crash() {
        let mut server = NatsServer::start().await.unwrap();
        let url = server.url();
        server.kill();
        server.restart().await.unwrap();
        assert_eq!(server.url(), url);
        let pid = server.pid();
        drop(server);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[tokio::test]
    async fn port_in_use_error_shows_log() {
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = Some(taken.local_addr().unwrap().port());
        let error = NatsServer::start_with(NatsOptions {
            port,
            ..NatsOptions::default()
        })
        .await
        .err()
        .unwrap();
        assert!(error.to_string().contains("address already in use"), "{error}");
        assert!(
            is_port_in_use(&error),
            "another port is tried where none was given"
        );
    }
}
