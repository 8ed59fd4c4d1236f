//! Real `redis-server` (or `valkey-server`) on a loopback port.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::process::{DataDir, ServerProcess, launch_at_free_port, map_file_error, write_private};
use crate::{Error, ServerRemains, TlsFiles, find_program};

const NAME: &str = "redis-server";
const OTHER_NAME: &str = "valkey-server";
const VARIABLE: &str = "JOURNEYMAN_REDIS_SERVER";

/// Options of a `redis-server`.
#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    /// Path of the program; absent: `$JOURNEYMAN_REDIS_SERVER`, `PATH` and `.tools/venv/bin` are searched.
    pub program: Option<PathBuf>,
    /// Directory of settings and log; absent: a temporary one that is deleted with the server.
    pub data_dir: Option<PathBuf>,
    /// Port on 127.0.0.1; absent: a free one.
    pub port: Option<u16>,
    /// Content of an ACL file; absent: every process on this host has all rights.
    pub acl: Option<String>,
    /// Files of the server's certificate; absent: connections are plain.
    pub tls: Option<TlsFiles>,
}

/// Running `redis-server` without persistence. Dropping it kills and reaps the process.
pub struct RedisServer {
    process: ServerProcess,
    program: PathBuf,
    settings: RedisServerSettings,
    port: u16,
    // Declared last: the directory may be deleted only after the process has ended.
    data: DataDir,
}

impl RedisServer {
    /// Starts a server in a temporary directory on a free port and waits until it answers, at most a minute.
    ///
    /// # Errors
    /// See [`Error`]; the error of a server that does not start contains the end of its log.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(RedisOptions::default()).await
    }

    /// Starts a server like [`RedisServer::start`], with its files in `directory`, which is created and kept.
    ///
    /// # Errors
    /// See [`RedisServer::start`].
    pub async fn start_in(directory: &Path) -> Result<Self, Error> {
        Self::start_with(RedisOptions {
            data_dir: Some(directory.to_path_buf()),
            ..RedisOptions::default()
        })
        .await
    }

    /// Starts a server like [`RedisServer::start`], with these options.
    ///
    /// # Errors
    /// See [`RedisServer::start`].
    pub async fn start_with(options: RedisOptions) -> Result<Self, Error> {
        let program = find_redis_program(options.program.as_deref())?;
        let data = DataDir::new(options.data_dir.as_deref())?;
        let settings = RedisServerSettings {
            acl: options.acl,
            tls: options.tls,
        };
        let (process, port) = match options.port {
            Some(port) => (launch_redis(&program, data.path(), port, &settings).await?, port),
            None => {
                launch_at_free_port(async |port| launch_redis(&program, data.path(), port, &settings).await)
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

    /// Address for clients, such as `redis://127.0.0.1:6379`; unchanged by a restart.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.settings.tls.is_some() {
            "rediss"
        } else {
            "redis"
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

    /// Directory of settings and log.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// Stops the server with SIGTERM.
    pub async fn stop(&mut self) {
        self.process.stop().await;
    }

    /// Kills the server at once, like a crash.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Deletes all keys with `FLUSHALL`; only without TLS.
    ///
    /// # Errors
    /// [`Error::Files`] when the server does not answer.
    pub async fn flush(&self) -> Result<(), Error> {
        match send_redis_command(self.port, "FLUSHALL").await {
            Some(answer) if answer.starts_with("+OK") => Ok(()),
            _ => Err(map_file_error(
                self.data_dir(),
                std::io::Error::other("redis did not answer FLUSHALL"),
            )),
        }
    }

    /// Restarts the server without data on the same port. Stops it first if it runs.
    ///
    /// # Errors
    /// See [`RedisServer::start`].
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.stop().await;
        self.process = launch_redis(&self.program, self.data.path(), self.port, &self.settings).await?;
        Ok(())
    }
}

/// Version of the `redis-server` or `valkey-server` that [`RedisServer`] would start.
///
/// # Errors
/// When the program is missing, or prints no version.
pub fn redis_version(explicit: Option<&Path>) -> Result<semver::Version, Error> {
    crate::program_search::version_of(&find_redis_program(explicit)?)
}

fn find_redis_program(explicit: Option<&Path>) -> Result<PathBuf, Error> {
    find_program(NAME, explicit, VARIABLE)
        .or_else(|missing| find_program(OTHER_NAME, explicit, VARIABLE).map_err(|_| missing))
}

/// Settings that a restart keeps.
struct RedisServerSettings {
    acl: Option<String>,
    tls: Option<TlsFiles>,
}

async fn launch_redis(
    program: &Path,
    data: &Path,
    port: u16,
    settings: &RedisServerSettings,
) -> Result<ServerProcess, Error> {
    let file = data.join("redis.conf");
    let port_lines = match &settings.tls {
        None => format!("port {port}\n"),
        // Clients show no certificate: they have passwords.
        Some(files) => format!(
            "port 0\ntls-port {port}\ntls-cert-file \"{}\"\ntls-key-file \"{}\"\ntls-auth-clients no\n",
            files.certificate.display(),
            files.key.display()
        ),
    };
    // Without persistence: leases and limits live for seconds to hours, and planners rebuild budgets
    // from the journals.
    let mut text = format!(
        "bind 127.0.0.1\n{port_lines}dir \"{}\"\nsave \"\"\nappendonly no\ndaemonize no\n",
        data.display()
    );
    if let Some(acl) = &settings.acl {
        let users = data.join("users.acl");
        write_private(&users, acl)?;
        text.push_str(&format!("aclfile \"{}\"\n", users.display()));
    }
    write_private(&file, &text)?;
    let mut process = ServerProcess::spawn(NAME, program, &[file.as_path()], &data.join("redis.log"))?;
    let is_secure = settings.tls.is_some();
    process
        .ready(async |_| {
            if is_secure {
                // The server listens once it is ready. An answer would need a client that trusts its
                // authority.
                TcpStream::connect(("127.0.0.1", port)).await.ok().map(drop)
            } else {
                await_redis_answer(port).await
            }
        })
        .await?;
    Ok(process)
}

async fn await_redis_answer(port: u16) -> Option<()> {
    let answer = send_redis_command(port, "PING").await?;
    // A server with users requires authentication first.
    (answer.starts_with("+PONG") || answer.starts_with("-NOAUTH")).then_some(())
}

/// First line of the answer to one command.
async fn send_redis_command(port: u16, command: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    stream.write_all(format!("{command}\r\n").as_bytes()).await.ok()?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await.ok()?;
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn redis_keeps_address_over_restart() {
        let mut server = RedisServer::start().await.unwrap();
        let url = server.url();
        server.restart().await.unwrap();
        assert_eq!(server.url(), url);
        let pid = server.pid();
        drop(server);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[tokio::test]
    async fn used_port_is_recognized() {
        let taken = crate::bind_free_port().unwrap();
        let port = Some(taken.local_addr().unwrap().port());
        let options = RedisOptions {
            port,
            ..RedisOptions::default()
        };
        let error = RedisServer::start_with(options).await.err().unwrap();
        assert!(crate::process::is_port_in_use(&error), "{error}");
    }

    #[tokio::test]
    async fn flushed_redis_has_no_keys() {
        let server = RedisServer::start().await.unwrap();
        assert!(
            send_redis_command(server.port, "SET a 1")
                .await
                .unwrap()
                .starts_with("+OK")
        );
        assert!(
            send_redis_command(server.port, "EXISTS a")
                .await
                .unwrap()
                .starts_with(":1")
        );
        server.flush().await.unwrap();
        assert!(
            send_redis_command(server.port, "EXISTS a")
                .await
                .unwrap()
                .starts_with(":0")
        );
    }

    #[test]
    fn the_version_of_the_server_is_known() {
        assert!(redis_version(None).unwrap().major >= 6);
    }
}
